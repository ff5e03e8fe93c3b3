# The tasks of this repository. Targets that need .venv create it first.
# Needs Python 3.11 or later, git and make. Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
SEED ?= 0
STEPS ?= 60
PREFIX ?= $(HOME)/.local
REPEAT ?= 3
SCALE ?= 1.0
SCENARIOS ?=
MODULES ?=
ROWS ?=

BIN := .venv/bin
READY := .venv/.ready
RUN_READY := .venv-run/.ready
WORKERS := 3

.DEFAULT_GOAL := help

define CHECK_PYTHON
{ command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; try: make PYTHON=python3.12" >&2; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Python 3.11 or later is needed, $(PYTHON) is older; try: make PYTHON=python3.12" >&2; exit 1; }; }
endef

# Tests start hundreds of processes, which should not compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup web run install uninstall test check fmt requirements simulate soak mutate generate docs bench lock dist clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

setup: $(READY) ## create .venv from requirements-dev.lock

$(READY): pyproject.toml requirements-dev.lock scripts/setup.py
	@$(CHECK_PYTHON)
	@echo "setting up .venv (once, under a minute)"
	@$(PYTHON) scripts/setup.py
	@touch $@

$(RUN_READY): requirements-run.lock scripts/setup.py
	@$(CHECK_PYTHON)
	@echo "setting up .venv-run with what running needs (once, a few seconds)"
	@$(PYTHON) scripts/setup.py run
	@touch $@

web: ## build the web page that `perdure serve` offers at /
	@$(CHECK_PYTHON)
	@$(PYTHON) scripts/web.py

run: $(RUN_READY) ## show in 20 seconds what Perdure does, offline, in .scratch
	@rm -rf .scratch/demo
	@.venv-run/bin/perdure demo --directory .scratch/demo
	@$(PYTHON) scripts/web.py --if-missing || true

install: ## put the command `perdure` on the PATH of this user: PREFIX=~/.local
	@$(CHECK_PYTHON)
	@$(PYTHON) scripts/install.py install "$(PREFIX)"

uninstall: ## remove what `make install` installed
	@$(PYTHON) scripts/install.py uninstall "$(PREFIX)"

test: $(READY) ## run the whole test suite
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: $(READY) ## check format, lint, types, import contracts and the documentation site
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.docs_site

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

docs: $(READY) ## build the documentation site in .scratch/site/html
	$(BIN)/python -m scripts.docs_site

bench: ## measure against the original server in one run: REPEAT=3 SCALE=1.0 SCENARIOS=create,turn
	@$(PYTHON) -m bench compare --repeat $(REPEAT) --scale $(SCALE) $(if $(SCENARIOS),--scenarios $(SCENARIOS))

lock: $(READY) ## resolve the locked packages again; needs uv
	@command -v uv >/dev/null || { echo "make lock needs uv" >&2; exit 1; }
	uv lock --quiet --upgrade
	uv export --quiet --frozen --group dev --no-emit-project --no-header --no-annotate \
		--output-file requirements-dev.lock
	uv export --quiet --frozen --no-dev --no-emit-project --no-header --no-annotate \
		--output-file requirements-run.lock
	uv export --quiet --frozen --only-group compare --no-emit-project --no-header --no-annotate \
		--output-file requirements-compare.lock
	rm uv.lock

dist: web ## build the wheel and the sdist in dist/, and check them
	@rm -rf dist .scratch/release
	@$(PYTHON) -m venv .scratch/release
	@.scratch/release/bin/pip install --quiet build hatchling twine
	.scratch/release/bin/python -m build --no-isolation --outdir dist .
	.scratch/release/bin/twine check --strict dist/*

clean: ## remove everything that these targets created
	rm -rf .venv-web web/node_modules src/perdure/data/web
	rm -rf .venv .venv-run .venv-compare .bench .scratch dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +
