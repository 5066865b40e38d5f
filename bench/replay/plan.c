/* The tasks of a dump as the loop needs them. Only this file uses src/replay. */
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/memory.h"
#include "replay.h"
#include "replay/check/check.h"
#include "replay/task.h"
#include "replay/trust/replay_trust.h"
#include "report/dump.h"
#include "store/run/kept_run.h"

enum { DEFAULT_BLOCKS = 8 };

typedef struct planning {
    plan *plan;
    gbx_opened_dump dump;
    gbx_kept_run *kept;
    gbx_replay_kernel_files no_files;
    gbx_replay_kernels *objects;
} planning;

/* --- kernels --- */

static gbx_status load(const char *object, void (**out_entry)(const uint64_t *args)) {
    fenv_t before;
    fegetenv(&before);
    void *handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "kernel_entry") : NULL;
    fesetenv(&before); /* an object linked with -Ofast changes it */
    if (!symbol)
        return gbx_fail(GBX_BAD_KERNEL, "loading %s: %s", object, dlerror());
    memcpy(out_entry, &symbol, sizeof symbol);
    return NULL;
}

/* The number of a kernel in the plan, which loads it when it is new. */
static gbx_status find_kernel(planning *p, const gbx_replay_task *task, uint32_t subtask,
                              uint32_t *out_number) {
    plan *to = p->plan;
    const char *objects[GBX_SUBTASK_COUNT];
    for (uint32_t i = 0; i < to->kernel_count; ++i)
        if (to->kernels[i].func_id == task->func_ids[subtask]) {
            *out_number = i;
            return NULL;
        }
    if (to->kernel_count == MAX_KERNELS)
        return gbx_fail(GBX_UNSUPPORTED, "the dump has more than %d kernels", MAX_KERNELS);
    GBX_TRY(gbx_replay_kernels_find(p->objects, task, objects));
    plan_kernel *kernel = &to->kernels[to->kernel_count];
    kernel->func_id = task->func_ids[subtask];
    GBX_TRY(load(objects[subtask], &kernel->entries[KERNELS]));
    *out_number = (uint32_t)to->kernel_count++;
    return NULL;
}

static gbx_status load_references(planning *p, const gbx_references *references) {
    for (size_t k = 0; k < p->plan->kernel_count; ++k) {
        plan_kernel *kernel = &p->plan->kernels[k];
        const char *object = NULL;
        for (size_t i = 0; i < references->count; ++i)
            if (references->items[i].func_id == kernel->func_id)
                object = references->items[i].object;
        if (!object)
            return gbx_fail(GBX_NOT_FOUND, "kernel %" PRIu32 " has no reference", kernel->func_id);
        GBX_TRY(load(object, &kernel->entries[REFERENCES]));
    }
    return NULL;
}

static void find_references(planning *p) {
    gbx_references *references = NULL;
    gbx_scene_trouble trouble;
    gbx_status status = gbx_references_open(NULL, p->dump.directory, p->kept,
                                            gbx_reader_run(p->dump.reader), &references, &trouble);
    if (!status)
        status = load_references(p, references);
    p->plan->has_references = !status;
    if (status)
        fprintf(stderr, "bench_replay: without references: %s\n", gbx_status_message(status));
    gbx_status_free(status);
    gbx_references_close(references);
}

/* --- arguments --- */

/* Where the bytes of an entry are; the dump has all of them. */
static gbx_status find_payload(planning *p, uint64_t entry_number, uint64_t bytes,
                               uint64_t *out_offset) {
    gbx_entry entry;
    *out_offset = NOWHERE;
    if (entry_number == GBX_REPLAY_NO_ENTRY || bytes == 0)
        return NULL;
    GBX_TRY(gbx_entries_at(p->dump.entries, entry_number, &entry));
    uint64_t offset = entry.tensor->bin_offset;
    if (entry.tensor->bin_size < bytes || offset > p->plan->payload_bytes ||
        bytes > p->plan->payload_bytes - offset)
        return gbx_fail(GBX_BAD_FORMAT, "entry %" PRIu64 " is not complete in the payload file",
                        entry_number);
    *out_offset = offset;
    return NULL;
}

/* Global memory begins at the multiple of the most that a chip can have. */
static gbx_status find_memory(plan *to, const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    uint64_t start = tensor->data + (uint64_t)first;
    if (to->global.gm_base == 0)
        to->global.gm_base = start / GBX_MAX_GM_BYTES * GBX_MAX_GM_BYTES;
    if (tensor->data == 0 || start < to->global.gm_base ||
        tensor->data + (uint64_t)end > to->global.gm_base + to->global.gm_bytes)
        return gbx_fail(GBX_UNSUPPORTED,
                        "a tensor at %#" PRIx64 " is not in the global memory of one chip",
                        tensor->data);
    return NULL;
}

static gbx_status add_tensor(planning *p, const gbx_replay_argument *from, plan_argument *to) {
    to->tensor = from->tensor;
    to->bytes = gbx_tensor_payload_bytes(&from->tensor);
    if (to->bytes == 0)
        return NULL;
    GBX_TRY(find_memory(p->plan, &from->tensor));
    if (gbx_tensor_is_contiguous(&from->tensor)) {
        int64_t first, end;
        gbx_tensor_extent(&from->tensor, &first, &end);
        to->address = from->tensor.data + (uint64_t)first;
    }
    if (from->role != GBX_ROLE_OUTPUT)
        GBX_TRY(find_payload(p, from->before, to->bytes, &to->before));
    if (from->role != GBX_ROLE_INPUT)
        GBX_TRY(find_payload(p, from->after, to->bytes, &to->after));
    if (to->before != NOWHERE)
        p->plan->restored_bytes += to->bytes;
    if (to->bytes > p->plan->largest_bytes)
        p->plan->largest_bytes = to->bytes;
    return NULL;
}

static gbx_status add_argument(planning *p, const gbx_replay_argument *from) {
    plan *to = p->plan;
    GBX_TRY(gbx_array_reserve(&to->arguments, &to->argument_room, to->argument_count + 1,
                              "reading tasks"));
    plan_argument *argument = &to->arguments[to->argument_count++];
    *argument = (plan_argument){.word = from->bits,
                                .before = NOWHERE,
                                .after = NOWHERE,
                                .slot = from->slot,
                                .is_tensor = from->is_tensor};
    return from->is_tensor ? add_tensor(p, from, argument) : NULL;
}

/* --- tasks --- */

static gbx_status add_call(planning *p, const gbx_replay_task *task,
                           const gbx_replay_dispatch *dispatch) {
    plan *to = p->plan;
    GBX_TRY(gbx_array_reserve(&to->calls, &to->call_room, to->call_count + 1, "reading tasks"));
    plan_call *call = &to->calls[to->call_count++];
    uint32_t guess = dispatch->block_idx % to->global.blocks * GBX_SUBTASK_COUNT;
    guess += dispatch->subtask;
    call->local = (gbx_local_context){
        .block_idx = dispatch->block_idx,
        .block_num = task->block_num,
        .subtask = dispatch->subtask,
        .core_id = dispatch->core_id == GBX_REPLAY_NO_CORE ? guess : dispatch->core_id};
    return find_kernel(p, task, dispatch->subtask, &call->kernel);
}

static gbx_status add_task(planning *p, const gbx_replay_task *task) {
    plan *to = p->plan;
    if (task->dispatch_count != task->block_num)
        return gbx_fail(GBX_UNSUPPORTED,
                        "task %" PRIu64 " has several kernels, which may wait for each other",
                        task->task);
    GBX_TRY(gbx_array_reserve(&to->tasks, &to->task_room, to->task_count + 1, "reading tasks"));
    to->tasks[to->task_count++] = (plan_task){.number = task->task,
                                              .first_argument = to->argument_count,
                                              .first_call = to->call_count,
                                              .argument_count = task->argument_count,
                                              .call_count = task->dispatch_count};
    for (uint32_t i = 0; i < task->argument_count; ++i)
        GBX_TRY(add_argument(p, &task->arguments[i]));
    for (uint32_t i = 0; i < task->dispatch_count; ++i)
        GBX_TRY(add_call(p, task, &task->dispatches[i]));
    return NULL;
}

static gbx_status read_task(planning *p, uint64_t number) {
    gbx_replay_task task;
    gbx_status status = gbx_replay_task_read(p->dump.entries, number, &task);
    if (status)
        return gbx_replay_task_explain(&task, status, true);
    status = add_task(p, &task);
    gbx_replay_task_free(&task);
    return status;
}

static gbx_status read_tasks(planning *p) {
    gbx_reader *reader = p->dump.reader;
    for (uint64_t from = 0;;) {
        const gbx_record *record;
        uint64_t position = gbx_reader_find(reader, from);
        if (position >= gbx_reader_count(reader))
            break;
        GBX_TRY(gbx_reader_at(reader, position, &record));
        uint64_t number = record->task;
        GBX_TRY(read_task(p, number));
        from = number + 1;
    }
    return p->plan->call_count > 0 ? NULL : gbx_fail(GBX_NOT_FOUND, "the dump has no tasks");
}

/* --- the dump --- */

static gbx_status map_payload(planning *p) {
    const char *path = gbx_reader_get_origin(p->dump.reader)->payload_path;
    struct stat about = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &about) == 0)
        bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return gbx_fail(GBX_IO, "cannot map %s", path);
    p->plan->payload = bytes;
    p->plan->payload_bytes = (uint64_t)about.st_size;
    return NULL;
}

static void describe_run(planning *p) {
    const gbx_run_info *run = gbx_reader_run(p->dump.reader);
    plan *to = p->plan;
    snprintf(to->scene, sizeof to->scene, "%s", run->scene ? run->scene : "");
    snprintf(to->case_name, sizeof to->case_name, "%s", run->case_name ? run->case_name : "");
    to->global.gm_bytes = p->kept->gm_bytes ? p->kept->gm_bytes : GBX_MAX_GM_BYTES;
    to->global.blocks = p->kept->blocks ? p->kept->blocks : DEFAULT_BLOCKS;
}

static gbx_status fill_plan(planning *p) {
    GBX_TRY(gbx_kept_run_read(p->dump.directory, &p->kept));
    GBX_TRY(
        gbx_replay_kernels_create(p->dump.directory, p->kept, false, &p->no_files, &p->objects));
    describe_run(p);
    GBX_TRY(map_payload(p));
    return read_tasks(p);
}

gbx_status make_plan(const char *directory, bool wants_references, plan *out_plan) {
    planning p = {.plan = out_plan};
    *out_plan = (plan){0};
    GBX_TRY(gbx_opened_dump_open(directory, GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH, &p.dump));
    gbx_status status = fill_plan(&p);
    if (!status && wants_references)
        find_references(&p);
    gbx_replay_kernels_destroy(p.objects);
    gbx_kept_run_free(p.kept);
    gbx_opened_dump_close(&p.dump);
    return status;
}
