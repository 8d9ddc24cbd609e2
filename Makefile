# Two commands do everything on a fresh machine with Python 3.11 and pip: make demo, make test.
SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The data is found through ISINGLASS_DATA; tests that need it skip, visibly, where it is not set.

# Each stage prints how long it took.
install demo style types suite docs quick: export TIMEFORMAT = make $@: %U s of processor time (and %S s in the system), %R s
.PHONY: demo test quick install suite bench lint style types docs slow clean

$(VENV)/.installed: pyproject.toml experiments/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]' -e ./experiments
	touch $@

install:
	@time $(MAKE) --no-print-directory $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/isinglass demo --out demo-output

# Types are checked beside the first tests, on one of the processors.
test: install
	$(MAKE) --no-print-directory style
	$(MAKE) --no-print-directory -j 2 types suite

# What to run after each change: style, layers, and the tests that take less than .2 s once loops are compiled.
quick: $(VENV)/.installed
	@time $(BIN)/python tools/quick.py

# Files in the order of their names: many small ones come last, so that both processes end at about the same time.
suite: $(VENV)/.installed
	@time $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q

lint: style types

style: $(VENV)/.installed
	@time { $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports; }

types: $(VENV)/.installed
	@time $(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

slow: $(VENV)/.installed
	$(BIN)/python -m pytest -q -m slow

docs: $(VENV)/.installed
	@time $(BIN)/sphinx-build -q -W -b html -d site/doctrees docs site/html

clean:
	rm -rf $(VENV) site docs/gallery docs/reference/examples docs/reference/generated docs/*.png demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
