# Everything runs in .venv, which is made when it is missing and renewed when the dependencies change.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
DEMO := data/demo
DEMO_EPOCHS ?= 40
MINUTES ?= 20
SEED ?= 0
TABLES := leave-one-out ladder long-range far-sensitivity minesweeper minesweeper-curve minesweeper-ablation minesweeper-grid sensitivity peptides-func malnet-tiny arxiv-efficiency

.PHONY: demo test lint format bench results tutorial torture docs clean help

help:
	@echo "make demo   the whole story: generate, tokenize, train, predict, report"
	@echo "make test   lint, types and all tests"
	@echo "make bench  every speed claim, ours beside its peer"
	@echo "make results  every table of results, from docs/tables"
	@echo "make tutorial  the tutorial's outputs, from its own commands"
	@echo "make torture  tries to break everything, for MINUTES=20"
	@echo "make docs   the documentation as a site, into site/"
	@echo "make format sort imports and format the sources"

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "== making $(VENV) and installing (a few minutes the first time)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,lint]"
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	@echo "== installing the benchmarks' peers"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation torch_cluster
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	@echo "== installing what the site is made with"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@

demo: $(VENV)/.ready
	@mkdir -p $(DEMO)
	@echo "== tokenize a generated Minesweeper grid of 10,000 cells"
	$(BIN)/gmn-prep tokenize --dataset minesweeper-grid --m 2 --M 8 --s 1 --out $(DEMO)/grid.zarr
	@echo "== draw the tokens of one cell, check every byte"
	$(BIN)/gmn-prep inspect $(DEMO)/grid.zarr --node 5050 --png $(DEMO)/tokens.png
	$(BIN)/gmn-prep verify $(DEMO)/grid.zarr
	@echo "== train: where are the mines?"
	$(BIN)/gmn-train run --store $(DEMO)/grid.zarr --epochs $(DEMO_EPOCHS) --lr 0.01 --set model.node_layers=3 --set model.width=32 --run-dir $(DEMO)/run
	@echo "== predict, and write the report"
	$(BIN)/gmn-train predict $(DEMO)/run --out $(DEMO)/predictions.parquet --embeddings
	$(BIN)/gmn-train report $(DEMO)/run --out $(DEMO)/report.html

lint: $(VENV)/.ready
	@echo "== ruff and mypy"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	@echo "== tests"
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	@echo "== benchmarks: ours beside each peer, best of several"
	$(BIN)/python -m tests.benchmarks --markdown docs/benchmarks.md
	$(BIN)/python -m tests.benchmarks.train.bench_model --plot docs/images/model-scaling.png

results: $(VENV)/.ready
	@echo "== tables of results: hours; what is done is skipped"
	$(BIN)/gmn-train table $(TABLES:%=docs/tables/%.toml) --jobs 2 --threads 1 --markdown docs/results.md

tutorial: $(VENV)/.ready
	@echo "== the tutorial's commands, and their outputs into the page"
	$(BIN)/python -m tests.tutorial

torture: $(VENV)/.ready
	@echo "== kills, bit flips, forgeries, failing disks: $(MINUTES) minutes at most"
	nice $(BIN)/python -m tests.torture --minutes $(MINUTES) --seed $(SEED) --write docs/reliability.md

docs: $(VENV)/.docs
	@echo "== documentation"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open site/index.html; its search needs a server: python3 -m http.server -d site"

clean:
	rm -rf $(VENV) $(DEMO) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
