/*
 * Memory of the heap ring is reused only after the last reader of its contents is done, not after
 * the writer is. Kernels and orchestration are functions of this program, so the chips run in a
 * thread.
 */
#include <glassbox/runtime.h>

#include "chip_support.h"

#include <unistd.h>

enum { FILL = 0, READ_LATE = 1, ELEMENTS = 4096, LATER_SCOPES = 60, LATE_US = 100000 };

static void fill(const uint64_t *args) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, 0);
    for (int64_t i = 0; i < gbx_tensor_numel(tensor); ++i)
        gbx_tensor_f32(tensor)[i] = gbx_arg_f32(args, 1);
}

static void read_late(const uint64_t *args) {
    usleep(LATE_US);
    *gbx_tensor_f32(gbx_arg_tensor(args, 1)) = *gbx_tensor_f32(gbx_arg_tensor(args, 0));
}

static gbx_tensor submit_fill(gbx_orchestration *o, float value) {
    const int64_t shape[1] = {ELEMENTS};
    gbx_tensor tensor = gbx_new_tensor(GBX_FLOAT32, 1, shape);
    gbx_args args = gbx_args_begin();
    gbx_args_add_new_output(&args, &tensor);
    gbx_args_add_f32(&args, value);
    gbx_submit_aiv_task(o, FILL, &args);
    return tensor;
}

/* The reader still sleeps when later scopes need the memory that it reads. */
static int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    int reuse_count = 0;
    gbx_scope_begin(o);
    gbx_tensor first = submit_fill(o, 1.0f);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &first);
    gbx_args_add_output(&args, &run->tensors[0]);
    gbx_submit_aiv_task(o, READ_LATE, &args);
    gbx_scope_end(o);
    for (int i = 0; i < LATER_SCOPES; ++i) {
        gbx_scope_begin(o);
        reuse_count += submit_fill(o, 2.0f).data == first.data;
        gbx_scope_end(o);
    }
    return reuse_count > 0 ? 0 : 1; /* else the test proves nothing */
}

static void check_heap_of(gbx_chip *chip, uint64_t heap_bytes) {
    float read = 0.0f;
    const int64_t shape[1] = {1};
    gbx_run_tensor tensor = {.name = "read", .role = GBX_ROLE_OUTPUT};
    assert_ok(
        gbx_tensor_contiguous((uint64_t)(uintptr_t)&read, GBX_FLOAT32, 1, shape, &tensor.tensor));
    gbx_run run = {.function = orchestrate, .tensors = &tensor, .tensor_count = 1};
    gbx_call_config config = {.heap_bytes = heap_bytes};
    gbx_call_result result;
    assert_ok(gbx_chip_run(chip, &run, &config, &result));
    assert_true(read == 1.0f);
    assert_int_equal(result.tasks, LATER_SCOPES + 2);
}

static void test_memory_waits_for_its_last_reader(void **state) {
    const chip_variant *variant = *state;
    if (variant->device != GBX_DEVICE_THREAD)
        skip();
    gbx_chip *chip = open_chip(variant, 2);
    gbx_kernel kernels[] = {
        {.func_id = FILL, .name = "fill", .core = GBX_CORE_AIV, .function = fill},
        {.func_id = READ_LATE, .name = "read_late", .core = GBX_CORE_AIV, .function = read_late}};
    for (size_t i = 0; i < 2; ++i)
        assert_ok(gbx_kernel_register(chip, &kernels[i]));
    const uint64_t bytes = ELEMENTS * sizeof(float);
    check_heap_of(chip, bytes);
    check_heap_of(chip, bytes * 3);
    check_heap_of(chip, bytes * 20);
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_waits_for_its_last_reader)};
    return RUN_OVER_ALL_VARIANTS(tests);
}
