/*
 * Dumps of all kinds of arguments, on every runtime and both platforms, each record compared with
 * the sequential model: views, dtypes, scalars, chains, mixes, duplicates, undescribed tasks,
 * consecutive runs.
 */
#include "dump_scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LITTLE = 1 << 17 };

/* A full dump on each runtime. */
static void check_with(dump_scene *scene, const chip_variant *variant, uint32_t threads,
                       bool has_loose_signatures) {
    gbx_chip *chip = scene_chip(scene, variant, threads);
    gbx_call_config config = scene_full_config();
    config.has_loose_signatures = has_loose_signatures;
    dump_rules rules = scene_full_rules(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        dump_files files;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        if (runtime == 0)
            dump_assert_python_reads(&files);
        scene_drop(&files);
    }
    scene_close(chip);
}

static void check_everywhere(dump_scene *scene, const chip_variant *variant, uint32_t threads) {
    check_with(scene, variant, threads, false);
}

/* --- views --- */

static gbx_tensor stepped_by(gbx_tensor view, uint32_t dim, int64_t step) {
    view.shape[dim] = (view.shape[dim] + step - 1) / step;
    view.strides[dim] *= step;
    return view;
}

static gbx_tensor eight_dimensions(dump_scene *scene) {
    const int64_t shape[] = {2, 3, 1, 2, 2, 1, 3, 2};
    gbx_tensor view = scene_tensor(scene, GBX_UINT16, 8, shape);
    view = gbx_view_transpose(&view, 0, 7);
    view = gbx_view_transpose(&view, 1, 4);
    return scene_flipped(view, 6);
}

/* Views that a kernel may write to: no two elements share memory. */
enum { WRITABLE_VIEWS = 15 };

/* Strides that are never used, of any size. */
static gbx_tensor with_strides(gbx_tensor view, int64_t first, int64_t second) {
    view.strides[0] = first;
    view.strides[1] = second;
    return view;
}

static gbx_tensor writable_view(dump_scene *scene, int which) {
    const int64_t none = 0, none_amid[] = {3, 0, 2};
    gbx_tensor whole = scene_matrix(scene, GBX_FLOAT32, 6, 8);
    gbx_tensor rows = gbx_view_slice(&whole, 0, 1, 4);
    switch (which) {
    case 0:
        return whole;
    case 1: /* contiguous, with an offset */
        return rows;
    case 2:
        return gbx_view_slice(&rows, 1, 3, 4);
    case 3:
        return gbx_view_transpose(&rows, 0, 1);
    case 4:
        return scene_flipped(scene_flipped(rows, 0), 1);
    case 5:
        return stepped_by(scene_flipped(whole, 1), 1, 3);
    case 6:
        return gbx_view_select(&rows, 1, 5);
    case 7:
        return scene_element(scene, GBX_INT16);
    case 8:
        return eight_dimensions(scene);
    case 9:
        return scene_tensor(scene, GBX_FLOAT64, 1, &none);
    case 10:
        return scene_tensor(scene, GBX_UINT8, 3, none_amid);
    case 11:
        return with_strides(scene_matrix(scene, GBX_FLOAT32, 1, 8), INT64_C(1) << 53, 1);
    case 12:
        return with_strides(scene_matrix(scene, GBX_INT16, 1, 1), INT64_MIN, INT64_MAX);
    case 13:
        return with_strides(scene_matrix(scene, GBX_INT8, 0, 4), INT64_MAX, -(INT64_C(1) << 53));
    default: /* an empty part in the middle of a buffer */
        return gbx_view_slice(&rows, 1, 4, 0);
    }
}

static gbx_tensor broadcast(dump_scene *scene) {
    gbx_tensor view = scene_matrix(scene, GBX_INT32, 1, 7);
    view.shape[0] = 5;
    view.strides[0] = 0;
    return view;
}

static gbx_tensor sliding_windows(dump_scene *scene) {
    gbx_tensor view = scene_matrix(scene, GBX_BFLOAT16, 1, 22);
    view.shape[0] = 9;
    view.shape[1] = 6;
    view.strides[0] = 2;
    return view;
}

