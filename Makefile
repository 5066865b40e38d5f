# glassbox. `make demo` and `make test` need only git, make, and Debian packages from the network.
#
#   make build|demo|test|stress|fuzz|bench|lint|install|clean
#   make test SAN=address,undefined      make test SAN=thread
#   make test TESTS=tensor               only tests whose name matches
#   make test WERROR=ON                  warnings are errors; make lint then reuses this build
#   make test JOBS=1                     one test at a time (default: two per processor, because many of them wait)
#   make fuzz SECONDS=600                each fuzz target for 600 s (default 60)
#   make install PREFIX=/usr/local DESTDIR=

SAN ?=
TESTS ?=
JOBS ?= $(shell expr 2 \* $$(nproc))
SECONDS ?= 60
WERROR ?= OFF
PREFIX ?= /usr/local
comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
# Sanitizers check the same at -O1, which compiles in two thirds of the time.
OPTIMISED := $(if $(SAN),-DCMAKE_BUILD_TYPE=Sanitize '-DCMAKE_C_FLAGS_SANITIZE=-O1 -g')
CONFIGURE := scripts/configure $(BUILD) $(OPTIMISED) -DGBX_SANITIZE=$(SAN) -DGBX_WERROR=$(WERROR) '-DCMAKE_INSTALL_PREFIX=$(PREFIX)'
# Thread sanitizer does not work with every random layout of the address space.
CTEST := $(if $(findstring thread,$(SAN)),setarch -R) ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure \
	$(if $(TESTS),-R '$(TESTS)')

.PHONY: build build-tests demo test stress fuzz bench lint install clean

build:
	@scripts/install-packages build
	@$(CONFIGURE) -DBUILD_TESTING=OFF
	@scripts/build $(BUILD)

build-tests:
	@scripts/install-packages build test
	@$(CONFIGURE) -DBUILD_TESTING=ON
	@scripts/build $(BUILD)

demo: build
	@scripts/demo $(BUILD)

test: build-tests
	@$(CTEST) --timeout 1200

stress: build-tests
	@GLASSBOX_STRESS=1 $(CTEST) --timeout 7200
	@scripts/install-packages lint
	@GLASSBOX_STRESS=1 scripts/lint

fuzz:
	@scripts/install-packages build fuzz
	@scripts/fuzz $(SECONDS)

# Configured again each time, to find peers that were installed meanwhile.
bench:
	@scripts/install-packages build bench
	@rm -f $(BUILD)/configured-with
	@$(CONFIGURE) -DBUILD_TESTING=OFF
	@scripts/build $(BUILD)
	@for program in $(BUILD)/bench_*; do $$program || exit; echo; done

lint:
	@scripts/install-packages build test lint
	@scripts/lint

install: build
	@cmake --install $(BUILD) --prefix '$(PREFIX)'

clean:
	rm -rf build build-*
