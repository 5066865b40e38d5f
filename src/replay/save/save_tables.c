/* task.h of a saved program: the call as tables that people can read. */
#include <inttypes.h>
#include <string.h>

#include "replay/save/internal.h"
#include "text/names.h"

static const char *const subtasks[GBX_SUBTASK_COUNT] = {"GBX_SUBTASK_AIC", "GBX_SUBTASK_AIV0",
                                                        "GBX_SUBTASK_AIV1"};

static void put_numbers(FILE *to, const char *name, const int64_t *numbers, uint32_t count) {
    fprintf(to, ".%s = {", name);
    for (uint32_t d = 0; d < count; ++d)
        fprintf(to, numbers[d] == INT64_MIN ? "%sINT64_MIN" : "%s%" PRId64, d ? ", " : "",
                numbers[d]);
    fprintf(to, "}");
}

static void put_name(FILE *to, const gbx_replay_argument *argument) {
    char name[GBX_SAVE_NAME_BYTES];
    fprintf(to, "%s", argument->name ? gbx_save_name(argument->name, name) : "argument");
}

/* --- arguments --- */

static void put_tensor(FILE *to, const gbx_replay_argument *argument, const gbx_tensor *tensor) {
    char dtype[GBX_SAVE_NAME_BYTES];
    gbx_save_name(gbx_dtype_name(tensor->dtype), dtype);
    for (char *c = dtype; *c; ++c)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    fprintf(to, "        /* %s ", gbx_name_of(&gbx_roles, argument->role));
    put_name(to, argument);
    fprintf(to,
            " */\n        [%" PRIu32 "] = {.kind = GBX_CALL_TENSOR, .role = %" PRIu32
            ",\n               .tensor = {.data = UINT64_C(0x%" PRIx64
            "), .buffer_bytes = UINT64_C(%" PRIu64 "), .dtype = GBX_%s, .ndims = %" PRIu32,
            argument->slot, argument->role, tensor->data, tensor->buffer_bytes, dtype,
            tensor->ndims);
    fprintf(to, ",\n                          .start_offset = %" PRId64, tensor->start_offset);
    if (tensor->ndims > 0) {
        fprintf(to, ",\n                          ");
        put_numbers(to, "shape", tensor->shape, tensor->ndims);
        fprintf(to, ", ");
        put_numbers(to, "strides", tensor->strides, tensor->ndims);
    }
    fprintf(to, "}},\n");
}

static void put_path(FILE *to, const gbx_replay_argument *argument, const char *stage,
                     bool is_there) {
    char path[GBX_SAVE_PATH_BYTES];
    gbx_save_data_path(argument, stage, path);
    if (is_there)
        fprintf(to, "\"%s\"", path);
    else
        fprintf(to, "NULL");
}

static void put_files(const gbx_save_folder *folder, FILE *to) {
    const gbx_replay_task *task = folder->saving->task;
    fprintf(to, "/* Tensors: slot in args[], name, payload before and after the call; NULL where "
                "there is none. */\nstatic const tensor_file tensor_files[] = {\n");
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor)
            continue;
        fprintf(to, "    {%" PRIu32 ", \"", argument->slot);
        put_name(to, argument);
        fprintf(to, "\", ");
        put_path(to, argument, "before",
                 argument->role != GBX_ROLE_OUTPUT && argument->before != GBX_REPLAY_NO_ENTRY);
        fprintf(to, ", ");
        put_path(to, argument, "after",
                 argument->role != GBX_ROLE_INPUT && task->did_complete &&
                     argument->after != GBX_REPLAY_NO_ENTRY);
        fprintf(to, "},\n");
    }
    fprintf(to, "    {0, NULL, NULL, NULL}};\n\n");
}

/* --- the call --- */

static void put_dispatches(const gbx_save_folder *folder, FILE *to) {
    const gbx_call_file *call = &folder->call;
    fprintf(to, "/* Calls of kernel_entry: which kernel, block_idx, core_id. */\n"
                "static const gbx_call_dispatch dispatches[] = {\n");
    for (uint32_t i = 0; i < call->dispatch_count; ++i)
        fprintf(to, "    {%s, %" PRIu32 ", %" PRIu32 ", 0},\n",
                subtasks[folder->dispatches[i].subtask], folder->dispatches[i].block_idx,
                folder->dispatches[i].core_id);
    fprintf(to, "};\n\n");
}

static void put_title(const gbx_save_folder *folder, FILE *to) {
    fprintf(to, "/* Task %" PRIu64 ", id 0x%" PRIx64 ", kernel", folder->saving->task->task,
            folder->saving->task->task_id);
    for (size_t i = 0; i < folder->kernels->count; ++i)
        fprintf(to, " %s", folder->kernels->items[i].name);
    fprintf(to, ". Written by glassbox replay --save. */\n\n");
    fprintf(to, "static const char title[] = \"task %" PRIu64 "\";\n\n",
            folder->saving->task->task);
    fprintf(to,
            "/* Whether one dispatch of several is called: what it leaves of an inout as it was, "
            "others may write. */\nenum { IS_ONE_OF_SEVERAL = %d };\n\n",
            folder->saving->dispatch >= 0);
}

static void put_tables(const gbx_save_folder *folder, FILE *to) {
    const gbx_call_file *call = &folder->call;
    put_title(folder, to);
    put_files(folder, to);
    put_dispatches(folder, to);
    fprintf(to,
            "static gbx_kernel_call call = {\n"
            "    .gm_base = UINT64_C(0x%" PRIx64 "), .gm_bytes = UINT64_C(%" PRIu64 "),\n"
            "    .chip_blocks = %" PRIu32 ", .block_num = %" PRIu32 ",\n",
            call->gm_base, call->gm_bytes, call->chip_blocks, call->block_num);
    const gbx_replay_task *task = folder->saving->task;
    fprintf(to, "    .slots = {\n");
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (argument->is_tensor) {
            put_tensor(to, argument, &folder->call.slots[argument->slot].tensor);
            continue;
        }
        fprintf(to, "        /* scalar ");
        put_name(to, argument);
        fprintf(to,
                ": %s */\n        [%" PRIu32 "] = {.kind = GBX_CALL_SCALAR, .bits = "
                "UINT64_C(0x%" PRIx64 ")},\n",
                gbx_dtype_name(argument->dtype), argument->slot, argument->bits);
    }
    fprintf(to, "    },\n");
    fprintf(to, "    .kernels = {\n");
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const gbx_saved_kernel *kernel = gbx_save_kernel_of(folder, i);
        if (kernel)
            fprintf(to, "        [%s] = {.object = \"kernels/%s.so\"},\n", subtasks[i],
                    kernel->name);
    }
    fprintf(to, "    },\n");
    fprintf(to, "    .dispatches = dispatches,\n"
                "    .dispatch_count = sizeof dispatches / sizeof dispatches[0],\n};\n");
}

gbx_status gbx_save_tables(const gbx_save_folder *folder) {
    gbx_output output;
    GBX_TRY(gbx_save_open(folder, "task.h", &output));
    put_tables(folder, output.stream);
    return gbx_output_close(&output, "task.h", NULL);
}
