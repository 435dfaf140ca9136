# Two commands matter: `make quickstart` shows what mmgen does, `make test` checks it.

PYTHON ?= python3
VENV ?= .venv
PIP_OPTIONS ?=
PYTEST_OPTIONS ?=
QUICKSTART_OPTIONS ?=

BIN := $(VENV)/bin
QUIET := $(if $(CI),--quiet)
INPUTS := pyproject.toml constraints.txt
# Tests start many programs, each of which would compile the package anew where somebody forbids bytecode.
TESTED := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python
# In the order of their names: xdist would put files with few tests last, and those take longest, while one core waits.
PARALLEL := -n 2 --dist loadscope --no-loadscope-reorder

.PHONY: help install quickstart test test-slow test-all bounds lint format types site clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

install: $(VENV)/.installed  ## Install into .venv

quickstart: $(VENV)/.installed  ## Install into .venv, then go from data to report on coloured shapes (some minutes)
	$(BIN)/mmgen quickstart $(QUICKSTART_OPTIONS)

test: $(VENV)/.installed-dev  ## Install into .venv with what testing needs, then run the fast tests
	$(TESTED) -m pytest $(PARALLEL) $(PYTEST_OPTIONS)

test-slow: $(VENV)/.installed-dev  ## A fourteenth of the slow tests, those of today: in two weeks all
	$(TESTED) -m pytest $(PARALLEL) -m 'slow and not long' --share $$(($$(date +%s) / 86400 % 14))/14 $(PYTEST_OPTIONS)

test-all: $(VENV)/.installed-dev  ## Every test, the slow ones too
	$(TESTED) -m pytest $(PARALLEL) -m 'slow or not slow' $(PYTEST_OPTIONS)

bounds:  ## The lowest versions of all dependencies at once, then the newest, in environments of their own
	PYTHON=$(PYTHON) .ci/bounds

lint: $(VENV)/.installed-dev  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev  ## Mend style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev  ## Types
	$(BIN)/mypy

site: $(VENV)/.installed-dev  ## Build the pages as a site into build/site, and check every link; after make quickstart with its page
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## Remove what was built, not what was made
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamps are renewed only when the package's settings or pins change.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "mmgen needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(INPUTS) | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(INPUTS) | $(VENV)/bin/python
	$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check $(PIP_OPTIONS) -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed
