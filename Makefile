# `make` alone explains itself. `make run` and `make test` need nothing but Python 3.11+.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Half of the tests wait for processes of theirs: two more than there are cores.
JOBS   ?= $(shell echo $$(($$(nproc) + 2)))

.DEFAULT_GOAL := help
.PHONY: help run demo test coverage check format docs pictures bench lock clean

help:  ## what this Makefile can do
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

$(BIN)/redrived: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "redrive needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev: requirements-dev.txt $(BIN)/redrived
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

run: $(BIN)/redrived  ## start the daemon on SQLite with config.toml and open the console
	$(BIN)/redrive --config config.toml up

demo: $(BIN)/redrived  ## the same on a throw-away store with a lively workload
	$(BIN)/redrive demo

test: $(VENV)/dev  ## run every test, PostgreSQL included
	$(BIN)/python -m pytest -n $(JOBS) -q $(FLAGS)

coverage:  ## run every test and hold branch coverage
	$(MAKE) test FLAGS="--cov --cov-report=term:skip-covered --cov-fail-under=85"

check: $(VENV)/dev  ## what CI runs: format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/dev  ## put the code in its format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/dev  ## write anew the pages of docs/ that come from the code
	PYTHONPATH=tests $(BIN)/python -m support.pages

pictures: $(VENV)/dev  ## take the pictures of docs/ anew, from six minutes of the demo
	PYTHONPATH=tests $(BIN)/python -m support.pictures

BENCHES := throughput postgresql latency commands retries stalls requeue restart store batch \
	worker bus console

bench: $(BENCHES:%=bench-%)  ## measure the speed; docs/performance.md is written anew

bench-%: $(VENV)/dev
	PYTHONPATH=tests $(BIN)/python bench/$*.py $(FLAGS)

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --upgrade

lock: $(VENV)/dev  ## resolve the lock files anew
	$(BIN)/$(LOCK) --group build pyproject.toml -o requirements.txt
	$(BIN)/$(LOCK) --group dev pyproject.toml -o requirements-dev.txt

clean:  ## remove the environment and what the daemon wrote here
	rm -rf $(VENV) state run
