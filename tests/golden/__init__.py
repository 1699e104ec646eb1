"""Bits that a refactor must not change: stores and final weights of small runs, recorded once per kind of processor."""
