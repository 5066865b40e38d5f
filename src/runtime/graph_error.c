#include "runtime/graph_error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "chip/host/chip.h"
#include "tensor/view.h"

/* Each has room for the longest kernel and argument names. */
enum {
    TASK_BYTES = 112,
    PLACE_BYTES = TASK_BYTES + 2 + GBX_ARGUMENT_BYTES,
    MISMATCH_BYTES = GBX_SIGNATURE_SENTENCE_BYTES - TASK_BYTES - 2
};

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

/* "task 3 (kernel add): argument 1 (x)" */
static void describe_argument(const gbx_chip *chip, const gbx_graph_error *error, const char *task,
                              char text[PLACE_BYTES]) {
    char argument[GBX_ARGUMENT_BYTES];
    if (error->values[0] == GBX_NO_ARGUMENT) {
        snprintf(text, PLACE_BYTES, "before task %" PRIu64 ": the tensor of a call", error->task);
        return;
    }
    gbx_chip_describe_argument(chip, error->func_id, (uint32_t)error->values[0], argument);
    snprintf(text, PLACE_BYTES, "%s: %s", task, argument);
}

static const char *core_name(uint32_t subtask) {
    return subtask == GBX_SUBTASK_AIC ? "AIC" : "AIV";
}

static gbx_status bad_tensor(const gbx_graph_error *error, const char *argument) {
    gbx_status reason = gbx_tensor_validate(&error->tensor);
    if (!reason)
        reason = gbx_fail(GBX_BAD_GRAPH, "invalid tensor");
    char shape[GBX_SHAPE_BYTES];
    gbx_shape_write(&error->tensor, shape);
    /* The reason of an impossible view has the shape of what it is a view of. */
    gbx_status status =
        error->tensor.dtype & GBX_IMPOSSIBLE_VIEW
            ? gbx_fail(GBX_BAD_GRAPH, "%s: %s", argument, gbx_status_message(reason))
            : gbx_fail(GBX_BAD_GRAPH, "%s: %s; its shape is %s", argument,
                       gbx_status_message(reason), shape);
    gbx_status_free(reason);
    return status;
}

static gbx_status outside(const gbx_chip *chip, const gbx_graph_error *error,
                          const char *argument) {
    gbx_hal_caps caps;
    int64_t first, end;
    char shape[GBX_SHAPE_BYTES];
    gbx_shape_write(&error->tensor, shape);
    gbx_chip_ops(chip)->caps(chip->hal, &caps);
    if (!gbx_tensor_is_valid(&error->tensor, &first, &end))
        return bad_tensor(error, argument);
    return gbx_fail(
        GBX_BAD_GRAPH,
        "%s: its elements from 0x%" PRIx64 " to 0x%" PRIx64
        " are not in the chip's global memory (0x%" PRIx64 " to 0x%" PRIx64 "); its shape is %s",
        argument, error->tensor.data + (uint64_t)first, error->tensor.data + (uint64_t)end,
        caps.gm_base, caps.gm_base + caps.gm_space, shape);
}

/* --- signatures --- */

/* Too few or too many. */
static void describe_count(const gbx_mismatch *found, const gbx_signature *signature,
                           const char *argument, char text[MISMATCH_BYTES]) {
    uint32_t expected = found->kind == GBX_MISMATCH_TENSORS ? signature->tensor_count
                        : found->kind == GBX_MISMATCH_SCALARS
                            ? signature->scalar_count
                            : (uint32_t)signature->tensor_count + signature->scalar_count;
    const char *what = found->kind == GBX_MISMATCH_TENSORS   ? "tensor"
                       : found->kind == GBX_MISMATCH_SCALARS ? "scalar"
                                                             : "argument";
    if (found->given < expected)
        snprintf(text, MISMATCH_BYTES, "%s is missing", argument);
    else /* the name of its slot, if any, is that of a scalar */
        snprintf(text, MISMATCH_BYTES, "argument %u is too many", found->slot);
    size_t used = strlen(text);
    snprintf(text + used, MISMATCH_BYTES - used,
             ": the signature lists %" PRIu32 " %s%s, the task has %" PRIu32, expected, what,
             expected == 1 ? "" : "s", found->given);
}

/* "argument 2 (y): the signature says out, but the task gives an input". Takes any numbers. */
static void describe_mismatch(const gbx_chip *chip, const gbx_mismatch *found,
                              char text[MISMATCH_BYTES]) {
    static const char *const roles[] = {[GBX_ROLE_INPUT] = "an input",
                                        [GBX_ROLE_OUTPUT] = "an output",
                                        [GBX_ROLE_INOUT] = "an in-out"};
    const gbx_signature *signature = &chip->signatures[found->func_id];
    uint32_t count = (uint32_t)signature->tensor_count + signature->scalar_count;
    char argument[GBX_ARGUMENT_BYTES];
    char expected[GBX_PARAMETER_TEXT_BYTES] = "";
    gbx_chip_describe_argument(chip, found->func_id, found->slot, argument);
    if (found->slot < count)
        gbx_parameter_write(&signature->slots[found->slot], expected);
    switch (found->kind) {
    case GBX_MISMATCH_TENSORS:
    case GBX_MISMATCH_SCALARS:
    case GBX_MISMATCH_WORDS:
        describe_count(found, signature, argument, text);
        return;
    case GBX_MISMATCH_KIND:
        snprintf(text, MISMATCH_BYTES, "%s: the signature says %s, but the task describes a tensor",
                 argument, expected[0] ? expected : "nothing of it");
        return;
    case GBX_MISMATCH_ROLE:
        snprintf(text, MISMATCH_BYTES, "%s: the signature says %s, but the task gives %s", argument,
                 expected, found->given <= GBX_ROLE_INOUT ? roles[found->given] : "something else");
        return;
    case GBX_MISMATCH_DTYPE:
        snprintf(text, MISMATCH_BYTES, "%s: the signature says %s, but the task gives %s", argument,
                 expected, gbx_dtype_name(found->given));
        return;
    case GBX_MISMATCH_NDIMS:
        snprintf(text, MISMATCH_BYTES,
                 "%s: the signature says %s, but the tensor has %" PRIu32 " dimension%s", argument,
                 expected, found->given, found->given == 1 ? "" : "s");
        return;
    default:
        snprintf(text, MISMATCH_BYTES, "%s does not match the signature", argument);
    }
}

static gbx_status break_signature(const gbx_chip *chip, const gbx_graph_error *error,
                                  const char *task) {
    gbx_mismatch found = {.func_id = error->func_id,
                          .slot = (uint16_t)error->values[0],
                          .kind = (uint16_t)error->values[1],
                          .given = (uint32_t)error->values[2]};
    char text[MISMATCH_BYTES];
    describe_mismatch(chip, &found, text);
    return gbx_fail(GBX_BAD_GRAPH,
                    "%s: %s; correct the task or the signature (--loose-signatures only warns)",
                    task, text);
}

void gbx_signature_warnings_report(const gbx_chip *chip, gbx_signature_warnings *warnings,
                                   gbx_call_result *result) {
    uint32_t kept = atomic_load_explicit(&warnings->kept, memory_order_relaxed);
    result->signature_warnings = atomic_load_explicit(&warnings->total, memory_order_relaxed);
    result->signature_sentence_count = 0;
    for (uint32_t i = 0; i < kept && i < GBX_MAX_SIGNATURE_SENTENCES; ++i) {
        const gbx_mismatch *found = &warnings->first[i];
        gbx_graph_error at = {.task = found->task, .func_id = found->func_id};
        char task[TASK_BYTES];
        char text[MISMATCH_BYTES];
        if (!kernel_name(chip, found->func_id))
            continue;
        describe_task(chip, &at, task);
        describe_mismatch(chip, found, text);
        snprintf(result->signature_sentences[result->signature_sentence_count++],
                 GBX_SIGNATURE_SENTENCE_BYTES, "%s: %s", task, text);
    }
}

#define fail(...) gbx_fail(GBX_BAD_GRAPH, __VA_ARGS__)

static gbx_status describe(const gbx_chip *chip, const char *runtime,
                           const gbx_graph_error *error) {
    const int64_t *v = error->values;
    char task[TASK_BYTES];
    char argument[PLACE_BYTES];
    describe_task(chip, error, task);
    describe_argument(chip, error, task, argument);
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
        return fail("%s has no memory, and only tensormap_and_ringbuffer allocates outputs; "
                    "allocate it with gbx_device_malloc",
                    argument);
    case GBX_GRAPH_SCOPE_OVER:
        return fail("%s is an output of a scope that has ended, so its memory is no longer its "
                    "own; end the scope later (gbx_scope_end)",
                    argument);
    case GBX_GRAPH_HEAP_TENSOR:
        return fail("%s: the task's new outputs up to this one take %" PRId64
                    " bytes, the heap ring has %" PRId64
                    "; open the chip with more global memory (--gm)",
                    argument, v[1], v[2]);
    case GBX_GRAPH_ROLE:
        return fail("%s: unknown role %" PRId64 "; expected input, output or inout", argument,
                    v[1]);
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
    case GBX_GRAPH_SIGNATURE:
        return break_signature(chip, error, task);
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
    if ((safe.kind == GBX_GRAPH_CORE_TYPE || safe.kind == GBX_GRAPH_SIGNATURE) &&
        !kernel_name(chip, safe.func_id))
        safe.kind = GBX_GRAPH_NOT_REGISTERED;
    return describe(chip, runtime, &safe);
}
