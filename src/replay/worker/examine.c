#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "replay/worker/pattern.h"
#include "replay/worker/rows.h"
#include "replay/worker/worker.h"

enum { CONFIRMATIONS = 3 };

/* --- memory of the results --- */

static bool make_room(gbx_examining *e, uint32_t argument, unsigned char **payload) {
    *payload = malloc(gbx_tensor_payload_bytes(&e->arguments[argument].tensor) + 1);
    if (*payload)
        return true;
    gbx_answer_fail(e->answer, GBX_ANSWER_NOT_MADE, "out of memory");
    return false;
}

/* What the calls left in outputs and inouts. */
static bool gather(gbx_examining *e, unsigned char **payloads) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        if (!gbx_is_output(&e->arguments[i]))
            continue;
        if (!payloads[i] && !make_room(e, i, &payloads[i]))
            return false;
        gbx_tensor_gather(&e->arguments[i].tensor, gbx_picture_buffer(&e->picture, i), payloads[i]);
    }
    return true;
}

static bool gather_starts(gbx_examining *e, int pattern, unsigned char **payloads) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        if (!gbx_is_output(&e->arguments[i]) || e->arguments[i].role == GBX_ROLE_INOUT)
            continue;
        if (!payloads[i] && !make_room(e, i, &payloads[i]))
            return false;
        gbx_picture_start(&e->picture, e->order, pattern, i, payloads[i]);
    }
    return true;
}

static bool begin(gbx_examining *e, gbx_worker *worker, const gbx_order *order,
                  gbx_answer *answer) {
    memset(e, 0, sizeof *e);
    e->worker = worker;
    e->order = order;
    e->arguments = gbx_order_arguments(order);
    e->answer = answer;
    if (gbx_picture_open(&e->picture, order, answer->error) == 0)
        return true;
    gbx_answer_fail(answer, GBX_ANSWER_NOT_MADE, answer->error);
    return false;
}

static void finish(gbx_examining *e) {
    gbx_picture_close(&e->picture);
    for (uint32_t i = 0; i < GBX_CALL_SLOTS; ++i) {
        free(e->first[i]);
        free(e->other[i]);
        free(e->start[i]);
        free(e->other_start[i]);
    }
}

/* --- findings --- */

static bool is_note(const gbx_task_finding *finding) {
    return finding->kind >= GBX_FIRST_NOTE;
}

/* The place of a note, the last of them; NULL if there is none. */
static gbx_task_finding *find_note(gbx_answer *answer) {
    for (uint32_t i = answer->finding_count; i > 0; --i)
        if (is_note(&answer->findings[i - 1]))
            return &answer->findings[i - 1];
    return NULL;
}

/* When all places are taken, a finding takes that of a note. */
void gbx_examining_add(gbx_examining *e, const gbx_task_finding *finding) {
    gbx_answer *answer = e->answer;
    if (answer->finding_count < GBX_TASK_FINDINGS) {
        answer->findings[answer->finding_count++] = *finding;
        return;
    }
    gbx_task_finding *note = is_note(finding) ? NULL : find_note(answer);
    if (note)
        *note = *finding;
    if (note || is_note(finding))
        answer->notes_left_out++;
    else
        answer->findings_left_out++;
}

static gbx_task_finding finding_of(gbx_finding_of kind, uint32_t argument) {
    return (gbx_task_finding){.kind = kind,
                              .argument = argument,
                              .element = GBX_NO_ELEMENT,
                              .parties = {GBX_NO_PARTY, GBX_NO_PARTY}};
}

/* Widens the extent of a finding by one element. */
static void add_element(const gbx_tensor *tensor, uint64_t number, gbx_task_finding *finding) {
    int64_t index[GBX_MAX_DIMS];
    int64_t bits = gbx_dtype_bits(tensor->dtype), at = tensor->start_offset;
    gbx_compare_index(tensor, number, index);
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        at += index[d] * tensor->strides[d];
    uint64_t begin = tensor->data + (uint64_t)(at * bits >> 3);
    uint64_t end = tensor->data + (uint64_t)((at * bits + bits + 7) >> 3);
    if (finding->elements++ == 0) {
        finding->element = number;
        finding->address = begin;
    }
    finding->last = number;
    finding->address = begin < finding->address ? begin : finding->address;
    finding->end = end > finding->end ? end : finding->end;
    finding->bytes = (finding->elements * (uint64_t)bits + 7) / 8;
}

static bool differ_at(const gbx_tensor *tensor, const unsigned char *one,
                      const unsigned char *other, uint64_t number) {
    return gbx_bits_element(tensor, one, number) != gbx_bits_element(tensor, other, number);
}

/* --- calls --- */

void gbx_examining_prepare(gbx_examining *e, int pattern) {
    gbx_picture_prepare(&e->picture, e->order, &e->worker->payloads, pattern, e->worker->scratch);
}

static void look_for_strays(gbx_examining *e) {
    gbx_picture_find_strays(&e->picture, e->order, e->worker->scratch, &e->strays);
    e->answer->stray_is_unknown = !e->picture.mirror;
}

static void keep_strays(gbx_examining *e) {
    e->answer->stray_bytes = e->strays.bytes;
    e->answer->stray_address = e->strays.address;
    e->answer->stray_end = e->strays.end;
}

static gbx_examining *examined; /* whose kernels may run now; NULL: none */

void gbx_examine_on_fault(void) {
    gbx_examining *e = examined;
    if (!e)
        return;
    examined = NULL;
    e->picture.is_abandoned = true;
    look_for_strays(e);
    keep_strays(e);
}

/* One finding for all bytes that any call changed outside of the outputs. */
static void report_strays(gbx_examining *e) {
    keep_strays(e);
    if (e->strays.bytes == 0)
        return;
    gbx_task_finding finding = finding_of(GBX_STRAY_WRITE, GBX_NO_ARGUMENT);
    e->answer->range_count =
        gbx_picture_list_strays(&e->picture, e->answer->ranges, GBX_STRAY_RANGES);
    finding.bytes = e->strays.bytes;
    finding.address = e->strays.address;
    finding.end = e->strays.end;
    gbx_examining_add(e, &finding);
}

/* A bit an argument: its bytes are those from before the call. */
static uint64_t find_unchanged(const gbx_examining *e, unsigned char *const *now,
                               unsigned char *const *starts) {
    uint64_t unchanged = 0;
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        const gbx_order_argument *argument = &e->arguments[i];
        uint64_t bytes = gbx_tensor_payload_bytes(&argument->tensor);
        if (!gbx_is_output(argument) || bytes == 0)
            continue;
        const unsigned char *before =
            starts[i] ? starts[i] : gbx_payload_before(&e->worker->payloads, argument);
        if (before && memcmp(now[i], before, bytes) == 0)
            unchanged |= UINT64_C(1) << i;
    }
    return unchanged;
}

static bool has_finding(const gbx_examining *e, gbx_finding_of kind, uint32_t argument) {
    for (uint32_t i = 0; i < e->answer->finding_count; ++i)
        if (e->answer->findings[i].kind == kind && e->answer->findings[i].argument == argument)
            return true;
    return false;
}

/* After the same call on the same memory: an element that differs is not determined by what the
 * kernel gets. True if all are the same. */
static bool is_repeated(gbx_examining *e, unsigned char *const *before) {
    bool is_same = true;
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        const gbx_tensor *tensor = &e->arguments[i].tensor;
        if (!gbx_is_output(&e->arguments[i]))
            continue;
        gbx_tensor_gather(tensor, gbx_picture_buffer(&e->picture, i), e->worker->scratch);
        const gbx_bits_payloads both = {.dump = e->worker->scratch, .replay = before[i]};
        gbx_bits_comparison bits = gbx_bits_compare(tensor, &both);
        is_same &= bits.mismatches == 0;
        if (bits.mismatches == 0 || has_finding(e, GBX_NOT_DETERMINISTIC, i) ||
            e->order->is_one_dispatch || e->order->is_in_flight)
            continue;
        gbx_task_finding finding = finding_of(GBX_NOT_DETERMINISTIC, i);
        for (uint64_t k = bits.first_bad; k <= bits.last_bad; ++k)
            if (differ_at(tensor, both.dump, both.replay, k))
                add_element(tensor, k, &finding);
        gbx_examining_add(e, &finding);
    }
    return is_same;
}

static bool run_again(gbx_examining *e, int pattern, unsigned char *const *before) {
    gbx_examining_prepare(e, pattern);
    if (!gbx_worker_call(e->worker, e->order, &e->picture, GBX_STEP_AGAIN, e->answer))
        return false;
    (void)is_repeated(e, before);
    look_for_strays(e);
    return true;
}

/* All runs with the first pattern, and their times. */
static bool run(gbx_examining *e) {
    gbx_answer *answer = e->answer;
    gbx_worker_board *board = e->worker->board;
    uint64_t runs = e->order->runs > 0 ? e->order->runs : 1;
    uint64_t *ns = calloc(runs, sizeof *ns);
    bool is_done = ns != NULL;
    if (!ns)
        gbx_answer_fail(answer, GBX_ANSWER_NOT_MADE, "out of memory");
    for (uint64_t i = 0; is_done && i < runs; ++i) {
        atomic_store_explicit(&board->run, (uint32_t)i + 1, memory_order_relaxed);
        gbx_examining_prepare(e, GBX_PATTERN_FIRST);
        is_done = (i > 0 || gather_starts(e, GBX_PATTERN_FIRST, e->start)) &&
                  gbx_worker_call(e->worker, e->order, &e->picture, GBX_STEP_RUN, answer);
        if (!is_done)
            break;
        ns[i] = e->worker->call.ns;
        if (i == 0)
            is_done = gather(e, e->first);
        else
            answer->different += !is_repeated(e, e->first);
        look_for_strays(e);
    }
    if (is_done) {
        answer->unchanged = find_unchanged(e, e->first, e->start);
        qsort(ns, runs, sizeof *ns, gbx_compare_u64);
        uint64_t low = ns[(runs - 1) / 2], high = ns[runs / 2];
        answer->runs = runs;
        answer->ns = low + (high - low) / 2;
        answer->min_ns = ns[0];
        answer->max_ns = ns[runs - 1];
    }
    free(ns);
    return is_done;
}

static bool run_other(gbx_examining *e) {
    gbx_examining_prepare(e, GBX_PATTERN_OTHER);
    if (!gather_starts(e, GBX_PATTERN_OTHER, e->other_start) ||
        !gbx_worker_call(e->worker, e->order, &e->picture, GBX_STEP_OTHER, e->answer) ||
        !gather(e, e->other))
        return false;
    e->answer->unchanged &= find_unchanged(e, e->other, e->other_start);
    look_for_strays(e);
    return true;
}

/* --- comparing --- */

static gbx_bits_payloads payloads_of(const gbx_examining *e, uint32_t i) {
    const gbx_payloads *payloads = &e->worker->payloads;
    bool has_before = e->order->is_one_dispatch && e->arguments[i].role == GBX_ROLE_INOUT;
    return (gbx_bits_payloads){
        .dump = e->order->is_in_flight ? NULL : gbx_payload_after(payloads, &e->arguments[i]),
        .replay = e->first[i],
        .other = e->other[i],
        .start = e->start[i],
        .other_start = e->other_start[i],
        .before = has_before ? gbx_payload_before(payloads, &e->arguments[i]) : NULL};
}

/* Adds a row of elements to the last gap of its argument, if it continues it. */
static bool continue_gap(gbx_written_gap *last, uint64_t first, uint64_t count) {
    uint64_t step = last->times == 1 ? first - last->first : last->step;
    if (count != last->count || first != last->first + step * last->times)
        return false;
    last->step = step;
    last->times++;
    return true;
}

/* Outputs share the room; what does not fit is not listed. */
static void add_gap(gbx_examining *e, uint32_t argument, uint32_t begin, uint64_t first,
                    uint64_t count) {
    gbx_answer *answer = e->answer;
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < e->order->argument_count; ++i)
        outputs += gbx_is_output(&e->arguments[i]);
    if (answer->gap_count > begin &&
        continue_gap(&answer->gaps[answer->gap_count - 1], first, count))
        return;
    if (answer->gap_count - begin < GBX_WRITTEN_GAPS / outputs)
        answer->gaps[answer->gap_count++] = (gbx_written_gap){
            .argument = argument, .first = first, .count = count, .step = count, .times = 1};
    else
        answer->unlisted |= UINT64_C(1) << argument;
}

/* Elements that were not written: where they lie, and as gaps. */
static void list_unwritten(gbx_examining *e, uint32_t argument) {
    const gbx_tensor *tensor = &e->arguments[argument].tensor;
    const gbx_bits_payloads payloads = payloads_of(e, argument);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor), row = 0;
    uint32_t begin = e->answer->gap_count;
    gbx_task_finding all = finding_of(GBX_UNWRITTEN, argument);
    for (uint64_t i = 0; i < count; ++i) {
        if (!gbx_bits_is_written(tensor, &payloads, i)) {
            add_element(tensor, i, &all);
            ++row;
        } else if (row > 0) {
            add_gap(e, argument, begin, i - row, row);
            row = 0;
        }
    }
    if (row > 0)
        add_gap(e, argument, begin, count - row, row);
    e->answer->outputs[argument].unwritten = all;
}

static void compare(gbx_examining *e) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        if (!gbx_is_output(&e->arguments[i]))
            continue;
        const gbx_bits_payloads payloads = payloads_of(e, i);
        gbx_bits_comparison bits = gbx_bits_compare(&e->arguments[i].tensor, &payloads);
        e->answer->outputs[i].bits = bits;
        if (e->order->is_one_dispatch || e->order->is_in_flight)
            continue;
        if (e->order->dispatch_count == 1)
            gbx_examining_add_unstable(e, i, &bits);
        if (bits.not_written > 0)
            list_unwritten(e, i);
    }
}

void gbx_examining_add_unstable(gbx_examining *e, uint32_t argument,
                                const gbx_bits_comparison *bits) {
    if (bits->unstable == 0 || has_finding(e, GBX_NOT_DETERMINISTIC, argument))
        return;
    const gbx_tensor *tensor = &e->arguments[argument].tensor;
    const gbx_bits_payloads payloads = payloads_of(e, argument);
    gbx_task_finding finding = finding_of(GBX_UNDECLARED_READ, argument);
    for (uint64_t i = bits->first_unstable; i <= bits->last_unstable; ++i)
        if (gbx_bits_is_written(tensor, &payloads, i) &&
            differ_at(tensor, payloads.replay, payloads.other, i))
            add_element(tensor, i, &finding);
    gbx_examining_add(e, &finding);
}

/* Dispatches that wait for each other run side by side, where chance can look like an undeclared
 * read: only what always comes out again counts. */
static bool confirm_unstable(gbx_examining *e) {
    bool is_any = false;
    for (uint32_t i = 0; i < e->order->argument_count; ++i)
        is_any |= gbx_is_output(&e->arguments[i]) && e->answer->outputs[i].bits.unstable > 0;
    for (int i = 0; is_any && i < CONFIRMATIONS; ++i) {
        if (!run_again(e, GBX_PATTERN_OTHER, e->other) ||
            !run_again(e, GBX_PATTERN_FIRST, e->first))
            return false;
    }
    for (uint32_t i = 0; is_any && i < e->order->argument_count; ++i)
        if (gbx_is_output(&e->arguments[i]))
            gbx_examining_add_unstable(e, i, &e->answer->outputs[i].bits);
    return true;
}

/* The first results, the others, and what was there before each. */
static void keep(const gbx_examining *e) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        uint64_t bytes = gbx_tensor_payload_bytes(&e->arguments[i].tensor);
        const unsigned char *const all[] = {e->first[i], e->other[i], e->start[i],
                                            e->other_start[i]};
        if (!gbx_is_output(&e->arguments[i]) || e->arguments[i].kept == GBX_NO_PAYLOAD ||
            bytes == 0)
            continue;
        for (size_t k = 0; k < sizeof all / sizeof all[0]; ++k)
            if (all[k] && e->arguments[i].kept + (k + 1) * bytes <= e->worker->payloads.kept_bytes)
                memcpy(e->worker->payloads.kept + e->arguments[i].kept + k * bytes, all[k], bytes);
    }
}

