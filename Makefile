# Every command takes STACK=<name> (local by default) and ARGS=<more options of the engine>.
# What a stack's commands run with (engine, backend, plugins) is decided in ops/environment.py.

STACK ?= local
ARGS ?=
IDSTACK := .venv/bin/idstack
PYTHON := .venv/bin/python

# Where the state of the shared stacks lies; give your own storage account here or on the command line. Other stacks use the
# backend you are logged in to, and the local stack has its own.
BACKEND.stage ?= azblob://pulumi-state?storage_account=stidstackstage
BACKEND.prod ?= azblob://pulumi-state?storage_account=stidstackprod
ifdef BACKEND.$(STACK)
export PULUMI_BACKEND_URL := $(BACKEND.$(STACK))
endif

.DEFAULT_GOAL := help
.PHONY: help setup up preview down test lint fmt lock

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: ## Prepare this checkout: virtual environment, packages, Pulumi CLI (a second run takes a moment)
	@tools/setup

up: setup ## Bring the stack up; the local one ends with a table of nine proven sign-ins
	@$(IDSTACK) up --stack $(STACK) $(ARGS)

preview: setup ## Show what `make up` would change
	@$(IDSTACK) preview --stack $(STACK) $(ARGS)

down: setup ## Destroy the stack; of the local one nothing is left
	@$(IDSTACK) down --stack $(STACK) $(ARGS)

test: setup ## Run all tests: unit, the real engine, real clients (ARGS=tests/unit for a part)
	@$(PYTHON) -m pytest $(ARGS)

lint: setup ## Check style and types
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

fmt: setup ## Format, and mend what can be mended
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

lock: ## Write requirements.txt anew from requirements.in (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --output-file requirements.txt requirements.in
