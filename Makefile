# SPDX-License-Identifier: Apache-2.0
# The front door. Every target installs what it lacks (Debian packages), builds what it needs, and runs it.

MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
BUILD = cmake --build --preset
TSAN_SUPPRESSIONS = $(wildcard tests/support/tsan.supp)
# ThreadSanitizer cannot start when the system spreads addresses too widely; not every container lets us ask it not to.
NARROW = $(shell setarch -R true 2>/dev/null && echo setarch -R)
LSAN_SUPPRESSIONS = $(wildcard tests/support/lsan.supp)
FUZZERS = $(sort $(patsubst tests/fuzz/%_fuzz.cpp,%,$(wildcard tests/fuzz/*_fuzz.cpp)))
SECONDS ?= 600
# Warnings are for those who change the code: with optimisation each compiler has some of its own, and a newcomer's may be any.
RELEASE = cmake --preset release -DPOSTRIDER_WERROR=OFF
# With the same flags: what one of them has compiled, ccache has for the other.
DEB = cmake --preset deb -DPOSTRIDER_WERROR=OFF

.DEFAULT_GOAL := help
.PHONY: help demo test sanitize fuzz bench deb lint format clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: ## build the program and run its demo: all chapters, then the dashboard (on a terminal until Ctrl-C)
	@scripts/setup program
	@mkdir -p build
	@$(RELEASE) > build/release.log 2>&1 || { cat build/release.log >&2; exit 1; }
	@$(BUILD) release -j$(JOBS) --target postrider-program
	@build/release/bin/postrider demo

test: ## build and run all tests, against SQLite, PostgreSQL and MariaDB
	@scripts/setup test
	cmake --preset dev
	$(BUILD) dev -j$(JOBS)
	scripts/with-servers --in-memory ctest --test-dir build/dev --output-on-failure -j2

# What one sanitizer finds on two databases it finds on the third; memory errors of its own are looked for by conformance.
sanitize: ## run the tests under address, undefined-behaviour and thread sanitizers, and each fuzzer for a moment
	@scripts/setup test
	cmake --preset asan
	$(BUILD) asan -j$(JOBS) --target sanitized-tests
	ASAN_OPTIONS=detect_leaks=1:check_initialization_order=1 \
	LSAN_OPTIONS=$(if $(LSAN_SUPPRESSIONS),suppressions=$(CURDIR)/$(LSAN_SUPPRESSIONS)) \
	UBSAN_OPTIONS=print_stacktrace=1 \
	scripts/with-servers --in-memory ctest --test-dir build/asan -L 'unit|conformance|integration|fuzz' \
	  -E '^(integration|app|eventlog|daemon)\.mariadb$$' --output-on-failure -j2
	cmake --preset tsan
	$(BUILD) tsan -j$(JOBS) --target sanitized-tests
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1$(if $(TSAN_SUPPRESSIONS),:suppressions=$(CURDIR)/$(TSAN_SUPPRESSIONS)) \
	scripts/with-servers --in-memory $(NARROW) ctest --test-dir build/tsan -L 'unit|integration' -E '\.mariadb$$' --output-on-failure -j2

fuzz: ## let each fuzzer run for SECONDS=600; ONLY="spill tag" chooses
	@scripts/setup test
	cmake --preset asan
	$(BUILD) asan -j$(JOBS) --target $(patsubst %,%_fuzz,$(or $(ONLY),$(FUZZERS)))
	@for name in $(or $(ONLY),$(FUZZERS)); do \
	  POSTRIDER_FUZZ_KEEP=1 UBSAN_OPTIONS=print_stacktrace=1 scripts/run-fuzzer build/asan/tests/fuzz/$${name}_fuzz \
	    tests/fuzz/corpus/$$name build/fuzz/$$name $(SECONDS) || exit 1; done

bench: ## run the benchmarks, JSON lines on stdout; ONLY="outbox queue.postgres" chooses
	@scripts/setup test >&2
	@$(RELEASE) >&2
	@$(BUILD) release -j$(JOBS) --target postrider-bench >&2
	@scripts/with-servers build/release/bench/postrider-bench $(ONLY)

deb: ## make the Debian package of the program, in build/deb/packages
	@scripts/setup program
	$(DEB)
	$(BUILD) deb -j$(JOBS) --target postrider-program
	cd build/deb && cpack -G DEB
	@ls build/deb/packages/*.deb

lint: ## check format, includes, warnings, thread safety, clang-tidy, scripts
	@scripts/setup test
	@scripts/lint

format: ## format all C++ files
	@scripts/setup test
	@git ls-files -z --cached --others --exclude-standard '*.hpp' '*.cpp' | xargs -0 --no-run-if-empty clang-format-14 -i

clean: ## remove all build folders
	rm -rf build
