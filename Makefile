# Two commands do everything: `make demo` runs the main job, `make test` passes the tests.
# Both build .venv on first use and reuse it as long as pyproject.toml and constraints.txt stay the same.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(not (3,11) <= sys.version_info[:2] < (3,14))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV := .venv
# Most tests wait for processes: more workers than cores.
JOBS ?= 4
BIN := $(VENV)/bin

.PHONY: help setup demo test real liar bench-engine bench-board fuzz bench-gate lint clean

help:
	@echo "make demo   set up, then run the main job"
	@echo "make test   set up, then lint, type-check and test"
	@echo "make real   runs over fetched open-source projects"
	@echo "make liar   every lie a hundred times over: most of an hour"
	@echo "make bench-engine   the engine's own cost: steps, trees, growth, memory"
	@echo "make bench-board    a thousand cards while a page and twenty streams read the board"
	@echo "make fuzz   a million made-up messages at the gate: minutes"
	@echo "make bench-gate   how long one decision takes"
	@echo "make setup  set up .venv alone; make lint  the linters and the type checker alone"
	@echo "make clean  remove the environment and caches"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "expected Python 3.11 to 3.13 with its venv module on PATH; found none; install python3 and python3-venv" >&2; exit 2; }
	@echo "setting up $(VENV) with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' 2>.setup.log || { cat .setup.log >&2; exit 1; }
	@rm -f .setup.log
	@$(BIN)/python -m pip check
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

real: setup
	$(BIN)/python -m pytest -m real tests/real

liar: setup
	LIAR_RUNS=$${LIAR_RUNS:-100} $(BIN)/python -m pytest -n $(JOBS) tests/contract/test_liar.py -v

bench-engine: setup
	$(BIN)/python scripts/bench_start.py
	$(BIN)/python scripts/bench_engine.py

bench-board: setup
	$(BIN)/python scripts/bench_board.py

fuzz: setup
	$(BIN)/python scripts/fuzz_gate.py $${FUZZ_COUNT:-1000000}

bench-gate: setup
	$(BIN)/python scripts/bench_gate.py

demo: setup
	@$(BIN)/python scripts/demo.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
