/* Kernels on a chip, on every platform, in a process and in a thread: values and argument slots. */
#include "chip_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    ADD = 1,
    SAVE_ARGS_AIC = 2,
    SAVE_ARGS_AIV = 3,
    PING_PONG_AIC = 4,
    PING_PONG_AIV = 5,
    COUNT_AIC = 6,
    COUNT_AIV = 7,
    OTHER = 9
};

static void test_add_gives_the_sum(void **state) {
    enum { COUNT = 10007 };
    static float a[COUNT];
    static float b[COUNT];
    static float c[COUNT];
    gbx_chip *chip = open_chip(*state, 3);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    for (int i = 0; i < COUNT; ++i) {
        a[i] = (float)i * 0.25f;
        b[i] = 1000.0f - (float)(i * i % 977);
    }
    static const uint32_t block_nums[] = {1, 2, 3, 4, 100};
    for (size_t n = 0; n < sizeof block_nums / sizeof block_nums[0]; ++n) {
        memset(c, 0xff, sizeof c);
        gbx_tensor tensors[] = {vector_at(put(chip, a, sizeof a), GBX_FLOAT32, COUNT),
                                vector_at(put(chip, b, sizeof b), GBX_FLOAT32, COUNT),
                                vector_at(put(chip, c, sizeof c), GBX_FLOAT32, COUNT)};
        gbx_call call = call_of(ADD, GBX_CORE_AIV, block_nums[n], tensors, 3);
        gbx_call_result result;
        assert_ok(gbx_chip_call(chip, &call, NULL, &result));
        assert_true(result.device_ns > 0);
        assert_ok(gbx_gm_copy_out(chip, c, tensors[2].data, sizeof c));
        for (int i = 0; i < COUNT; ++i)
            assert_true(c[i] == a[i] + b[i]);
    }
    gbx_chip_close(chip);
}

/* Every second element of the inputs, a reversed output. */
static void test_kernel_sees_views(void **state) {
    const float a[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float b[4] = {10, 20, 30, 40};
    float c[6] = {-1, -1, -1, -1, -1, -1};
    gbx_chip *chip = open_chip(*state, 1);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    gbx_tensor tensors[] = {vector_at(put(chip, a, sizeof a), GBX_FLOAT32, 4),
                            vector_at(put(chip, b, sizeof b), GBX_FLOAT32, 4),
                            vector_at(put(chip, c, sizeof c), GBX_FLOAT32, 4)};
    tensors[0].buffer_bytes = sizeof a;
    tensors[0].start_offset = 1;
    tensors[0].strides[0] = 2;
    tensors[2].buffer_bytes = sizeof c;
    tensors[2].start_offset = 4;
    tensors[2].strides[0] = -1;
    gbx_call call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 3);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, c, tensors[2].data, sizeof c));
    const float expected[6] = {-1, 47, 35, 23, 11, -1};
    assert_memory_equal(c, expected, sizeof c);
    gbx_chip_close(chip);
}

enum {
    SLOT_BLOCKS = 5,
    SLOT_TENSORS = 4,
    SLOT_SCALARS = 3,
    TENSORS_AT = GBX_ARG_SLOTS + 2 + 3,
    TENSOR_WORDS = sizeof(gbx_tensor) / sizeof(uint64_t),
    ROW = TENSORS_AT + SLOT_TENSORS * TENSOR_WORDS
};

static void check_row(const uint64_t *row, const uint64_t *first_row, uint32_t number,
                      const gbx_tensor *tensors, const uint64_t *scalars) {
    gbx_local_context local;
    gbx_global_context global;
    memcpy(&local, &row[GBX_ARG_SLOTS], sizeof local);
    memcpy(&global, &row[GBX_ARG_SLOTS + 2], sizeof global);
    assert_int_equal(local.block_idx, number / 3);
    assert_int_equal(local.block_num, SLOT_BLOCKS);
    assert_int_equal(local.subtask, number % 3);
    assert_int_equal(local.core_id % 3, number % 3);
    assert_in_range(local.core_id / 3, 0, 1);
    assert_int_equal(global.blocks, 2);
    assert_int_equal(global.gm_bytes, 64 << 20);
    assert_in_range(tensors[0].data, global.gm_base, global.gm_base + global.gm_bytes);
    for (int s = 0; s < SLOT_SCALARS; ++s)
        assert_int_equal(row[SLOT_TENSORS + s], scalars[s]);
    for (int t = 0; t < SLOT_TENSORS; ++t) {
        assert_in_range(row[t], global.gm_base, global.gm_base + global.gm_bytes);
        assert_int_equal(row[t], first_row[t]); /* one description for all dispatches */
        assert_memory_equal(&row[TENSORS_AT + t * TENSOR_WORDS], &tensors[t], sizeof tensors[t]);
    }
}

/* All slots of all dispatches of a mix hold what kernel.h promises. */
static void test_every_argument_slot_is_right(void **state) {
    static uint64_t rows[SLOT_BLOCKS * 3][ROW];
    const uint64_t scalars[SLOT_SCALARS] = {0x3f800000, UINT64_MAX, 7};
    gbx_chip *chip = open_chip(*state, 2);
    register_kernel(chip, SAVE_ARGS_AIC, GBX_CORE_AIC, "save_args.c");
    register_kernel(chip, SAVE_ARGS_AIV, GBX_CORE_AIV, "save_args.c");
    memset(rows, 0xee, sizeof rows);
    uint64_t address = put(chip, rows, sizeof rows);
    const int64_t shape[2] = {SLOT_BLOCKS * 3, ROW};
    gbx_tensor tensors[SLOT_TENSORS];
    for (int i = 0; i < SLOT_TENSORS; ++i) {
        assert_ok(gbx_tensor_contiguous(address, GBX_UINT64, 2, shape, &tensors[i]));
        tensors[i].start_offset = i * ROW;
        tensors[i].shape[0] -= i;
    }
    gbx_call call = {.kernels = {SAVE_ARGS_AIC, SAVE_ARGS_AIV, SAVE_ARGS_AIV},
                     .block_num = SLOT_BLOCKS,
                     .tensors = tensors,
                     .tensor_count = SLOT_TENSORS,
                     .scalars = scalars,
                     .scalar_count = SLOT_SCALARS};
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, rows, address, sizeof rows));
    for (uint32_t r = 0; r < SLOT_BLOCKS * 3; ++r) {
        gbx_local_context local;
        gbx_local_context of_block;
        check_row(rows[r], rows[0], r, tensors, scalars);
        memcpy(&local, &rows[r][GBX_ARG_SLOTS], sizeof local);
        memcpy(&of_block, &rows[r / 3 * 3][GBX_ARG_SLOTS], sizeof of_block);
        assert_int_equal(local.core_id / 3, of_block.core_id / 3);
    }
    gbx_chip_close(chip);
}

/* 24 blocks whose cores wait for each other at every step, even on a machine with few CPUs. */
static void test_mix_exchanges_through_flags(void **state) {
    enum { BLOCKS = 24, ROUNDS = 60 };
    static const uint32_t flags[BLOCKS * 16];
    static int64_t sums[BLOCKS * 3];
    gbx_chip *chip = open_chip(*state, BLOCKS);
    register_kernel(chip, PING_PONG_AIC, GBX_CORE_AIC, "ping_pong.c");
    register_kernel(chip, PING_PONG_AIV, GBX_CORE_AIV, "ping_pong.c");
    memset(sums, 0, sizeof sums);
    gbx_tensor tensors[] = {vector_at(put(chip, flags, sizeof flags), GBX_UINT32, BLOCKS * 16),
                            vector_at(put(chip, sums, sizeof sums), GBX_INT64, BLOCKS * 3)};
    const uint64_t rounds = ROUNDS;
    gbx_call_config config = {.timeout_ms = 600 * 1000}; /* enough for a machine with few CPUs */
    gbx_call call = {.kernels = {PING_PONG_AIC, PING_PONG_AIV, PING_PONG_AIV},
                     .block_num = BLOCKS,
                     .tensors = tensors,
                     .tensor_count = 2,
                     .scalars = &rounds,
                     .scalar_count = 1};
    assert_ok(gbx_chip_call(chip, &call, &config, NULL));
    assert_ok(gbx_gm_copy_out(chip, sums, tensors[1].data, sizeof sums));
    for (int b = 0; b < BLOCKS; ++b) {
        int64_t total = (int64_t)ROUNDS * (ROUNDS + 1) / 2 * (b + 1);
        assert_int_equal(sums[3 * b], 4 * total);
        assert_int_equal(sums[3 * b + 1], total);
        assert_int_equal(sums[3 * b + 2], total);
    }
    gbx_chip_close(chip);
}

