# glassbox: `make demo` and `make test` need nothing but git, make and a network of Debian packages.
#
#   make build|demo|test|stress|fuzz|bench|lint|install|clean
#   make test SAN=address,undefined      make test SAN=thread
#   make test TESTS=tensor               only tests whose name matches
#   make test WERROR=ON                  warnings are errors; make lint then needs no build with gcc of its own
#   make test JOBS=1                     one test after the other (default: two a processor, for many of them wait)
#   make fuzz SECONDS=600                each fuzz target for so long (default 60)
#   make install PREFIX=/usr/local DESTDIR=

SAN ?=
TESTS ?=
JOBS ?= $(shell expr 2 \* $$(nproc))
SECONDS ?= 60
WERROR ?= OFF
PREFIX ?= /usr/local
comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
# The checks of sanitizers are the same at -O1, and compile in two thirds of the time.
OPTIMISED := $(if $(SAN),-DCMAKE_BUILD_TYPE=Sanitize '-DCMAKE_C_FLAGS_SANITIZE=-O1 -g')
CONFIGURE := scripts/configure $(BUILD) $(OPTIMISED) -DGBX_SANITIZE=$(SAN) -DGBX_WERROR=$(WERROR) '-DCMAKE_INSTALL_PREFIX=$(PREFIX)'
# The address space layout of thread sanitizer does not bear every randomisation.
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

fuzz:
	@scripts/install-packages build fuzz
	@scripts/fuzz $(SECONDS)

# Configured anew each time: a peer installed meanwhile is to be found.
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
