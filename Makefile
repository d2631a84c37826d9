# Every target works from a fresh clone with python3 and make: it first sets up .venv.
# Another interpreter: make test PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin
# Many tests wait for other processes, so three workers suit two cores. Each takes neighbouring tests, which share fixtures.
TEST_WORKERS := -n 3 --dist worksteal

.PHONY: demo test test-fast lint docs notebooks package check-versions format bench results clean help

help:
	@echo "make demo       install, then find out how deep a network must be for MNIST (three minutes)"
	@echo "make test       install with the test tools, then run every test (15 to 28 minutes)"
	@echo "make test-fast  the same, without the slow tests (two to six minutes)"
	@echo "make lint       run ruff, ruff format and mypy --strict"
	@echo "make docs       build the site into build/site (warnings are errors), then look at every page in a browser"
	@echo "make package    build the wheel and the source archive into dist, check and list them"
	@echo "make check-versions  run quick tests with the newest and with the lowest allowed dependencies (half an hour)"
	@echo "make notebooks  execute the notebooks again"
	@echo "make bench      measure our speed against PyTorch and JAX (an hour; can be interrupted and continued)"
	@echo "make results    train the networks that the README reports again (an hour; can be interrupted and continued)"
	@echo "make format     let ruff fix and format the code"
	@echo "make clean      remove .venv and caches (never data, runs or results)"

demo: .venv/installed
	$(BIN)/verydeep demo

test: .venv/installed-dev
	$(BIN)/python -m pytest $(TEST_WORKERS) --durations=15

test-fast: .venv/installed-dev
	$(BIN)/python -m pytest $(TEST_WORKERS) -m "not slow"

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/installed-dev
	$(BIN)/python docs/site/build.py build/site
	$(BIN)/python -m pytest -q docs/site/check_in_browser.py

notebooks: .venv/installed-dev
	$(BIN)/python notebooks/execute.py

package: .venv/installed-dev
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m zipfile --list dist/*.whl

check-versions: .venv/installed-dev
	$(BIN)/python benchmarks/check_versions.py

bench: .venv/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/verydeep bench
	$(BIN)/python benchmarks/batches.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/training_steps.py
	$(BIN)/python benchmarks/conv_speed.py
	$(BIN)/python benchmarks/epoch_seconds.py
	$(BIN)/python benchmarks/conv_rounding.py
	$(BIN)/python benchmarks/lesions.py

results: .venv/installed-dev
	$(BIN)/python benchmarks/training.py highway50-mnist plain50-mnist highway1000-mnist
	$(BIN)/python benchmarks/training.py figures-mnist figures-cifar100
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/alternatives.py

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "verydeep needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -m venv .venv \
	  || { rm -rf .venv; echo "python3 cannot create a virtual environment; on Debian or Ubuntu, install python3-venv" >&2; exit 2; }

.venv/installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing verydeep into .venv; this takes a few minutes the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/installed-dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing verydeep and its test tools into .venv; this takes a few minutes the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch .venv/installed $@