/* Stores that bypass the caches are visible when the call ends. */
static void test_streaming_stores_arrive(void **state) {
    enum { COUNT = 1 << 16 };
    static uint64_t out[COUNT];
    gbx_chip *chip = open_chip(*state, 1);
    register_kernel(chip, OTHER, GBX_CORE_AIV, "streaming.c");
    memset(out, 0, sizeof out);
    gbx_tensor tensor = vector_at(put(chip, out, sizeof out), GBX_UINT64, COUNT);
    gbx_call call = call_of(OTHER, GBX_CORE_AIV, 1, &tensor, 1);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, out, tensor.data, sizeof out));
    for (uint64_t i = 0; i < COUNT; ++i)
        assert_int_equal(out[i], i * 3 + 1);
    gbx_chip_close(chip);
}

/* Many small calls on one chip: no call affects the next. */
static void test_calls_follow_each_other(void **state) {
    gbx_chip *chip = open_chip(*state, 2);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    float a[4] = {1, 2, 3, 4};
    float c[4];
    uint64_t in = put(chip, a, sizeof a);
    uint64_t out = put(chip, a, sizeof a);
    for (int round = 0; round < 300; ++round) {
        gbx_tensor tensors[] = {vector_at(in, GBX_FLOAT32, 4), vector_at(out, GBX_FLOAT32, 4),
                                vector_at(out, GBX_FLOAT32, 4)};
        gbx_call call = call_of(ADD, GBX_CORE_AIV, (uint32_t)round % 3 + 1, tensors, 3);
        assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    }
    assert_ok(gbx_gm_copy_out(chip, c, out, sizeof c));
    for (int i = 0; i < 4; ++i)
        assert_true(c[i] == a[i] * 301.0f);
    gbx_chip_close(chip);
}

/* One call with a random mix and number of blocks: each of its dispatches runs once, and no
 * other. */
static void check_random_call(gbx_chip *chip, unsigned *seed) {
    enum { MOST = 100 };
    static const uint32_t zeros[MOST * 3];
    uint32_t cells[MOST * 3];
    uint32_t block_num = (uint32_t)rand_r(seed) % MOST + 1;
    uint32_t mix = (uint32_t)rand_r(seed) % 7 + 1;
    gbx_tensor tensor = vector_at(put(chip, zeros, sizeof zeros), GBX_UINT32, MOST * 3);
    gbx_call call = {.block_num = block_num, .tensors = &tensor, .tensor_count = 1};
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s)
        call.kernels[s] = mix >> s & 1 ? (s == 0 ? COUNT_AIC : COUNT_AIV) : GBX_NO_KERNEL;
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, cells, tensor.data, sizeof cells));
    for (uint32_t i = 0; i < MOST * 3; ++i)
        assert_int_equal(cells[i], i / 3 < block_num && (mix >> i % 3 & 1));
    assert_ok(gbx_gm_free(chip, tensor.data));
}

static void test_every_dispatch_runs_once(void **state) {
    const chip_variant *variant = *state;
    unsigned seed = 20;
    int chips = getenv("GLASSBOX_STRESS") ? 200 : 6;
    int calls = getenv("GLASSBOX_STRESS") ? 500 : 40;
    for (int c = 0; c < chips; ++c) {
        gbx_chip_config config = {.platform = variant->platform,
                                  .device = variant->device,
                                  .blocks = (uint32_t)rand_r(&seed) % GBX_MAX_BLOCKS + 1,
                                  .aicpu_threads =
                                      (uint32_t)rand_r(&seed) % GBX_MAX_AICPU_THREADS + 1,
                                  .gm_bytes = 1 << 20};
        gbx_chip *chip;
        assert_ok(gbx_chip_open(&config, &chip));
        register_kernel(chip, COUNT_AIC, GBX_CORE_AIC, "count.c");
        register_kernel(chip, COUNT_AIV, GBX_CORE_AIV, "count.c");
        for (int i = 0; i < calls; ++i)
            check_random_call(chip, &seed);
        gbx_chip_close(chip);
    }
}

static void test_wrong_calls_are_named(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    register_kernel(chip, ADD, GBX_CORE_AIV, "add.c");
    float bytes[4] = {0};
    gbx_tensor tensor = vector_at(put(chip, bytes, sizeof bytes), GBX_FLOAT32, 4);
    const uint64_t scalars[33] = {0};
    gbx_tensor tensors[40];
    for (int i = 0; i < 40; ++i)
        tensors[i] = tensor;
    gbx_call call = call_of(OTHER, GBX_CORE_AIV, 1, tensors, 3);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0: no kernel is registered as func 9");
    call = call_of(ADD, GBX_CORE_AIC, 1, tensors, 3);
    assert_fails(
        gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
        "task 0 (kernel add.c): the kernel is registered for AIV cores, but used on an AIC core");
    call = call_of(GBX_NO_KERNEL, GBX_CORE_AIV, 1, tensors, 3);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0: none of its three subtasks names a kernel");
    call = call_of(ADD, GBX_CORE_AIV, GBX_MAX_BLOCK_NUM + 1, tensors, 3);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): block_num is 65537, expected 1 to 65536");
    call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 33);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_OUT_OF_RANGE, "33 tensors", "32");
    call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 3);
    call.scalars = scalars;
    call.scalar_count = 33;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_OUT_OF_RANGE, "33 scalars", "32");
    call = call_of(ADD, GBX_CORE_AIV, 1, NULL, 3);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_INVALID_ARGUMENT,
                 "tensor_count or scalar_count is set, but its array is NULL");
    call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 3);
    tensors[1].data = 0;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): argument 1 is a null tensor");
    tensors[1].data = 0x1000;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): argument 1: its elements from 0x1000 to 0x1010",
                 "not in the chip's global memory");
    tensors[1] = tensor;
    tensors[2].dtype = 99;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): argument 2: ", "99");
    for (int i = 0; i < 3; ++i) /* no elements, so no alignment is needed */
        tensors[i] = vector_at(0, GBX_FLOAT32, 0);
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    gbx_chip_close(chip);
}

/* A call gives tensors and scalars without roles: number, dtype and rank must match. */
static void test_calls_follow_the_signature(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    char source[4096];
    gbx_kernel kernel = test_kernel(ADD, GBX_CORE_AIV, "add.c", source);
    kernel.signature = "in:float32[1],scalar:float32,in,out";
    kernel.arg_names = "a,unused,b,c";
    assert_ok(gbx_kernel_register(chip, &kernel));
    float a[] = {1, 2}, b[] = {10, 20}, c[] = {0, 0};
    gbx_tensor tensors[] = {vector_at(put(chip, a, sizeof a), GBX_FLOAT32, 2),
                            vector_at(put(chip, b, sizeof b), GBX_FLOAT32, 2),
                            vector_at(put(chip, c, sizeof c), GBX_FLOAT32, 2),
                            vector_at(put(chip, c, sizeof c), GBX_FLOAT32, 2)};
    const uint64_t scalars[2] = {0};
    gbx_call call = call_of(ADD, GBX_CORE_AIV, 1, tensors, 3);
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): argument 3 (unused) is missing: the signature lists 4 "
                 "arguments, the task has 3");
    call.scalars = scalars;
    call.scalar_count = 1;
    assert_ok(gbx_chip_call(chip, &call, NULL, NULL));
    assert_ok(gbx_gm_copy_out(chip, c, tensors[2].data, sizeof c));
    assert_true(c[0] == 11 && c[1] == 22);
    call.tensor_count = 2;
    call.scalar_count = 2;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "task 0 (kernel add.c): argument 2 (c) is missing: the signature lists 3 tensors, "
                 "the task has 2");
    call.tensor_count = 4;
    call.scalar_count = 0;
    assert_fails(
        gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
        "task 0 (kernel add.c): argument 3 (unused): the signature says scalar:float32, but "
        "the task describes a tensor");
    call.tensor_count = 3;
    call.scalar_count = 2;
    gbx_call_config loose = {.has_loose_signatures = true};
    gbx_call_result result;
    assert_ok(gbx_chip_call(chip, &call, &loose, &result));
    assert_int_equal(result.signature_warnings, 1);
    assert_int_equal(result.signature_sentence_count, 1);
    assert_string_equal(result.signature_sentences[0],
                        "task 0 (kernel add.c): argument 4 is too many: the signature lists 4 "
                        "arguments, the task has 5");
    call.scalar_count = 1;
    assert_ok(gbx_chip_call(chip, &call, &loose, &result));
    assert_int_equal(result.signature_warnings, 0);
    assert_int_equal(result.signature_sentence_count, 0);
    tensors[0].dtype = GBX_INT32;
    assert_fails(gbx_chip_call(chip, &call, NULL, NULL), GBX_BAD_GRAPH,
                 "argument 0 (a): the signature says in:float32[1], but the task gives int32");
    gbx_chip_close(chip);
}

static void test_limits_are_said(void **state) {
    const chip_variant *variant = *state;
    gbx_chip *chip;
    gbx_chip_config config = {.platform = "a9sim", .device = variant->device};
    assert_fails(gbx_chip_open(&config, &chip), GBX_NOT_FOUND,
                 "unknown platform \"a9sim\"; expected a2a3sim or a5sim");
    assert_null(chip);
    config.platform = variant->platform;
    config.blocks = 25;
    assert_fails(gbx_chip_open(&config, &chip), GBX_OUT_OF_RANGE, "25 blocks", "24");
    config.blocks = 24;
    config.aicpu_threads = 9;
    assert_fails(gbx_chip_open(&config, &chip), GBX_OUT_OF_RANGE, "9 AICPU threads", "8");
    config.aicpu_threads = 8;
    config.gm_bytes = UINT64_MAX;
    assert_fails(gbx_chip_open(&config, &chip), GBX_OUT_OF_RANGE, "18446744073709551615 bytes");
    config.gm_bytes = 4096;
    assert_fails(gbx_chip_open(&config, &chip), GBX_EXHAUSTED, "too little global memory",
                 "4096 bytes are free");
    config.gm_bytes = GBX_MAX_GM_BYTES;
    assert_ok(gbx_chip_open(&config, &chip));
    assert_string_equal(gbx_chip_platform(chip), variant->platform);
    uint64_t address;
    assert_ok(gbx_gm_alloc(chip, GBX_MAX_GM_BYTES / 2, &address));
    assert_ok(gbx_gm_copy_in(chip, address + GBX_MAX_GM_BYTES / 2 - 8, "the end", 8));
    char text[8];
    assert_ok(gbx_gm_copy_out(chip, text, address + GBX_MAX_GM_BYTES / 2 - 8, 8));
    assert_string_equal(text, "the end");
    gbx_chip_close(chip);
}

static void test_own_memory_is_protected(void **state) {
    gbx_chip *chip = open_chip(*state, 1);
    uint64_t address;
    char byte = 0;
    assert_ok(gbx_gm_alloc(chip, 8, &address));
    uint64_t base = address & ~(GBX_MAX_GM_BYTES - 1);
    assert_fails(gbx_gm_free(chip, base), GBX_INVALID_ARGUMENT, "control memory");
    assert_fails(gbx_gm_copy_in(chip, base + 64, &byte, 1), GBX_INVALID_ARGUMENT, "control memory");
    gbx_chip_close(chip);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_gives_the_sum),
        cmocka_unit_test(test_kernel_sees_views),
        cmocka_unit_test(test_every_argument_slot_is_right),
        cmocka_unit_test(test_mix_exchanges_through_flags),
        cmocka_unit_test(test_streaming_stores_arrive),
        cmocka_unit_test(test_calls_follow_each_other),
        cmocka_unit_test(test_every_dispatch_runs_once),
        cmocka_unit_test(test_wrong_calls_are_named),
        cmocka_unit_test(test_calls_follow_the_signature),
        cmocka_unit_test(test_limits_are_said),
        cmocka_unit_test(test_own_memory_is_protected),
    };
    return RUN_OVER_ALL_VARIANTS(tests);
}
