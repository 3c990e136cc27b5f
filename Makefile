# Everything runs from .venv, which the pinned requirements make; nothing but python3 (with venv), make and git is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-with
PACKAGE_STAMP := $(VENV)/.made-with-package
TEST_STAMP := $(VENV)/.made-with-tests
DOCS_STAMP := $(VENV)/.made-with-docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

SECONDS ?= 600
COUNT ?= 100
DOCUMENTS ?= 100000 1000000

# Where it is set, each of the many processes that tests start compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long docs names screenshots fuzz mutants studies lint bench bench-scale clean venv test-venv docs-venv

demo: venv
	@echo 'Indexing, searching, learning and scoring a small collection: under a minute, of which most compiles loops once'
	@$(BIN)/greylag experiment demo

test: test-venv
	@echo 'Running the tests: 4 to 8 minutes on two cores'
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --max-worker-restart 0

# Pages of the documentation, types, studies, compilations of other packages, kills
test-long: test-venv docs-venv
	@echo 'Running the longer tests: 4 to 8 minutes on two cores'
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --max-worker-restart 0 -m long

# A link, an anchor or a name that leads nowhere is an error.
docs: docs-venv
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file plugin/mkdocs.yml
	@echo 'Open build/docs/index.html in a browser'

# The demonstration's picture and, if there is Chromium, what it makes of a report and of an explanation
screenshots: test-venv
	@$(BIN)/python -m tests.browser build/screenshots

# Malformed files of every format, with new seeds: make fuzz SECONDS=60
fuzz: test-venv
	$(BIN)/python -m tests.robustness $(SECONDS)

# Small faults in the library, which its tests ought to find: make mutants COUNT=30, or with SEED=5 the same again
mutants: test-venv
	$(BIN)/python -m tests.mutants $(COUNT) $(SEED)

# What is derived from the code and from experiment files: public names, the page of commands, figures in pages
names: test-venv
	@GREYLAG_GOLDEN=write $(BIN)/python -m pytest --quiet tests/test_structure.py tests/docs/test_hooks.py tests/docs/test_tables.py tests/greylag_papers -k "public_names_are or kept or picture or tables_are"

# Every study whose data are at hand, against the scores it expects: hours. Goes on where it stopped; make studies NAMES="cacm demo"
studies: test-venv
	$(BIN)/python -m tests.studies $(NAMES)

lint: venv
	$(BIN)/ruff check plugin tests
	$(BIN)/ruff format --check plugin tests
	$(BIN)/mypy

# Speed: make bench TOPICS="spine start", and make bench FULL=1 for the sizes of large collections, which takes hours
bench: venv
	$(BIN)/python -m benchmarks $(TOPICS)

# Time and memory of each step against the size of the collection: make bench-scale DOCUMENTS="100000 10000000"
bench-scale: venv
	$(BIN)/python -m benchmarks.growth $(DOCUMENTS)

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis runs/demo
	find plugin tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -maxdepth 2 -name '*.egg-info' -prune -exec rm -rf {} +

# Runs commands without what they print, which is shown if one of them fails.
define quietly
{ log=$$(mktemp); start=$$(date +%s); printf '%s\n' '$(1)'; \
  { $(2); } > "$$log" 2>&1 || { cat "$$log" >&2; rm -f "$$log"; exit 1; }; \
  rm -f "$$log"; printf '%s\n' "  done in $$(($$(date +%s) - start)) s"; }
endef

# The stamps hold what was installed: the interpreter's version and the requirements, so that `make PYTHON=python3.12 test`
# remakes .venv; and pyproject.toml, of which only the package with its entry points is installed anew.
venv:
	@want="$$($(PYTHON) -c 'import sys; print(sys.version)') $$(cksum < requirements.txt)"; \
	if [ "$$(cat $(STAMP) 2>/dev/null)" != "$$want" ]; then \
	  $(call quietly,Installing the pinned packages into $(VENV): 1 to 3 minutes,rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) \
	  && $(PIP) -r requirements.txt) && \
	  printf '%s' "$$want" > $(STAMP); \
	fi
	@want="$$(cksum < pyproject.toml)"; \
	if [ "$$(cat $(PACKAGE_STAMP) 2>/dev/null)" != "$$want" ]; then \
	  $(call quietly,Installing greylag itself: a few seconds,$(PIP) --no-build-isolation --editable .) && \
	  printf '%s' "$$want" > $(PACKAGE_STAMP); \
	fi

test-venv: venv
	@want="$$(cat tests/requirements.txt tests/interop-requirements.txt)"; \
	if [ "$$(cat $(TEST_STAMP) 2>/dev/null)" != "$$want" ]; then \
	  $(call quietly,Installing what only the tests need,$(PIP) -r tests/requirements.txt -r tests/interop-requirements.txt) && \
	  printf '%s' "$$want" > $(TEST_STAMP); \
	fi

docs-venv: venv
	@want="$$(cat plugin/docs/requirements.txt)"; \
	if [ "$$(cat $(DOCS_STAMP) 2>/dev/null)" != "$$want" ]; then \
	  $(call quietly,Installing what only the documentation needs,$(PIP) -r plugin/docs/requirements.txt) && \
	  printf '%s' "$$want" > $(DOCS_STAMP); \
	fi
