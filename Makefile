# Every target does its own set-up: virtual environments, the compiled extension, Java where there is none.
# Second runs are quick: each step leaves a stamp and is done again only when what it came from changes.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Not for cargo, which would look for make's job server where a recipe has none.
unexport MAKEFLAGS MFLAGS
# Modules are compiled once: tests start thousands of processes, and each would compile pandas and SQLAlchemy again.
unexport PYTHONDONTWRITEBYTECODE

# Compiled dependencies are kept outside the clone and shared by all clones.
export CARGO_TARGET_DIR ?= $(or $(ICEFIELD_TARGET),$(HOME)/.cache/icefield/target)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of interpreters, each of which would compile its libraries again.
export PYTHONDONTWRITEBYTECODE :=
# Property tests draw the same cases in every run, so that a change is judged by itself; `make test-random` draws others.
export PROPTEST_RNG_SEED ?= 1

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
JAVA_VENV := $(CURDIR)/.venv-java
SPARKS := 4.0.5 4.1.4 4.2.1 4.3.0

# Python 3.11 or later where there is one: the newest Spark wants it.
FIND_PYTHON = for wanted in 11 10; do for python in python3 python3.13 python3.12 python3.11 python3.14 python3.10; do \
	if $$python -c "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, $$wanted))" 2>/dev/null; then \
	command -v $$python; exit; fi; done; done
PYTHON ?= $(shell $(FIND_PYTHON))

