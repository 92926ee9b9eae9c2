# `make demo` and `make test` need nothing but Python 3.11+, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := constraints.txt

.PHONY: demo test test-all lint bench reproduce clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/unaligned demo

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 -m "not slow" src tests

test-all: lint
	$(BIN)/python -m pytest src tests

bench: $(VENV)/.installed-test
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

reproduce: $(VENV)/.installed
	$(BIN)/unaligned reproduce tori --quick --out results/tori
	$(BIN)/unaligned reproduce aligned --quick --out results/aligned

clean:
	rm -rf $(VENV) build dist results .pytest_cache .mypy_cache .ruff_cache