/* Written, changed and read again. */
static void test_views(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_tensor views[WRITABLE_VIEWS];
    static const gbx_role roles[] = {GBX_ROLE_OUTPUT, GBX_ROLE_INOUT, GBX_ROLE_INPUT};
    for (int i = 0; i < WRITABLE_VIEWS; ++i)
        views[i] = writable_view(scene, i);
    for (int round = 0; round < 3; ++round) {
        plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
        for (int i = 0; i < WRITABLE_VIEWS; ++i)
            scene_arg(scene, task, roles[round], views[i]);
        scene_arg(scene, task, GBX_ROLE_INPUT, broadcast(scene));
        scene_arg(scene, task, GBX_ROLE_INPUT, sliding_windows(scene));
        scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_INT64, 1, 1));
    }
    check_everywhere(scene, *state, 0);
    scene_destroy(scene);
}

/* --- dtypes --- */

static void test_dtypes(void **state) {
    dump_scene *scene = scene_create(4 * LITTLE);
    scene_add_all_dtypes(scene);
    check_everywhere(scene, *state, 0);
    scene_destroy(scene);
}

/* --- scalars --- */

enum { PATTERNS = 8 };

/* Raw words that are easy to get wrong: signs, ends of ranges, infinities, NaNs, subnormals. */
static uint64_t pattern_of(uint32_t dtype, int which) {
    static const uint64_t infinities[GBX_DTYPE_COUNT] = {
        [GBX_FLOAT32] = 0x7f800000,      [GBX_FLOAT16] = 0xfc00,   [GBX_BFLOAT16] = 0x7f80,
        [GBX_FLOAT64] = 0xfff0ull << 48, [GBX_FLOAT8_E4M3] = 0x78, [GBX_FLOAT8_E5M2] = 0xfc,
        [GBX_FLOAT4_E2M1] = 0x7,         [GBX_FLOAT8_E8M0] = 0xfe};
    uint32_t bits = dump_element_bits(dtype);
    uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t sign = UINT64_C(1) << (bits - 1);
    switch (which) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return ones;
    case 3:
        return sign;
    case 4:
        return sign - 1;
    case 5:
        return infinities[dtype];
    case 6:
        return UINT64_C(0x3fb999999999999a) >> (64 - bits);
    default: /* bits above the dtype's width do not belong to the value, but stay in the word */
        return (UINT64_C(0xdeadbeef01234567) & ~ones) | (UINT64_C(0x5a5a5a5a5a5a5a5a) & ones);
    }
}

/* Declared by a typed call; host_build_graph has no such call, so they are plain words there. */
static void test_typed_scalars(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    plan_task *task = NULL;
    for (uint32_t i = 0; i < PATTERNS * (GBX_DTYPE_COUNT - 1); ++i) {
        uint32_t dtype = 1 + i / PATTERNS;
        if (i % GBX_MAX_SCALAR_ARGS == 0)
            task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
        scene_scalar(task, (gbx_dtype)dtype, pattern_of(dtype, i % PATTERNS));
    }
    check_everywhere(scene, *state, 0);
    scene_destroy(scene);
}

/* Declared by the signature only, by a call that contradicts it, and not at all. */
static void test_declared_scalars(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    for (int pattern = 0; pattern < PATTERNS; ++pattern) {
        plan_task *task = scene_add(scene, gbx_aiv(DECLARED), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_INT8, 2, 3));
        for (uint32_t i = 0; i < DECLARED_SCALARS + 2; ++i)
            scene_scalar(task, GBX_DTYPE_NONE, pattern_of(1 + i % 16, pattern));
    }
    plan_task *other = scene_add(scene, gbx_aiv(DECLARED), STEP_WRITE);
    scene_arg(scene, other, GBX_ROLE_INOUT, scene_matrix(scene, GBX_INT8, 2, 3));
    scene_scalar(other, GBX_INT32, 0xffffffff);
    scene_scalar(other, GBX_DTYPE_NONE, 0x3c00);
    check_with(scene, *state, 0, true);
    scene_destroy(scene);
}

static const json_t *value_of(const dump_files *files, uint64_t task, uint32_t arg) {
    const json_t *entry = dump_find(files, task, arg, false);
    assert_non_null(entry);
    return dump_field(entry, "value");
}

