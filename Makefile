# `make demo` and `make test` need nothing but Python 3.11+, make and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := constraints.txt

.PHONY: demo test test-all lint bench reproduce docs dist test-oldest clean

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

# Tables and figures need pandas and matplotlib, the peers of LES POT, gudhi and ripser.
$(VENV)/.installed-peers: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[plot,pandas,transport,topology]'
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

$(VENV)/.installed-release: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet 'build>=1.2' 'twine>=6'
	touch $@

# sdist and wheel, checked, and the wheel installed and used in an environment of its own.
dist: $(VENV)/.installed-release
	rm -rf dist build/clean
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet dist/*.whl
	build/clean/bin/python -W error -c 'import unaligned; print(unaligned.__version__)'
	build/clean/bin/python -W error tests/core_only.py
	build/clean/bin/unaligned demo
	ls -l dist

# The oldest versions that pyproject.toml declares, but for torch. Their own warnings are not ours.
test-oldest:
	$(PYTHON) -m venv build/oldest
	PIP_CONSTRAINT=constraints-oldest.txt build/oldest/bin/python -m pip install --quiet \
		--editable '.[all]' hypothesis networkx pytest pytest-randomly pytest-timeout pytest-xdist
	build/oldest/bin/python -m pytest -n 2 -m "not slow" \
		-W default::DeprecationWarning -W default::FutureWarning tests

clean:
	rm -rf $(VENV) build dist results docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache
