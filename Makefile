# The verbs of this project. Everything runs in an environment of its own, .venv, made on first use.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
DEMO    := build/demo-venv
WORKERS ?= 2
TESTS   ?= not slow
SOURCES := setup.py pyproject.toml $(wildcard src/native/* include/cyxla/abi.h include/cyxla/kernels/*/* pyx/cyxla/_native/* src/cyxla/xla/cpu/prebuilt/*.py)
FORMATTED := include/cyxla/compiler.h $(wildcard include/cyxla/*plugin* include/cyxla/kernels/*/* include/cyxla/aot/*.[ch] include/cyxla/aot/python/*)

REQUIRES  := 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])'

.DEFAULT_GOAL := help
.PHONY: help demo test lint style types contracts docstrings bench wheel docs html fuzz sanitize clean

help:  ## list the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 16

demo: wheel  ## build the wheel, install it into a fresh environment, run programs that JAX lowered and an example
	rm -rf $(DEMO) && $(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/pip install --quiet dist/cyxla-*.whl
	cd build && ../$(DEMO)/bin/python ../examples/run_jax_programs.py
	cd build && ../$(DEMO)/bin/python ../examples/black_scholes.py

test: $(VENV)/built  ## pass the tests; TESTS="slow or not slow" for all of them
	$(BIN)/python -m pytest -n $(WORKERS) -q -m "$(TESTS)"

lint: style types contracts docstrings  ## style, types, imports between parts, language of docstrings; also each alone

style: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(FORMATTED)

types: $(VENV)/lint
	$(BIN)/mypy

contracts: $(VENV)/lint
	$(BIN)/lint-imports

docstrings: $(VENV)/lint
	$(BIN)/python .ci/docstrings.py

bench: $(VENV)/built  ## time what the files of bench/ claim
	$(BIN)/python -m pytest bench -q --benchmark-only -p no:cacheprovider -p no:xdist

wheel: $(VENV)/wheel-tools  ## build the wheel into dist/, through the source distribution
	rm -rf dist && $(BIN)/python -m build --quiet --no-isolation  # pip builds the editable install in isolation

docs: $(VENV)/built  ## write docs/opcodes.md, docs/numpy.md and docs/settings.md
	$(BIN)/cyxla opcodes --markdown > docs/opcodes.md
	$(BIN)/cyxla functions --markdown > docs/numpy.md
	$(BIN)/cyxla settings --markdown > docs/settings.md

html: $(VENV)/built  ## build docs/ with the reference of docs/api into build/html
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/sphinx-build -q -W --keep-going -c docs/api docs build/html

fuzz: $(VENV)/built  ## inputs that try to break it: KIND=hlo SECONDS=60 SEED=1 KEEP=folder; see docs/reliability.md
	$(BIN)/python tests/fuzz.py $(or $(KIND),all) --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) \
	  --keep $(or $(KEEP),build/findings)

sanitize: $(VENV)/built  ## random programs with generated C under the sanitizers of gcc: SEED=1 COUNT=200
	.ci/sanitized $(BIN)/python tests/fuzz.py programs --seed $(or $(SEED),0) --count $(or $(COUNT),200)
	$(BIN)/pip install --quiet cython pybind11
	$(BIN)/python .ci/sanitized_runtime

clean:  ## remove everything built
	rm -rf build dist $(VENV) src/cyxla.egg-info src/cyxla/_native/*.so

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/built: $(BIN)/python $(SOURCES)
	$(BIN)/pip install --quiet --editable '.[test,cli]'
	touch $@

$(VENV)/lint: $(BIN)/python Makefile | $(VENV)/built
	$(BIN)/pip install --quiet ruff mypy import-linter clang-format==14.0.6
	touch $@

$(VENV)/wheel-tools: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet build $$($(BIN)/python -c $(REQUIRES))
	touch $@
