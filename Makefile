# Two commands matter: `make demo` shows the main job, `make test` proves it. `make help` lists all.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Each process of a test run would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-fast test-long check format bench bench-renewal bench-rollout bench-crash bench-reload bench-burst \
	bench-absence bench-console bench-exported-cost bench-outcome bench-simulate bench-feed-real rotate-under-load soak abuse \
	docs lock audit-dependencies sbom control-plane clean differential differential-capacity differential-export \
	differential-moves differential-refusals differential-releases test-schedulers node node-down test-node test-node-short \
	upstream-tables release-changes mutants golden examples rules screenshots site image release test-release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-21s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "placement-webhook needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=python3.x" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

venv: $(STAMP) ## make .venv with everything installed

demo: $(STAMP) ## the main job end to end on an embedded sample cluster, over real TLS
	@$(BIN)/placement-webhook demo

# Two processes have a control plane each. The tests of a file share a process; the longest files come first.
TEST_PROCESSES ?= 3
DISTRIBUTED    := -n $(TEST_PROCESSES) --dist loadgroup --no-loadscope-reorder

test: $(STAMP) ## all tests, including those on a real control plane
	$(BIN)/python -m pytest $(DISTRIBUTED) --durations=10 $(PYTEST_ARGS)

test-fast: $(STAMP) ## the tests in a minute: in parallel, without the control plane, the browser and the slow ones, fewer examples
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not browser and not control_plane and not slow" --hypothesis-profile=fast $(PYTEST_ARGS)

test-long: $(STAMP) ## all tests, with at least ten times the random examples, and 350 pods beside kube-scheduler
	DIFFERENTIAL_PODS=$${DIFFERENTIAL_PODS:-350} $(BIN)/python -m pytest $(DISTRIBUTED) --durations=10 --hypothesis-profile=long $(PYTEST_ARGS)

examples: $(STAMP) ## rewrite what the webhook makes of the manifests in examples/
	$(BIN)/python -m tests.examples

golden: $(STAMP) ## rewrite the expected results of the golden cases from the current code
	$(BIN)/python -m tests.golden

differential: $(STAMP) ## compare 2,000 random pods with the real kube-scheduler (make test: 200)
	DIFFERENTIAL_PODS=2000 $(BIN)/python -m pytest tests/differential

OLDER_RELEASES := 1.35 1.36

differential-releases: $(STAMP) ## compare 350 random pods with the kube-scheduler of each older release, built if need be
	@for release in $(OLDER_RELEASES); do \
		echo "kube-scheduler $$release"; \
		CONTROL_PLANE_RELEASE=$$release REQUIRE_CONTROL_PLANE=1 DIFFERENTIAL_PODS=350 \
			$(BIN)/python -m pytest tests/differential/test_kube_scheduler.py $(PYTEST_ARGS) || exit 1; \
	done

differential-capacity: $(STAMP) ## compare the counts of 200 random pods with the real kube-scheduler (make test: 10)
	DIFFERENTIAL_CAPACITY=200 $(BIN)/python -m pytest tests/differential/test_capacity.py

differential-export: $(STAMP) ## compare 2,000 pods under 500 exported policies with the webhook (make test: 60 under 4)
	DIFFERENTIAL_EXPORTED_PODS=2000 DIFFERENTIAL_EXPORTED_POLICIES=500 \
		$(BIN)/python -m pytest tests/differential/test_exported_policy.py $(PYTEST_ARGS)

differential-refusals: $(STAMP) ## ask the real kube-scheduler about refusals in 100 random clusters whose states pass (make test: 2)
	DIFFERENTIAL_REFUSALS=100 $(BIN)/python -m pytest tests/admission/test_refusals_against_kube_scheduler.py $(PYTEST_ARGS)

differential-moves: $(STAMP) ## make the moves of 100 random clusters on the real kube-scheduler (make test: 4)
	DIFFERENTIAL_MOVES=100 $(BIN)/python -m pytest tests/planner/capacity/test_moves_against_kube_scheduler.py

test-schedulers: $(STAMP) ## run the real Volcano, KAI, Kueue, Coscheduling and Karpenter, built if need be
	TEST_SCHEDULERS=1 REQUIRE_CONTROL_PLANE=1 $(BIN)/python -m pytest tests/schedulers $(PYTEST_ARGS)

node: $(STAMP) ## bring up one real node on this machine, with its control plane (root, Linux; built if need be)
	$(BIN)/python -m tests.node up

node-down: $(STAMP) ## remove what `make node` brought up, also after a crash
	$(BIN)/python -m tests.node down

test-node: $(STAMP) ## install the image on a real node by the commands of the pages, use it and disturb it
	TEST_NODE=1 $(BIN)/python -m pytest tests/node $(PYTEST_ARGS)

test-node-short: $(STAMP) ## the same with one overlay, one pod that runs, and doctor
	TEST_NODE=1 $(BIN)/python -m pytest tests/node/test_overlays_on_node.py -k self-managed $(PYTEST_ARGS)

upstream-tables: $(STAMP) ## compare our results with kube-scheduler's unit-test tables, by plugin
	$(BIN)/python -m tests.upstream

release-changes: $(STAMP) ## list what differs between two Kubernetes releases, and the modules that cite it (FROM=1.36.2 TO=1.37.2)
	@$(BIN)/python -m tests.upstream.release_changes $(FROM) $(TO)

MODULE  ?= webhook/kube/quantity.py
# The test file that mirrors the module.
TESTS   ?= tests/$(patsubst packages/placement_%,%,$(patsubst webhook/%,%,$(dir $(MODULE))))test_$(notdir $(MODULE))
MUTANTS := build/mutants

# cosmic-ray writes the faults into the files, so it runs in a copy.
mutants: $(STAMP) ## mutation test of a module: the small faults that its tests miss (MODULE=FILE, TESTS="FILES")
	rm -rf $(MUTANTS) && mkdir -p $(MUTANTS)
	git ls-files --cached --others --exclude-standard | xargs cp --parents --target-directory=$(MUTANTS)
	sed 's|@MODULE@|$(MODULE)|; s|@TESTS@|$(TESTS)|' tools/cosmic-ray.toml > $(MUTANTS)/cosmic-ray.toml
	cd $(MUTANTS) && export PATH="$(abspath $(BIN)):$$PATH" && \
		cosmic-ray baseline cosmic-ray.toml && cosmic-ray init cosmic-ray.toml session.sqlite && \
		cr-filter-operators session.sqlite cosmic-ray.toml && cosmic-ray exec cosmic-ray.toml session.sqlite && \
		cr-report --surviving-only --show-diff session.sqlite && cr-report session.sqlite | tail -3

check: $(STAMP) ## linters, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP) ## format the code and fix lint errors
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## what an admission costs, by what a cluster does (BENCH_ARGS="--against COMMIT": beside another version)
	$(BIN)/python -m bench $(BENCH_ARGS)

bench-renewal: $(STAMP) ## create 5,000 pods on a real API server while the certificate is renewed
	$(BIN)/python -m bench.renewal $(BENCH_ARGS)

bench-reload: $(STAMP) ## create 5,000 pods on a real API server while the policy is reloaded
	$(BIN)/python -m bench.reload $(BENCH_ARGS)

rotate-under-load: $(STAMP) ## create 5,000 pods on a real API server while the certs controller rotates certificate and CA
	$(BIN)/python -m bench.rotation $(BENCH_ARGS)
bench-rollout: $(STAMP) ## create 5,000 pods on a real API server while replicas of the webhook are replaced
	$(BIN)/python -m bench.rollout $(BENCH_ARGS)

bench-crash: $(STAMP) ## the same while replicas are killed ten times: no audit record is lost
	$(BIN)/python -m bench.rollout --kill $(BENCH_ARGS)

bench-absence: $(STAMP) ## create 5,000 pods on a real API server while no replica runs, with the exported policy
	$(BIN)/python -m bench.absence $(BENCH_ARGS)

bench-exported-cost: $(STAMP) ## what the exported policy costs the API server, beside the webhook
	$(BIN)/python -m bench.exported_cost $(BENCH_ARGS)

bench-burst: $(STAMP) ## verdicts on bursts of pods on a real API server and kube-scheduler (OPENB_TRACE: folder of the trace)
	$(BIN)/python -m bench.bursts.burst $(BENCH_ARGS)

bench-outcome: $(STAMP) ## GPUs allocated when pods of a trace fill a cluster, by configuration, on a real kube-scheduler (OPENB_TRACE: folder of the trace)
	$(BIN)/python -m bench.outcome $(BENCH_ARGS)

bench-console: $(STAMP) ## what the console costs in chromium, for 100, 1,000 and 5,000 nodes
	$(BIN)/python -m bench.console

bench-simulate: $(STAMP) ## what `simulate` places beside the real kube-scheduler; BENCH_ARGS="--lifetime 40 --every 64 --seeds 5" with lifetimes (OPENB_TRACE: folder of the trace)
	$(BIN)/python -m bench.simulation $(BENCH_ARGS)

SOAK_MINUTES ?= 5

soak: $(STAMP) ## two replicas under steady load for SOAK_MINUTES (5), while pods, policy and certificate change
	$(BIN)/python -m bench.soak --minutes $(SOAK_MINUTES) $(BENCH_ARGS)

abuse: $(STAMP) ## load test with hostile clients, and its effect on others
	$(BIN)/python -m bench.abuse $(ABUSE_ARGS)

bench-feed-real: $(STAMP) ## the live view of a real API server with 5,000 nodes and 50,000 pods
	$(BIN)/python -m bench.feed_real $(BENCH_ARGS)

docs: $(STAMP) ## rewrite the generated files in docs/, deploy/ and certs/: reference, tables, picture, rules, dashboard, chart
	$(BIN)/python -m tools

rules: docs ## the same as `make docs`

screenshots: $(STAMP) ## rewrite the pictures of the console in docs/console, with the chromium in PATH
	$(BIN)/python -m tests.console.screenshots

site: export NO_MKDOCS_2_WARNING = 1
site: $(STAMP) ## build the documents as a website in build/site, with strict links
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m mkdocs build --strict

LOCK_FLAGS := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url

lock: export UV_CUSTOM_COMPILE_COMMAND = make lock
lock: $(STAMP) ## update the image's locked requirements to the newest releases that pyproject.toml allows
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	$(BIN)/uv pip compile $(LOCK_FLAGS) --output-file requirements.lock pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| $(BIN)/uv pip compile $(LOCK_FLAGS) --output-file requirements-build.lock -

# Tools for the lock file, in an environment of their own: they and the project need other releases of the same packages.
LOCK_TOOLS := build/lock-tools

$(LOCK_TOOLS)/.installed: Makefile
	$(PYTHON) -m venv $(LOCK_TOOLS)
	$(LOCK_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9,<3' 'cyclonedx-bom>=7,<8'
	@touch $@

audit-dependencies: $(LOCK_TOOLS)/.installed ## look up known vulnerabilities of the locked requirements (asks the package index)
	@for lock in requirements.lock requirements-build.lock; do \
		$(LOCK_TOOLS)/bin/pip-audit --strict --requirement $$lock --require-hashes --disable-pip --progress-spinner off || exit 1; \
	done

SBOM ?= dist/sbom.cdx.json

sbom: $(LOCK_TOOLS)/.installed ## write the software bill of materials of the image's Python packages (CycloneDX, SBOM=FILE)
	@mkdir -p $(dir $(SBOM))
	$(LOCK_TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file $(SBOM) requirements.lock

# Name and tag of the image in `make image PLATFORMS=…`, such as of a registry, and more flags, such as --push.
IMAGE_NAME  ?= placement-webhook:0.1.0
BUILDX_ARGS ?= --output type=oci,dest=dist/image.tar

image: $(STAMP) ## build the image; print archive, base and size (PLATFORMS=linux/amd64,linux/arm64: by buildx, to dist/image.tar)
ifdef PLATFORMS
	@docker buildx version >/dev/null 2>&1 || { echo "image: PLATFORMS needs docker buildx: install it, or unset PLATFORMS" >&2; exit 1; }
	@mkdir -p dist
	docker buildx build --platform $(PLATFORMS) --tag $(IMAGE_NAME) $(BUILDX_ARGS) .
else
	@$(BIN)/python -m tests.node.images.image
endif

release: $(STAMP) ## make wheel, sdist, chart, manifests, image, SBOM and checksums in dist/ (IMAGE=no: no image, IMAGE=stand-in: of another base if need be; REPOSITORY: its name in the manifests)
	rm -rf dist
	@$(MAKE) --no-print-directory sbom
	@$(BIN)/python -m tests.deploy.release dist $(if $(REPOSITORY),--repository $(REPOSITORY)) $(if $(IMAGE),--image $(IMAGE))

test-release: $(STAMP) ## try the files of `make release` in dist/: install the wheel from the package index, run the image
	TEST_RELEASE=1 REQUIRE_CONTROL_PLANE=1 $(BIN)/python -m pytest tests/deploy/release/test_release.py tests/deploy/release/test_dist.py $(PYTEST_ARGS)

control-plane: $(STAMP) ## build (or find) the etcd, kube-apiserver and kube-scheduler of the tests
	$(BIN)/python -m tests.controlplane.binaries

clean: ## remove what the other targets created
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info dist build
