# glassbox: `make demo` and `make test` need nothing but git, make and a network of Debian packages.
#
#   make build|demo|test|stress|bench|lint|install|clean
#   make test SAN=address,undefined      make test SAN=thread
#   make test TESTS=tensor               only tests whose name matches
#   make install PREFIX=/usr/local DESTDIR=

SAN ?=
TESTS ?=
PREFIX ?= /usr/local
CC ?= cc
comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
# The address space layout of thread sanitizer does not bear every randomisation.
TEST_RUN := $(if $(findstring thread,$(SAN)),setarch -R)

.PHONY: build demo test stress bench lint install clean packages-%

build: packages-build
	@scripts/configure $(BUILD) -DGBX_SANITIZE=$(SAN) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DBUILD_TESTING=OFF
	@scripts/build $(BUILD)

demo: build
	@$(BUILD)/vector_add

test: packages-build packages-test
	@scripts/configure $(BUILD) -DGBX_SANITIZE=$(SAN) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DBUILD_TESTING=ON
	@scripts/build $(BUILD)
	@$(TEST_RUN) ctest --test-dir $(BUILD) --output-on-failure $(if $(TESTS),-R '$(TESTS)')

stress: packages-build packages-test
	@scripts/configure $(BUILD) -DGBX_SANITIZE=$(SAN) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DBUILD_TESTING=ON
	@scripts/build $(BUILD)
	@GLASSBOX_STRESS=1 $(TEST_RUN) ctest --test-dir $(BUILD) --output-on-failure $(if $(TESTS),-R '$(TESTS)')

bench: build
	@for program in $(BUILD)/bench_*; do $$program || exit; done

lint: packages-build packages-test packages-lint
	@scripts/lint

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build build-*

packages-%:
	@scripts/install-packages $*
