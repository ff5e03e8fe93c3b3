# Everything that is done with this repository, by name. Each target sets up .venv by itself.
# Needs Python 3.11 or later, git and make. Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
SEED ?= 0
STEPS ?= 60
PROMPT ?= list the files here, then create notes.txt
REPEAT ?= 3
SCALE ?= 1.0
SCENARIOS ?=
MODULES ?=
ROWS ?=

BIN := .venv/bin
READY := .venv/.ready
WORKERS := 3

.DEFAULT_GOAL := help
# Tests start hundreds of processes: none of them should have to compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run test check fmt requirements simulate soak mutate generate bench lock clean

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

setup: $(READY) ## make .venv from requirements-dev.lock

$(READY): pyproject.toml requirements-dev.lock scripts/setup.py
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed, $(PYTHON) is older; try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up .venv (once, under a minute)"
	@$(PYTHON) scripts/setup.py
	@touch $@

run: $(READY) ## one prompt through the whole runtime, offline, in .scratch: PROMPT="..."
	@mkdir -p .scratch/project
	@cd .scratch/project && PERDURE_DATA_DIR=$(CURDIR)/.scratch/data $(CURDIR)/$(BIN)/perdure run --model demo/demo "$(PROMPT)"

test: $(READY) ## the whole test suite
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: $(READY) ## format, lint, types and import contracts; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/lint-imports

fmt: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

requirements: $(READY) ## which rules of the specification no test proves yet
	@$(BIN)/python -m tests.requirements

simulate: $(READY) ## replay one seeded simulation: SEED=n STEPS=60
	$(BIN)/python -m tests.harness.simulation $(SEED) --steps $(STEPS)

soak: $(READY) ## the long versions of the harness, with their figures: ROWS="1 2 3"
	@$(BIN)/python -m scripts.soak $(ROWS)

mutate: $(READY) ## which small changes of the program no test notices: MODULES="core/session/inbox.py store" SAMPLE=40
	@$(BIN)/python -m scripts.mutate $(MODULES)

generate: $(READY) ## write the generated files anew
	$(BIN)/python -m scripts.codegen

bench: ## compare with the real server in one run: REPEAT=3 SCALE=1.0 SCENARIOS=create,turn
	@$(PYTHON) -m bench compare --repeat $(REPEAT) --scale $(SCALE) $(if $(SCENARIOS),--scenarios $(SCENARIOS))

lock: $(READY) ## resolve requirements-dev.lock anew; needs uv
	@command -v uv >/dev/null || { echo "make lock needs uv" >&2; exit 1; }
	uv lock --quiet --upgrade
	uv export --quiet --frozen --group dev --no-emit-project --no-header --no-annotate \
		--output-file requirements-dev.lock
	rm uv.lock

clean: ## remove everything that these targets made
	rm -rf .venv .bench .scratch dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +
