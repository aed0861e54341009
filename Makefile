# Every command takes STACK=<name> (else PULUMI_STACK, the selected stack, or local) and ARGS=<more options of the engine>.
# CLUSTER=apiserver gives a local stack a real kube-apiserver instead of the built-in API, from its first `make up` to `make down`.
# PROVIDERS=real gives it the real provider plugins instead of the emulated ones, PROVIDERS=azuread only that one (docs/guides/local-cloud.md).
# POLICIES=1 runs the policies on a local stack, too, as they run on every other one (docs/reference/policies.md).
# What a stack's commands run with (engine, backend, plugins) is decided in ops/stack/environment.py.

# `make up stack=dev` would act on the local stack.
$(foreach name,stack args cluster providers policies,$(if $(filter command,$(firstword $(origin $(name)))),$(error \
$(name)=$($(name)) is read by nothing: write the name in capital letters, as in `make $(firstword $(MAKECMDGOALS)) STACK=dev`)))

STACK ?=
POLICIES ?=
ARGS ?=
CLUSTER ?=
export LOCALCLOUD_CLUSTER := $(CLUSTER)
PROVIDERS ?=
export LOCALCLOUD_PROVIDERS := $(PROVIDERS)
# `exec`, so that a signal to make reaches the command and not a shell in between.
IDSTACK := exec .venv/bin/idstack
PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup up preview renew recover down test test-cloud slow nightly e2e clients browser real hypershift consumers operator storm bench lint fmt generate golden lock pin probe-image

# What a stack needs; all other targets are for work on the project itself.
OF_A_STACK := help|setup|up|preview|renew|recover|down|pin
LISTED := grep -E '^[a-z0-9-]+:.*\#\# ' $(firstword $(MAKEFILE_LIST))
SHOWN := awk -F ':.*\#\# ' '{printf "  make %-11s %s\n", $$1, $$2}'

help: ## Show this list
	@$(LISTED) | grep -E '^($(OF_A_STACK)):' | $(SHOWN)
	@printf '\n  STACK=<name> for another stack than local; `.venv/bin/idstack --help` lists the commands of a stack.\n'
	@printf '\nFor work on the project itself:\n'
	@$(LISTED) | grep -vE '^($(OF_A_STACK)):' | $(SHOWN)

setup: ## Prepare this checkout: virtual environment, packages, Pulumi CLI (a second run takes a moment)
	@tools/setup $(if $(filter apiserver,$(CLUSTER)),cluster)

up: setup ## Bring the stack up; the local one ends with a table of proven sign-ins
	@$(IDSTACK) up $(if $(STACK),--stack $(STACK)) $(if $(POLICIES),--policies) $(ARGS)

preview: setup ## Show what `make up` would change
	@$(IDSTACK) preview $(if $(STACK),--stack $(STACK)) $(if $(POLICIES),--policies) $(ARGS)

renew: setup ## Renew the certificates that are due, and change nothing else
	@$(IDSTACK) renew $(if $(STACK),--stack $(STACK)) $(ARGS)

recover: setup ## After a killed run: release the lock, settle what was under way, and go on with `make up`
	@$(IDSTACK) recover $(if $(STACK),--stack $(STACK)) $(ARGS)

down: setup ## Destroy the stack; the local cloud ends with its last stack
	@$(IDSTACK) down $(if $(STACK),--stack $(STACK)) $(ARGS)

# Side by side, by one worker more than there are cores, four at most. Tests that share a stack are a group of one worker.
PARALLEL := --numprocesses=auto --maxprocesses=4 --dist=loadscope --no-loadscope-reorder --durations=10

# ARGS=changed selects the files of tests that a change since SINCE, by default since the branch left main, can reach.
SINCE ?= main
SELECTED = $(if $(filter changed,$(ARGS)),$(or $(shell $(PYTHON) -m tests.changed $(SINCE)),$(error nothing was selected)) )$(filter-out changed,$(ARGS))

# A run starts a thousand interpreters, and each worker rewrites each assertion: compiled once, modules are read.
test test-cloud slow nightly storm bench: export PYTHONDONTWRITEBYTECODE :=

