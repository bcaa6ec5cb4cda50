# Thin names over the CMake presets (CMakePresets.json) and the scripts in tools/.
.PHONY: build program configure test exhaustive demo bench tidy format format-check clean

JOBS ?= $(shell nproc)
BENCH ?= cholesky
# More options of CMake, as -DSTRATA_CUDA=OFF.
CONFIGURE ?=

# The version that the tree is formatted with, where there are several.
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14) clang-format)
CODE_FILES = git ls-files -z --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.cu'

# CMake looks for nvcc on the PATH only; the usual place is often not on it.
ifeq ($(CUDACXX)$(shell command -v nvcc),)
ifneq ($(wildcard /usr/local/cuda/bin/nvcc),)
export CUDACXX := /usr/local/cuda/bin/nvcc
endif
endif

build: configure
	cmake --build --preset release -j $(JOBS)

# The program alone: no test, no example and no CUDA backend, which take most of the time. A backend
# that "make build" has built is used; one of another version is not (info says so).
program: configure
	cmake --build --preset release -j $(JOBS) --target strata_cli

configure:
	@tools/setup
	cmake --preset release $(CONFIGURE)

test: build
	ctest --preset release -j 2

# Random tests with all their cases: more than continuous integration has time for.
exhaustive: build
	STRATA_EXHAUSTIVE=1 ctest --preset release -j 2

demo: program
	tools/demo

bench: build
	build/release/strata bench $(BENCH)

tidy:
	python3 tools/test_tidy.py
	tools/tidy --headers

format:
	$(CODE_FILES) | xargs -0 -r $(CLANG_FORMAT) -i

format-check:
	$(CODE_FILES) | xargs -0 -r $(CLANG_FORMAT) --dry-run -Werror

clean:
	rm -rf build
