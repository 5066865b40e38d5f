#include "runtime/graph_error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "chip/host/chip.h"
#include "tensor/view.h"

enum { TASK_BYTES = 160 };

static const char *kernel_name(const gbx_chip *chip, uint32_t func_id) {
    const char *name = func_id < GBX_MAX_KERNELS ? chip->kernels[func_id].name : "";
    return name[0] ? name : NULL;
}

/* "task 3 (kernel add)" */
static void describe_task(const gbx_chip *chip, const gbx_graph_error *error,
                          char text[TASK_BYTES]) {
    const char *name = kernel_name(chip, error->func_id);
    if (error->task == GBX_NO_TASK)
        snprintf(text, TASK_BYTES, "the graph");
    else if (name)
        snprintf(text, TASK_BYTES, "task %" PRIu64 " (kernel %s)", error->task, name);
    else
        snprintf(text, TASK_BYTES, "task %" PRIu64, error->task);
}

/* "task 3 (kernel add): argument 1" */
static void describe_argument(const gbx_graph_error *error, const char *task,
                              char text[TASK_BYTES]) {
    if (error->values[0] == GBX_NO_ARGUMENT)
        snprintf(text, TASK_BYTES, "before task %" PRIu64 ": the tensor of a call", error->task);
    else
        snprintf(text, TASK_BYTES, "%.120s: argument %" PRId64, task, error->values[0]);
}

static const char *core_name(uint32_t subtask) {
    return subtask == GBX_SUBTASK_AIC ? "AIC" : "AIV";
}

static gbx_status bad_tensor(const gbx_graph_error *error, const char *argument) {
    gbx_status reason = gbx_tensor_validate(&error->tensor);
    if (!reason)
        reason = gbx_fail(GBX_BAD_GRAPH, "invalid tensor");
    gbx_status status = gbx_fail(GBX_BAD_GRAPH, "%s: %s", argument, gbx_status_message(reason));
    gbx_status_free(reason);
    return status;
}

static gbx_status outside(const gbx_chip *chip, const gbx_graph_error *error,
                          const char *argument) {
    gbx_hal_caps caps;
    int64_t first, end;
    gbx_chip_ops(chip)->caps(chip->hal, &caps);
    if (!gbx_tensor_is_valid(&error->tensor, &first, &end))
        return bad_tensor(error, argument);
    return gbx_fail(GBX_BAD_GRAPH,
                    "%s: its elements from 0x%" PRIx64 " to 0x%" PRIx64
                    " are not in the chip's global memory (0x%" PRIx64 " to 0x%" PRIx64 ")",
                    argument, error->tensor.data + (uint64_t)first,
                    error->tensor.data + (uint64_t)end, caps.gm_base, caps.gm_base + caps.gm_space);
}

#define fail(...) gbx_fail(GBX_BAD_GRAPH, __VA_ARGS__)

static gbx_status describe(const gbx_chip *chip, const char *runtime,
                           const gbx_graph_error *error) {
    const int64_t *v = error->values;
    char task[TASK_BYTES];
    char argument[TASK_BYTES];
    describe_task(chip, error, task);
    describe_argument(error, task, argument);
    switch (error->kind) {
    case GBX_GRAPH_NO_KERNEL:
        return fail("%s: none of its three subtasks names a kernel", task);
    case GBX_GRAPH_NOT_REGISTERED:
        return fail("%s: no kernel is registered as func %" PRIu32, task, error->func_id);
    case GBX_GRAPH_CORE_TYPE:
        return fail("%s: the kernel is registered for %s cores, but used on an %s core", task,
                    core_name((uint32_t)chip->kernels[error->func_id].core),
                    core_name((uint32_t)v[0]));
    case GBX_GRAPH_BLOCKS:
        return fail("%s: block_num is %" PRId64 ", expected 1 to %d", task, v[0],
                    GBX_MAX_BLOCK_NUM);
    case GBX_GRAPH_SYNC_BLOCKS:
        return fail("%s: its %" PRId64 " blocks wait for each other, but the chip has only %" PRId64
                    "; open it with as many blocks",
                    task, v[0], v[1]);
    case GBX_GRAPH_TOO_MANY_ARGS:
        if (v[1] < 0)
            return fail("%s: it has %" PRId64 " words of arguments, at most %d are possible", task,
                        v[0], GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS);
        return fail("%s: it has %" PRId64 " tensors and %" PRId64
                    " scalars, at most %d of each are possible",
                    task, v[0], v[1], GBX_MAX_TENSOR_ARGS);
    case GBX_GRAPH_NULL_TENSOR:
        return fail("%s is a null tensor", argument);
    case GBX_GRAPH_BAD_TENSOR:
        return bad_tensor(error, argument);
    case GBX_GRAPH_OUTSIDE:
        return outside(chip, error, argument);
    case GBX_GRAPH_TENSOR_INDEX:
        return fail("%s: tensor info describes argument %" PRId64 " twice, or beyond the %" PRId64
                    " that the task has",
                    task, v[0], v[1]);
    case GBX_GRAPH_MARK:
        return fail("%s: argument %" PRId64 " is marked for the dump, but the task has %" PRId64
                    "; mark only arguments that were added",
                    task, v[0], v[1]);
    case GBX_GRAPH_NEW_OUTPUT:
        return fail(
            "%s: argument %" PRId64
            " has no memory, and only tensormap_and_ringbuffer allocates outputs; allocate it "
            "with gbx_device_malloc",
            task, v[0]);
    case GBX_GRAPH_HEAP_TENSOR:
        return fail("%s: argument %" PRId64 ": the task's new outputs up to this one take %" PRId64
                    " bytes, the heap ring has %" PRId64
                    "; open the chip with more global memory (--gm)",
                    task, v[0], v[1], v[2]);
    case GBX_GRAPH_ROLE:
        return fail("%s: argument %" PRId64 ": unknown role %" PRId64
                    "; expected input, output or inout",
                    task, v[0], v[1]);
    case GBX_GRAPH_UNKNOWN_TASK:
        if ((uint64_t)v[0] == GBX_NO_TASK)
            return fail("a call names GBX_NO_TASK: the result of a failed call, or never set; "
                        "there are %" PRId64 " tasks",
                        v[1]);
        return fail("task %" PRId64 " does not exist; there are %" PRId64 " tasks, numbered from 0",
                    v[0], v[1]);
    case GBX_GRAPH_SELF_EDGE:
        return fail("%s: an edge makes it wait for itself", task);
    case GBX_GRAPH_CYCLE:
        return fail("%s waits for itself, in a cycle of %" PRId64 " tasks through task %" PRId64
                    "; remove one of its edges",
                    task, v[1], v[0]);
    case GBX_GRAPH_PUBLISHED:
        return fail("%s: an edge to it was added after it was published; add edges first", task);
    case GBX_GRAPH_PUBLISHED_TWICE:
        return fail("%s: it is published twice", task);
    case GBX_GRAPH_NEVER_PUBLISHED:
        if (v[0] > 0)
            return fail("%s was never published, nor were %" PRId64
                        " more; call gbx_publish_task for each",
                        task, v[0]);
        return fail("%s was never published; call gbx_publish_task", task);
    case GBX_GRAPH_TOO_MANY_TASKS:
        return fail("%s: a graph has at most %" PRId64 " tasks on this runtime", task, v[0]);
    case GBX_GRAPH_TOO_MANY_EDGES:
        return fail("%s: a graph has at most %" PRId64 " edges on this runtime", task, v[0]);
    case GBX_GRAPH_WINDOW:
        return fail("%s: no room in the window of %" PRId64 " tasks: an open scope needs %" PRId64
                    "%s; run with --window %" PRId64
                    ", or end scopes earlier (gbx_scope_begin, gbx_scope_end)",
                    task, v[0], v[1], v[1] == v[2] ? "" : ", with many arguments", v[2]);
    case GBX_GRAPH_HEAP:
        return fail("%s: no room in the heap ring of %" PRId64
                    " bytes: an open scope needs %" PRId64
                    "; open the chip with more global memory (--gm), or end scopes earlier "
                    "(gbx_scope_begin, gbx_scope_end)",
                    task, v[0], v[1]);
    case GBX_GRAPH_SCOPE_END:
        return fail("gbx_scope_end before task %" PRIu64 ": no scope is open", error->task);
    case GBX_GRAPH_SCOPE_LEFT:
        return fail("the orchestration returned after %" PRIu64 " tasks with %" PRId64
                    " scopes open; call gbx_scope_end for each",
                    error->task, v[0]);
    case GBX_GRAPH_SCOPE_DEPTH:
        return fail("gbx_scope_begin before task %" PRIu64 ": scopes nest at most %" PRId64 " deep",
                    error->task, v[0]);
    case GBX_GRAPH_NO_MEMORY:
        return fail("%s: %" PRId64 " bytes are needed, but the graph has only %" PRId64
                    " left; open the chip with more global memory (--gm)",
                    task, v[0], v[1]);
    case GBX_GRAPH_INDEX:
        return fail("gbx_get_tensor_data before task %" PRIu64 ": index %" PRId64
                    " is outside dimension %" PRId64 " of size %" PRId64,
                    error->task, v[1], v[0], v[2]);
    case GBX_GRAPH_REFUSED:
        return fail("%s is not available in %s", error->text, runtime);
    case GBX_GRAPH_FAILED:
        return fail("the orchestration failed after %" PRIu64 " tasks: %s", error->task,
                    error->text);
    case GBX_GRAPH_RETURNED:
        return fail("the orchestration returned error %" PRId64 " after %" PRIu64 " tasks", v[0],
                    error->task);
    default:
        return gbx_fail(GBX_INTERNAL, "%s: the chip reported an error of unknown kind %" PRIu32,
                        runtime, error->kind);
    }
}

/* Text from the chip may be anything. */
static void make_printable(char *text, size_t bytes) {
    text[bytes - 1] = '\0';
    for (char *c = text; *c; ++c)
        if ((unsigned char)*c < ' ')
            *c = '?';
}

gbx_status gbx_graph_error_status(const gbx_chip *chip, const char *runtime,
                                  const gbx_graph_error *error) {
    gbx_graph_error safe = *error;
    make_printable(safe.text, sizeof safe.text);
    if (safe.kind == GBX_GRAPH_CORE_TYPE && !kernel_name(chip, safe.func_id))
        safe.kind = GBX_GRAPH_NOT_REGISTERED;
    return describe(chip, runtime, &safe);
}