test: setup ## Run the tests that every change must pass (ARGS=changed or ARGS=tests/unit for a part); docs/explanation/testing.md lists all
	@$(PYTHON) -m pytest $(PARALLEL) $(SELECTED)

# In its own folder, where `tests` is the local cloud's: neither side sees the tests of the other.
CLOUD_SELECTED = $(if $(filter changed,$(ARGS)),$(or $(shell $(PYTHON) -m tests.changed $(SINCE) cloud),tests/test_wall.py) )$(filter-out changed,$(ARGS))
CLOUD_PYTEST := cd cloud && ../$(PYTHON) -m pytest

test-cloud: setup ## Run the tests of the local cloud, which knows nothing of the program (ARGS=changed or ARGS=tests/kubelet for a part)
	@$(CLOUD_PYTEST) --numprocesses=auto --maxprocesses=4 --dist=loadscope --durations=5 $(CLOUD_SELECTED)

slow: setup ## Run what is worth a merge besides: clusters of both ways, infrastructure, a rehearsal, a fleet, the probe's image
	@$(PYTHON) -m pytest $(PARALLEL) -m 'slow and not clients' $(SELECTED)
	@$(if $(ARGS),,$(CLOUD_PYTEST) -m 'slow and not clients')

nightly: setup ## Run what takes longest for what it proves: other shapes of stacks, disasters, ten renewals, 400 random examples
	@$(PYTHON) -m pytest $(PARALLEL) -m 'nightly or (hypothesis and not storm)' --hypothesis-profile=deep $(SELECTED)

e2e: ## The same program on a real kube-apiserver, and what only that can refuse (builds it, once)
	@tools/setup cluster
	@LOCALCLOUD_CLUSTER=apiserver $(PYTHON) -m pytest -m 'not slow and not nightly and not storm' $(or $(ARGS),$(E2E))

clients: setup ## Microsoft's clients on the local stack: installs the Azure CLI, libraries for Python and JavaScript, once
	@$(CLOUD_PYTEST) -n 0 -m '' tests/test_package.py tests/clients $(ARGS)
	@$(if $(ARGS),,$(PYTHON) -m pytest -n 0 -m '' tests/e2e/test_public_names.py tests/clients)

browser: setup ## The page and the drawings of `idstack graph` in Chromium, and their script in ESLint (installs both, once; needs Node)
	@$(PYTHON) -m pytest -n 0 -m browser tests/browser $(ARGS)

real: setup ## Compare the emulated provider plugins with the real ones step by step (PROVIDERS=azuread for one of them)
	@$(PYTHON) -m pytest -n 0 -m real tests/real $(ARGS)

# HYPERSHIFT is a folder with hypershift, hypershift-operator and control-plane-operator, built from HyperShift's source.
hypershift: setup ## HyperShift's own operators on the local stack (HYPERSHIFT=<folder with its three programs>; docs/explanation/testing.md)
	@tools/setup cluster
	@LOCALCLOUD_CLUSTER=apiserver HYPERSHIFT="$(HYPERSHIFT)" $(PYTHON) -m pytest -n 0 -m hypershift tests/hypershift $(ARGS)

# CONSUMERS is a folder with some of the programs that use the credentials, built from their sources; others are skipped.
consumers: setup ## The programs that use the credentials, on the local stack (CONSUMERS=<folder>; docs/explanation/testing.md)
	@$(if $(CONSUMERS),tools/setup cluster)
	@$(if $(CONSUMERS),LOCALCLOUD_CLUSTER=apiserver )CONSUMERS="$(CONSUMERS)" $(PYTHON) -m pytest -n 0 -m consumers tests/consumers $(ARGS)

# OPERATOR is a folder with the operator's manager and agent, and its objects (install.yaml).
operator: setup ## The Pulumi Kubernetes Operator on the local stack (OPERATOR=<folder with its programs>; docs/explanation/testing.md)
	@tools/setup cluster
	@LOCALCLOUD_CLUSTER=apiserver OPERATOR="$(OPERATOR)" $(PYTHON) -m pytest -n 0 -m operator tests/operator $(ARGS)

