# SPDX-License-Identifier: Apache-2.0
#
# The commands that people type; Meson and the scripts in tools/ do the work. `make` builds,
# `make demo` shows what sandlock is for, `make check` tests everything. Each target first makes
# sure that its Debian packages are there (tools/deps.sh): root installs them, others are told how.

BUILD ?= build
PREFIX ?= /usr/local
# Debian's own Python, whatever else PATH names.
PYTHON = /usr/bin/python3
MESON = /usr/bin/meson
NINJA = /usr/bin/ninja
BUILDTYPE ?= debugoptimized

export LC_ALL = C.UTF-8
export PYTHONDONTWRITEBYTECODE = 1

.PHONY: all help demo check check-long check-vm bench format lint fuzz install clean

all:
	@tools/deps.sh build
	@test -f $(BUILD)/build.ninja || \
		$(MESON) setup $(BUILD) --werror --prefix=$(PREFIX) --buildtype=$(BUILDTYPE) >/dev/null
	@$(NINJA) -C $(BUILD) --quiet

help:
	@echo "make             build the library and the command into $(BUILD)/"
	@echo "make demo        build a real project under a policy while it is being attacked"
	@echo "make check       all tests, sanitizers, analyzers and cross-builds"
	@echo "make check-long  and fuzzers, fault injection, other kernels"
	@echo "make check-vm    what differs on Debian's kernel, in QEMU"
	@echo "make bench       the figures, beside those of other sandboxes"
	@echo "make format      put all C into the house form"
	@echo "make lint        format check, style tests, clang-tidy, cppcheck, shellcheck"
	@echo "make fuzz        60 seconds for each fuzzer"
	@echo "make install     install below PREFIX ($(PREFIX)), DESTDIR in front"

demo: all
	@tools/deps.sh demo
	@$(PYTHON) tools/demo/demo.py $(BUILD)

check:
	@tools/deps.sh build check
	@$(PYTHON) tools/check.py

check-long:
	@tools/deps.sh build check fault vm
	@$(PYTHON) tools/check.py --long

check-vm: all
	@tools/deps.sh vm
	@$(PYTHON) tests/vm/run.py $(BUILD)

bench:
	@tools/deps.sh build bench
	@$(PYTHON) bench/run.py

format:
	@tools/deps.sh build check
	@git ls-files -z -- '*.c' '*.h' | xargs -0 clang-format -i

lint:
	@tools/deps.sh build check
	@$(PYTHON) tools/check.py --only build style tidy cppcheck shell

fuzz:
	@tools/deps.sh build check
	@$(PYTHON) tools/check.py --only fuzz --fuzz-seconds 60

install: all
	@$(MESON) install -C $(BUILD) --no-rebuild

clean:
	@rm -rf build build-*
