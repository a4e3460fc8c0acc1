# Two commands do everything on a fresh machine with Python 3.11+: make demo, make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Set where byte code is not to be kept: the tests start hundreds of processes, and each would compile everything anew.
export PYTHONDONTWRITEBYTECODE =

# Every target is a command, not a file.
.PHONY: help setup demo test check lint types imports unit torture fuzz torture-calls simulate mutants contract bench bench-all bench-check bench-keep bench-ledger bench-plan bench-reconcile bench-scale bench-table bench-trail bench-workers clean

help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): requirements/run.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "payonce needs Python 3.11 or newer; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV), this takes a few minutes the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

setup: $(STAMP)  ## make the virtual environment

demo: $(STAMP)   ## the main job on the built-in provider: killed, resumed, compared with the provider's truth
	$(BIN)/payonce demo

test: check unit ## every check and every test

check: lint types imports ## ruff, mypy strict, import-linter

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports --no-cache

unit: $(STAMP)   ## the tests alone
	$(BIN)/python -m pytest -n 3 --dist worksteal -q -m "not lengthy"

SECONDS := 1200
torture: $(STAMP) ## make torture SECONDS=1200 SEED=: kills at random for half the time, then the crash tests at full size for the rest
	nice $(BIN)/python -m tests.crash.torture --seconds $$(( $(SECONDS) / 2 )) $(if $(SEED),--seed $(SEED))
	PAYONCE_TORTURE=1 PAYONCE_TORTURE_SECONDS=$$(( $(SECONDS) / 2 )) nice $(BIN)/python -m pytest -n 2 -q -rs tests/crash

fuzz: $(STAMP)   ## make fuzz SECONDS=1200: answers and statements, half the time each, guided by the code they reach (installs atheris)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/fuzz.txt
	$(BIN)/python -m tests.properties.coverage_guided answers --seconds $$(( $(SECONDS) / 2 ))
	$(BIN)/python -m tests.properties.coverage_guided statements --seconds $$(( $(SECONDS) / 2 ))

simulate: $(STAMP) ## simulated worlds: make simulate SEED= RUNS= SECONDS= TRACE=1; with SEED alone that world, without any one minute of new ones
	nice $(BIN)/python -m payonce.testing.simulator $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) \
		$(if $(filter-out file,$(origin SECONDS)),--seconds $(SECONDS)) $(if $(TRACE),--trace)

mutants: $(STAMP) ## broken variants of payonce, each hunted by fresh simulated worlds until it is caught (some minutes)
	nice $(BIN)/python -m tests.simulation.hunt

BENCH  := build/bench

torture-calls: $(STAMP) ## 20,000 paid calls without keys, 5 % of the answers lost, killed five times
	PAYONCE_TORTURE=1 timeout 1800 $(BIN)/python -m pytest -q -s -o timeout=1700 tests/crash/test_paid_calls.py

bench: $(STAMP)  ## items a second against a bare loop that records nothing, the ledger alone, one guarded call, a start; JSON in build/bench
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/throughput.py --latency 20ms --out $(BENCH)/throughput-20ms.json
	$(BIN)/python benchmarks/throughput.py --latency 0ms --out $(BENCH)/throughput-0ms.json
	$(BIN)/python benchmarks/throughput.py --latency 20ms --proof --out $(BENCH)/throughput-20ms-proof.json
	$(BIN)/python benchmarks/throughput.py --latency 0ms --proof --out $(BENCH)/throughput-0ms-proof.json
	-$(BIN)/python benchmarks/ledger.py --out $(BENCH)/ledger.json
	$(BIN)/python benchmarks/once.py --out $(BENCH)/once.json
	$(BIN)/python benchmarks/start.py --out $(BENCH)/start.json

bench-check: $(STAMP) ## the kept speed ratios again; fails where one fell below 0.85 of it (before a release)
	$(BIN)/python benchmarks/check.py

bench-keep: $(STAMP) ## measure the ratios and keep them in benchmarks/kept.json
	$(BIN)/python benchmarks/check.py --keep

bench-all: bench bench-plan bench-reconcile bench-scale bench-trail bench-workers ## everything that can be measured (an hour, 10 GB)

bench-table: bench ## measure, then write the figures into docs/reference/performance.md, with those of bench-all where they are there
	$(BIN)/python benchmarks/table.py --bench $(BENCH) --write docs/reference/performance.md

contract: $(STAMP) ## each adapter's requests against the providers' OpenAPI files: make contract SPECS=folder
	PAYONCE_SPECS="$(abspath $(SPECS))" $(BIN)/python -m pytest -q -rs tests/thirdparty/test_contracts.py

bench-workers: $(STAMP) ## 1, 2 and 4 worker processes on one batch in PostgreSQL
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/workers.py --out $(BENCH)/workers.json

bench-reconcile: $(STAMP)  ## a million items against a million rows, then ten million of each
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/reconcile.py --items 1000000 --out $(BENCH)/reconcile-1m.json
	$(BIN)/python benchmarks/reconcile.py --items 10000000 --out $(BENCH)/reconcile-10m.json

bench-plan: $(STAMP)  ## read, check and seal a million rows, then ten million, beside DuckDB's own time for the file
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/plan.py --rows 1000000 --rounds 1 --out $(BENCH)/plan-1m.json
	$(BIN)/python benchmarks/plan.py --rows 10000000 --rounds 1 --out $(BENCH)/plan-10m.json

bench-ledger: $(STAMP)  ## the ledger alone against plain inserts of two rows an item, and bytes an item
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/ledger.py --out $(BENCH)/ledger.json

bench-scale: $(STAMP)  ## what a restart, a status and a claim cost in a batch of ten million items (10 GB, ten minutes)
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/scale.py --out $(BENCH)/scale.json

bench-trail: $(STAMP) ## verify a million events, prove one item among ten million
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/trail.py --out $(BENCH)/trail.json

clean:           ## remove what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
