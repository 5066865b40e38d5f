/* Zones and poison of memory that a program allocates itself, on all platforms. */
#include "chip_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/runtime.h>

enum { COUNT = 300 }; /* elements: not a multiple of a granule */

static gbx_tensor row_of(uint64_t address) {
    static const int64_t shape[] = {COUNT};
    gbx_tensor tensor;
    assert_ok(gbx_tensor_contiguous(address, GBX_FLOAT32, 1, shape, &tensor));
    tensor.buffer_bytes = COUNT * sizeof(float);
    return tensor;
}

static void register_source(gbx_chip *chip, uint32_t func_id, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.c", getenv("GLASSBOX_TEST_KERNELS"), name);
    gbx_kernel kernel = {.func_id = func_id,
                         .name = name,
                         .core = GBX_CORE_AIV,
                         .source = path,
                         .signature = "in,inout,scalar:int64",
                         .arg_names = "from,to,reach"};
    assert_ok(gbx_kernel_register(chip, &kernel));
}

/* guard_reach adds `from` to `to`, and 1 to the element that its scalar names. */
static gbx_status reach(gbx_chip *chip, uint64_t from, uint64_t to, int64_t element,
                        gbx_guard_mode mode, gbx_call_result *result) {
    gbx_tensor tensors[2] = {row_of(from), row_of(to)};
    uint64_t scalars[1] = {(uint64_t)element};
    gbx_call call = gbx_call_aiv(0);
    gbx_call_config config = {.guard = mode};
    call.tensors = tensors;
    call.tensor_count = 2;
    call.scalars = scalars;
    call.scalar_count = 1;
    return gbx_chip_call(chip, &call, &config, result);
}

static void test_overruns_of_allocations(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    uint64_t from, to;
    float zeros[COUNT] = {0};
    gbx_call_result result;
    char text[2048];
    register_source(chip, 0, "guard_reach");
    assert_ok(gbx_gm_alloc(chip, sizeof zeros, &from));
    assert_ok(gbx_gm_alloc(chip, sizeof zeros, &to));
    assert_int_equal(from % 512 | to % 512, 0);
    assert_ok(gbx_gm_copy_in(chip, from, zeros, sizeof zeros));
    assert_ok(gbx_gm_copy_in(chip, to, zeros, sizeof zeros));
    static const struct {
        int64_t element;
        uint32_t kind;
    } cases[] = {{COUNT, GBX_RUN_FINDING_OVERRUN},
                 {COUNT + 100, GBX_RUN_FINDING_STRAY},
                 {-1, GBX_RUN_FINDING_UNDERRUN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        int64_t element = cases[i].element;
        assert_ok(reach(chip, from, to, element, GBX_GUARD_REPORT, &result));
        assert_int_equal(result.finding_count, 1);
        const gbx_run_finding *f = &result.findings[0];
        assert_int_equal(f->kind, cases[i].kind);
        assert_int_equal(f->certainty, GBX_CERTAINTY_SURE);
        assert_int_equal(f->candidates[0].task, 0);
        assert_int_equal(f->place, GBX_PLACE_ALLOCATION);
        assert_int_equal(f->index, 1);
        assert_true(f->address == to && f->bytes == sizeof zeros);
        assert_true(f->first >= element * 4 && f->first + (int64_t)f->span <= element * 4 + 4);
        gbx_finding_describe(chip, NULL, f, text, sizeof text);
        assert_non_null(strstr(text, "task 0, kernel guard_reach, wrote"));
        /* The zone was repaired: the next run finds nothing. */
        assert_ok(reach(chip, from, to, 0, GBX_GUARD_REPORT, &result));
        assert_int_equal(result.finding_count, 0);
        assert_ok(reach(chip, from, to, element, GBX_GUARD_DEFAULT, &result));
        assert_int_equal(result.finding_count, 0);
    }
    gbx_chip_close(chip);
}

/* What the host copied stays, and what kernels wrote; the rest is NaN. */
static void test_new_memory_is_nan(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    uint64_t from, to;
    float ones[COUNT], read[COUNT];
    gbx_call_result result;
    register_source(chip, 0, "guard_reach");
    for (int i = 0; i < COUNT; ++i)
        ones[i] = 1.0f;
    assert_ok(gbx_gm_alloc(chip, sizeof ones, &from));
    assert_ok(gbx_gm_alloc(chip, sizeof ones, &to));
    assert_ok(gbx_gm_copy_in(chip, from, ones, sizeof ones));
    assert_ok(gbx_gm_copy_in(chip, to + 40, ones, 80));
    assert_ok(reach(chip, from, to, 12, GBX_GUARD_REPORT, &result));
    assert_int_equal(result.finding_count, 0);
    assert_ok(gbx_gm_copy_out(chip, read, to, sizeof read));
    for (int i = 0; i < COUNT; ++i) {
        if (i < 10 || i >= 30)
            assert_true(isnan(read[i]));
        else
            assert_true(read[i] == (i == 12 ? 3.0f : 2.0f));
    }
    /* A second run leaves all of it as it is. */
    assert_ok(gbx_gm_copy_in(chip, to, ones, 4));
    assert_ok(reach(chip, from, to, 12, GBX_GUARD_REPORT, &result));
    assert_ok(gbx_gm_copy_out(chip, read, to, sizeof read));
    assert_true(read[0] == 2.0f && isnan(read[1]) && read[11] == 3.0f && read[12] == 5.0f);
    gbx_chip_close(chip);
}

static void test_stop_is_a_fault(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    uint64_t from, to;
    float zeros[COUNT] = {0};
    gbx_call_result result;
    register_source(chip, 0, "guard_reach");
    assert_ok(gbx_gm_alloc(chip, sizeof zeros, &from));
    assert_ok(gbx_gm_alloc(chip, sizeof zeros, &to));
    assert_ok(gbx_gm_copy_in(chip, from, zeros, sizeof zeros));
    assert_fails(reach(chip, from, to, COUNT, GBX_GUARD_STOP, &result), GBX_DEVICE_FAULT,
                 "past the end of its argument 1 (to)");
    assert_int_equal(result.finding_count, 1);
    assert_true(gbx_chip_has_failed(chip));
    gbx_chip_close(chip);
}

/* Zones take nothing of the size that was asked for. */
static void test_zones_do_not_count(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    uint64_t address, count = 0;
    gbx_status status;
    while (!(status = gbx_gm_alloc(chip, 512, &address)))
        ++count;
    assert_int_equal(gbx_status_code(status), GBX_EXHAUSTED);
    gbx_status_free(status);
    /* All of 64 MiB but the chip's own control memory. */
    assert_true(count * 512 >= (64 << 20) - (1 << 18));
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overruns_of_allocations),
        cmocka_unit_test(test_new_memory_is_nan),
        cmocka_unit_test(test_stop_is_a_fault),
        cmocka_unit_test(test_zones_do_not_count),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