/* Without the model: a float 1.0 is shown as 1.0. */
static void test_one_is_one(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    dump_files files;
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_NOTHING);
    scene_scalar(task, GBX_FLOAT32, gbx_word_f32(1.0f));
    scene_scalar(task, GBX_FLOAT64, gbx_word_f64(-2.5));
    scene_scalar(task, GBX_INT32, (uint32_t)-7);
    scene_scalar(task, GBX_INT64, (uint64_t)INT64_MIN);
    scene_scalar(task, GBX_DTYPE_NONE, UINT64_MAX);
    scene_check(scene, chip, PLAN_TENSORMAP, &config, &rules, &files);
    assert_true(json_number_value(value_of(&files, 0, 1)) == 1.0);
    assert_true(json_number_value(value_of(&files, 0, 2)) == -2.5);
    assert_int_equal(json_integer_value(value_of(&files, 0, 3)), -7);
    assert_string_equal(json_string_value(value_of(&files, 0, 4)), "-9223372036854775808");
    assert_string_equal(dump_text(dump_find(&files, 0, 5, false), "dtype"), "unknown");
    assert_string_equal(dump_text(dump_find(&files, 0, 5, false), "bits"), "0xffffffffffffffff");
    assert_null(json_object_get(dump_find(&files, 0, 5, false), "value"));
    assert_int_equal(dump_hex(dump_find(&files, 0, 1, false), "bits"), 0x3f800000);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

/* --- chains, mixes, many arguments --- */

static void assert_payloads(const dump_files *files, const json_t *a, const json_t *b,
                            bool are_equal) {
    uint64_t bytes = dump_number(a, "bin_size");
    assert_true(bytes > 0);
    assert_int_equal(dump_number(b, "bin_size"), bytes);
    assert_int_equal(memcmp(dump_payload(files, a), dump_payload(files, b), bytes) == 0, are_equal);
}

/* Each step reads what the previous one wrote, and writes other values. */
static void test_read_modify_write(void **state) {
    enum { STEPS = 24, STATE = 1 };
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 4);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    gbx_tensor whole = scene_matrix(scene, GBX_FLOAT32, 12, 40);
    gbx_tensor part = gbx_view_slice(&whole, 1, 7, 21);
    for (int i = 0; i < STEPS; ++i) {
        plan_task *task = scene_add(scene, i % 2 ? gbx_aic(STEP_AIC) : gbx_aiv(STEP), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INOUT, part);
    }
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        dump_files files;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        for (uint64_t i = 0; i < STEPS; ++i) {
            const json_t *before = dump_find(&files, i, STATE, false);
            const json_t *after = dump_find(&files, i, STATE, true);
            assert_payloads(&files, before, after, false);
            if (i > 0)
                assert_payloads(&files, dump_find(&files, i - 1, STATE, true), before, true);
        }
        scene_drop(&files);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* A mix of three kernels with more blocks than the chip has still records each argument once. */
static void test_mixes_and_blocks(void **state) {
    static const uint32_t block_nums[] = {1, 3, 7};
    dump_scene *scene = scene_create(2 * LITTLE);
    for (int i = 0; i < 3; ++i) {
        gbx_task_kernels kernels[] = {gbx_mix(STEP_AIC, STEP, WIDE),
                                      gbx_mix(STEP_AIC, GBX_NO_KERNEL, STEP), gbx_aiv(STEP),
                                      gbx_mix(GBX_NO_KERNEL, GBX_NO_KERNEL, WIDE)};
        for (int k = 0; k < 4; ++k) {
            plan_task *task = scene_add(scene, gbx_spmd(kernels[k], block_nums[i]), STEP_WRITE);
            scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_FLOAT16, 9, 11));
            scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_INT32, 3, 4));
            scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_UINT8, 50, 20));
            scene_scalar(task, GBX_DTYPE_NONE, gbx_word_f32(0.75f));
            scene_scalar(task, GBX_FLOAT16, 0x3c00);
        }
    }
    check_everywhere(scene, *state, 3);
    scene_destroy(scene);
}

static void test_most_arguments(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    for (int round = 0; round < 2; ++round) {
        plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
        for (uint32_t i = 1; i < GBX_MAX_TENSOR_ARGS; ++i)
            scene_arg(scene, task, (gbx_role)((i + (uint32_t)round) % 3),
                      scene_matrix(scene, (gbx_dtype)(1 + i % 15), 2, 1 + (int64_t)i));
        for (uint32_t i = 0; i < GBX_MAX_SCALAR_ARGS; ++i)
            scene_scalar(task, (gbx_dtype)(1 + i % 16), UINT64_C(0x0101010101010101) * i);
    }
    check_everywhere(scene, *state, 0);
    scene_destroy(scene);
}

/* Independent tasks on the maximum number of AICPU threads: no thread's capture contains data of
 * another. */
static void test_free_tasks(void **state) {
    dump_scene *scene = scene_create(4 * LITTLE);
    for (int i = 0; i < PLAN_MAX_TASKS; ++i) {
        plan_task *task =
            scene_add_free(scene, i % 3 ? gbx_aiv(STEP) : gbx_aic(STEP_AIC), STEP_WRITE);
        scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_FLOAT32, 1 + i, 7));
        scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_FLOAT16, 3, 5 + i));
        scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_UINT32, 16, 16));
        scene_scalar(task, GBX_INT32, (uint64_t)i);
    }
    check_everywhere(scene, *state, GBX_MAX_AICPU_THREADS);
    scene_destroy(scene);
}

static void test_nothing_done(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    scene_add_plain(scene, gbx_aiv(IDLE));
    scene_add_plain(scene, gbx_spmd(gbx_mix(GBX_NO_KERNEL, IDLE, IDLE), 5));
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_NOTHING);
    scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_INT16, 3, 3));
    scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_INT16, 3, 3));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_INT16, 3, 3));
    check_everywhere(scene, *state, 0);
    scene_destroy(scene);
}

/* --- stored once --- */

static void add_copies(dump_scene *scene) {
    gbx_tensor from = scene_matrix(scene, GBX_INT32, 8, 8),
               to = scene_matrix(scene, GBX_INT32, 8, 8);
    gbx_tensor turned = gbx_view_transpose(&to, 0, 1);
    plan_task *copy = scene_add(scene, gbx_aiv(STEP), STEP_COPY);
    scene_arg(scene, copy, GBX_ROLE_INPUT, from);
    scene_arg(scene, copy, GBX_ROLE_OUTPUT, turned);
    plan_task *keep = scene_add(scene, gbx_aiv(STEP), STEP_NOTHING);
    scene_arg(scene, keep, GBX_ROLE_INOUT, from);
    scene_arg(scene, keep, GBX_ROLE_INPUT, turned);
    plan_task *change = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, change, GBX_ROLE_INOUT, from);
}

static uint64_t offset_of(const dump_files *files, uint64_t task, uint32_t arg, bool is_after) {
    const json_t *entry = dump_find(files, task, arg, is_after);
    assert_non_null(entry);
    return dump_number(entry, "bin_offset");
}

/* Six records of the same 256 bytes share one copy; every other payload has its own. */
static void check_stored_once(const dump_files *files) {
    uint64_t first = offset_of(files, 0, 1, false);
    assert_int_equal(offset_of(files, 0, 2, true), first);
    assert_int_equal(offset_of(files, 1, 1, false), first);
    assert_int_equal(offset_of(files, 1, 2, false), first);
    assert_int_equal(offset_of(files, 1, 1, true), first);
    assert_int_equal(offset_of(files, 2, 1, false), first);
    assert_int_not_equal(offset_of(files, 2, 1, true), first);
    assert_int_equal(dump_number(files->tensors, "deduplicated_tensors"), 5);
    assert_int_equal(dump_number(files->tensors, "payload_bytes") -
                         dump_number(files->tensors, "stored_bytes"),
                     5 * 256);
}

static void test_duplicates(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    dump_files files;
    add_copies(scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        config.dump.keeps_duplicates = false;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        check_stored_once(&files);
        scene_drop(&files);
        config.dump.keeps_duplicates = true;
        scene_check(scene, chip, runtime, &config, &rules, &files);
        assert_int_equal(dump_number(files.tensors, "deduplicated_tensors"), 0);
        assert_int_equal(dump_number(files.tensors, "payload_bytes"),
                         dump_number(files.tensors, "stored_bytes"));
        scene_drop(&files);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* --- host_build_graph: undescribed and misdescribed tasks --- */

static void add_described(dump_scene *scene, plan_description description) {
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INOUT, scene_matrix(scene, GBX_FLOAT32, 4, 4));
    scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_matrix(scene, GBX_FLOAT32, 2, 4));
    scene_scalar(task, GBX_DTYPE_NONE, 5);
    task->description = description;
}

static bool is_misdescribed(const sequential_task *task, uint32_t arg) {
    return (task->number == 3 || task->number == 5) && arg == 1;
}

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        ++count;
    return count;
}

static void check_skipped(const dump_files *files, size_t index, uint64_t task) {
    const json_t *one = json_array_get(dump_array(files->tensors, "skipped"), index);
    assert_int_equal(dump_hex(one, "task_id"), task);
    const json_t *kernel = dump_field(one, "kernel");
    const char *name = json_is_array(kernel) ? json_string_value(json_array_get(kernel, 0))
                                             : json_string_value(kernel);
    assert_string_equal(name, "step");
    assert_true(strlen(dump_text(one, "reason")) > 0);
}

/* Tasks 1 and 4 are undescribed, 3 and 5 are misdescribed. Each is listed with the reason, their
 * other arguments and all other tasks are recorded, and the run prints one warning. */
static void test_tasks_without_description(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    dump_rules rules = scene_full_rules(scene);
    static const plan_description descriptions[] = {PLAN_DESCRIBED,       PLAN_UNDESCRIBED,
                                                    PLAN_DESCRIBED_LATER, PLAN_WRONG_SHAPE,
                                                    PLAN_UNDESCRIBED,     PLAN_WRONG_ADDRESS};
    static const uint64_t skipped[] = {1, 3, 4, 5};
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    dump_files files;
    for (int i = 0; i < 6; ++i)
        add_described(scene, descriptions[i]);
    rules.is_mismatched = is_misdescribed;
    assert_ok(scene_run(scene, chip, PLAN_HOST_BUILD_GRAPH, scene_full_config(), directory, &result,
                        &log));
    assert_int_equal(count_of(log, "\n"), 1);
    assert_int_equal(count_of(log, "warning"), 1);
    free(log);
    assert_int_equal(result.dump.skipped, 4);
    dump_files_open(directory, &files);
    scene_compare(scene, PLAN_HOST_BUILD_GRAPH, &files, &rules);
    assert_int_equal(json_array_size(dump_array(files.tensors, "skipped")), 4);
    for (size_t i = 0; i < 4; ++i)
        check_skipped(&files, i, skipped[i]);
    assert_string_not_equal(
        dump_text(json_array_get(dump_array(files.tensors, "skipped"), 0), "reason"),
        dump_text(json_array_get(dump_array(files.tensors, "skipped"), 1), "reason"));
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

/* Both tasks leave out the description of argument 1. The signature of the first task's kernel
 * calls it a tensor: it is listed, and its other arguments are recorded with the dtypes of the
 * signature. The second kernel has no signature: its word is an undeclared scalar. */
static void test_tensor_without_description(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    static const uint32_t kernels[] = {WIDE, STEP};
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    char *log;
    dump_files files;
    for (int i = 0; i < 2; ++i) {
        plan_task *task = scene_add(scene, gbx_aiv(kernels[i]), STEP_NOTHING);
        scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_FLOAT32, 4, 4));
        scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_INT8, 2, 4));
        scene_arg(scene, task, GBX_ROLE_INPUT, scene_matrix(scene, GBX_INT16, 2, 4));
        scene_scalar(task, GBX_DTYPE_NONE, 0xbdcccccd);
        scene_scalar(task, GBX_DTYPE_NONE, 0x3c00);
        task->description = PLAN_LACKS_ONE;
    }
    gbx_call_config config = scene_full_config();
    config.enable_dump_args = true;
    config.has_loose_signatures = true; /* all are inputs */
    assert_ok(scene_run(scene, chip, PLAN_HOST_BUILD_GRAPH, config, directory, &result, &log));
    assert_int_equal(count_of(log, "warning"), 1);
    assert_int_equal(count_of(log, "\n"), 1);
    free(log);
    assert_int_equal(result.dump.skipped, 1);
    dump_files_open(directory, &files);
    const json_t *lists[] = {dump_array(files.tensors, "skipped"),
                             dump_array(files.args, "skipped"),
                             dump_array(files.kernel_args, "skipped")};
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(json_array_size(lists[i]), 1);
        const json_t *one = json_array_get(lists[i], 0);
        assert_int_equal(dump_number(one, "task_seq"), 0);
        assert_int_equal(dump_number(one, "arg_index"), 1);
        assert_string_equal(dump_text(one, "kernel"), "wide");
        assert_string_equal(dump_text(one, "reason_code"), "undescribed_tensor");
    }
    assert_null(dump_find(&files, 0, 1, false));
    assert_string_equal(dump_text(dump_find(&files, 0, 2, false), "dtype"), "int8");
    assert_string_equal(dump_text(dump_find(&files, 0, 3, false), "dtype"), "int16");
    assert_true(json_number_value(value_of(&files, 0, 4)) == -0.1);
    assert_true(json_number_value(value_of(&files, 0, 5)) == 1.0);
    const json_t *dispatches = dump_array(files.kernel_args, "dispatches");
    const json_t *slots = dump_array(json_array_get(dispatches, 0), "args");
    const json_t *word = json_array_get(slots, 1), *other = dump_find(&files, 1, 1, false);
    assert_string_equal(dump_text(word, "kind"), "word");
    assert_true(json_is_null(dump_field(word, "role")));
    assert_string_equal(dump_text(word, "dtype"), "unknown");
    assert_null(json_object_get(word, "value"));
    assert_string_equal(dump_text(json_array_get(slots, 2), "kind"), "tensor");
    assert_string_equal(dump_text(json_array_get(slots, 4), "dtype"), "float32");
    /* A word of the second task: the address that the orchestration passed. */
    slots = dump_array(json_array_get(dispatches, 1), "args");
    assert_string_equal(dump_text(other, "kind"), "scalar");
    assert_string_equal(dump_text(other, "dtype"), "unknown");
    assert_int_equal(dump_hex(other, "bits"), dump_hex(json_array_get(slots, 1), "bits"));
    assert_int_not_equal(dump_hex(word, "bits"), dump_hex(other, "bits"));
    assert_int_equal(dump_hex(word, "bits") % 64, 0);
    dump_assert_python_reads(&files);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

/* --- many runs on one chip --- */

static void make_round(dump_scene *scene, int round) {
    scene_clear(scene);
    for (int i = 0; i < round % 5; ++i) {
        plan_task *task =
            scene_add(scene, round % 2 ? gbx_aiv(STEP) : gbx_aic(STEP_AIC), STEP_WRITE);
        scene_arg(scene, task, (gbx_role)((i + round) % 3),
                  scene_matrix(scene, GBX_FLOAT32, 1 + i, 9));
        scene_scalar(task, GBX_INT32, (uint64_t)round);
    }
}

/* Graphs of 1, 2, 3, 4 and 0 tasks in turn, with failed runs in between. */
static void test_runs_in_turn(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    for (int round = 1; round <= 12; ++round) {
        int runtime = round % SCENE_RUNTIMES;
        dump_files files;
        make_round(scene, round);
        scene_check(scene, chip, runtime, &config, &rules, &files);
        if (round % 5 == 0)
            assert_int_equal(dump_entry_count(&files), 0);
        scene_drop(&files);
        if (round % 3)
            continue;
        char directory[DUMP_PATH_BYTES];
        gbx_call_result result;
        char *log;
        make_round(scene, 4);
        scene->graph->result = 3; /* the orchestration fails after it has added its tasks */
        assert_fails(scene_run(scene, chip, round % 2 ? PLAN_HOST_BUILD_GRAPH : PLAN_TENSORMAP,
                               config, directory, &result, &log),
                     GBX_BAD_GRAPH, "3");
        free(log);
        dump_directory_remove(directory);
    }
    scene_close(chip);
    scene_destroy(scene);
}

/* A directory that holds a dump is not overwritten. */
static void test_directory_that_holds_a_dump(void **state) {
    dump_scene *scene = scene_create(LITTLE);
    gbx_chip *chip = scene_chip(scene, *state, 0);
    gbx_call_config config = scene_full_config();
    dump_rules rules = scene_full_rules(scene);
    dump_files files, again;
    make_round(scene, 3);
    scene_check(scene, chip, PLAN_TENSORMAP, &config, &rules, &files);
    gbx_run run = {.runtime = scene_runtimes[PLAN_TENSORMAP],
                   .shared_object = compiled_object("dump_orchestration.c")};
    config.dump.directory = files.directory;
    gbx_status status = gbx_chip_run(chip, &run, &config, NULL);
    assert_non_null(status);
    assert_non_null(strstr(gbx_status_message(status), files.directory));
    gbx_status_free(status);
    dump_files_open(files.directory, &again);
    dump_assert_equal(&files, &again);
    dump_files_close(&again);
    scene_drop(&files);
    scene_close(chip);
    scene_destroy(scene);
}

int main(void) {
    const struct CMUnitTest everywhere[] = {
        scene_test(test_views),
        scene_test(test_typed_scalars),
        scene_test(test_one_is_one),
        scene_test(test_read_modify_write),
        scene_test(test_mixes_and_blocks),
        scene_test(test_free_tasks),
        scene_test(test_runs_in_turn),
    };
    const struct CMUnitTest in_processes[] = {
        scene_test(test_dtypes),
        scene_test(test_declared_scalars),
        scene_test(test_most_arguments),
        scene_test(test_nothing_done),
        scene_test(test_duplicates),
        scene_test(test_tasks_without_description),
        scene_test(test_tensor_without_description),
        scene_test(test_directory_that_holds_a_dump),
    };
    return RUN_OVER_ALL_VARIANTS(everywhere) + RUN_OVER_PROCESS_VARIANTS(in_processes);
}
