"""The torture campaign: kills, bit flips, forged and malformed data, odd options, failing disks, crowds.

    python -m tests.torture --minutes 20 --seed 0

It lies outside the test suite, takes as long as it is given, and ends with a table of what was tried and what failed.
A case is a function of a seed; `--repeat CAMPAIGN:SEED:NUMBER` tries one again and shows what it printed.
"""
