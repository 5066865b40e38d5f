/*
 * Compares the dump of every example, on every runtime and both platforms, with the sequential
 * model: the same orchestration and kernels in plain host memory, one task after the other. There
 * must be exactly the records that the model expects, equal in every field and byte. Also compares
 * the dumps that the two platforms make of one graph.
 */
#include "chip_support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump_expect.h"
#include "scene/internal.h"
#include "toolchain/kernel_compiler.h"

enum { BLOCKS = 8, RUNTIMES = 3, TEXT_BYTES = 1024, LIBRARIES = 32, FEW_ENTRIES = 10000 };

static const char *const platforms[] = {"a2a3sim", "a5sim"};

/* A scene, compiled, for the chip and for the model. */
typedef struct stage {
    gbx_scene *scene;
    dump_kernels kernels;
    char signatures[LIBRARIES][TEXT_BYTES];
    char names[LIBRARIES][TEXT_BYTES];
    char *objects[LIBRARIES];
    void *libraries[LIBRARIES];
    size_t library_count;
    gbx_case_data data;
    gbx_chip *chips[2]; /* one a platform */
} stage;

/* How to run it. */
typedef struct way {
    gbx_device_mode device;
    uint32_t threads;
    uint64_t arena_bytes;
    uint32_t buffer_count;
} way;

/* --- a scene --- */

static void *load(stage *s, const char *source, const char *compile_flags, const char *link_flags) {
    size_t at = s->library_count++;
    assert_in_range(at, 0, LIBRARIES - 1);
    assert_ok(gbx_kernel_compile(source, compile_flags, link_flags, &s->objects[at]));
    s->libraries[at] = dlopen(s->objects[at], RTLD_NOW | RTLD_LOCAL);
    if (!s->libraries[at])
        fail_msg("%s", dlerror());
    return s->libraries[at];
}

static void *symbol_of(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        fail_msg("%s", dlerror());
    return symbol;
}

static void append(char *list, const char *text, const char *dtype) {
    size_t used = strlen(list);
    snprintf(list + used, TEXT_BYTES - used, "%s%s%s%s", used ? "," : "", text, dtype ? ":" : "",
             dtype ? dtype : "");
}

/* What scene.json says about a kernel, as a gbx_kernel. */
static void declare(stage *s, size_t index) {
    static const char *const roles[] = {"in", "out", "inout", "scalar"};
    const gbx_scene_kernel *kernel = &s->scene->kernels[index];
    bool has_names = false;
    for (size_t i = 0; i < kernel->parameter_count; ++i) {
        const gbx_scene_parameter *one = &kernel->signature[i];
        append(s->signatures[index], roles[one->is.kind],
               one->is.dtype ? dump_dtype_name(one->is.dtype) : NULL);
        append(s->names[index], one->name ? one->name : "", NULL);
        has_names |= one->name != NULL;
    }
    s->kernels.facts[kernel->func_id] =
        (gbx_kernel){.func_id = kernel->func_id,
                     .name = kernel->name,
                     .core = kernel->core,
                     .shared_object = s->objects[index],
                     .signature = s->signatures[index],
                     .arg_names = has_names ? s->names[index] : NULL};
}

/* Closes the chips that a failed test left open, so that later tests do not fail with it. */
static stage *last_stage;

static stage *stage_open(const char *example, const char *case_name) {
    stage *s = calloc(1, sizeof *s);
    const char *kernels = getenv("GLASSBOX_TEST_KERNELS");
    char path[4096];
    assert_non_null(s);
    last_stage = s;
    snprintf(path, sizeof path, "%s/../../examples/%s", kernels ? kernels : "tests/kernels",
             example);
    assert_ok(gbx_scene_load(path, &s->scene));
    assert_in_range(s->scene->kernel_count, 1, LIBRARIES / 2);
    for (size_t i = 0; i < s->scene->kernel_count; ++i) {
        const gbx_scene_kernel *kernel = &s->scene->kernels[i];
        void *library = load(s, kernel->source, kernel->compile_flags, kernel->link_flags);
        s->kernels.functions[kernel->func_id] =
            (gbx_kernel_function)symbol_of(library, "kernel_entry");
        declare(s, i);
    }
    const gbx_scene_case *one = gbx_scene_find_case(s->scene, case_name);
    assert_non_null(one);
    assert_ok(gbx_case_data_create(s->scene, one, &s->data));
    return s;
}

static void stage_close(stage *s) {
    last_stage = NULL;
    for (int i = 0; i < 2; ++i)
        gbx_chip_close(s->chips[i]);
    gbx_case_data_free(&s->data);
    for (size_t i = 0; i < s->library_count; ++i) {
        dlclose(s->libraries[i]);
        free(s->objects[i]);
    }
    gbx_scene_free(s->scene);
    free(s);
}

static int close_last_stage(void **state) {
    (void)state;
    if (last_stage)
        stage_close(last_stage);
    return 0;
}

static void open_stage_chip(stage *s, int platform, const way *how) {
    gbx_chip_config config = {.platform = platforms[platform],
                              .device = how->device,
                              .blocks = BLOCKS,
                              .aicpu_threads = how->threads};
    if (s->chips[platform])
        return;
    assert_ok(gbx_chip_open(&config, &s->chips[platform]));
    for (size_t i = 0; i < s->scene->kernel_count; ++i)
        assert_ok(gbx_kernel_register(s->chips[platform],
                                      &s->kernels.facts[s->scene->kernels[i].func_id]));
}

/* --- one run on a chip --- */

static const gbx_scene_program *program_of(const stage *s, const char *runtime) {
    for (uint32_t i = 0; gbx_runtime_name(i); ++i)
        if (strcmp(gbx_runtime_name(i), runtime) == 0 && s->scene->orchestrations[i].source)
            return &s->scene->orchestrations[i];
    fail_msg("%s has no orchestration for %s", s->scene->name, runtime);
    return NULL;
}

static void check_totals(const dump_files *files, const gbx_call_result *result) {
    const json_t *head = files->tensors;
    size_t tensors = 0;
    for (size_t i = 0; i < dump_entry_count(files); ++i)
        tensors += strcmp(dump_text(dump_entry(files, i), "kind"), "tensor") == 0;
    assert_int_equal(result->dump.records, dump_number(head, "total_tensors"));
    assert_int_equal(result->dump.tensors, tensors);
    assert_int_equal(result->dump.payload_bytes, dump_number(head, "payload_bytes"));
    assert_int_equal(result->dump.stored_bytes, dump_number(head, "stored_bytes"));
    assert_int_equal(result->dump.deduplicated, dump_number(head, "deduplicated_tensors"));
    assert_int_equal(result->dump.truncated, 0);
    assert_int_equal(result->dump.in_flight, 0);
    assert_int_equal(result->dump.dropped, 0);
    assert_int_equal(result->dump.skipped, 0);
    assert_int_equal(result->dump.dispatches, 0);
}

static void check_kernel_list(const stage *s, const json_t *head) {
    const json_t *list = dump_array(head, "kernels");
    assert_int_equal(json_array_size(list), s->scene->kernel_count);
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const json_t *one = json_array_get(list, i);
        uint64_t id = dump_number(one, "func_id");
        assert_in_range(id, 0, GBX_MAX_KERNELS - 1);
        const gbx_kernel *facts = &s->kernels.facts[id];
        assert_non_null(facts->name);
        assert_string_equal(dump_text(one, "name"), facts->name);
        assert_string_equal(dump_text(one, "core_type"),
                            facts->core == GBX_CORE_AIC ? "aic" : "aiv");
        char signature[TEXT_BYTES] = "";
        for (size_t k = 0; k < json_array_size(dump_array(one, "signature")); ++k)
            append(signature, json_string_value(json_array_get(dump_array(one, "signature"), k)),
                   NULL);
        assert_string_equal(signature, facts->signature);
    }
}

static void check_run(const stage *s, const dump_files *files, const char *platform,
                      const char *runtime) {
    const json_t *head = files->tensors, *run = dump_field(head, "run");
    assert_string_equal(dump_text(run, "platform"), platform);
    assert_string_equal(dump_text(run, "runtime"), runtime);
    assert_string_equal(dump_text(run, "scene"), s->scene->name);
    assert_string_equal(dump_text(run, "case"), s->data.source->name);
    assert_string_equal(dump_text(head, "dump_level"), "full");
    assert_string_equal(dump_text(head, "status"), "ok");
    assert_true(dump_bool(head, "complete"));
    assert_int_equal(json_array_size(dump_array(head, "skipped")), 0);
    check_kernel_list(s, head);
}

static void run_on_chip(stage *s, int platform, const char *runtime, const way *how,
                        dump_files *out_files) {
    const gbx_scene_program *program = program_of(s, runtime);
    char *object;
    char directory[DUMP_PATH_BYTES];
    gbx_call_result result = {0};
    dump_directory_make(directory);
    open_stage_chip(s, platform, how);
    assert_ok(gbx_kernel_compile(program->source, NULL, NULL, &object));
    assert_ok(gbx_case_data_restore(&s->data));
    gbx_run run = {.runtime = runtime,
                   .shared_object = object,
                   .entry = program->entry,
                   .tensors = s->data.tensors,
                   .tensor_count = s->data.tensor_count,
                   .scalars = s->data.scalars,
                   .scalar_count = s->data.scalar_count};
    gbx_call_config config = {
        .timeout_ms = 60000,
        .enable_dump_tensor = GBX_DUMP_FULL,
        .dump = {.directory = directory,
                 .arena_bytes = how->arena_bytes,
                 .buffer_count = how->buffer_count,
                 .about = {.scene = s->scene->name, .case_name = s->data.source->name}}};
    dump_log log = dump_log_begin();
    gbx_status status = gbx_chip_run(s->chips[platform], &run, &config, &result);
    char *text = dump_log_end(&log);
    assert_ok(status);
    assert_string_equal(text, "");
    free(text);
    free(object);
    dump_files_open(directory, out_files);
    assert_null(out_files->args);
    assert_null(out_files->kernel_args);
    check_totals(out_files, &result);
    check_run(s, out_files, platforms[platform], runtime);
}

/* --- the same on the model --- */

/* The outputs of the chip, to compare with those of the model. */
static uint8_t *copy_outputs(const stage *s, size_t *out_bytes) {
    uint8_t *copy = NULL;
    size_t used = 0;
    for (uint32_t i = 0; i < s->data.tensor_count; ++i) {
        const gbx_tensor *tensor = &s->data.tensors[i].tensor;
        if (!gbx_case_data_is_output(&s->data, i))
            continue;
        copy = realloc(copy, used + tensor->buffer_bytes + 1);
        assert_non_null(copy);
        memcpy(copy + used, (const void *)(uintptr_t)tensor->data, tensor->buffer_bytes);
        used += tensor->buffer_bytes;
    }
    *out_bytes = used;
    return copy;
}

/* The final tensors of the run have the bytes that the model leaves in the host's memory. */
static void check_results(const stage *s, const dump_files *files) {
    static const char *const roles[] = {"input", "output", "inout"};
    const json_t *results = dump_array(files->tensors, "results");
    size_t count = 0;
    for (uint32_t i = 0; i < s->data.tensor_count; ++i) {
        const gbx_run_tensor *from = &s->data.tensors[i];
        const gbx_tensor *tensor = &from->tensor;
        if (from->role == GBX_ROLE_INPUT)
            continue;
        const json_t *one = json_array_get(results, count++);
        const void *bytes = (const void *)(uintptr_t)tensor->data;
        char hash[DUMP_HASH_BYTES];
        assert_non_null(one);
        assert_int_equal(dump_number(one, "arg_index"), i);
        assert_string_equal(dump_text(one, "name"), from->name);
        assert_string_equal(dump_text(one, "role"), roles[from->role]);
        assert_string_equal(dump_text(one, "dtype"), dump_dtype_name(tensor->dtype));
        assert_true(dump_array_is(one, "shape", tensor->shape, tensor->ndims));
        assert_int_equal(dump_number(one, "bin_size"), tensor->buffer_bytes);
        assert_memory_equal(dump_payload(files, one), bytes, tensor->buffer_bytes);
        dump_hash(bytes, tensor->buffer_bytes, hash);
        assert_string_equal(dump_text(one, "hash"), hash);
        assert_false(dump_bool(one, "in_flight"));
        assert_false(dump_bool(one, "truncated"));
    }
    assert_true(count > 0);
    assert_int_equal(json_array_size(results), count);
}

/* Every record of the dump is compared while the model runs. */
static void compare_with_model(stage *s, const char *runtime, const dump_files *files) {
    const gbx_scene_program *program = program_of(s, runtime);
    dump_rules rules = {.kernels = &s->kernels, .level = GBX_DUMP_FULL};
    gbx_tensor tensors[GBX_MAX_RUN_TENSORS];
    size_t bytes, model_bytes;
    uint8_t *outputs = copy_outputs(s, &bytes);
    gbx_orchestrate_function function =
        (gbx_orchestrate_function)symbol_of(load(s, program->source, NULL, NULL), program->entry);
    assert_ok(gbx_case_data_restore(&s->data));
    for (uint32_t i = 0; i < s->data.tensor_count; ++i)
        tensors[i] = s->data.tensors[i].tensor;
    gbx_run_args run = {tensors, s->data.scalars, s->data.tensor_count, s->data.scalar_count};
    sequential_model *model =
        sequential_create(runtime, s->kernels.functions, GBX_MAX_KERNELS, BLOCKS);
    dump_expectation *expected = dump_expect_begin(files, &rules);
    sequential_observer observer = dump_expect_observer(expected);
    sequential_observe(model, &observer);
    if (sequential_run(model, function, &run))
        fail_msg("%s", sequential_error(model));
    assert_true(dump_expect_count(expected) > 0);
    dump_expect_end(expected);
    sequential_destroy(model);
    uint8_t *model_outputs = copy_outputs(s, &model_bytes);
    assert_int_equal(bytes, model_bytes);
    assert_memory_equal(outputs, model_outputs, bytes);
    check_results(s, files);
    free(outputs);
    free(model_outputs);
}

static void drop_dump(dump_files *files) {
    char directory[DUMP_PATH_BYTES];
    snprintf(directory, sizeof directory, "%s", files->directory);
    dump_files_close(files);
    dump_directory_remove(directory);
}

static void check_runtime(stage *s, const char *runtime, const way *how) {
    dump_files files[2];
    for (int p = 0; p < 2; ++p) {
        run_on_chip(s, p, runtime, how, &files[p]);
        compare_with_model(s, runtime, &files[p]);
    }
    dump_assert_equal(&files[0], &files[1]);
    if (dump_entry_count(&files[0]) < FEW_ENTRIES)
        dump_assert_python_reads(&files[0]);
    drop_dump(&files[0]);
    drop_dump(&files[1]);
}

static void check_platform(stage *s, int p, const char *runtime, const way *how) {
    dump_files files;
    run_on_chip(s, p, runtime, how, &files);
    compare_with_model(s, runtime, &files);
    drop_dump(&files);
}

static void check_example(const char *example, const char *case_name, const way *how) {
    stage *s = stage_open(example, case_name);
    for (uint32_t i = 0; i < RUNTIMES; ++i)
        check_runtime(s, gbx_runtime_name(i), how);
    stage_close(s);
}

/* --- examples --- */

static const way plain = {.device = GBX_DEVICE_PROCESS};
static const way in_threads = {.device = GBX_DEVICE_THREAD, .threads = 3};
static const way tight = {.threads = 4, .arena_bytes = 64 << 10, .buffer_count = 2};

static void test_dump_tensor_example(void **state) {
    (void)state;
    check_example("dump_tensor_example", "default", &plain);
    check_example("dump_tensor_example", "ramp", &in_threads);
}

static void test_vector_example(void **state) {
    (void)state;
    check_example("vector_example", "default", &plain);
    check_example("vector_example", "constant", &tight);
}

static void test_bgemm(void **state) {
    (void)state;
    check_example("bgemm", "small", &plain);
    check_example("bgemm", "ragged", &tight);
}

static void test_mix_spmd(void **state) {
    (void)state;
    check_example("mix_spmd", "default", &plain);
    check_example("mix_spmd", "uneven", &in_threads);
}

static void test_paged_attention(void **state) {
    (void)state;
    check_example("paged_attention", "small", &plain);
    check_example("paged_attention", "small", &tight);
}

static void test_broken_softmax(void **state) {
    (void)state;
    check_example("broken_softmax", "small", &plain);
}

/* About 76 thousand records and 200 MB through little memory; nothing is lost and nothing waits
 * forever. With thread sanitizer only on one platform; the other one uses the least memory. */
static void test_paged_attention_through_little_memory(void **state) {
    static const way little = {.arena_bytes = 1 << 20, .buffer_count = 2};
    (void)state;
    stage *s = stage_open("paged_attention", "medium");
    if (is_thread_sanitized())
        check_platform(s, 0, "tensormap_and_ringbuffer", &little);
    else
        check_runtime(s, "tensormap_and_ringbuffer", &little);
    stage_close(s);
}

/* The least memory allowed, with one runtime per platform; a2a3sim only with `make stress`, because
 * the small case uses as little on both. */
static void test_paged_attention_through_least_memory(void **state) {
    static const way least = {.arena_bytes = 64 << 10, .buffer_count = 2};
    static const char *const runtimes[] = {"host_build_graph", "aicpu_build_graph"};
    (void)state;
    stage *s = stage_open("paged_attention", "medium");
    for (int p = getenv("GLASSBOX_STRESS") ? 0 : 1; p < 2; ++p)
        check_platform(s, p, runtimes[p], &least);
    stage_close(s);
}

#define stage_test(function) cmocka_unit_test_teardown(function, close_last_stage)

int main(void) {
    const struct CMUnitTest tests[] = {
        stage_test(test_dump_tensor_example),
        stage_test(test_vector_example),
        stage_test(test_bgemm),
        stage_test(test_mix_spmd),
        stage_test(test_paged_attention),
        stage_test(test_broken_softmax),
        stage_test(test_paged_attention_through_little_memory),
        stage_test(test_paged_attention_through_least_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
