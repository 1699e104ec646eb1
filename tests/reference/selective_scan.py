"""Slow twin of `gmn_train.model.scan`: the recurrence in Python floats, as the definition reads."""

from math import exp


def scan_one(u, delta, A, B, C, D, reverse):
    """Scan one sequence of nested lists: u, delta [length][channels], A [channels][states], B, C [length][states]."""
    length, channels, states = len(u), len(A), len(A[0]) if A else 0
    y = [[0.0] * channels for _ in range(length)]
    h = [[0.0] * states for _ in range(channels)]
    for t in reversed(range(length)) if reverse else range(length):
        for c in range(channels):
            for n in range(states):
                h[c][n] = exp(delta[t][c] * A[c][n]) * h[c][n] + delta[t][c] * B[t][n] * u[t][c]
            y[t][c] = sum(C[t][n] * h[c][n] for n in range(states)) + D[c] * u[t][c]
    return y
