# `make demo` and `make test` are the two commands; each sets up all that it needs.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# Node 22 of the npm packages comes first: scripts, the Pulumi language host and the test bed all run on it.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
export NODE_OPTIONS := --disable-warning=ExperimentalWarning

.PHONY: help setup build demo test test-all bench testbed lint format schema toolchain clean

help:
	@echo 'make demo       the whole story on a real control plane: create, scale, repair, roll out, remove'
	@echo 'make test       every kind of check once and a sample of the rest (what CI runs)'
	@echo 'make test-all   every case'
	@echo 'make bench      figures, as ratios against a raw floor of the same run'
	@echo 'make testbed    the test bed alone, left running to look around in'
	@echo 'make build      the npm package with its two bundles; make lint, format, schema, toolchain, clean'

setup:
	@sh test/setup.sh

build: setup
	@npm run --silent build

demo: setup
	@node test/demo/demo.ts

test: setup
	@node test/run.ts

test-all: setup
	@node test/run.ts --all

bench: setup
	@node test/bench/bench.ts

testbed: setup
	@node test/testbed/serve.ts

toolchain: setup
	@node test/toolchain/build.mjs

schema: setup
	@npm run --silent schema

lint: setup
	@npm run --silent lint
	@npm run --silent typecheck

format: setup
	@npm run --silent format

clean:
	rm -rf sdk/nodejs/dist node_modules
