#include "replay/save/save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "replay/save/internal.h"
#include "text/names.h"

extern const char gbx_embedded_kernel_header[];
extern const char gbx_embedded_call_header[];
extern const char gbx_embedded_call_source[];
extern const char gbx_embedded_saved_program[];

/* --- names, files --- */

/* The text with all but letters and digits replaced by underscores: the dump may hold anything. */
static const char *plain_name(const char *text, char out_name[GBX_SAVE_NAME_BYTES]) {
    size_t length = 0;
    for (; *text && length + 1 < GBX_SAVE_NAME_BYTES; ++text) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9');
        out_name[length++] = is_plain ? *text : '_';
    }
    out_name[length] = '\0';
    return out_name;
}

/* "data/03_weights_after.bin" */
static void data_path(const gbx_replay_argument *argument, const char *stage,
                      char out_path[GBX_SAVE_PATH_BYTES]) {
    char name[GBX_SAVE_NAME_BYTES];
    snprintf(out_path, GBX_SAVE_PATH_BYTES, "data/%02" PRIu32 "%s%s_%s.bin", argument->slot,
             argument->name ? "_" : "", argument->name ? plain_name(argument->name, name) : "",
             stage);
}

/* The saved kernel of a subtask; NULL for none. */
static const gbx_saved_kernel *kernel_of(const gbx_save_folder *folder, size_t subtask) {
    uint32_t func_id = folder->saving->task->func_ids[subtask];
    for (size_t i = 0; func_id != UINT32_MAX && i < folder->kernels->count; ++i)
        if (folder->kernels->items[i].func_id == func_id)
            return &folder->kernels->items[i];
    return NULL;
}

gbx_status gbx_save_open(const gbx_save_folder *folder, const char *path, gbx_output *out_output) {
    int fd;
    GBX_TRY(gbx_signals_check(&folder->signals));
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char part[GBX_SAVE_PATH_BYTES];
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdirat(folder->staging.directory, part, 0777) != 0 && errno != EEXIST)
            return gbx_status_never_null(gbx_output_fail(part, errno));
    }
    GBX_TRY(gbx_staging_open(&folder->staging, path, &fd));
    return gbx_output_open(out_output, fd, &folder->signals);
}

gbx_status gbx_save_text(const gbx_save_folder *folder, const char *path, const char *text,
                         size_t size) {
    gbx_output output;
    GBX_TRY(gbx_save_open(folder, path, &output));
    fwrite(text, 1, size, output.stream);
    return gbx_output_close(&output, path, NULL);
}

/* --- data --- */

/* The entries whose payloads are saved; GBX_REPLAY_NO_ENTRY for none. */
static uint64_t entry_before(const gbx_replay_argument *argument) {
    return argument->role == GBX_ROLE_OUTPUT ? GBX_REPLAY_NO_ENTRY : argument->before;
}

static uint64_t entry_after(const gbx_replay_task *task, const gbx_replay_argument *argument) {
    return task->did_complete ? argument->after : GBX_REPLAY_NO_ENTRY; /* inputs have none */
}

static gbx_status save_entry(const gbx_save_folder *folder, const gbx_replay_argument *argument,
                             const char *stage, uint64_t index) {
    char path[GBX_SAVE_PATH_BYTES];
    gbx_entry entry;
    gbx_output output;
    if (index == GBX_REPLAY_NO_ENTRY)
        return NULL;
    GBX_TRY(gbx_entries_at(folder->saving->entries, index, &entry));
    uint64_t offset = entry.tensor->bin_offset;
    uint64_t bytes = gbx_entry_stored_bytes(&entry);
    data_path(argument, stage, path);
    GBX_TRY(gbx_save_open(folder, path, &output));
    gbx_status status = gbx_payload_copy(gbx_entries_reader(folder->saving->entries), offset, bytes,
                                         NULL, NULL, output.stream);
    return gbx_output_close(&output, path, status);
}

static gbx_status save_data(const gbx_save_folder *folder) {
    const gbx_replay_task *task = folder->saving->task;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor)
            continue;
        GBX_TRY(save_entry(folder, argument, "before", entry_before(argument)));
        GBX_TRY(save_entry(folder, argument, "after", entry_after(task, argument)));
    }
    return NULL;
}

/* --- the call --- */

static gbx_status describe_call(gbx_save_folder *folder) {
    const gbx_replay_saving *saving = folder->saving;
    gbx_replay_request request = {.task = saving->task, .dispatch = saving->dispatch};
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        request.objects[i] = kernel_of(folder, i) ? "/kernel" : NULL;
    return gbx_replay_describe_call(saving->engine, &request, &folder->call, &folder->dispatches);
}

static gbx_status list_kernels(gbx_save_folder *folder) {
    const gbx_replay_saving *saving = folder->saving;
    char name[GBX_SAVE_NAME_BYTES];
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        uint32_t func_id = saving->task->func_ids[i];
        if (func_id == UINT32_MAX || kernel_of(folder, i))
            continue;
        const gbx_kept_kernel *kept =
            saving->kept ? gbx_kept_run_kernel(saving->kept, func_id) : NULL;
        plain_name(saving->task->kernel_names[i], name);
        if (!kept || (!kept->object && !kept->source))
            return gbx_fail(GBX_NOT_FOUND,
                            "saving task %" PRIu64 ": the dump has no copy of kernel %s",
                            saving->task->task, name);
        gbx_saved_kernel *kernel = &folder->kernels->items[folder->kernels->count++];
        *kernel = (gbx_saved_kernel){.func_id = func_id, .kept = kept};
        snprintf(kernel->name, sizeof kernel->name, "%.80s_%" PRIu32, name, func_id);
    }
    return NULL;
}

/* --- task.h: the call as readable tables --- */

static const char *const subtasks[GBX_SUBTASK_COUNT] = {"GBX_SUBTASK_AIC", "GBX_SUBTASK_AIV0",
                                                        "GBX_SUBTASK_AIV1"};

static void put_numbers(FILE *to, const char *name, const int64_t *numbers, uint32_t count) {
    fprintf(to, ".%s = {", name);
    for (uint32_t d = 0; d < count; ++d)
        fprintf(to, numbers[d] == INT64_MIN ? "%sINT64_MIN" : "%s%" PRId64, d ? ", " : "",
                numbers[d]);
    fprintf(to, "}");
}

static const char *argument_name(const gbx_replay_argument *argument,
                                 char out_name[GBX_SAVE_NAME_BYTES]) {
    return argument->name ? plain_name(argument->name, out_name) : "argument";
}

static void put_tensor(FILE *to, const gbx_replay_argument *argument, const gbx_tensor *tensor) {
    char dtype[GBX_SAVE_NAME_BYTES], name[GBX_SAVE_NAME_BYTES];
    plain_name(gbx_dtype_name(tensor->dtype), dtype);
    for (char *c = dtype; *c; ++c)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    fprintf(to,
            "        /* %s %s */\n        [%" PRIu32
            "] = {.kind = GBX_CALL_TENSOR, .role = %" PRIu32
            ",\n               .tensor = {.data = UINT64_C(0x%" PRIx64
            "), .buffer_bytes = UINT64_C(%" PRIu64 "), .dtype = GBX_%s, .ndims = %" PRIu32
            ",\n                          .start_offset = %" PRId64,
            gbx_name_of(&gbx_roles, argument->role), argument_name(argument, name), argument->slot,
            argument->role, tensor->data, tensor->buffer_bytes, dtype, tensor->ndims,
            tensor->start_offset);
    if (tensor->ndims > 0) {
        fprintf(to, ",\n                          ");
        put_numbers(to, "shape", tensor->shape, tensor->ndims);
        fprintf(to, ", ");
        put_numbers(to, "strides", tensor->strides, tensor->ndims);
    }
    fprintf(to, "}},\n");
}

static void put_path(FILE *to, const gbx_replay_argument *argument, const char *stage,
                     uint64_t entry) {
    char path[GBX_SAVE_PATH_BYTES];
    data_path(argument, stage, path);
    if (entry == GBX_REPLAY_NO_ENTRY)
        fprintf(to, ", NULL");
    else
        fprintf(to, ", \"%s\"", path);
}

static void put_files(const gbx_save_folder *folder, FILE *to) {
    const gbx_replay_task *task = folder->saving->task;
    fprintf(to, "/* Tensors: slot in args[], name, payload before and after the call or NULL. */\n"
                "static const tensor_file tensor_files[] = {\n");
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        char name[GBX_SAVE_NAME_BYTES];
        if (!argument->is_tensor)
            continue;
        fprintf(to, "    {%" PRIu32 ", \"%s\"", argument->slot, argument_name(argument, name));
        put_path(to, argument, "before", entry_before(argument));
        put_path(to, argument, "after", entry_after(task, argument));
        fprintf(to, "},\n");
    }
    fprintf(to, "    {0, NULL, NULL, NULL}};\n\n");
}

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
    fprintf(to, "static const unsigned char bits_of_dtypes[] = {");
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT; ++dtype)
        fprintf(to, dtype ? ", %" PRIu32 : "%" PRIu32, gbx_dtype_bits(dtype));
    fprintf(to,
            "};\nstatic const char title[] = \"task %" PRIu64 "\";\n\n"
            "/* Whether only one of several dispatches is called: the others may write elements of "
            "an inout that it leaves unchanged. */\nenum { IS_ONE_OF_SEVERAL = %d };\n\n",
            folder->saving->task->task, folder->saving->dispatch >= 0);
}

static gbx_status put_tables(const gbx_save_folder *folder, FILE *to) {
    const gbx_call_file *call = &folder->call;
    put_title(folder, to);
    put_files(folder, to);
    put_dispatches(folder, to);
    fprintf(to,
            "static gbx_kernel_call call = {\n"
            "    .gm_base = UINT64_C(0x%" PRIx64 "), .gm_bytes = UINT64_C(%" PRIu64 "),\n"
            "    .chip_blocks = %" PRIu32 ", .block_num = %" PRIu32 ",\n    .slots = {\n",
            call->gm_base, call->gm_bytes, call->chip_blocks, call->block_num);
    const gbx_replay_task *task = folder->saving->task;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (argument->is_tensor) {
            put_tensor(to, argument, &folder->call.slots[argument->slot].tensor);
            continue;
        }
        char name[GBX_SAVE_NAME_BYTES];
        fprintf(to,
                "        /* scalar %s: %s */\n        [%" PRIu32
                "] = {.kind = GBX_CALL_SCALAR, .bits = "
                "UINT64_C(0x%" PRIx64 ")},\n",
                argument_name(argument, name), gbx_dtype_name(argument->dtype), argument->slot,
                argument->bits);
    }
    fprintf(to, "    },\n    .kernels = {\n");
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const gbx_saved_kernel *kernel = kernel_of(folder, i);
        if (kernel)
            fprintf(to, "        [%s] = {.object = \"kernels/%s.so\"},\n", subtasks[i],
                    kernel->name);
    }
    fprintf(to, "    },\n    .dispatches = dispatches,\n"
                "    .dispatch_count = sizeof dispatches / sizeof dispatches[0],\n};\n");
    return NULL;
}

/* --- saving --- */

static gbx_status put_readme(const gbx_save_folder *folder, FILE *to) {
    char name[GBX_SAVE_NAME_BYTES];
    const gbx_run_info *run = gbx_reader_run(gbx_entries_reader(folder->saving->entries));
    fprintf(
        to,
        "This program repeats task %" PRIu64 " of a run of %s. Build and run it with: make "
        "run\n"
        "It loads data/*_before.bin, calls the kernels as described in task.h, and compares the "
        "results with data/*_after.bin, bit for bit. It exits with 0 if all are equal.\n"
        "Payloads are row-major and little-endian. main.c and replay/ are the same for all "
        "tasks. The kernels in kernels/ are code that came with the dump.\n",
        folder->saving->task->task, run->scene ? plain_name(run->scene, name) : "a scene");
    return NULL;
}

static gbx_status save_parts(gbx_save_folder *folder) {
    static const struct {
        const char *path;
        const char *text;
    } fixed[] = {{"glassbox/kernel.h", gbx_embedded_kernel_header},
                 {"replay/call.h", gbx_embedded_call_header},
                 {"replay/call.c", gbx_embedded_call_source},
                 {"main.c", gbx_embedded_saved_program}};
    static const struct {
        const char *path;
        gbx_status (*put)(const gbx_save_folder *folder, FILE *to);
    } made[] = {
        {"task.h", put_tables}, {"Makefile", gbx_save_put_makefile}, {"README.txt", put_readme}};
    GBX_TRY(list_kernels(folder));
    GBX_TRY(describe_call(folder));
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; ++i)
        GBX_TRY(gbx_save_text(folder, fixed[i].path, fixed[i].text, strlen(fixed[i].text)));
    GBX_TRY(gbx_save_kernels(folder));
    GBX_TRY(save_data(folder));
    for (size_t i = 0; i < sizeof made / sizeof made[0]; ++i) {
        gbx_output output;
        GBX_TRY(gbx_save_open(folder, made[i].path, &output));
        GBX_TRY(gbx_output_close(&output, made[i].path, made[i].put(folder, output.stream)));
    }
    return NULL;
}

gbx_status gbx_replay_save(const gbx_replay_saving *saving, const char *directory,
                           gbx_saved_kernels *out_kernels) {
    *out_kernels = (gbx_saved_kernels){.count = 0};
    GBX_TRY(gbx_staging_check_free(directory));
    gbx_save_folder *folder = calloc(1, sizeof *folder);
    if (!folder)
        return gbx_fail_memory("saving a task");
    folder->saving = saving;
    folder->kernels = out_kernels;
    gbx_signals_hold(&folder->signals);
    gbx_status status = gbx_staging_create_directory(directory, &folder->staging);
    if (!status)
        status = gbx_staging_finish(&folder->staging, GBX_PUBLISH_WHOLE, save_parts(folder));
    gbx_signals_release(&folder->signals);
    free(folder->dispatches);
    free(folder);
    return status;
}
