# Two commands matter: `make demo` and `make test`. All commands set up what they need.
VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
# With it the JVMs of Spark start in half the time. It takes as long as ten starts gain, so make test does not have it made.
SPARK_CLASSES := $(VENV)/spark-classes.jsa

# The older release line of Spark that is supported; the newest one is in constraints.txt.
OLDER_SPARK := 4.2.1
OLDER_VENV  := .venv-spark-4.2
OLDER_STAMP := $(OLDER_VENV)/.installed-$(OLDER_SPARK)
OLDER_TESTS := tests/datasource tests/runtime/test_data_jobs.py

# Most tests wait for something, so four processes share two cores well. Files begin in the order of tests/conftest.py, long
# rooms first; by default those with the most tests would begin, and the longest would run last, beside nothing.
TEST_PROCESSES := 4
IN_PROCESSES := -n $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder

# Alone, because it has a process on each CPU by itself.
SEEDS_OF_THE_PROOF := tests/proof/simulation/tests/test_many_seeds.py

# The proof's own tests take a quarter of the time of all the others: they are left to make proof, but for a few seeds.
TESTS := $(filter-out tests/proof,$(patsubst %/,%,$(filter-out %__pycache__/,$(wildcard tests/*/)))) $(wildcard tests/test_*.py) \
	$(SEEDS_OF_THE_PROOF)

# Only these files are collected. Those of the seeds are left to the run of their own.
TESTS_OF_THE_PROOF = $(filter-out $(SEEDS_OF_THE_PROOF),$(shell grep -rlE 'mark\.proof' tests --include='test_*.py'))

# Brokers, workers and tests are many processes. Without bytecode on disk each of them compiles the package once more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test spark-classes older-spark bytecode proof simulate fuzz index lint bench clients remote page screenshots chaos dist audit setup clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   run the main job: earthquakes and flights through three replicated brokers"
	@echo "make test   pass the tests, in about ten minutes: lint, and all with the newest PySpark"
	@echo "make proof  what takes too long for make test: the proof's own tests, more simulated seeds, PySpark $(OLDER_SPARK) in full, faults"
	@echo "make setup  a virtual environment, .venv, with all of it"
	@echo "make simulate SIMULATE_OPTIONS='--seeds 1-2000'   seeded runs of whole clusters (tests/proof/docs/simulation.md)"
	@echo "make lint   ruff, mypy --strict, import-linter"
	@echo "make fuzz FUZZ_OPTIONS='--seconds 600 --seed 7'   odd and damaged requests of every API (tests/proof/docs/fuzz.md)"
	@echo "make index INDEX_OPTIONS='B63'   scenarios and bugs by number, with their tests and mutants"
	@echo "make chaos  faults upon real processes for an hour, and every long proof (tests/proof/docs/chaos.md)"
	@echo "make clients   other people's clients and tools, unchanged, upon three brokers (docs/clients.md)"
	@echo "make remote remote stores upon real HDFS and a second S3 server (docs/remote-stores.md)"
	@echo "make page   the page in Chromium, over a real cluster (docs/web-page.md); make screenshots draws docs/images"
	@echo "make audit  an SBOM, licences, and known vulnerabilities of the packages that sparklog brings"
	@echo "make dist   the wheel and the sdist in dist/, checked, and tried in an empty environment (docs/installing.md)"
	@echo "make bench  the figures of benchmarks/RESULTS.md, beside Apache Kafka where it can be had"

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@./scripts/setup $(VENV)
	@touch $@

$(OLDER_STAMP): $(STAMP)
	@./scripts/setup --spark $(VENV) $(OLDER_VENV) $(OLDER_SPARK)
	@touch $@

spark-classes: $(SPARK_CLASSES)

older-spark: $(OLDER_STAMP)

$(SPARK_CLASSES): $(STAMP)
	@./scripts/spark-classes $(VENV) $@

setup: $(STAMP)

demo: $(STAMP)
	@$(VENV)/bin/sparklog demo $(DEMO_OPTIONS)

# What setup prints goes to standard error: standard output is the simulation's.
simulate:
	@$(MAKE) --no-print-directory setup >&2
	@PYTHON=$(PYTHON) scripts/simulate $(SIMULATE_OPTIONS)

fuzz: $(STAMP)
	@$(PYTHON) -m fuzz $(FUZZ_OPTIONS)

index: $(STAMP)
	@$(PYTHON) -m proof_index $(INDEX_OPTIONS)

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	cd tests/proof && $(abspath $(VENV))/bin/lint-imports

# Once, before several processes would compile the same files at the same time. What is wrong with them, the tests tell.
bytecode: $(STAMP)
	@$(PYTHON) -m pytest --collect-only -qq > /dev/null || true

test: $(STAMP)
	@./scripts/setup --check-kcat
	@$(MAKE) --no-print-directory -j 2 lint bytecode
	$(PYTHON) -m pytest $(IN_PROCESSES) $(TESTS)

proof: $(STAMP) $(OLDER_STAMP) $(SPARK_CLASSES)
	$(PYTHON) -m pytest $(IN_PROCESSES) tests/proof --ignore=$(SEEDS_OF_THE_PROOF)
	$(OLDER_VENV)/bin/python -m pytest $(IN_PROCESSES) -m "every_spark or not integration" $(OLDER_TESTS)
	$(PYTHON) -m pytest -m proof -o faulthandler_timeout=890 $(SEEDS_OF_THE_PROOF) # minutes, and no hang
	$(PYTHON) -m pytest $(IN_PROCESSES) -m proof -o faulthandler_timeout=890 $(TESTS_OF_THE_PROOF) \
		-n 3 # they are busier than others

bench: $(STAMP)
	@./benchmarks/setup $(abspath $(PYTHON))
	@$(PYTHON) benchmarks/run.py $(BENCH_OPTIONS)

clients: $(STAMP)
	@./scripts/clients-setup $(abspath $(PYTHON))
	$(PYTHON) -m pytest -m clients --clients-table docs/clients.md tests/interop $(CLIENTS_OPTIONS)

remote: $(STAMP)
	@./scripts/remote-setup $(abspath $(PYTHON))
	$(PYTHON) -m pytest $(IN_PROCESSES) -m remote tests/remote

page: $(STAMP)
	@./scripts/page-setup $(abspath $(PYTHON))
	$(PYTHON) -m pytest -m page tests/page

screenshots: $(STAMP)
	@./scripts/page-setup $(abspath $(PYTHON))
	$(PYTHON) -m tests.page.screenshots docs/images

chaos: $(STAMP)
	@./scripts/chaos-setup
	$(PYTHON) -m pytest -m chaos
	$(PYTHON) -m crash_points
	$(PYTHON) -m crash_points.real_power_cuts || [ $$? = 3 ] # 3: it has said why it is not run
	$(PYTHON) -m chaos.order
	$(PYTHON) tests/proof/chaos/run.py $(CHAOS_OPTIONS)

dist: $(STAMP)
	@./scripts/dist $(PYTHON)

audit: $(STAMP)
	@./scripts/audit $(PYTHON)

clean:
	rm -rf $(VENV) $(OLDER_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
