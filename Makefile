# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
FUZZ_SECONDS ?= 60

.PHONY: help demo test test-fast lint format bench images fuzz audit sbom clean

help:
	@echo "make demo    run the scripted agent on one phantom task of each published track (no key, no GPU)"
	@echo "make test    lint and the whole test suite"
	@echo "make bench   measured figures, beside peers where they are installed"
	@echo "make images  build the Docker images (without Docker, bubblewrap is used)"
	@echo "make fuzz    damaged input for readers, collector, traces, records and judge (FUZZ_SECONDS=60 for each)"
	@echo "make audit   known weaknesses of the locked packages; make sbom: a bill of materials of the images"

# The marker files make a second call free; a changed pyproject.toml installs again.
$(VENV)/.user: pyproject.toml .ci/venv
	.ci/venv $(PYTHON) $(VENV) ""
	@touch $@

$(VENV)/.dev: pyproject.toml .ci/venv
	.ci/venv $(PYTHON) $(VENV) "[dev]"
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user
	.ci/sandbox
	$(BIN)/python -m runner demo

test: lint
	.ci/sandbox
	.ci/browser
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow and not docker and not bubblewrap and not browser"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	.ci/sandbox
	$(BIN)/python -m benchmarks

images: $(VENV)/.user
	$(BIN)/python -m runner images

fuzz: $(VENV)/.dev
	$(BIN)/python -m benchmarks.fuzz --seconds $(FUZZ_SECONDS)

audit: $(VENV)/.dev
	$(BIN)/python -m runner.images.audit

sbom: $(VENV)/.user
	$(BIN)/python -m runner.images.sbom

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
