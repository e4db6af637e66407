# A thin front: Meson builds (tools/build), tools/setup brings what is missing. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: build demo classifier test bench lint spark readers mcp doors trainers soak healthy foreign install wheel wheel-test sbom clean setup help

# ENABLE_TRACY=1 reaches tools/build through the environment, with every target.
build: ## build everything: build/kymo, build/libkymo.so, build/python (the default); ENABLE_TRACY=1: with marked examples live
	@tools/setup build
	@tools/build

demo: ## a training in Python, a plugin in C++ and an OpenCL device on one timeline: a summary, SQL, a page
	@tools/setup build demo
	@tools/build
	@tools/demo

classifier: ## a text classifier on libtorch with vAccel's regions (examples/classifier): its lines, and the SQL
	@tools/setup build demo
	@tools/build
	@examples/classifier/build
	@examples/classifier/run

test: ## all tests: about a quarter of an hour on two cores
	@tools/setup build test
	@tools/build
	@tests/run

bench: ## measure kymo against its floor and its peers; writes docs/performance.md
	@tools/setup build test bench
	@tools/build
	@tools/bench

lint: ## check format, prose, types, layers and more (tools/lint --list)
	@tools/setup build test
	@tools/build
	@tools/lint

SPARK = 4.0.1
spark: ## a Spark cluster on loopback answers as kymo does; installs pyspark (450 MB) in build/spark; SPARK=3.5.6
	@tools/setup build test
	@tools/build
	@[ -x build/spark/bin/python ] || .venv/bin/python -m venv build/spark
	@build/spark/bin/python -m pip install -q pytest setuptools 'pyspark==$(SPARK)'
	@build/spark/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/spark tests/spark

MCP = 2.3.0
mcp: ## kymo mcp with the official client; installs the package mcp (50 MB) in build/mcp; MCP=1.27.0
	@tools/setup build test
	@tools/build
	@[ -x build/mcp/bin/python ] || .venv/bin/python -m venv build/mcp
	@build/mcp/bin/python -m pip install -q pytest 'mcp==$(MCP)'
	@build/mcp/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/mcp tests/mcp

readers: ## chDB, DataFusion, Daft, Sail and others read a lake as it is; installs them (1.6 GB) in build/readers
	@tools/setup build test
	@tools/build
	@[ -x build/readers/bin/python ] || .venv/bin/python -m venv build/readers
	@build/readers/bin/python -m pip install -q -r tests/readers/requirements.txt
	@build/readers/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/readers tests/readers

doors: ## OpenVINO, OpenCV, NCCL, DALI, JAX and SYCL under kymo; installs them (3 GB) in build/doors
	@tools/setup build test
	@tools/build
	@tests/doors/install build/doors
	@.venv/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/doors tests/doors

trainers: ## transformers, Accelerate, Lightning and DeepSpeed under kymo; installs them (270 MB) in build/trainers
	@tools/setup build test
	@tools/build
	@tests/trainers/install build/trainers
	@.venv/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/trainers tests/trainers

soak: ## an hour of recording, then long fuzzing
	@tools/setup build test
	@tools/build
	@tests/run --soak

healthy: ## a hundred runs of programs without a problem; counts false findings
	@tools/setup build test
	@tools/build
	@.venv/bin/python tests/detect/healthy.py

foreign: ## run test suites of others with and without kymo; writes docs/foreign.md
	@tools/setup build test
	@tools/build
	@.venv/bin/python tests/foreign/suites -o docs/foreign.md

install: ## install below PREFIX (/usr/local), or DESTDIR/PREFIX; builds no tests
	@tools/setup build
	@tools/build -- installed
	@meson configure build -Dprefix=$(abspath $(PREFIX))
	@tools/build -- installed
	@DESTDIR=$(DESTDIR) meson install -C build --no-rebuild --quiet --strip
	@echo "installed below $(DESTDIR)$(abspath $(PREFIX))"

wheel: ## the wheels for PyPI, in build/wheel/dist; installs auditwheel and Meson in build/wheel
	@tools/setup build
	@tools/build -- installed
	@tools/wheel

wheel-test: ## install those wheels on a bare Debian without a network (as root, with debootstrap)
	@tools/setup build test
	@.venv/bin/python -m pytest -q -p no:cacheprovider --rootdir tests/bare tests/bare

sbom: ## write build/kymo.cdx.json: what kymo is made of, as CycloneDX
	@mkdir -p build
	@tools/gen-dependencies --sbom build/kymo.cdx.json

setup: ## fetch what is missing for build, demo and test, and try again what failed
	@tools/setup --retry build demo test

clean: ## remove what was built; deps/ and .venv stay
	rm -rf build build-*

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 18
