# Everything starts here. A bare checkout needs Python (3.11 or later, with venv), a C++20 compiler and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(shell find src/snarkline/csrc src/snarkline/include CMakeLists.txt pyproject.toml -type f 2>/dev/null)

.PHONY: demo test check wheel size bench docs conformance clean

demo: $(VENV)/.installed  ## prove a bundled circuit and show the timeline
	$(BIN)/snarkline demo

test: $(VENV)/.dev  ## set up and run every check and test
	$(MAKE) check
	$(BIN)/python -m pytest -n 2
	$(MAKE) wheel
	$(BIN)/python -m pytest -m packaging

check: $(VENV)/.dev  ## formatting, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	find src/snarkline/csrc src/snarkline/include -name '*.h' -o -name '*.cpp' | xargs $(BIN)/clang-format --dry-run -Werror
	$(BIN)/python bench/render_docs.py --check

wheel: $(VENV)/.dev  ## a manylinux wheel in dist/
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist/raw .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/raw/*.whl
	rm -rf dist/raw

size:  ## lines by layer and language
	@$(PYTHON) bench/size.py

docs: $(VENV)/.dev  ## write the figures of docs/ from the recorded results
	$(BIN)/python bench/render_docs.py

conformance:  ## make tests/vectors/filecoin anew with the reference crates (needs cargo; half an hour the first time)
	cargo run --release --locked --manifest-path conformance/Cargo.toml --target-dir build/conformance -- vectors tests/vectors/filecoin
	cd tests/vectors/filecoin/seal_2KiB && xz -9ef c1.json && rm -rf cache staged precommit1.json

clean:
	rm -rf build dist $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(BIN)/python $(NATIVE)
	$(BIN)/python -m pip install --quiet scikit-build-core nanobind cmake ninja
	@echo "building the native core (a few minutes the first time)"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	command -v npm >/dev/null && npm ci --silent --prefix tests/node || echo "npm is missing: tests against snarkjs are skipped"
	touch $@
