# `make demo` and `make test` need nothing but Python 3.11+, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := constraints.txt

.PHONY: demo test test-all lint bench reproduce docs clean

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

# The peers of LES need POT, gudhi and ripser.
$(VENV)/.installed-peers: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[transport,topology]'
	touch $@

reproduce: $(VENV)/.installed-peers
	for name in tori scaling topology aligned sensitivity cells; do \
		$(BIN)/unaligned reproduce $$name --quick --out results/$$name || exit 1; done

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# The site, with warnings as errors; open build/site/index.html.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/site

clean:
	rm -rf $(VENV) build dist results docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
