# Thin: what people type. The work is in CMake, tools/ and examples/.
#
#   make demo      runs the example in a sandbox, from nothing, and shows what came back
#   make test      every test: unit, in real machines, under sanitizers, fuzz corpora
#   make help      the rest

BUILD := build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

# ccache: the same sources in another folder are the same, and precompiled headers may be cached.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros

.DEFAULT_GOAL := build
.PHONY: demo test build lint bench install test-unit test-vm test-attacks test-agents test-asan test-tsan fuzz-short format clean help

demo: ## the main job on a real project, and an agent with keys that open nothing, in sandboxes
	@tools/setup build run demo
	@$(MAKE) --no-print-directory product
	@examples/fix-failing-tests/demo
	@examples/crossings/demo

test: ## every test; ends with one line of sums
	@tools/setup build run test
	@tools/run-tests

build: ## build/bin/firestop
	@tools/setup build
	@$(MAKE) --no-print-directory product

lint: ## layout, static analysis, include directions, scripts, links
	@tools/setup build test lint
	@tools/lint

bench: ## first byte of output against plain QEMU; working copies against git clone; memory of eight runs; proxies side by side
	@tools/setup build run test bench
	@$(MAKE) --no-print-directory product
	@cmake --build $(BUILD) --target carrier-server bench-load
	@bench/start
	@bench/workspace
	@bench/eight
	@bench/evidence
	@bench/proxy/run $(BUILD)
	@bench/connections --firestop $(BUILD)/bin/firestop

install: build ## into PREFIX (/usr/local), honours DESTDIR
	@cmake --install $(BUILD) --prefix $(PREFIX)

test-unit: ## only the unit tests
	@tools/setup build run test
	@tools/run-tests unit

test-vm: ## only the tests that start machines
	@tools/setup build run test
	@tools/run-tests image vm

test-attacks: ## every attack (inv..), listed by the invariant that it goes against
	@tools/setup build run test
	@tools/run-tests image attacks

test-agents: ## Codex and another agent from npm, in sandboxes, with a scripted model in place of the services
	@tools/setup build run test
	@tools/run-tests image agents

test-asan: ## unit tests under the address and undefined behaviour sanitizers
	@tools/setup build run test
	@tools/run-tests asan

test-tsan: ## unit tests of threaded parts under the thread sanitizer
	@tools/setup build run test
	@tools/run-tests tsan

fuzz-short: ## every fuzzer over its corpus, then a few seconds more
	@tools/setup build run test
	@tools/run-tests fuzz

format: ## lays out every C++ file
	@tools/setup lint
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format-19 -i

clean: ## removes build/ (not the image cache: see `firestop image prune`)
	@rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1 /p' Makefile | awk '{n=$$1; $$1=""; printf "  make %-13s%s\n", n, $$0}'

# Not for people: the product without tests.
.PHONY: product
product:
	@[ $(BUILD)/build.ninja -nt CMakePresets.json ] || cmake --preset release
	@cmake --build $(BUILD) -j $(JOBS) --target firestop firestop-guest
