"""`python -m gmn_train`, as torchrun starts it: `torchrun --nproc-per-node N -m gmn_train run ...`."""

from gmn_train.cli import main

main()
