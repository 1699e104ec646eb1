"""Every speed claim, ours beside its peer: `make bench`, or `python -m tests.benchmarks NAME ...`."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as gmn-train has it, for ours and peers alike; before torch
