# Two commands matter: `make demo` and `make test`. Both set up all that they need.
VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed

.PHONY: demo test lint bench setup clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   run the main job: earthquakes and flights through three replicated brokers"
	@echo "make test   pass the tests"
	@echo "make lint   ruff, mypy --strict, import-linter"
	@echo "make bench  the figures of benchmarks/RESULTS.md, beside Apache Kafka where it can be had"

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@./scripts/setup $(VENV)
	@touch $@

setup: $(STAMP)

demo: $(STAMP)
	@$(VENV)/bin/sparklog demo $(DEMO_OPTIONS)

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: $(STAMP) lint
	@./scripts/setup --check-kcat
	$(PYTHON) -m pytest

bench: $(STAMP)
	@./benchmarks/setup $(abspath $(PYTHON))
	@$(PYTHON) benchmarks/run.py $(BENCH_OPTIONS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
