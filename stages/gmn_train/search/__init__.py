"""`gmn-train search`: settings of model and training, tried within a time and judged by validation alone.

`space.py` says what is tried, `searching.py` tells the story. Needs Optuna: the extra `search`.
"""
