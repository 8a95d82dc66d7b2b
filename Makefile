# make demo    train a small ELF on the verses in the box and let it write, in minutes
# make test    lint, then the whole test suite on each backend and once without TensorFlow
# make lint    style checks alone
# make bench   measure speed
# make clean   remove what the above left behind, but not the virtual environment
#
# Each does the set-up that a fresh machine needs. KERAS_BACKEND=torch make demo uses another
# backend (jax, tensorflow or torch); PYTHON=/path/to/python3.12 make demo another interpreter.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench clean

VENV := .venv
PYTHON ?= python3
KERAS_BACKEND ?= jax
export KERAS_BACKEND

PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
LOGS := build/test-logs
RUNS := tensorflow jax torch without-tensorflow
# Named on pip's command line, so that no other requirement can pull in another build first.
TORCH := $(shell grep '^torch==' constraints.txt)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "keras_elf needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	    "Name another one: PYTHON=/path/to/python3.11 make ..." >&2; exit 1; }
	@echo "Setting up $(VENV), once (several minutes, about 5 GB)"
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --disable-pip-version-check \
	  -c constraints.txt "$(TORCH)" -e ".[jax,tensorflow,torch,dev]"
	@touch $@

demo: $(STAMP)
	$(PY) -m keras_elf.cli.demo

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m ruff check --preview --select PLC2701 keras_elf
	$(VENV)/bin/lint-imports

# Every run is made, whether or not an earlier one failed, two at a time, since compiling keeps one
# core busy; the longest begin. The output closes with the summary line that pytest gave for each
# run. PyTorch, which needs no compiler, also runs the tests marked `slow` (elsewhere: `pytest -m
# slow`). Those that compute nothing on a backend run once, without TensorFlow, with those that could
# notice its absence.
test: lint
	@rm -rf $(LOGS) && mkdir -p $(LOGS)
	@echo "Four runs, two at a time, about half an hour; progress in $(LOGS)/"
	@run() { \
	  case $$1 in \
	    torch) set -- $$1 torch 0 "not backend_free";; \
	    without-tensorflow) set -- $$1 jax 1 "backend_free or without_tensorflow";; \
	    *) set -- $$1 $$1 0 "not backend_free and not slow";; \
	  esac; \
	  env KERAS_BACKEND=$$2 KERAS_ELF_HIDE_TENSORFLOW=$$3 $(PY) -m pytest -m "$$4" --durations=0 \
	    --durations-min=1 > "$(LOGS)/$$1.log" 2>&1 \
	    || echo "$$1" >> $(LOGS)/failed; \
	  echo "finished: $$1"; \
	}; \
	export -f run; \
	printf '%s\n' $(RUNS) | xargs -P 2 -I {} bash -c 'run {}'; \
	for log in $(RUNS); do echo; echo "== $$log"; cat "$(LOGS)/$$log.log"; done; \
	echo; echo "== summaries: $(RUNS)"; \
	for log in $(RUNS); do \
	  grep -E '(passed|failed|errors?|no tests ran).* in [0-9.]+s' "$(LOGS)/$$log.log" | tail -n 1 \
	    | grep . || { echo "no summary from pytest: $$log"; echo "$$log" >> $(LOGS)/failed; }; \
	done; \
	test ! -e $(LOGS)/failed

bench: $(STAMP)
	$(PY) -m benchmarks

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