RUST_SOURCES := $(shell find crates -name '*.rs') $(wildcard Cargo.* crates/*/Cargo.toml) pyproject.toml
SPARK_ENV = JAVA_HOME="$$(cat $(STAMPS)/java)" PYSPARK_PYTHON=$(BIN)/python
# Virtual machines of tests end before the second compiler pays: without it the tests of Spark take a fifth less. Those beside
# other implementations take an eighth less with one thread that collects garbage.
SHORT_LIVED = JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC $${JDK_JAVA_OPTIONS:-}"
PYTEST = $(BIN)/python -m pytest --durations=10
say = @echo "==> $(1)"
# What pip says of each extra that was not asked for.
WITHOUT_MARKERS = { grep --line-buffered -vE "^Ignoring .* match your environment" || true; }

# `$(call install,PYTHON,REQUIREMENTS)`: by uv, which takes half of pip's time; by pip where uv cannot be had or fails, and where
# pip is told of an index, of which uv knows nothing.
install = if ! { [ -x $(BIN)/uv ] && ! $(1) -m pip config list | grep index >/dev/null && \
	$(BIN)/uv pip install $$([ -t 2 ] || echo -q) --python $(1) $(2); }; then $(1) -m pip install --progress-bar on -q $(2); fi

# A terminal sees each crate; where nobody watches the hundreds of lines go into a file, and come out where it fails.
compiled = if [ -t 1 ]; then VIRTUAL_ENV=$(VENV) $(BIN)/maturin $(1) 2>&1 | $(WITHOUT_MARKERS); else \
	log=$(STAMPS)/compile.log; echo "    the compiler's lines are in $$log"; \
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin $(1) >$$log 2>&1 || { cat $$log; exit 1; }; fi

.PHONY: help demo demo-cdc test test-rust test-python test-golden test-spark test-spark-all lint lint-rust lint-python format docs docs-serve docs-picture licences test-wheel bench fuzz clean test-random
.PHONY: need-rust need-python demo-estimate public-api test-miri test-address coverage

help:
	@echo "make demo             a pipeline on real data: PySpark in, rows changed, PySpark, Python and DuckDB out"
	@echo "make demo-cdc         a stream of changes merged into a table by PySpark, its changelog, SQL on both"
	@echo "make test             all tests: Rust, Python, Spark, Java and other implementations"
	@echo "make test-golden      the golden runners, Rust and Python, and nothing else (ICEFIELD_GOLDEN=folder for another set)"
	@echo "make test-spark-all   the Spark tests on PySpark $(SPARKS)"
	@echo "make test-spark       the same on one of them (SPARK=$(SPARK))"
	@echo "make lint             rustfmt, clippy, ruff, import-linter, mypy, pyright, stubtest, docs, cargo deny"
	@echo "make docs             build the documentation into site/, and write properties.md, migration.md and statements.md from the code"
	@echo "make docs-serve       the same, shown on http://127.0.0.1:8000 while it is written"
	@echo "make docs-picture     draw docs/result.svg, what the README's example prints, anew"
	@echo "make test-wheel       install WHEEL=path in a fresh environment and run the README's example"
	@echo "make licences         write LICENSE-THIRD-PARTY.txt, which goes into a wheel that is published"
	@echo "make bench WHAT=...   benchmarks beside the peers: $(filter-out side_by_side %_tables %_peer,$(notdir $(basename $(wildcard benches/*.py))))"
	@echo "make test-random      property tests, plans beside Java's and laws of scans on other random cases (CASES=5000 SEED=today)"
	@echo "make test-miri        tests of unsafe code under Miri (nightly with the components miri and rust-src)"
	@echo "make test-address     tests of the Rust crates under the address sanitizer (nightly)"
	@echo "make coverage         how many lines the tests of Rust and Python run, by folder (rustup component add llvm-tools)"
	@echo "make fuzz             every fuzz target for FUZZ_SECONDS=60 (FUZZ_SEED=number for another seed)"
	@echo "make public-api       write crates/*/tests/public_api.txt and tests/unit/public_api.txt from the sources"
	@echo "make format           rustfmt and ruff, in place"
	@echo "make clean            remove the environments and what was compiled here"
	@echo
	@echo "README.md shows what it does, docs/ how tables are read and written, CONTRIBUTING.md how to work on it."

# --- set-up ---

# First of all: whoever has no Rust hears of it before anything is downloaded.
need-rust:
	@command -v cargo >/dev/null || { echo "Rust is missing: install version \
	$$(sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml) or later from https://rustup.rs and run make again."; exit 1; }

need-python:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.10 or later with venv is missing: install it (on Debian: apt-get install python3-venv) \
	and run make again."; exit 1; }

$(STAMPS)/environment: requirements/test.txt requirements/build.txt | need-python
	$(call say,environment .venv with $$($(PYTHON) --version): downloading what the tests need (PySpark is the largest))
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q -r requirements/uv.txt || echo "    without uv: pip does it"
	@$(call install,$(BIN)/python,-r requirements/build.txt -r requirements/test.txt)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/extension: $(STAMPS)/environment $(RUST_SOURCES) | need-rust
	$(call say,compiling the extension (minutes the first time; later only what changed))
	@$(call compiled,develop)
	@rm -f $(STAMPS)/release && touch $@

$(STAMPS)/release: $(STAMPS)/environment $(RUST_SOURCES) | need-rust
	$(call say,compiling the extension as it is published (many minutes the first time))
	@$(call compiled,develop --release)
	@rm -f $(STAMPS)/extension && touch $@

$(STAMPS)/java: $(STAMPS)/environment
	@.ci/java-home $(VENV) >$@.new && mv $@.new $@
	$(call say,Java: $$(cat $@))

$(STAMPS)/lint: requirements/lint.txt $(STAMPS)/environment
	$(call say,linters)
	@$(call install,$(BIN)/python,-r requirements/lint.txt)
	@touch $@

$(JAVA_VENV)/installed: requirements/java.txt | need-python
	$(call say,environment .venv-java: PySpark 4.1 for the Java reference library)
	@[ -x $(JAVA_VENV)/bin/python ] || $(PYTHON) -m venv $(JAVA_VENV)
	@$(call install,$(JAVA_VENV)/bin/python,-r requirements/java.txt)
	@touch $@

$(STAMPS)/docs: requirements/docs.txt $(STAMPS)/environment
	$(call say,what builds the documentation)
	@$(call install,$(BIN)/python,-r requirements/docs.txt)
	@touch $@

# A server that speaks Azure's protocol, for the tests of storage, where there is npm.
AZURITE := 3.35.0
$(STAMPS)/azurite: | $(STAMPS)/environment
	$(call say,Azurite $(AZURITE) for the tests on Azure's storage)
	@if ! command -v npm >/dev/null; then echo "    left out: there is no npm here"; \
	elif ! npm install --prefix $(VENV)/azurite --no-audit --no-fund --loglevel error --fetch-timeout 30000 azurite@$(AZURITE); then \
		echo "    left out: npm could not install it"; fi
	@touch $@

# Planners that the bench of planning runs beside us, where they install.
$(STAMPS)/planners: requirements/planners.txt $(STAMPS)/environment
	$(call say,planners beside which plans are timed)
	@($(call install,$(BIN)/python,-r requirements/planners.txt)) || echo "    left out: $$(grep -v '^#' requirements/planners.txt) did not install"
	@touch $@

# --- what people run ---

# What is still to be done, before it begins.
demo-estimate:
	@if [ ! -e $(STAMPS)/extension ]; then \
	echo "==> the first time: about 1 GB to download (PySpark is half of it), 7 GB of disk, and 5 to 15 minutes, most of them compiling"; \
	else echo "==> about a minute, half of which Spark takes to start"; fi

demo: need-rust need-python demo-estimate $(STAMPS)/extension $(STAMPS)/java
	@$(SPARK_ENV) $(BIN)/python examples/flights.py

demo-cdc: need-rust need-python demo-estimate $(STAMPS)/extension $(STAMPS)/java
	@$(SPARK_ENV) $(BIN)/python examples/changes.py

test: test-rust test-python

# Beside Python's tests they take what is left of the processors: those wait for disks and each other, thousands of times.
test-rust: | need-rust
	$(call say,Rust tests)
	@nice cargo test --workspace --quiet --no-fail-fast

test-python: need-rust $(STAMPS)/extension $(STAMPS)/java $(STAMPS)/azurite $(JAVA_VENV)/installed
	$(call say,Python tests)
	@ICEFIELD_AZURITE=$(VENV)/azurite/node_modules/.bin/azurite-blob $(PYTEST) -q -n 2 --dist worksteal -m "not spark and not interop"
	$(call say,Spark and beside it other implementations)
	@# By folder: to collect all tests for the few of a mark takes ten seconds of a processor.
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; export $(SPARK_ENV) $(SHORT_LIVED); \
	$(PYTEST) -q -m spark tests/spark >$$log 2>&1 & spark=$$!; status=0; \
	ICEFIELD_JAVA_PYTHON=$(JAVA_VENV)/bin/python $(PYTEST) -q -m interop tests/interop tests/catalog || status=1; \
	wait $$spark || status=1; cat $$log; exit $$status

test-golden: need-rust $(STAMPS)/extension $(STAMPS)/java
	@log=$$(mktemp); trap 'rm -f $$log' EXIT; status=0; \
	cargo test --workspace --quiet --no-fail-fast --test golden 2>&1 | tee -a $$log || status=1; \
	ICEFIELD_ALL_CASES=1 $(SPARK_ENV) $(SHORT_LIVED) $(PYTEST) -q -m golden 2>&1 | tee -a $$log || [ $${PIPESTATUS[0]} = 5 ] || status=1; \
	count() { { grep -oE "[0-9]+ $$1" $$log || true; } | awk '{ n += $$1 } END { print n + 0 }'; }; \
	left_out=$$(($$(count ignored) + $$(count skipped))); among=$$(count 'of the passed refused'); \
	refused=$$(($$among + $$(count 'refused \(unsupported\)'))); passed=$$(($$(count passed) - $$among)); \
	echo "$$passed passed, $$(count failed) failed, $$left_out skipped, $$refused refused (unsupported)"; exit $$status

public-api: | need-rust
	@cargo run --quiet --manifest-path .ci/public-api/Cargo.toml -- --write
	@if [ -x $(BIN)/python ]; then PYTHONPATH=python $(BIN)/python .ci/public_names.py; \
	else echo "    tests/unit/public_api.txt is left as it is: make test compiles what it is written from"; fi

# Every version gets its turn, whatever became of the others.
test-spark-all: need-rust $(STAMPS)/extension $(STAMPS)/java
	@failed=; for version in $(SPARKS); do $(MAKE) test-spark SPARK=$$version || failed="$$failed $$version"; done; \
	if [ -n "$$failed" ]; then echo "==> failed on PySpark$$failed"; exit 1; fi

SPARK ?= $(lastword $(SPARKS))
SPARK_VENV = $(CURDIR)/.venv-spark-$(SPARK)
test-spark: need-rust $(STAMPS)/extension $(STAMPS)/java
	$(call say,PySpark $(SPARK))
	@[ -x $(SPARK_VENV)/bin/python ] || $(PYTHON) -m venv $(SPARK_VENV)
	@grep -v '^pyspark' requirements/test.txt >$(SPARK_VENV)/requirements.txt
	@$(call install,$(SPARK_VENV)/bin/python,pyspark==$(SPARK) -r $(SPARK_VENV)/requirements.txt)
	@echo $(CURDIR)/python >$$($(SPARK_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/icefield.pth
	@ICEFIELD_MAY_SKIP="PySpark 4.0 pushes no filters;PySpark 4.0 has no type;PySpark 4.1 and earlier tell;Arrow functions need PySpark 4.1" \
	JAVA_HOME="$$(cat $(STAMPS)/java)" PYSPARK_PYTHON=$(SPARK_VENV)/bin/python $(SPARK_VENV)/bin/python -m pytest -q -m spark

lint: lint-rust lint-python

lint-rust: need-rust $(STAMPS)/lint
	$(call say,rustfmt)
	@cargo fmt --all --check
	$(call say,clippy)
	@cargo clippy --workspace --all-targets --quiet -- -D warnings
	@# As it is published: without the hooks that tests have.
	@cargo check --quiet -p icefield-table --config profile.dev.package.icefield-table.debug-assertions=false
	$(call say,public API of the crates)
	@cargo test --quiet --manifest-path .ci/public-api/Cargo.toml >/dev/null
	@cargo run --quiet --manifest-path .ci/public-api/Cargo.toml
	$(call say,cargo deny)
	@PATH=$(BIN):$$PATH; if command -v cargo-deny >/dev/null; then \
		cargo-deny --log-level error check --hide-inclusion-graph licenses bans sources; \
		if cargo-deny --log-level off fetch db 2>/dev/null; then cargo-deny check advisories; \
		else echo "    advisories not checked: their database cannot be fetched here"; fi; \
	else echo "    skipped: cargo install cargo-deny --locked"; fi

lint-python: $(STAMPS)/lint $(STAMPS)/docs $(STAMPS)/extension
	$(call say,ruff)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	$(call say,imports)
	@PYTHONPATH=python $(BIN)/lint-imports --no-cache --no-logo
	$(call say,mypy)
	@$(BIN)/mypy
	@$(BIN)/python .ci/examples.py >$(STAMPS)/examples.py
	@$(BIN)/mypy --allow-redefinition-new --local-partial-types --allow-untyped-defs --allow-untyped-calls $(STAMPS)/examples.py
	$(call say,pyright)
	@$(BIN)/basedpyright --pythonpath $(BIN)/python >$(STAMPS)/pyright.log || { cat $(STAMPS)/pyright.log; exit 1; }
	@$(BIN)/basedpyright --pythonpath $(BIN)/python $(STAMPS)/examples.py >$(STAMPS)/pyright.log || { cat $(STAMPS)/pyright.log; exit 1; }
	$(call say,stubtest)
	@MYPYPATH=python $(BIN)/stubtest --mypy-config-file pyproject.toml --allowlist .ci/stubtest-allowlist icefield._core
	$(call say,documentation: every public name and no dead link)
	@$(DOCS_BUILD)

# Warnings are errors (`strict` in mkdocs.yml), but not with --quiet, which counts none. The theme's notice about its successor
# is left out.
MKDOCS = PYTHONPATH=python NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
DOCS_BUILD = $(MKDOCS) build 2>&1 | { grep -v '^INFO' || true; }
docs: $(STAMPS)/docs $(STAMPS)/extension
	@PYTHONPATH=python $(BIN)/python docs/make_properties.py
	@PYTHONPATH=python $(BIN)/python docs/make_migration.py
	@$(BIN)/python docs/make_statements.py
	@$(DOCS_BUILD)
	@echo "site/index.html"

docs-picture: $(STAMPS)/extension
	@PYTHONPATH=$(CURDIR)/python $(BIN)/python docs/make_picture.py

licences: | need-rust need-python
	@$(PYTHON) .ci/third_party_licences.py

test-wheel: | need-python
	@$(PYTHON) .ci/test_wheel.py $(WHEEL)

docs-serve: $(STAMPS)/docs $(STAMPS)/extension
	@$(MKDOCS) serve

format: $(STAMPS)/lint
	@cargo fmt --all
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

WHAT ?= $(filter-out side_by_side %_tables %_peer,$(notdir $(basename $(wildcard benches/*.py))))
bench: need-rust $(STAMPS)/release $(STAMPS)/java $(if $(filter spark spark_changes plan orc write write_rows maintain,$(WHAT)),$(JAVA_VENV)/installed) \
		$(if $(filter plan,$(WHAT)),$(STAMPS)/planners)
	@for what in $(WHAT); do $(SPARK_ENV) ICEFIELD_JAVA_PYTHON=$(JAVA_VENV)/bin/python $(BIN)/python benches/$$what.py; done

FUZZ_SECONDS ?= 60
fuzz: | need-rust
	$(call say,fuzz targets: $(FUZZ_SECONDS) s each)
	@FUZZ_SEED=$(FUZZ_SEED) fuzz/run $(FUZZ_SECONDS)

CASES ?= 5000
SEED ?= $(shell date +%Y%m%d)
ROUNDS ?= 20
SCHEDULES ?= 1000000
test-random: need-rust $(STAMPS)/extension $(STAMPS)/java $(JAVA_VENV)/installed
	$(call say,property tests in Rust: $(ROUNDS) times other cases)
	@for round in $$(seq $(ROUNDS)); do \
		PROPTEST_RNG_SEED=$(SEED)$$round cargo test --workspace --quiet --lib --test it --test simulation || exit 1; done
	$(call say,$(SCHEDULES) schedules of writers and faults)
	@PROPTEST_CASES=$(SCHEDULES) PROPTEST_RNG_SEED=$(SEED) cargo test --release --quiet -p icefield-table --test simulation
	$(call say,$(CASES) random plans and scans, seed $(SEED))
	@ICEFIELD_RANDOM_CASES=$(CASES) ICEFIELD_RANDOM_SEED=$(SEED) $(SPARK_ENV) ICEFIELD_JAVA_PYTHON=$(JAVA_VENV)/bin/python \
		$(PYTEST) -q tests/interop/test_random_plans.py tests/interop/test_random_histories.py \
		tests/interop/test_random_changes.py tests/interop/test_random_statements.py \
		tests/interop/test_statements_beside_java.py tests/interop/test_compaction_beside_java.py \
		tests/interop/test_maintained_golden_tables.py tests/laws tests/hostile/test_delete_mutants.py tests/hostile/test_killed_writers.py \
		tests/unit/test_variants.py
	$(call say,PyIceberg's tests of its REST client)
	@$(BIN)/python .ci/pyiceberg-rest/run.py
	$(call say,all golden commits and filters; executors that are killed; all golden tables and filters in Spark)
	@ICEFIELD_ALL_CASES=1 $(PYTEST) -q -n 2 --dist worksteal tests/golden
	@ICEFIELD_CLUSTER=all ICEFIELD_ALL_CASES=1 $(SPARK_ENV) $(PYTEST) -q tests/spark/clusters \
		tests/spark/test_golden_in_spark.py tests/spark/test_filters.py

# The extension that it leaves has counters: the next target that wants one compiles it anew.
coverage: need-rust $(STAMPS)/extension $(STAMPS)/azurite
	$(call say,lines that tests run)
	@$(call install,$(BIN)/python,-r requirements/coverage.txt)
	@rm $(STAMPS)/extension
	@ICEFIELD_AZURITE=$(VENV)/azurite/node_modules/.bin/azurite-blob $(BIN)/python .ci/coverage.py

# What the compiler cannot check. Miri runs the code that has `unsafe` and calls no foreign functions: kernels, buffers that
# several threads fill, values that outlive a fork. The sanitizer runs everything, the C libraries of codecs as well, but for
# the capsules of the extension, which need an interpreter.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
MIRI = MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows" PROPTEST_CASES=4 cargo +nightly miri test
test-miri: | need-rust
	$(call say,Miri)
	@$(MIRI) -p icefield-format --lib -- transform::kernel
	@$(MIRI) -p icefield-table --lib -- runtime::tests transform::tests write::input::text::tests write::input::conform::tests arrow::places::tests \
		arrow::filter::tests storage::store::read_at::tests file::parquet::flat::byte_arrays::tests file::parquet::flat::hybrid::tests

test-address: | need-rust
	$(call say,address sanitizer)
	@RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 \
		cargo +nightly test --target $(HOST) -p icefield-format -p icefield-orc -p icefield-table --quiet --no-fail-fast --lib --tests

clean:
	rm -rf .venv .venv-java .venv-spark-* site python/icefield/_core*.so
