/* One suite for every platform, in a process and in a thread: memory, copies, mapping, the bell. */
#include "chip_support.h"

#include <stdlib.h>
#include <string.h>

#include "api/device.h"
#include "base/clock.h"
#include "chip/abi.h"
#include "hal/hal.h"

enum { MIB = 1 << 20 };

static gbx_hal *open_hal(const chip_variant *variant, uint64_t gm_bytes) {
    const gbx_hal_ops *ops;
    gbx_hal *hal;
    gbx_hal_config config = {.device = variant->device,
                             .blocks = 1,
                             .aicpu_threads = 1,
                             .gm_bytes = gm_bytes,
                             .device_main = gbx_api_device_main};
    assert_ok(gbx_hal_find(variant->platform, &ops));
    assert_ok(ops->open(&config, &hal));
    return hal;
}

static void test_caps_describe_the_memory(void **state) {
    gbx_hal *hal = open_hal(*state, 8 * MIB);
    gbx_hal_caps caps;
    uint64_t address;
    hal->ops->caps(hal, &caps);
    assert_int_equal(caps.gm_bytes, 8 * MIB);
    assert_int_equal(caps.gm_free, 8 * MIB);
    assert_int_equal(caps.gm_base % 4096, 0);
    assert_ok(hal->ops->alloc(hal, MIB, 1, &address));
    hal->ops->caps(hal, &caps);
    assert_int_equal(caps.gm_free, 7 * MIB);
    assert_in_range(address, caps.gm_base, caps.gm_base + 7 * MIB);
    hal->ops->close(hal);
}

/* Odd sizes at odd offsets, between bytes that must not change. */
static void test_copies_move_exactly_the_bytes(void **state) {
    gbx_hal *hal = open_hal(*state, 8 * MIB);
    static unsigned char model[4 * MIB];
    static unsigned char copy[4 * MIB];
    uint64_t address;
    assert_ok(hal->ops->alloc(hal, sizeof model, 512, &address));
    for (size_t i = 0; i < sizeof model; ++i)
        model[i] = (unsigned char)(i * 7 + (i >> 8));
    assert_ok(hal->ops->copy_in(hal, address, model, sizeof model));
    static const size_t offsets[] = {0, 1, 7, 8, 4095, 4096, 65537, 3 * MIB + 1};
    static const size_t sizes[] = {1, 7, 8, 9, 4095, 4097, MIB - 1, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        memset(model + offsets[i], (int)(0x80 + i), sizes[i]);
        assert_ok(hal->ops->copy_in(hal, address + offsets[i], model + offsets[i], sizes[i]));
        memset(copy, 0, sizeof copy);
        assert_ok(hal->ops->copy_out(hal, copy + offsets[i], address + offsets[i], sizes[i]));
        assert_memory_equal(copy + offsets[i], model + offsets[i], sizes[i]);
    }
    assert_ok(hal->ops->copy_out(hal, copy, address, sizeof copy));
    assert_memory_equal(copy, model, sizeof model);
    hal->ops->close(hal);
}

static void test_map_shares_memory_or_is_absent(void **state) {
    gbx_hal *hal = open_hal(*state, 8 * MIB);
    uint64_t address;
    uint64_t value = 0x1122334455667788;
    if (!hal->ops->map) {
        hal->ops->close(hal);
        return;
    }
    void *pointer;
    assert_ok(hal->ops->alloc(hal, 64, 512, &address));
    assert_ok(hal->ops->copy_in(hal, address, &value, sizeof value));
    assert_ok(hal->ops->map(hal, address, 64, &pointer));
    assert_int_equal((uint64_t)(uintptr_t)pointer, address);
    assert_int_equal(*(uint64_t *)pointer, value);
    ((uint64_t *)pointer)[1] = 42;
    assert_ok(hal->ops->copy_out(hal, &value, address + 8, sizeof value));
    assert_int_equal(value, 42);
    assert_fails(hal->ops->map(hal, address, 65, &pointer), GBX_OUT_OF_RANGE, "mapping", "65");
    assert_null(pointer);
    hal->ops->close(hal);
}

static void test_ranges_are_checked(void **state) {
    gbx_hal *hal = open_hal(*state, 8 * MIB);
    uint64_t address;
    char bytes[128] = {0};
    assert_ok(hal->ops->alloc(hal, 100, 512, &address));
    assert_ok(hal->ops->copy_out(hal, bytes, address, 100));
    assert_fails(hal->ops->copy_out(hal, bytes, address, 101), GBX_OUT_OF_RANGE, "copying out from",
                 "101 bytes", "100 bytes allocated");
    assert_fails(hal->ops->copy_in(hal, address + 100, bytes, 1), GBX_OUT_OF_RANGE, "copying in to",
                 "1 bytes");
    assert_fails(hal->ops->copy_in(hal, address + 4096, bytes, 1), GBX_NOT_FOUND,
                 "nothing is allocated");
    assert_fails(hal->ops->copy_in(hal, 0x1000, bytes, 1), GBX_OUT_OF_RANGE, "0x1000", "outside");
    assert_fails(hal->ops->copy_out(hal, bytes, address, UINT64_MAX), GBX_OUT_OF_RANGE,
                 "18446744073709551615");
    hal->ops->close(hal);
}

static void test_memory_runs_out_with_numbers(void **state) {
    gbx_hal *hal = open_hal(*state, 4 * MIB);
    uint64_t first;
    uint64_t second;
    assert_ok(hal->ops->alloc(hal, 3 * MIB, 512, &first));
    assert_fails(hal->ops->alloc(hal, 2 * MIB, 512, &second), GBX_EXHAUSTED, "2097152 bytes",
                 "1048576 of 4194304 bytes are free", "1048576 in one piece");
    assert_int_equal(second, 0);
    assert_ok(hal->ops->free(hal, first));
    assert_ok(hal->ops->alloc(hal, 4 * MIB, 512, &second));
    hal->ops->close(hal);
}

static void test_double_free_is_named(void **state) {
    gbx_hal *hal = open_hal(*state, 4 * MIB);
    uint64_t address;
    assert_ok(hal->ops->alloc(hal, 4096, 512, &address));
    assert_fails(hal->ops->free(hal, address + 512), GBX_NOT_FOUND, "512 bytes into");
    assert_ok(hal->ops->free(hal, address));
    assert_fails(hal->ops->free(hal, address), GBX_NOT_FOUND, "freeing", "freed already");
    assert_fails(hal->ops->free(hal, 0), GBX_OUT_OF_RANGE, "outside");
    hal->ops->close(hal);
}

static void test_wait_ends_with_the_time(void **state) {
    gbx_hal *hal = open_hal(*state, 4 * MIB);
    gbx_hal_event event;
    int64_t start_ns = gbx_clock_ns();
    assert_ok(hal->ops->wait(hal, 30 * GBX_NS_PER_MS, &event));
    assert_int_equal(event.kind, GBX_HAL_TIMED_OUT);
    assert_true(gbx_clock_ns() - start_ns >= 30 * GBX_NS_PER_MS);
    hal->ops->close(hal);
}

/* A launch that the chip answers with an error: the entry does not exist. */
static void test_launch_rings_back(void **state) {
    gbx_hal *hal = open_hal(*state, 4 * MIB);
    gbx_hal_event event;
    uint64_t control;
    uint64_t answer[2];
    assert_ok(hal->ops->alloc(hal, sizeof(gbx_control_block), 4096, &control));
    gbx_launch_args launch = {.launch_id = 77,
                              .control_block = control,
                              .payload = control,
                              .payload_bytes = 0,
                              .entry = 999,
                              .timeout_ms = 1000};
    assert_ok(hal->ops->launch(hal, &launch));
    assert_ok(hal->ops->wait(hal, 600 * GBX_NS_PER_SECOND, &event));
    assert_int_equal(event.kind, GBX_HAL_RUNG);
    for (uint32_t i = 0; i < 2; ++i) /* the number of the launch that ended, then its code */
        assert_ok(hal->ops->copy_out(hal, &answer[i], control + 8 + 8 * i, sizeof answer[i]));
    assert_int_equal(answer[0], 77);
    assert_int_equal((uint32_t)answer[1], GBX_INTERNAL);
    hal->ops->close(hal);
}

/* As many chips as there are address slots at the same time; one more is refused. */
static void test_chips_have_memory_of_their_own(void **state) {
    gbx_hal *hals[16];
    uint64_t addresses[16];
    uint64_t value;
    uint64_t count = 0;
    gbx_status status = NULL;
    const chip_variant *variant = *state;
    const gbx_hal_ops *ops;
    gbx_hal_config config = {.device = variant->device,
                             .blocks = 1,
                             .aicpu_threads = 1,
                             .gm_bytes = MIB,
                             .device_main = gbx_api_device_main};
    assert_ok(gbx_hal_find(variant->platform, &ops));
    while (count < 16 && !(status = ops->open(&config, &hals[count])))
        ++count;
    assert_fails(status, GBX_EXHAUSTED, "address slots", "close");
    assert_true(count >= 8);
    for (uint64_t i = 0; i < count; ++i) {
        assert_ok(ops->alloc(hals[i], 8, 512, &addresses[i]));
        assert_ok(ops->copy_in(hals[i], addresses[i], &i, sizeof i));
    }
    for (uint64_t i = 0; i < count; ++i) {
        assert_ok(ops->copy_out(hals[i], &value, addresses[i], sizeof value));
        assert_int_equal(value, i);
        ops->close(hals[i]);
    }
}

static void test_closing_leaves_nothing(void **state) {
    size_t files = count_open_files();
    size_t mappings = count_mappings_of("glassbox-gm");
    for (int i = 0; i < 5; ++i) {
        gbx_hal *hal = open_hal(*state, 4 * MIB);
        assert_true(count_open_files() > files);
        hal->ops->close(hal);
        assert_int_equal(count_open_files(), files);
        assert_int_equal(count_mappings_of("glassbox-gm"), mappings);
        assert_false(has_children());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps_describe_the_memory),
        cmocka_unit_test(test_copies_move_exactly_the_bytes),
        cmocka_unit_test(test_map_shares_memory_or_is_absent),
        cmocka_unit_test(test_ranges_are_checked),
        cmocka_unit_test(test_memory_runs_out_with_numbers),
        cmocka_unit_test(test_double_free_is_named),
        cmocka_unit_test(test_wait_ends_with_the_time),
        cmocka_unit_test(test_launch_rings_back),
        cmocka_unit_test(test_chips_have_memory_of_their_own),
        cmocka_unit_test(test_closing_leaves_nothing),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
