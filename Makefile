# glassbox: `make demo` and `make test` need nothing but git, make and a network of Debian packages.
#
#   make build|demo|test|stress|fuzz|bench|lint|install|clean
#   make test SAN=address,undefined      make test SAN=thread
#   make test TESTS=tensor               only tests whose name matches
#   make test WERROR=ON                  warnings are errors; make lint then needs no build with gcc of its own
#   make test JOBS=1                     one test after the other, as with SAN=thread (default: one a processor)
#   make fuzz SECONDS=600                each fuzz target for so long (default 60)
#   make install PREFIX=/usr/local DESTDIR=

SAN ?=
TESTS ?=
JOBS ?= $(if $(findstring thread,$(SAN)),1,$(shell nproc))
SECONDS ?= 60
WERROR ?= OFF
PREFIX ?= /usr/local
comma := ,
BUILD := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
CONFIGURE := scripts/configure $(BUILD) -DGBX_SANITIZE=$(SAN) -DGBX_WERROR=$(WERROR) '-DCMAKE_INSTALL_PREFIX=$(PREFIX)'
# The address space layout of thread sanitizer does not bear every randomisation; what has no
# threads is left out of its runs.
NO_THREADS := ^tensor/|^base/(float_text|json_)|^hal/gm_allocator|^runtime/.*/(region|tensor_map)|^store/(manifest_text|import|reader|verify|recover)|^scene/fill|^cli/|^analysis/(array_text|histogram|export|entries|diff|graph|audit|memory_map)|^tests/(fuzz/|bench_|dtype_numpy|array_text|kernel_header|layers|docs_options|help|cli|dump_survival$$|public_headers|install|run$$|verify|view|export|python_reader|check|diff|replay|audit)
CTEST := $(if $(findstring thread,$(SAN)),setarch -R) ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure \
	$(if $(findstring thread,$(SAN)),-E '$(NO_THREADS)') $(if $(TESTS),-R '$(TESTS)')

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
	@$(CTEST) --timeout 600

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