# NAME is a plan of tests/storm/plans.py, PLAN a list of operations, as a failure prints it; else SEED draws them, by default
# another one each day.
storm: setup ## Kill 220 of 300 operations on one stack (75 minutes; SEED=7, NAME=year, kill-renewals, fault-days ..., PLAN="up ...")
	@STORM_SEED="$(SEED)" STORM_NAME="$(NAME)" STORM_PLAN="$(PLAN)" $(PYTHON) -m pytest -n 0 -m storm -o faulthandler_timeout=14400 --show-capture=no tests/storm $(ARGS)

bench: setup ## Measure what the program costs against peers and limits (ARGS="--json", "tokens swap" or "--clusters 5")
	@$(PYTHON) -m tools.bench $(ARGS)

lint: setup ## Check style, types, unused names, workflows, Go sources and Prometheus rules
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@$(PYTHON) -m vulture
	@cd cloud && ../$(PYTHON) -m mypy && ../$(PYTHON) -m vulture
	@if command -v go >/dev/null; then go -C tools/actionlint tool actionlint && \
		go -C tests/e2e/msi-dataplane vet && go -C tests/e2e/azidentity vet && \
		test -z "$$(gofmt -l tests cloud/tests | tee /dev/stderr)" && \
		$(PYTHON) -m tools.promtool; \
		else echo "lint: there is no Go on PATH, so workflows, Go sources and Prometheus rules are checked in CI only"; fi

fmt: setup ## Format, and fix what can be fixed
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

generate: setup ## Write docs/reference/ and the schema in Pulumi.yaml from the settings, the symptoms and the help of idstack
	@$(PYTHON) -m tools.docs.configuration
	@$(PYTHON) -m ops.pages

golden: setup ## Write the reviewed messages, the output of `idstack status` and small graphs; read the diff before you commit it
	@UPDATE_GOLDEN=1 $(PYTHON) -m pytest -n 0 tests/unit/identity/settings tests/unit/components $(WRITTEN_GOLDEN)
	@$(PYTHON) -m pytest -n 0 tests/unit/identity/settings/test_golden.py $(WRITTEN_GOLDEN)

WRITTEN_GOLDEN := tests/unit/ops/commands/test_status_golden.py tests/unit/ops/doctor/test_report.py tests/unit/ops/graph/test_forms.py \
	tests/unit/ops/fleet/test_render.py tests/unit/ops/stack/test_failures.py tests/unit/ops/stack/test_plugins.py
E2E := tests/apiserver tests/e2e tests/engine/test_changes.py tests/engine/test_lifecycle.py

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
PROBE_LOCK := identity/credentials/requirements-probe

lock: ## Write requirements.txt from requirements.in, the probe image's and the local cloud's parts of it, and the pins of Go and of clients (needs uv)
	@$(LOCK) --output-file requirements.txt requirements.in
	@$(LOCK) --output-file tools/go/requirements.txt tools/go/requirements.in
	@$(LOCK) --constraint requirements.txt --output-file $(PROBE_LOCK).txt $(PROBE_LOCK).in
	@$(LOCK) --output-file tools/audit/requirements.txt tools/audit/requirements.in
	@$(LOCK) --constraint requirements.txt --output-file cloud/requirements.txt cloud/pyproject.toml
	@$(LOCK) --output-file cloud/tests/clients/azure-cli.txt cloud/tests/clients/azure-cli.in
	@$(LOCK) --output-file cloud/tests/clients/python.txt cloud/tests/clients/python.in
	@$(LOCK) --constraint requirements.txt --output-file tests/clients/azure-models.txt tests/clients/azure-models.in

pin: setup ## Write the missing checksums of Pulumi's archives, after `make lock` (ARGS=darwin-arm64 for another machine's, too)
	@$(PYTHON) -m tools.pin $(ARGS)

probe-image: setup ## Build the credential probe's image with podman or docker, and push it (REGISTRY=<name>.azurecr.io)
	@$(PYTHON) -m tools.probe_image "$(REGISTRY)"