static bool ask(gbx_examining *e) {
    const gbx_order *order = e->order;
    e->answer->order = order->dispatch_count > 1 ? GBX_ORDER_NOT_ASKED : GBX_ORDER_SINGLE;
    if (!run(e))
        return false;
    bool is_asked = !order->is_one_dispatch && !order->is_in_flight;
    if (is_asked && e->answer->runs == 1 && !run_again(e, GBX_PATTERN_FIRST, e->first))
        return false;
    if (!order->is_in_flight && !run_other(e))
        return false;
    report_strays(e);
    compare(e);
    keep(e);
    if (!is_asked || order->dispatch_count == 1)
        return true;
    gbx_examine_apart(e);
    return e->answer->order == GBX_ORDER_ASKED || confirm_unstable(e);
}

void gbx_examine(gbx_worker *worker, const gbx_order *order, gbx_answer *answer) {
    static gbx_examining e; /* too large for a stack */
    if (!begin(&e, worker, order, answer))
        return;
    examined = &e;
    bool is_done = ask(&e);
    examined = NULL;
    finish(&e);
    if (is_done)
        atomic_store_explicit(&answer->state, GBX_ANSWER_FULL, memory_order_release);
}

/* --- references --- */

/* False if an output still holds what it held before the call: it may not have been written. */
static bool is_all_written(const gbx_examining *e) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i)
        if (gbx_is_output(&e->arguments[i]) && e->start[i] &&
            gbx_bits_share_element(&e->arguments[i].tensor, e->first[i], e->start[i]))
            return false;
    return true;
}

/* Compares the outputs of the dump with those of the references; false if one is not near. Changes
 * the payloads: elements that are not written count as equal. */
static bool compare_want(gbx_examining *e, bool has_other) {
    bool is_near = true;
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        const gbx_order_argument *argument = &e->arguments[i];
        const unsigned char *got = gbx_payload_after(&e->worker->payloads, argument);
        gbx_answer_output *output = &e->answer->outputs[i];
        *output = (gbx_answer_output){0};
        if (!gbx_is_output(argument) || !got)
            continue;
        memcpy(e->worker->scratch, got, gbx_tensor_payload_bytes(&argument->tensor));
        if (has_other && e->start[i]) {
            const void *const starts[2] = {e->start[i], e->other_start[i]};
            output->not_written = gbx_not_written_clear(&argument->tensor, e->first[i], e->other[i],
                                                        starts, e->worker->scratch);
        }
        if (has_other)
            e->answer->is_unsteady |=
                gbx_compare(&argument->tensor, e->other[i], e->first[i], &argument->tolerance)
                    .mismatches > 0;
        output->comparison =
            gbx_compare(&argument->tensor, e->worker->scratch, e->first[i], &argument->tolerance);
        output->comparison.elements -= output->not_written;
        is_near &= output->comparison.mismatches == 0;
    }
    return is_near;
}

/* No kernel is accused on one result of its references. */
static bool want(gbx_examining *e) {
    gbx_examining_prepare(e, GBX_PATTERN_FIRST);
    if (!gather_starts(e, GBX_PATTERN_FIRST, e->start) ||
        !gbx_worker_call(e->worker, e->order, &e->picture, GBX_STEP_RUN, e->answer) ||
        !gather(e, e->first))
        return false;
    look_for_strays(e);
    keep(e);
    bool has_doubt = !is_all_written(e) || !compare_want(e, false);
    if (has_doubt && !run_other(e))
        return false;
    if (has_doubt)
        compare_want(e, true);
    report_strays(e);
    return true;
}

void gbx_examine_want(gbx_worker *worker, const gbx_order *order, gbx_answer *answer) {
    static gbx_examining e; /* too large for a stack */
    if (!begin(&e, worker, order, answer))
        return;
    bool is_done = want(&e);
    finish(&e);
    if (is_done)
        atomic_store_explicit(&answer->state, GBX_ANSWER_FULL, memory_order_release);
}
