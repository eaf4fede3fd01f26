# Pushback. `make help` lists the targets. Only Go, git and make are needed;
# `make test` needs a C compiler too, for the race detector.

.DEFAULT_GOAL := help
SHELL := /bin/sh
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
export GOFLAGS ?= -buildvcs=false
# Nothing here needs cgo but the race detector. With one setting everywhere a cold
# cache compiles what all targets share once, not once with cgo and once without.
export CGO_ENABLED = 0

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the controller and the CLI into bin/
	$(GO) build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/controller ./cmd/pushback
	@ln -sf pushback bin/kubectl-pushback

# Properties draw the same cases in each run of `make test`, so that what fails is
# the change under test. `make search` draws new ones.
.PHONY: test
test: export RAPID_SEED = 1
test: verify lint controlplane ## Run everything that CI runs
	$(GO) test -timeout 20m ./reconciler/plan # all cases: the race detector gets a sample
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...

.PHONY: unit
unit: ## Run the tests that need no control plane
	CGO_ENABLED=1 $(GO) test -race -short -timeout 10m ./...

.PHONY: search
search: ## Look for failures with new random cases, ten times as many (ARGS="-run TestLaws")
	RAPID_CHECKS=1000 $(GO) test -count=1 -timeout 120m $(ARGS) ./analysis ./reconciler/plan ./reconciler/experiment/plan ./routers/... ./templatehash

.PHONY: e2e
e2e: controlplane ## Run the end-to-end stories alone
	CGO_ENABLED=1 $(GO) test -race -count=1 -v -timeout 60m ./e2e/...

.PHONY: bench
bench: ## Run the benchmarks; they print ratios and counts
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

.PHONY: lint
lint: ## Check formatting, vet and staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "run gofmt on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: generate
generate: ## Generate deep copies
	$(GO) tool controller-gen object paths=./api/...

.PHONY: manifests
manifests: ## Generate the CRDs and the controller's role
	$(GO) tool controller-gen crd paths=./api/... output:crd:dir=manifests/crd
	$(GO) tool controller-gen rbac:roleName=pushback-controller paths=./cmd/controller output:rbac:dir=manifests/rbac

.PHONY: verify
verify: generate manifests ## Check that generated files are up to date
	@changed=$$(git status --porcelain -- api manifests/crd manifests/rbac); \
	if [ -n "$$changed" ]; then echo "generated files are not up to date: commit the outcome of 'make generate manifests'"; echo "$$changed"; exit 1; fi

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver and kube-controller-manager into bin/k8s/
	$(GO) run ./e2e/cluster/cmd/cluster build

.PHONY: cluster
cluster: ## Start a local control plane and leave it running (ARGS="-crds manifests/crd")
	$(GO) run ./e2e/cluster/cmd/cluster start $(ARGS)

.PHONY: demo
demo: ## Show the whole loop: a good version is promoted, a bad one is reverted (ARGS="--keep")
	$(GO) run ./e2e/demo $(ARGS)
