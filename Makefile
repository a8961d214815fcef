# SPDX-License-Identifier: Apache-2.0

# One command each for what one does in this repository; `make` alone lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# A release adds BUILDFLAGS=-trimpath, which compiles everything anew; without, what tests and demo compiled is used.
BUILDFLAGS ?=
LDFLAGS := -X main.version=$(VERSION) -X rukpak.io/rukpak/internal/cli.Version=$(VERSION)
# How many packages are built and tested at once: each may run a control plane of half a gigabyte.
JOBS    ?= 2
# Only these packages are tested, and only tests that match RUN: make test PKG=./internal/activate/... RUN=Prune
# The longest first, so that the others run beside it.
PKG     ?= ./test/e2e ./...
RUN     ?=
# Flags of the benchmarks: make bench BENCH='-only activation,drift'
BENCH   ?=

# What `make generate` writes.
GENERATED := config/crd/bases ':(glob)api/**/zz_generated.*' docs/reference

TOOLS          := bin/tools
CONTROLLER_GEN := $(TOOLS)/controller-gen
GOLANGCI_LINT  := $(TOOLS)/golangci-lint

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Try it

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## "; printf "Usage: make TARGET\n" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: controlplane ## Start a cluster and a registry here, and show RukPak's whole way on them; KEEP=0 ends it then.
	@$(GO) run ./hack/demo

.PHONY: dev
dev: controlplane ## Start the same environment without content, and keep it up until Ctrl-C.
	@$(GO) run ./hack/demo -empty

##@ Build

.PHONY: build
build: ## Build bin/rukpak (also the kubectl plugin) and bin/manager.
	$(GO) build $(BUILDFLAGS) -ldflags "$(LDFLAGS)" -o bin/ ./cmd/...
	ln -sf rukpak bin/kubectl-rukpak

.PHONY: controlplane
controlplane: ## Make sure that this machine has a control plane for tests and demo (built once, 15 minutes).
	@$(GO) run ./hack/assets >/dev/null

##@ Check

.PHONY: test
test: controlplane ## Run all tests: on a real control plane, 2 packages at a time.
	$(GO) test -p $(JOBS) -timeout 20m $(if $(RUN),-run '$(RUN)') $(PKG)

.PHONY: test-short
test-short: ## Run the tests that need no control plane.
	$(GO) test -short -p $(JOBS) $(PKG)

.PHONY: bench
bench: controlplane ## Measure RukPak against its figures: a table, and bench.json.
	$(GO) run ./test/bench $(BENCH)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters of .golangci.yml.
	$(GOLANGCI_LINT) run --concurrency $(JOBS)

.PHONY: format
format: $(GOLANGCI_LINT) ## Format all Go files.
	$(GOLANGCI_LINT) fmt

.PHONY: presubmit
presubmit: generate lint test check-diff ## Everything that has to pass before a change goes in.

.PHONY: check-generated
check-generated: generate check-diff ## Fail if generated files are not what their sources give.

.PHONY: check-diff
check-diff:
	@changed=$$(git status --porcelain -- $(GENERATED)) && [ -z "$$changed" ] || \
		{ echo "generated files differ from what is committed:"; echo "$$changed"; git --no-pager diff -- $(GENERATED); exit 1; }

##@ Generate

.PHONY: generate
generate: generate-api generate-docs ## Generate deep copies, CRDs and what the docs take from the code.

.PHONY: generate-api
generate-api: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object paths=./api/... crd output:crd:dir=config/crd/bases

# A hook: hack/docs is run when it is there.
.PHONY: generate-docs
generate-docs:
	@if [ -d hack/docs ]; then $(GO) run ./hack/docs; fi

# The tools are pinned by tools/go.mod, a module of its own so that what they need stays out of RukPak's.
$(CONTROLLER_GEN): tools/go.mod
	$(GO) build -C tools -p $(JOBS) -o $(CURDIR)/$@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(GOLANGCI_LINT): tools/go.mod
	@echo "building golangci-lint (once; some minutes)"
	@$(GO) build -C tools -p $(JOBS) -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
