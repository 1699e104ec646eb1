"""Walks, their unions, and the subgraphs they induce."""
