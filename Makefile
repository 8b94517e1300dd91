# `make demo` and `make test` set everything up by themselves. VENV=... puts the environment elsewhere.
VENV ?= .venv
WORKERS ?= 2
RUN ?= runs/foam_ball

PYTHON_IN_VENV := $(VENV)/bin/python
# Containers that write no bytecode compile a thousand modules at every start of a process.
unexport PYTHONDONTWRITEBYTECODE
# Two worker processes with one BLAS thread each beat two that fight over all cores.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(PYTHON_IN_VENV) -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help setup warm wheel demo docs reproduce reproduce-long test test-unit test-all test-minimum test-torch constraints lint clean

help:
	@echo "make demo      fit a foam ball's material to a recording; writes $(RUN)"
	@echo "make reproduce the paper's figures and tables (over an hour); writes docs/studies/reproduction.md"
	@echo "make reproduce-long  comparisons that take hours, ONLY=... some of them; goes on where it was stopped"
	@echo "make test      ruff, mypy and the quick tests: tests/unit and tests/claims without their long cases"
	@echo "make test-unit the tests that simulate nothing"
	@echo "make test-all  the same with the long cases and tests/long"
	@echo "make test-minimum  the quick tests with the oldest dependencies that are allowed"
	@echo "make test-torch   the tests of runs inside PyTorch, in an environment of their own (its wheel for the CPU, 200 MB)"
	@echo "make constraints   the newest dependencies that are allowed, into constraints.txt"
	@echo "make lint      ruff and mypy"
	@echo "make docs      the pages as a site, in site/"
	@echo "make setup     only make $(VENV) and install"
	@echo "make warm      compile the steps, once: some minutes"
	@echo "make wheel     a wheel with compiled kernels inside, in dist/: some minutes"
	@echo "make clean     remove what building and testing left (not $(VENV), not runs/)"

setup:
	@VENV="$(VENV)" bash scripts/setup.sh

# Compiled once for all scenes; without them all take the steps of their terms, small ones several times slower.
warm: setup
	$(PYTHON_IN_VENV) -m add warm --times

# A wheel with compiled kernels inside, for this Python and numba and any x86-64-v3: some minutes.
wheel: setup
	$(PYTHON_IN_VENV) -m pip install --quiet wheel
	$(PYTHON_IN_VENV) -m scripts.kernel_wheel

demo: setup
	MPLBACKEND=Agg $(PYTHON_IN_VENV) -m add optimize scenes/foam_ball.json -o $(RUN)
	@echo "report: $(CURDIR)/$(RUN)/report.md"

# One thread, as the page says; ONLY="fig6 fig10a" runs these entries and keeps the others' results.
reproduce:
	@VENV="$(VENV)" EXTRAS="test,reproduction" bash scripts/setup.sh
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(PYTHON_IN_VENV) -m scripts.reproduce $(if $(ONLY),--only $(ONLY))

reproduce-long:
	@VENV="$(VENV)" EXTRAS="test,reproduction" bash scripts/setup.sh
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(PYTHON_IN_VENV) -m scripts.reproduce $(if $(ONLY),--only $(ONLY),--long)

# Lint and types beside the kernels, whose last ones leave a core idle: half a minute.
test:
	@$(MAKE) --no-print-directory -j 2 lint warm
	$(PYTEST) -m "not slow" --durations 20 tests/unit tests/claims

test-unit: setup
	$(PYTEST) -m "not slow" --durations 20 tests/unit

test-all: lint warm
	$(PYTEST)

# The quick tests that simulate nothing with the oldest version that pyproject.toml allows of each dependency; TESTS= names others than these.
test-minimum:
	python3 scripts/minimum_versions.py > .minimum-versions.txt
	@VENV="$(VENV)-minimum" CONSTRAINTS=.minimum-versions.txt bash scripts/setup.sh
	NUMBA_CACHE_DIR="$(abspath $(VENV)-minimum)/numba" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg \
	    $(VENV)-minimum/bin/python -m pytest -n $(WORKERS) -m "not slow" $(or $(TESTS),tests/unit)

# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu finds the wheel without a GPU's libraries.
test-torch:
	@VENV="$(VENV)-torch" EXTRAS="test,torch" bash scripts/setup.sh
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(VENV)-torch/bin/python -m pytest tests/claims/learning/test_torch.py

# The newest versions that pyproject.toml allows, as the next constraints.txt; run the tests before it is committed.
# The extra cholmod is among them only where the headers of SuiteSparse are.
constraints:
	rm -rf $(VENV)-newest
	touch .no-constraints.txt
	@VENV="$(VENV)-newest" CONSTRAINTS=.no-constraints.txt bash scripts/setup.sh
	(head -n 1 constraints.txt; $(VENV)-newest/bin/python -m pip freeze --exclude-editable) > .constraints.txt
	mv .constraints.txt constraints.txt

docs:
	@VENV="$(VENV)" EXTRAS="test,docs" bash scripts/setup.sh
	$(PYTHON_IN_VENV) -m mkdocs build --strict

lint: setup
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m mypy

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage htmlcov
	find add tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
