#include "replay/replay_result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "text/names.h"

/* The layout of a payload. */
typedef struct layout {
    uint32_t element_bytes; /* 0 for 4 bits */
    uint64_t row_elements;  /* of 4 bits: rows begin with a byte */
    uint64_t row_bytes;
} layout;

static layout layout_of(const gbx_tensor *tensor) {
    layout l = {.element_bytes = gbx_dtype_bits(tensor->dtype) / 8};
    l.row_elements = tensor->ndims > 0 ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    l.row_bytes = (l.row_elements + 1) / 2;
    return l;
}

/* The byte of a half-byte element, and the shift of its bits in it. */
static uint64_t half_byte(const layout *l, uint64_t number, unsigned *out_shift) {
    uint64_t column = number % l->row_elements;
    *out_shift = column % 2 ? 4 : 0;
    return number / l->row_elements * l->row_bytes + column / 2;
}

static inline uint64_t element(const layout *l, const unsigned char *payload, uint64_t number) {
    unsigned shift;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (l->element_bytes) {
    case 1:
        return payload[number];
    case 2:
        memcpy(&two, payload + number * 2, sizeof two);
        return two;
    case 4:
        memcpy(&four, payload + number * 4, sizeof four);
        return four;
    case 8:
        memcpy(&eight, payload + number * 8, sizeof eight);
        return eight;
    default:
        number = half_byte(l, number, &shift);
        return payload[number] >> shift & 15u;
    }
}

/* The bits of an element that still holds the poison. */
static uint64_t poison_of(const layout *l, uint64_t number, uint8_t poison) {
    if (l->element_bytes == 0)
        return number % l->row_elements % 2 ? poison >> 4 : poison & 15u;
    return (UINT64_MAX >> (64 - 8 * l->element_bytes)) & (0x0101010101010101u * poison);
}

static bool is_written(const layout *l, const gbx_bits_payloads *p, uint64_t i, uint64_t bits) {
    if (p->before && bits == element(l, p->before, i))
        return false;
    if (!p->is_poisoned || bits != poison_of(l, i, GBX_REPLAY_POISON))
        return true;
    return p->other && element(l, p->other, i) != poison_of(l, i, GBX_REPLAY_OTHER_POISON);
}

double gbx_bits_distance(uint32_t dtype, uint64_t a, uint64_t b) {
    double distance = fabs(gbx_dtype_to_f64(dtype, a) - gbx_dtype_to_f64(dtype, b));
    if (a == b)
        return 0;
    return isnan(distance) ? INFINITY : distance;
}

gbx_bits_comparison gbx_bits_compare(const gbx_tensor *tensor, const gbx_bits_payloads *p) {
    layout l = layout_of(tensor);
    gbx_bits_comparison c = {.elements = (uint64_t)gbx_tensor_numel(tensor)};
    for (uint64_t i = 0; i < c.elements; ++i) {
        uint64_t bits = element(&l, p->replay, i);
        if (!is_written(&l, p, i, bits)) {
            c.not_written++;
            continue;
        }
        c.unstable += p->other && element(&l, p->other, i) != bits;
        uint64_t dump = p->dump ? element(&l, p->dump, i) : bits;
        if (dump != bits) {
            if (c.mismatches++ == 0) {
                c.first_bad = i;
                c.dump_bits = dump;
                c.replay_bits = bits;
            }
            double distance = gbx_bits_distance(tensor->dtype, dump, bits);
            c.max_abs = distance > c.max_abs ? distance : c.max_abs;
        }
    }
    return c;
}

uint64_t gbx_bits_element(const gbx_tensor *tensor, const unsigned char *payload, uint64_t number) {
    layout l = layout_of(tensor);
    return element(&l, payload, number);
}

bool gbx_bits_is_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                         uint64_t number) {
    layout l = layout_of(tensor);
    return is_written(&l, payloads, number, element(&l, payloads->replay, number));
}

/* --- poison --- */

bool gbx_bits_is_poison(const gbx_tensor *tensor, uint64_t number, uint64_t bits) {
    layout l = layout_of(tensor);
    return bits == poison_of(&l, number, GBX_REPLAY_POISON) ||
           bits == poison_of(&l, number, GBX_REPLAY_OTHER_POISON);
}

/* A poisoned element has the poison in its first byte, too. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    if (l.element_bytes > 0 && !memchr(payload, poison, count * l.element_bytes))
        return false;
    for (uint64_t i = 0; i < count; ++i)
        if (element(&l, payload, i) == poison_of(&l, i, poison))
            return true;
    return false;
}

static void clear(const layout *l, unsigned char *payload, uint64_t number) {
    unsigned shift;
    if (l->element_bytes > 0) {
        memset(payload + number * l->element_bytes, 0, l->element_bytes);
        return;
    }
    number = half_byte(l, number, &shift);
    payload[number] &= (unsigned char)(0xf0 >> shift);
}

uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const unsigned char poisons[2], void *got) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    uint64_t cleared = 0;
    for (uint64_t i = 0; i < count; ++i) {
        if (element(&l, want, i) != poison_of(&l, i, poisons[0]) ||
            element(&l, again, i) != poison_of(&l, i, poisons[1]))
            continue;
        clear(&l, want, i);
        clear(&l, again, i);
        clear(&l, got, i);
        ++cleared;
    }
    return cleared;
}

/* --- describing --- */

void gbx_replay_result_name(gbx_replay_result *result, const gbx_replay_task *task) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        size_t length = strlen(result->kernel);
        if (task->kernel_names[i])
            snprintf(result->kernel + length, sizeof result->kernel - length, "%s%s",
                     length ? "+" : "", task->kernel_names[i]);
    }
}

static bool has_core_ids(const gbx_replay_task *task) {
    for (uint32_t i = 0; i < task->dispatch_count; ++i)
        if (task->dispatches[i].core_id == GBX_REPLAY_NO_CORE)
            return false;
    return true;
}

static gbx_status describe(const gbx_replay_task *task, int64_t dispatch,
                           gbx_replay_result *out_result) {
    *out_result = (gbx_replay_result){.task = task->task,
                                      .task_id = task->task_id,
                                      .dispatch = dispatch,
                                      .dispatch_count = task->dispatch_count,
                                      .has_core_ids = has_core_ids(task),
                                      .did_complete = task->did_complete,
                                      .stray_argument = -1};
    gbx_replay_task_title(task, out_result->title);
    if (dispatch >= 0) {
        size_t length = strlen(out_result->title);
        const gbx_replay_dispatch *one = &task->dispatches[dispatch];
        snprintf(out_result->title + length, GBX_REPLAY_TITLE_BYTES - length,
                 ", dispatch %" PRId64 " (block %" PRIu32 ", %s)", dispatch, one->block_idx,
                 gbx_name_of(&gbx_subtasks, one->subtask));
    }
    gbx_replay_result_name(out_result, task);
    out_result->outputs = calloc(task->argument_count + 1, sizeof *out_result->outputs);
    if (!out_result->outputs)
        return gbx_fail_memory("replaying task %" PRIu64, task->task);
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor || argument->role == GBX_ROLE_INPUT)
            continue;
        out_result->outputs[out_result->output_count++] = (gbx_replay_compared){
            .argument = i,
            .slot = argument->slot,
            .name = argument->name,
            .tensor = argument->tensor,
            .is_compared = task->did_complete && argument->after != GBX_REPLAY_NO_ENTRY};
    }
    return NULL;
}

void gbx_replay_result_free(gbx_replay_result *result) {
    free(result->outputs);
    free(result->refusal.reason);
    free(result->refusal.sentence);
    *result = (gbx_replay_result){0};
}

/* Notes whether the recorded run ended in this task. */
static void note_end(const gbx_replay_job *job, gbx_replay_result *result) {
    const gbx_record_outcome *outcome =
        gbx_reader_outcome(gbx_entries_reader(job->request.entries));
    if (result->did_complete)
        return;
    result->is_end_unknown = !outcome && job->run_end[0];
    result->is_end_of_run =
        outcome && outcome->func_id != GBX_OUTCOME_NO_KERNEL && outcome->task_id == result->task_id;
}

/* --- payloads --- */

void gbx_replay_payloads_free(gbx_replay_payloads *payloads) {
    for (size_t i = 0; i < GBX_REPLAY_MAX_ARGUMENTS; ++i) {
        free(payloads->dump[i]);
        free(payloads->replay[i]);
        free(payloads->other[i]);
        free(payloads->before[i]);
    }
    *payloads = (gbx_replay_payloads){0};
}

static gbx_status make_room(const gbx_replay_job *job, const gbx_tensor *tensor,
                            unsigned char **out_payload) {
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    if (!*out_payload)
        *out_payload = malloc(bytes + 1);
    return *out_payload ? NULL
                        : gbx_fail_memory("replaying task %" PRIu64, job->request.task->task);
}

static gbx_status read_entry(const gbx_replay_job *job, uint64_t index, const gbx_tensor *tensor,
                             unsigned char **out_payload) {
    GBX_TRY(make_room(job, tensor, out_payload));
    return gbx_replay_read_payload(job->request.entries, index, tensor, *out_payload);
}

static gbx_status read_dump(const gbx_replay_job *job, const gbx_replay_result *result,
                            gbx_replay_payloads *payloads) {
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        const gbx_replay_argument *argument = &job->request.task->arguments[output->argument];
        if (output->is_compared)
            GBX_TRY(read_entry(job, argument->after, &output->tensor,
                               &payloads->dump[output->argument]));
        /* When only one dispatch runs, other dispatches wrote parts of an inout. */
        if (output->is_compared && argument->role == GBX_ROLE_INOUT && job->request.dispatch >= 0)
            GBX_TRY(read_entry(job, argument->before, &output->tensor,
                               &payloads->before[output->argument]));
    }
    return NULL;
}

static gbx_status gather(const gbx_replay_job *job, const gbx_replay_result *result,
                         unsigned char **payloads) {
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        GBX_TRY(make_room(job, &output->tensor, &payloads[output->argument]));
        GBX_TRY(gbx_replay_output(job->engine, output->argument, payloads[output->argument]));
    }
    return NULL;
}

/* --- comparing --- */

static void compare(const gbx_replay_job *job, const gbx_replay_payloads *payloads,
                    gbx_replay_result *result) {
    for (size_t i = 0; i < result->output_count; ++i) {
        gbx_replay_compared *output = &result->outputs[i];
        uint32_t a = output->argument;
        gbx_bits_payloads bits = {.dump = payloads->dump[a],
                                  .replay = payloads->replay[a],
                                  .other = payloads->other[a],
                                  .before = payloads->before[a],
                                  .is_poisoned =
                                      job->request.task->arguments[a].role == GBX_ROLE_OUTPUT};
        output->bits = gbx_bits_compare(&output->tensor, &bits);
        output->is_exact =
            output->is_compared && output->bits.mismatches == 0 && output->bits.not_written == 0;
        output->is_unchanged = output->is_exact && (result->outcome.unchanged >> a & 1);
    }
}

/* Whether a run with the other poison can show more. */
static bool is_doubtful(const gbx_replay_result *result) {
    for (size_t i = 0; i < result->output_count; ++i)
        if (result->outputs[i].bits.mismatches > 0 || result->outputs[i].bits.not_written > 0)
            return true;
    return false;
}

gbx_replay_sums gbx_replay_result_sums(const gbx_replay_result *result) {
    gbx_replay_sums sums = {0};
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        sums.unstable += output->bits.unstable;
        sums.written += output->bits.elements - output->bits.not_written;
        sums.not_compared += !output->is_compared;
        sums.unchanged += output->is_unchanged;
        if (!output->is_compared)
            continue;
        sums.outputs++;
        sums.elements += output->bits.elements;
        sums.not_written += output->bits.not_written;
        sums.mismatches += output->bits.mismatches;
    }
    return sums;
}

static gbx_replay_verdict judge(const gbx_replay_result *result) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    if (result->outcome.fault.is_there)
        return GBX_REPLAY_FAULT;
    if (sums.outputs == 0)
        return GBX_REPLAY_NOT_COMPARED;
    if (sums.mismatches > 0)
        return GBX_REPLAY_DIFFERS;
    if (sums.elements > 0 && sums.not_written == sums.elements)
        return sums.written > 0 ? GBX_REPLAY_NOT_COMPARED : GBX_REPLAY_NOTHING_WRITTEN;
    return sums.not_written > 0 ? GBX_REPLAY_PARTLY : GBX_REPLAY_EXACT;
}

/* Finds the argument that a stray write hit. */
static void place_stray(const gbx_replay_job *job, gbx_replay_result *result) {
    uint64_t address = result->outcome.stray_address;
    for (uint32_t i = 0; result->outcome.stray_bytes > 0 && i < job->request.task->argument_count;
         ++i) {
        const gbx_replay_argument *argument = &job->request.task->arguments[i];
        int64_t first, end;
        if (!argument->is_tensor)
            continue;
        const gbx_tensor *tensor = gbx_replay_placed_tensor(job->engine, i);
        gbx_tensor_extent(tensor, &first, &end);
        uint64_t begin = tensor->data + (uint64_t)first;
        if (address >= begin && address - begin < (uint64_t)(end - first)) {
            result->stray_argument = argument->slot;
            result->stray_name = argument->name;
            return;
        }
    }
}

/* --- running --- */

static gbx_status run(const gbx_replay_job *job, unsigned char poison,
                      gbx_replay_outcome *out_outcome) {
    gbx_replay_request request = job->request;
    request.poison = poison;
    return gbx_replay_run(job->engine, &request, out_outcome);
}

static gbx_status run_with_other_poison(const gbx_replay_job *job, gbx_replay_payloads *payloads,
                                        gbx_replay_result *result) {
    gbx_replay_outcome outcome;
    GBX_TRY(run(job, GBX_REPLAY_OTHER_POISON, &outcome));
    if (outcome.fault.is_there) {
        result->outcome.fault = outcome.fault;
        result->is_other_poison = true;
        return NULL;
    }
    result->outcome.unchanged &= outcome.unchanged;
    GBX_TRY(gather(job, result, payloads->other));
    compare(job, payloads, result);
    return NULL;
}

static bool is_like_first(const gbx_replay_result *result, unsigned char *const *first,
                          unsigned char *const *now) {
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        size_t bytes = (size_t)gbx_tensor_payload_bytes(&output->tensor);
        if (memcmp(first[output->argument], now[output->argument], bytes) != 0)
            return false;
    }
    return true;
}

/* The runs after the first; ns[0] is the time of the first. */
static gbx_status repeat(const gbx_replay_job *job, const gbx_replay_payloads *first,
                         gbx_replay_payloads *now, uint64_t *ns, gbx_replay_result *result) {
    for (uint64_t i = 1; i < job->runs; ++i) {
        gbx_replay_outcome outcome;
        GBX_TRY(run(job, GBX_REPLAY_POISON, &outcome));
        if (outcome.fault.is_there) {
            result->outcome.fault = outcome.fault;
            result->fault_run = i + 1;
            return NULL;
        }
        ns[i] = outcome.ns;
        GBX_TRY(gather(job, result, now->replay));
        result->times.different += !is_like_first(result, first->replay, now->replay);
    }
    qsort(ns, job->runs, sizeof *ns, gbx_compare_u64);
    uint64_t low = ns[(job->runs - 1) / 2], high = ns[job->runs / 2];
    result->times = (gbx_replay_times){job->runs, ns[0], low + (high - low) / 2, ns[job->runs - 1],
                                       result->times.different};
    return NULL;
}

gbx_status gbx_replay_execute(const gbx_replay_job *job, gbx_replay_payloads *out_payloads,
                              gbx_replay_result *out_result) {
    *out_payloads = (gbx_replay_payloads){0};
    GBX_TRY(describe(job->request.task, job->request.dispatch, out_result));
    note_end(job, out_result);
    GBX_TRY(run(job, GBX_REPLAY_POISON, &out_result->outcome));
    if (!out_result->outcome.fault.is_there) {
        GBX_TRY(gather(job, out_result, out_payloads->replay));
        GBX_TRY(read_dump(job, out_result, out_payloads));
        compare(job, out_payloads, out_result);
        uint64_t *ns = calloc(job->runs, sizeof *ns);
        gbx_replay_payloads now = {0};
        if (!ns)
            return gbx_fail_memory("replaying task %" PRIu64, job->request.task->task);
        ns[0] = out_result->outcome.ns;
        gbx_status status = repeat(job, out_payloads, &now, ns, out_result);
        gbx_replay_payloads_free(&now);
        free(ns);
        GBX_TRY(status);
    } else if (job->runs > 1) {
        out_result->fault_run = 1;
    }
    if (!out_result->outcome.fault.is_there && is_doubtful(out_result))
        GBX_TRY(run_with_other_poison(job, out_payloads, out_result));
    place_stray(job, out_result);
    out_result->verdict = judge(out_result);
    return NULL;
}
