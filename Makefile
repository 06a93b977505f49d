# mainspring: every target sets up what it needs on a machine with Python ≥ 3.11 and make.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint check format bench soak docs dist everywhere lock clean studio browser poolers

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
UV_VERSION := 0.13.7
BIN := .venv/bin
READY := .venv/.ready
# The tests and the demo start hundreds of processes: where this is set, each of them would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

help: ## Show what can be done here
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make the environment in .venv from the lock file

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "mainspring needs Python 3.11 or newer: install one, or name it: make PYTHON=/path/to/python"; exit 1; }
	@echo "setting up .venv with $(PYTHON) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY) ## Run all examples on a file, kill their worker, lose nothing, and show it in the studio
	@$(BIN)/python studio/make_page.py --if-possible
	@$(BIN)/python -m examples

studio: $(READY) ## Build the studio's page (needs Node's registry, or what was installed before)
	@$(BIN)/python studio/make_page.py

browser: ## Install the browser that the studio's tests need, where apt can
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		command -v apt-get >/dev/null && apt-get update >/dev/null 2>&1 && apt-get install --yes --no-install-recommends chromium >/dev/null 2>&1; } || \
		echo "there is no Chromium and it cannot be installed here: the studio's tests in a browser will be skipped"

poolers: ## Install the PgBouncer that some tests on PostgreSQL need, where apt can
	@command -v pgbouncer >/dev/null || { \
		command -v apt-get >/dev/null && apt-get update >/dev/null 2>&1 && apt-get install --yes --no-install-recommends pgbouncer >/dev/null 2>&1; } || \
		echo "there is no PgBouncer and it cannot be installed here: the tests behind a real pooler will be skipped"

test: $(READY) ## Run the tests, on all cores
	@$(BIN)/python studio/make_page.py --if-possible
	@$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(READY) ## Check format, lint, types, import rings and the studio's page
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python studio/make_page.py --check --if-possible

check: lint test ## All that gates a change: lint, then the tests

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

bench: $(READY) ## Compare with the peers and the bare limit, into bench/RESULTS.md (20 minutes; short: QUICK=1)
	@$(BIN)/python -m bench.results $(if $(QUICK),--quick)

soak: $(READY) ## Run every proof in its long form and write a report of one page (hours)
	@$(BIN)/python -m tests.soak

docs: $(READY) ## Build the documentation site into site/
	@$(BIN)/python -m docs.site

dist: $(READY) ## Build the wheel, the source distribution and the bill of materials
	@$(BIN)/python -m release.licences > /dev/null
	@$(BIN)/python -m build --no-isolation --outdir dist .
	@$(BIN)/python -m release.sbom dist/sbom.cdx.json

everywhere: $(READY) ## Run the tests on every Python that the machine has
	@$(BIN)/python studio/make_page.py --if-possible
	@$(BIN)/python -m release.everywhere

lock: $(READY) ## Resolve the dependencies anew into requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--all-extras --group dev pyproject.toml --output-file requirements.lock

clean: ## Remove the environment and everything built
	@rm -rf .venv dist build site src/mainspring/web/page studio/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache
