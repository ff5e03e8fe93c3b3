# The tasks of this repository. Targets that need .venv create it first.
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
# Tests start hundreds of processes, which should not compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run test check fmt requirements simulate soak mutate generate bench lock dist clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

setup: $(READY) ## create .venv from requirements-dev.lock

$(READY): pyproject.toml requirements-dev.lock scripts/setup.py
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed, $(PYTHON) is older; try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up .venv (once, under a minute)"
	@$(PYTHON) scripts/setup.py
	@touch $@

run: $(READY) ## run one prompt through the whole runtime, offline, in .scratch: PROMPT="..."
	@mkdir -p .scratch/project
	@cd .scratch/project && PERDURE_DATA_DIR=$(CURDIR)/.scratch/data $(CURDIR)/$(BIN)/perdure run --model demo/demo "$(PROMPT)"

test: $(READY) ## run the whole test suite
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: $(READY) ## check format, lint, types and import contracts; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/lint-imports

fmt: $(READY) ## format the code and apply automatic fixes
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

requirements: $(READY) ## list the rules of the specification that no test proves yet
	@$(BIN)/python -m tests.requirements

simulate: $(READY) ## replay one seeded simulation: SEED=n STEPS=60
	$(BIN)/python -m tests.harness.simulation $(SEED) --steps $(STEPS)

soak: $(READY) ## run the long versions of the harness and print their figures: ROWS="1 2 3"
	@$(BIN)/python -m scripts.soak $(ROWS)

mutate: $(READY) ## list small changes of the program that no test notices: MODULES="core/session/inbox.py store" SAMPLE=40
	@$(BIN)/python -m scripts.mutate $(MODULES)

generate: $(READY) ## write the generated clients and docs/openapi.json
	$(BIN)/python -m scripts.codegen

bench: ## measure against the original server in one run: REPEAT=3 SCALE=1.0 SCENARIOS=create,turn
	@$(PYTHON) -m bench compare --repeat $(REPEAT) --scale $(SCALE) $(if $(SCENARIOS),--scenarios $(SCENARIOS))

lock: $(READY) ## resolve requirements-dev.lock again; needs uv
	@command -v uv >/dev/null || { echo "make lock needs uv" >&2; exit 1; }
	uv lock --quiet --upgrade
	uv export --quiet --frozen --group dev --no-emit-project --no-header --no-annotate \
		--output-file requirements-dev.lock
	rm uv.lock

dist: ## build the wheel and the sdist in dist/, and check them
	@rm -rf dist .scratch/release
	@$(PYTHON) -m venv .scratch/release
	@.scratch/release/bin/pip install --quiet build hatchling twine
	.scratch/release/bin/python -m build --no-isolation --outdir dist .
	.scratch/release/bin/twine check --strict dist/*

clean: ## remove everything that these targets created
	rm -rf .venv .bench .scratch dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +
