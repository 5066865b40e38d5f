#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "scene/internal.h"
#include "tensor/npy.h"
#include "text/json_writer.h"
#include "toolchain/kernel_compiler.h"

/* golden_driver.py; ends with code DRIVER_SENTENCE after a one-sentence error. */
extern const char gbx_embedded_golden_driver[];
enum { DRIVER_SENTENCE = 3, EXCHANGE_PATH_BYTES = PATH_MAX + 32 };

/* --- in C --- */

static bool is_python(const gbx_scene_program *program) {
    const char *suffix = strrchr(program->source, '.');
    return suffix && strcmp(suffix, ".py") == 0;
}

static gbx_status load(const char *path, gbx_golden *golden) {
    const gbx_scene_program *program = golden->program;
    golden->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!golden->library)
        return gbx_fail(GBX_BAD_KERNEL, "loading the golden %s: %s", program->source, dlerror());
    void *symbol = dlsym(golden->library, program->entry);
    if (!symbol)
        return gbx_fail(GBX_BAD_KERNEL,
                        "%s has no function %s; expected int %s(const gbx_run_args *run)",
                        program->source, program->entry, program->entry);
    memcpy(&golden->function, &symbol, sizeof symbol);
    return NULL;
}

gbx_status gbx_golden_open(const gbx_scene_program *program, gbx_golden *out_golden) {
    *out_golden = (gbx_golden){.program = program};
    if (is_python(program))
        return NULL;
    char *path;
    GBX_TRY(gbx_kernel_compile(program->source, NULL, NULL, &path));
    gbx_status status = load(path, out_golden);
    free(path);
    if (status)
        gbx_golden_close(out_golden);
    return status;
}

void gbx_golden_close(gbx_golden *golden) {
    if (golden->library)
        dlclose(golden->library);
    *golden = (gbx_golden){0};
}

static gbx_status run_c(const gbx_golden *golden, const gbx_case_data *data) {
    char what[256];
    gbx_guard guard;
    gbx_run_args args = {.tensors = data->golden,
                         .scalars = data->scalars,
                         .tensor_count = data->tensor_count,
                         .scalar_count = data->scalar_count};
    snprintf(what, sizeof what, "%s: %s()", golden->program->source, golden->program->entry);
    GBX_TRY(gbx_guard_begin(&guard, what));
    int result = golden->function(&args);
    gbx_guard_end(&guard);
    if (result == 0)
        return NULL;
    return gbx_fail(GBX_INVALID_ARGUMENT, "%s returned %d; a golden must return 0", what, result);
}

/* --- in Python --- */

static gbx_status make_directory(char out_path[PATH_MAX]) {
    const char *parent = getenv("TMPDIR");
    snprintf(out_path, PATH_MAX, "%s/glassbox-golden-XXXXXX", parent && *parent ? parent : "/tmp");
    if (mkdtemp(out_path))
        return NULL;
    return gbx_fail(GBX_IO, "creating the directory %s for the golden: %s", out_path,
                    strerror(errno));
}

static void remove_directory(const char *path) {
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path);
}

static void describe_tensor(gbx_json_writer *json, const gbx_case_data *data, uint32_t index) {
    char file[32];
    const gbx_tensor *tensor = &data->tensors[index].tensor;
    gbx_json_key(json, "shape");
    gbx_json_begin_array_inline(json);
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        gbx_json_i64(json, tensor->shape[d]);
    gbx_json_end_array(json);
    snprintf(file, sizeof file, "%" PRIu32 ".npy", index);
    gbx_json_put_string(json, "file", file);
    snprintf(file, sizeof file, "%" PRIu32 "-result.npy", index);
    gbx_json_put_string(json, "result", file);
}

static void describe(gbx_json_writer *json, const gbx_case_data *data, size_t arg_count) {
    uint32_t tensor = 0;
    gbx_json_begin_object(json);
    gbx_json_key(json, "args");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < arg_count; ++i) {
        const gbx_scene_arg *arg = &data->source->args[i];
        gbx_json_begin_object(json);
        gbx_json_put_string(json, "name", arg->name);
        gbx_json_put_string(json, "role", gbx_name_brief(&gbx_parameters, arg->role));
        uint32_t dtype = arg->tensor.dtype, number = gbx_npy_number_dtype(dtype);
        gbx_json_put_string(json, "dtype", gbx_dtype_name(dtype));
        gbx_json_put_string(json, "numpy", gbx_dtype_name(number));
        gbx_json_put_i64(json, "width", gbx_dtype_bits(dtype));
        if (arg->role == GBX_PARAMETER_SCALAR) {
            uint64_t bits = arg->fill.value_bits;
            if (number != dtype)
                bits = gbx_dtype_from_f64(number, gbx_dtype_to_f64(dtype, bits));
            gbx_json_put_hex_text(json, "bits", bits);
        } else {
            describe_tensor(json, data, tensor++);
        }
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    gbx_json_end_object(json);
}

static gbx_status write_description(const char *directory, const gbx_case_data *data) {
    char path[EXCHANGE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/exchange.json", directory);
    FILE *file = fopen(path, "we");
    if (!file)
        return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    gbx_json_writer json;
    gbx_json_start(&json, gbx_json_to_stream, file, GBX_JSON_PRETTY);
    describe(&json, data, (size_t)data->tensor_count + data->scalar_count);
    gbx_status status = gbx_json_finish(&json);
    if (fclose(file) != 0 && !status)
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    return status;
}

/* Inouts come from the golden's memory, because those of the run hold results by now. */
static gbx_status write_inputs(const char *directory, const gbx_case_data *data) {
    char path[EXCHANGE_PATH_BYTES];
    for (uint32_t i = 0; i < data->tensor_count; ++i) {
        if (data->args[i]->role == GBX_ROLE_OUTPUT)
            continue;
        snprintf(path, sizeof path, "%s/%" PRIu32 ".npy", directory, i);
        GBX_TRY(
            gbx_npy_write_numbers(path, &data->golden[i], (void *)(uintptr_t)data->golden[i].data));
    }
    return NULL;
}

static gbx_status read_outputs(const char *directory, gbx_case_data *data) {
    char path[EXCHANGE_PATH_BYTES];
    for (uint32_t i = 0; i < data->tensor_count; ++i) {
        if (!gbx_case_data_is_output(data, i))
            continue;
        snprintf(path, sizeof path, "%s/%" PRIu32 "-result.npy", directory, i);
        GBX_TRY(gbx_npy_read_converted(path, &data->golden[i],
                                       (void *)(uintptr_t)data->golden[i].data));
    }
    return NULL;
}

static gbx_status judge(const gbx_scene_program *program, const gbx_process_result *result) {
    if (result->exit_code == 0) {
        /* What the golden prints goes to stderr; stdout belongs to the command. */
        fputs(result->out_text, stderr);
        fputs(result->err_text, stderr);
        return NULL;
    }
    if (result->signal)
        return gbx_fail(GBX_INVALID_ARGUMENT, "the golden %s was killed by signal %d\n%s",
                        program->source, result->signal, result->err_text);
    if (result->exit_code == DRIVER_SENTENCE)
        return gbx_fail(GBX_INVALID_ARGUMENT, "the golden %s: %s", program->source,
                        result->err_text);
    return gbx_fail(GBX_INVALID_ARGUMENT, "the golden %s failed in Python:\n%s", program->source,
                    result->err_text);
}

static gbx_status call_python(const gbx_scene_program *program, const char *directory) {
    const char *const arguments[] = {
        "/usr/bin/python3", "-B",           "-c", gbx_embedded_golden_driver, directory,
        program->source,    program->entry, NULL};
    gbx_process_result result;
    GBX_TRY(gbx_process_run((char *const *)(uintptr_t)arguments, &result));
    gbx_status status = judge(program, &result);
    gbx_process_result_free(&result);
    return status;
}

static gbx_status run_python(const gbx_scene_program *program, gbx_case_data *data) {
    char directory[PATH_MAX];
    GBX_TRY(make_directory(directory));
    gbx_status status = write_description(directory, data);
    if (!status)
        status = write_inputs(directory, data);
    if (!status)
        status = call_python(program, directory);
    if (!status)
        status = read_outputs(directory, data);
    remove_directory(directory);
    return status;
}

gbx_status gbx_golden_run(const gbx_golden *golden, gbx_case_data *data) {
    if (golden->function)
        return run_c(golden, data);
    return run_python(golden->program, data);
}
