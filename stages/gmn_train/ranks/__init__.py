"""Several processes that share a run: how they start, find each other, split a step, and end."""
