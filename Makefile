# Two commands: `make demo` and `make test`. Both set everything up in .venv first, and only once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export PYTHONUTF8 := 1
# Without files of compiled modules, every test process and every start of the program compiles all
# of them again: 9 s more to collect the tests, 0.8 s more at each start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test prove reliability bench format clean help

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/run-ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; this is `$(PYTHON) --version`" >&2; exit 1; }
	@echo "setting up .venv (once; one to three minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e '.[plots,serve]'
	@touch $@

.venv/test-ready: .venv/run-ready
	@echo "adding the test tools to .venv (once)"
	$(PIP) -e '.[dev]'
	@touch $@

demo: .venv/run-ready  ## train a small translator on the built-in corpus, measure it, use it
	@$(BIN)/headwise demo

# Three workers for two cores: tests of the server and the page wait for other processes.
test: .venv/test-ready  ## every check: format, lint, types, import contract, tests, docs that run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

prove: .venv/test-ready  ## the long proofs
	$(BIN)/python -m pytest -m prove

reliability: .venv/test-ready  ## kills, damage, attacks; prints the table of docs/reliability.md
	$(BIN)/python -m pytest tests/survival -m "prove or not prove"

bench: .venv/test-ready  ## the benchmarks, peers measured in the same run
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

format: .venv/test-ready  ## bring the code into form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what can be made again (never runs/)
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
