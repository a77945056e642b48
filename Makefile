# make alone prints the targets. Everything works from a path with spaces: names in
# recipes are relative, and .venv/bin/python -m runs what pip installed.
.DEFAULT_GOAL := help
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

GO ?= go
GOTEST = $(GO) run ./tools/gotest
PY = .venv/bin/python
FUZZTIME ?= 20s
ROOT_FLAG = $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
TARGETS = linux/amd64 linux/arm64 darwin/arm64 windows/amd64
export CGO_ENABLED = 0

# What must give the same on every CPU and with the portable code alone.
EXACT = ./metal/... ./engine/... ./internal/named/...

.PHONY: help
help: ## print this list
	@echo "make TARGET:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

.PHONY: go
go:
	@command -v $(GO) >/dev/null 2>&1 || { echo "make: $(GO) not found; install Go 1.26 or newer (go.dev/dl) and put it on the PATH" >&2; exit 1; }
	@$(GO) list -m >/dev/null || { echo "make: this project needs Go 1.26 or newer; found $$($(GO) version)" >&2; exit 1; }

.PHONY: venv
venv:
	@tools/venv.sh

.PHONY: build
build: go ## build bin/deltafin
	@mkdir -p bin
	$(GO) build -trimpath -o bin/deltafin .

.PHONY: kernel
kernel: build venv
	@bin/deltafin install --prefix .venv >/dev/null

.PHONY: lab
lab: kernel ## open JupyterLab with the quickstart (sets up all it needs)
	$(PY) -m jupyterlab $(ROOT_FLAG) --LabApp.default_url=/lab/tree/notebooks/01-quickstart.ipynb

.PHONY: lab-headless
lab-headless: kernel ## execute the quickstart without a browser
	@mkdir -p out
	$(PY) -m nbconvert --config tools/nbconvert/config.py --execute --to notebook --output-dir out notebooks/01-quickstart.ipynb
	$(PY) -m nbconvert --config tools/nbconvert/config.py --to html --output-dir out out/01-quickstart.ipynb
	@echo "executed: out/01-quickstart.ipynb; as a page: out/01-quickstart.html"

.PHONY: test
test: check dist test-go generated noasm arm64 race-short frontends ## run all tests
	@echo "make test: all passed"

.PHONY: check
check: go ## check formatting and vet for every platform
	@set -e; unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './.venv/*')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):" $$unformatted >&2; exit 1; fi
	@set -e; for target in $(TARGETS); do \
		echo "go vet for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet ./...; \
	done

.PHONY: dist
dist: go ## build the binary for every platform, under dist/
	@set -e; mkdir -p dist; for target in $(TARGETS); do \
		out=dist/deltafin-$${target%/*}-$${target#*/}; case $$target in windows/*) out=$$out.exe ;; esac; \
		echo "go build for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -trimpath -o $$out .; \
	done

.PHONY: test-go
test-go: go ## run the Go tests (with the fuzz tests' seeds and the notebooks)
	$(GOTEST) ./...

.PHONY: generated
generated: go ## check that generated assembly is what its generator writes
	cd metal/cpu/asm && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: noasm
noasm: go ## run the exactness tests with the portable code alone
	$(GOTEST) -short -tags noasm $(EXACT)

# qemu-user reports the fault of a file cut short under its mapping without its
# address, which hardware gives: that one test is left to real machines.
.PHONY: arm64
arm64: go ## run the exactness tests for arm64 (under qemu where needed)
	@set -e; case "$$($(GO) env GOHOSTARCH)/$$($(GO) env GOHOSTOS)" in \
	arm64/*) $(GOTEST) -short $(EXACT) ;; \
	*/linux) qemu=$$(tools/need.sh qemu-user-static qemu-aarch64-static qemu-aarch64); \
		echo "arm64 under $$qemu"; \
		bin=$$(mktemp -d); trap 'rm -rf "$$bin"' EXIT; \
		$(GO) build -o "$$bin/gotest" ./tools/gotest; \
		GOARCH=arm64 "$$bin/gotest" -short -exec "$$qemu" -skip '^TestTruncatedUnderMapping$$' $(EXACT) ;; \
	*) echo "arm64: skipped, for this system is neither arm64 nor Linux (qemu-user runs there)" ;; \
	esac

.PHONY: race-short
race-short: go
	@if command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1; then \
		CGO_ENABLED=1 $(GO) run ./tools/gotest -race -short ./metal/... ./engine/... ./internal/named/... ./kernel/... ./rig/... ./prefetch/... ./cli/...; \
	else \
		echo "****** NO C COMPILER: the race detector did NOT run; install gcc or clang to run it ******"; \
	fi

.PHONY: frontends
frontends: kernel ## run Jupyter's own front ends and a browser against the kernel
	@CHROMIUM=$${CHROMIUM:-$$(tools/need.sh chromium chromium chromium-browser google-chrome)} $(PY) tools/frontends

.PHONY: screenshot
screenshot: kernel ## take the README's pictures anew
	@CHROMIUM=$${CHROMIUM:-$$(tools/need.sh chromium chromium chromium-browser google-chrome)} $(PY) tools/frontends/screenshot.py docs/images

.PHONY: notebooks
notebooks: go ## execute every notebook and check its outputs
	$(GOTEST) -count=1 ./notebooks/...

.PHONY: race
race: go ## run the Go tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

.PHONY: fuzz
fuzz: go ## fuzz every parser, FUZZTIME (20s) each
	@set -e; for package in $$($(GO) list ./...); do \
		for name in $$($(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$name"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package"; \
		done; \
	done

.PHONY: soak
soak: go ## run the long tests: thousands of cancellations, dozens of kills
	$(GO) test -count=1 -timeout 2h -tags soak -run Soak -v ./notebooks

.PHONY: bench
bench: go ## run the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Its build, its converter's packages and the weights stay in out/peer.
.PHONY: peer
peer: build ## measure llama.cpp beside deltafin (builds it once, about 10 minutes)
	@tools/need.sh cmake cmake >/dev/null; tools/need.sh g++ c++ g++ clang++ >/dev/null
	python3 tools/peer/peer.py $(PEERFLAGS)

.PHONY: golden
golden: go ## rewrite the golden files (look at the difference before committing)
	@set -e; for file in $$(grep -rl --include='*_test.go' 'Bool("update"' .); do \
		$(GO) test -count=1 "$$(dirname "$$file")" -args -update; \
	done

.PHONY: generate
generate: go ## rewrite the generated code of kernel and metal
	$(GO) generate ./kernel/... ./metal/...

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin dist out .venv
