"""The command `gmn-train`. Each command parses, calls one function, reports."""

from gmn_pipeline.cli import make_app, run_app

app = make_app("Train Graph Mamba Networks from token stores.")


def main() -> None:
    run_app(app)
