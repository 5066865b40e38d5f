#include <inttypes.h>

#include "report/reports.h"
#include "report/table.h"

/* What is said of a verdict. */
typedef struct words {
    const char *json;
    const char *text;
    const char *of_many; /* after a number */
    const char *colour;
    int exit_code;
} words;

static const words words_of[GBX_REPLAY_VERDICT_COUNT] = {
    [GBX_REPLAY_EXACT] = {"bit_exact", "bit exact", "bit exact", GBX_GREEN, GBX_EXIT_OK},
    [GBX_REPLAY_PARTLY] = {"equal_where_written", "equal where written", "equal where written",
                           GBX_YELLOW, GBX_EXIT_OK},
    [GBX_REPLAY_DIFFERS] = {"differs", "differs", "differ", GBX_RED, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOTHING_WRITTEN] = {"nothing_written", "writes nothing", "write nothing", GBX_RED,
                                    GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOT_COMPARED] = {"not_compared", "not compared", "not compared", GBX_YELLOW,
                                 GBX_EXIT_DIFFERS},
    [GBX_REPLAY_FAULT] = {"fault", "fault", "crash or hang", GBX_RED, GBX_EXIT_DEVICE},
    [GBX_REPLAY_REFUSED] = {"not_replayed", "not replayed", "not replayed", GBX_RED,
                            GBX_EXIT_USAGE}};

/* Of another kernel. */
static const gbx_name judgements[GBX_SWAP_JUDGEMENT_COUNT] = {
    [GBX_SWAP_FIXED] = {"fixed", "fixed: right", NULL},
    [GBX_SWAP_RIGHT] = {"right", "right", NULL},
    [GBX_SWAP_STILL_WRONG] = {"still_wrong", "still wrong", NULL},
    [GBX_SWAP_BROKEN] = {"broken", "wrong, but the old kernel was right", NULL},
    [GBX_SWAP_WRONG] = {"wrong", "wrong", NULL},
    [GBX_SWAP_NOT_JUDGED] = {"not_judged", "not judged", NULL}};

const char *gbx_replay_verdict_name(gbx_replay_verdict verdict) {
    return words_of[verdict].json;
}

int gbx_replay_exit_code(const gbx_replay_result *result) {
    bool is_bad = result->times.different > 0 || result->finding_count > result->note_count;
    return gbx_exit_worse(words_of[result->verdict].exit_code,
                          is_bad ? GBX_EXIT_DIFFERS : GBX_EXIT_OK);
}

/* Without a judgement it counts whether something changed. What the new kernel of a task does not
 * write, the old one may have written. */
int gbx_replay_swap_exit_code(const gbx_replay_swap *swap) {
    gbx_replay_verdict verdict = swap->result.verdict;
    bool is_right = swap->judgement <= GBX_SWAP_RIGHT && swap->result.times.different == 0 &&
                    swap->result.finding_count == swap->result.note_count;
    if (verdict != GBX_REPLAY_FAULT && swap->judgement != GBX_SWAP_NOT_JUDGED)
        return is_right ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    if (verdict == GBX_REPLAY_PARTLY && swap->result.dispatch < 0)
        return GBX_EXIT_DIFFERS;
    return gbx_replay_exit_code(&swap->result);
}

/* --- rows: outputs --- */

typedef struct output_row {
    gbx_replay_compared of;
    const char *verdict;
    const char *note; /* of another kernel */
    bool is_bad;      /* compared, and an element differs */
} output_row;

#define OUTPUT(member, kind, key, ...) GBX_FIELD(output_row, of.member, kind, key, __VA_ARGS__)
#define OUTPUT_IF(known, member, kind, key, ...)                                                   \
    GBX_FIELD_IF(output_row, known, of.member, kind, key, __VA_ARGS__)
static const gbx_field output_fields[] = {
    OUTPUT(slot, NUMBER, "arg_index", "ARG"),
    OUTPUT(name, STRING, "name", "NAME", .narrowest = 6, .leaves = 6),
    OUTPUT(tensor.dtype, DTYPE, "dtype", "DTYPE", .leaves = 1),
    OUTPUT(tensor, SHAPE, "shape", "SHAPE", .narrowest = 6, .leaves = 2),
    GBX_FIELD(output_row, verdict, STRING, NULL, "VERDICT"),
    OUTPUT(is_compared, BOOL, "is_compared", NULL),
    OUTPUT(is_exact, BOOL, "bit_exact", NULL),
    OUTPUT(is_unchanged, BOOL, "is_unchanged", NULL),
    OUTPUT(bits.elements, COUNT, "elements", NULL),
    OUTPUT_IF(of.is_compared, bits.mismatches, COUNT, "mismatches", "MISMATCHES",
              .hides_zero = true, .leaves = 5),
    OUTPUT(bits.not_written, COUNT, "not_written", "NOT WRITTEN", .hides_zero = true, .leaves = 4),
    OUTPUT(bits.unstable, COUNT, "unstable", NULL),
    OUTPUT_IF(of.is_compared, bits.max_abs, F64, "max_abs", NULL),
    OUTPUT_IF(is_bad, bits.max_abs, F64, NULL, "MAX ABS", .leaves = 3),
    OUTPUT_IF(is_bad, bits.first_bad, INDEX, "first_bad", "FIRST",
              .with = offsetof(output_row, of.tensor)),
    OUTPUT_IF(is_bad, bits.dump_bits, ELEMENT, "dump", "DUMP",
              .with = offsetof(output_row, of.tensor.dtype)),
    OUTPUT_IF(is_bad, bits.replay_bits, ELEMENT, "replay", "REPLAY",
              .with = offsetof(output_row, of.tensor.dtype)),
    OUTPUT_IF(is_bad, bits.dump_bits, HEX, "dump_bits", NULL),
    OUTPUT_IF(is_bad, bits.replay_bits, HEX, "replay_bits", NULL)};

/* The table of another kernel; its JSON is that above. */
static const gbx_field swap_fields[] = {
    OUTPUT(slot, NUMBER, NULL, "ARG"),
    OUTPUT(name, STRING, NULL, "NAME", .narrowest = 6, .leaves = 5),
    OUTPUT(tensor.dtype, DTYPE, NULL, "DTYPE", .leaves = 1),
    OUTPUT(tensor, SHAPE, NULL, "SHAPE", .narrowest = 6, .leaves = 2),
    OUTPUT(bits.elements, COUNT, NULL, "ELEMENTS", .leaves = 3),
    OUTPUT_IF(of.is_compared, bits.mismatches, COUNT, NULL, "CHANGED"),
    OUTPUT_IF(is_bad, bits.max_abs, F64, NULL, "MAX ABS", .leaves = 4),
    OUTPUT(bits.not_written, COUNT, NULL, "NOT WRITTEN", .hides_zero = true),
    GBX_FIELD(output_row, note, STRING, NULL, "NOTE", .narrowest = 6)};

static const char *output_verdict(const gbx_replay_compared *output) {
    if (!output->is_compared)
        return "not in the dump";
    if (output->bits.mismatches > 0)
        return words_of[GBX_REPLAY_DIFFERS].text;
    if (output->is_exact)
        return words_of[GBX_REPLAY_EXACT].text;
    return output->bits.not_written == output->bits.elements ? "not written"
                                                             : words_of[GBX_REPLAY_PARTLY].text;
}

static gbx_status make_output(const void *outputs, uint64_t number, void *out_row) {
    const gbx_replay_compared *output = (const gbx_replay_compared *)outputs + number;
    *(output_row *)out_row =
        (output_row){.of = *output,
                     .verdict = output_verdict(output),
                     .note = output->is_compared ? "" : "the dump lacks what the old kernel left",
                     .is_bad = output->is_compared && output->bits.mismatches > 0};
    return NULL;
}

/* --- rows: elements of another kernel --- */

typedef struct element_row {
    gbx_swap_element of;
    gbx_replay_compared output;
} element_row;

#define ELEMENT_IF(has, member, key, heading, ...)                                                 \
    GBX_FIELD_IF(element_row, of.has, of.member, ELEMENT, key, heading,                            \
                 .with = offsetof(element_row, output.tensor.dtype), __VA_ARGS__)
static const gbx_field element_fields[] = {
    GBX_FIELD(element_row, output.slot, NUMBER, "arg_index", "ARG"),
    GBX_FIELD(element_row, output.name, STRING, NULL, "NAME", .narrowest = 6, .leaves = 1),
    GBX_FIELD(element_row, of.number, INDEX, "index", "INDEX",
              .with = offsetof(element_row, output.tensor)),
    ELEMENT_IF(has_old, old_bits, "old", "OLD (DUMP)", ),
    ELEMENT_IF(has_new, new_bits, "new", "NEW", .absent = "not written"),
    ELEMENT_IF(has_expected, expected_bits, "expected", "EXPECTED", )};

static gbx_status make_element(const void *context, uint64_t number, void *out_row) {
    const gbx_replay_swap *swap = context;
    const gbx_swap_element *element = &swap->elements[number];
    *(element_row *)out_row = (element_row){*element, swap->result.outputs[element->output]};
    return NULL;
}

/* --- rows: tasks --- */

typedef struct task_row {
    gbx_replay_result of;
    gbx_replay_sums sums;
    words verdict;
    bool is_one_dispatch;
    bool is_replayed;
    bool has_returned;
    bool is_repeated;
    bool is_end_known;
    bool is_stray_known;
    bool has_stray_argument;
    bool has_fault;
    gbx_replay_fault fault;
    uint32_t finding_count; /* without notes */
    const char *order;
    const char *note;
} task_row;

#define TASK(member, kind, key, ...) GBX_FIELD(task_row, member, kind, key, __VA_ARGS__)
#define TASK_IF(known, member, kind, key, ...)                                                     \
    GBX_FIELD_IF(task_row, known, member, kind, key, __VA_ARGS__)
static const gbx_field task_fields[] = {
    TASK(of.task, NUMBER, "task_seq", "TASK"),
    TASK(of.task_id, HEX, "task_id", NULL),
    TASK(of.kernel, TEXT, "kernel", "KERNEL", .narrowest = 6),
    TASK_IF(is_one_dispatch, of.dispatch, I64, "dispatch", NULL),
    TASK_IF(is_replayed, of.dispatch_count, COUNT, "dispatches", NULL),
    TASK_IF(has_returned, sums.outputs, NUMBER, NULL, "OUTPUTS", .leaves = 2),
    TASK_IF(has_returned, sums.elements, COUNT, NULL, "ELEMENTS", .leaves = 3),
    TASK(verdict.json, STRING, "verdict", NULL),
    TASK(verdict.text, STRING, NULL, "VERDICT"),
    TASK(of.refusal.sentence, STRING, "reason", NULL),
    TASK(sums.mismatches, COUNT, NULL, "MISMATCHES", .hides_zero = true, .leaves = 5),
    TASK(sums.not_written, COUNT, NULL, "NOT WRITTEN", .hides_zero = true, .leaves = 4),
    TASK(finding_count, COUNT, NULL, "FINDINGS", .hides_zero = true, .leaves = 6),
    TASK_IF(has_returned, of.times.median_ns, NS, NULL, "TIME", .leaves = 1),
    TASK(note, STRING, NULL, "NOTE", .narrowest = 6)};
static const gbx_field fault_fields[] = {
    TASK(fault.text, TEXT, "text", NULL),
    TASK(fault.is_hang, BOOL, "is_hang", NULL),
    TASK(fault.signal, NUMBER, "signal", NULL),
    TASK_IF(fault.has_address, fault.address, HEX, "address", NULL),
    TASK(fault.dispatch, NUMBER, "dispatch", NULL),
    TASK_IF(of.fault_run, of.fault_run, NUMBER, "run", NULL),
    TASK_IF(is_end_known, of.is_end_of_run, BOOL, "as_in_the_run", NULL),
    TASK(of.is_other_poison, BOOL, "with_other_poison_only", NULL)};
static const gbx_field repeat_fields[] = {
    TASK(of.times.runs, COUNT, "runs", NULL), TASK(of.times.min_ns, NS, "min_ns", NULL),
    TASK(of.times.median_ns, NS, "median_ns", NULL), TASK(of.times.max_ns, NS, "max_ns", NULL),
    TASK(of.times.different, COUNT, "different", NULL)};
static const gbx_field effect_fields[] = {
    TASK_IF(of.times.runs, of.times.median_ns, NS, "ns_per_call", NULL),
    GBX_OBJECT("repeat", repeat_fields, GBX_KNOWN_IF(task_row, is_repeated)),
    TASK_IF(is_stray_known, of.stray_bytes, COUNT, "stray_bytes", NULL),
    TASK_IF(of.stray_bytes, of.stray_address, HEX, "stray_address", NULL),
    TASK_IF(has_stray_argument, of.stray_argument, I64, "stray_argument", NULL),
    TASK(order, STRING, "order", NULL),
    TASK_IF(has_returned, of.flags_are_unknown, BOOL, "flags_are_unknown", NULL),
    TASK_IF(is_replayed, of.findings_left_out, COUNT, "findings_left_out", NULL),
    TASK_IF(is_replayed, of.notes_left_out, COUNT, "notes_left_out", NULL),
    TASK_IF(is_replayed, of.did_complete, BOOL, "did_complete", NULL),
    TASK_IF(is_replayed, of.is_relocated, BOOL, "is_relocated", NULL),
    TASK_IF(is_replayed, of.has_core_ids, BOOL, "has_core_ids", NULL)};

/* Whether dispatches were called one at a time, in both orders; in JSON. */
static const char *const order_names[] = {
    [GBX_ORDER_SINGLE] = "one_dispatch", [GBX_ORDER_ASKED] = "asked",
    [GBX_ORDER_WAITS] = "they_wait",     [GBX_ORDER_SPINS] = "they_spin",
    [GBX_ORDER_TOO_LARGE] = "too_large", [GBX_ORDER_FAILS] = "one_fails",
    [GBX_ORDER_NO_MEMORY] = "no_memory", [GBX_ORDER_NOT_ASKED] = "not_asked"};

/* The line says which task it is. */
static const char *refusal_reason(const gbx_replay_result *result) {
    return result->refusal.reason ? result->refusal.reason : "the host is out of memory";
}

static const char *task_note(gbx_texts *t, const gbx_replay_result *result,
                             const gbx_replay_sums *sums) {
    if (result->verdict == GBX_REPLAY_REFUSED)
        return refusal_reason(result);
    if (result->fault)
        return result->fault->text;
    if (result->finding_count > result->note_count)
        for (uint32_t i = 0; i < result->finding_count; ++i)
            if (!gbx_replay_is_note(&result->findings[i]))
                return gbx_replay_finding_names[result->findings[i].is.kind];
    if (result->verdict != GBX_REPLAY_NOT_COMPARED && sums->not_compared > 0)
        return gbx_text_format(t, "%s not compared",
                               gbx_text_counted(t, sums->not_compared, "output"));
    return result->times.different > 0 ? "not the same in all runs"
           : sums->unchanged > 0       ? "output unchanged by the call"
                                       : "";
}

typedef struct task_source {
    gbx_sink *sink;
    const gbx_replay_result *results;
} task_source;

static gbx_status make_task(const void *context, uint64_t number, void *out_row) {
    const task_source *source = context;
    const gbx_replay_result *result = &source->results[number];
    bool is_replayed = result->verdict != GBX_REPLAY_REFUSED;
    task_row *row = out_row;
    *row = (task_row){.of = *result,
                      .sums = gbx_replay_result_sums(result),
                      .verdict = words_of[result->verdict],
                      .is_one_dispatch = result->dispatch >= 0,
                      .is_replayed = is_replayed,
                      .has_returned = is_replayed && result->verdict != GBX_REPLAY_FAULT,
                      .is_repeated = result->times.runs > 1,
                      .is_end_known = !result->is_end_unknown,
                      .is_stray_known = is_replayed && !result->fault && !result->stray_is_unknown,
                      .has_stray_argument = result->stray_argument >= 0,
                      .has_fault = result->fault != NULL,
                      .finding_count = result->finding_count - result->note_count,
                      .order =
                          order_names[result->order <= GBX_ORDER_NOT_ASKED ? result->order
                                                                           : GBX_ORDER_NOT_ASKED]};
    if (result->fault)
        row->fault = *result->fault;
    row->note = task_note(&source->sink->texts, result, &row->sums);
    return NULL;
}

/* --- text: the first line --- */

static const char *word(gbx_sink *sink, gbx_replay_verdict verdict, const char *text) {
    return gbx_sink_colour(sink, words_of[verdict].colour, text);
}

static void print_differs(gbx_sink *sink, const gbx_replay_result *result,
                          const gbx_replay_sums *sums) {
    gbx_texts *t = &sink->texts;
    size_t i = 0;
    while (i + 1 < result->output_count && result->outputs[i].bits.mismatches == 0)
        ++i;
    const gbx_replay_compared *output = &result->outputs[i];
    gbx_sink_print(sink, ": %s of %s %s not match the dump, the first in argument %s at %s",
                   gbx_text_count(t, sums->mismatches),
                   gbx_text_counted(t, sums->elements, "element"),
                   gbx_text_verb(sums->mismatches, "does", "do"),
                   gbx_text_shown(t, gbx_text_arg(t, output->slot, output->name)),
                   gbx_text_index(t, &output->tensor, output->bits.first_bad));
}

static void print_not_compared(gbx_sink *sink, const gbx_replay_result *result,
                               const char *run_end) {
    bool has_end = !result->did_complete && run_end[0];
    const char *what =
        result->did_complete ? "ran, not compared" : "returned this time, not compared";
    const char *why =
        !result->did_complete
            ? "it did not complete in the recorded run, and its outputs were in flight"
        : result->output_count > 0 ? "the dump lacks its outputs"
                                   : "it has no outputs";
    gbx_sink_print(sink, "%s: %s%s%s%s", word(sink, GBX_REPLAY_NOT_COMPARED, what), why,
                   has_end ? " (" : "", has_end ? gbx_text_shown(&sink->texts, run_end) : "",
                   has_end ? ")" : "");
}

/* "kernel x crashed (...): SIGSEGV...; as in the recorded run: ..."; without a line's end. `who`
 * completed there. */
static void print_fault(gbx_sink *sink, const gbx_replay_result *result, const char *run_end,
                        const char *who) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "%s", gbx_text_shown(t, result->fault->text));
    if (result->fault_run > 0)
        gbx_sink_print(sink, ", in run %" PRIu64, result->fault_run);
    if (result->is_other_poison)
        gbx_sink_print(sink, "; only with the other pattern: it depends on bytes that it was not "
                             "given");
    if (result->did_complete) {
        gbx_sink_print(sink, "; in the recorded run %s completed%s", who,
                       result->dispatch >= 0 && result->fault->is_hang
                           ? ": one dispatch may wait for others; replay without --dispatch"
                           : "");
        return;
    }
    gbx_sink_print(sink, "; %sin the recorded run%s%s%s%s", result->is_end_of_run ? "as " : "",
                   result->is_end_of_run ? "" : " it did not complete", run_end[0] ? ": " : "",
                   gbx_text_shown(t, run_end),
                   result->is_end_unknown ? " (the dump does not record whether that was this task)"
                                          : "");
}

/* The end of the first line: "; in 4 of 5 runs it left other bits than in the first; 1 finding" */
static void print_runs(gbx_sink *sink, const gbx_replay_result *result) {
    uint32_t findings = result->finding_count - result->note_count;
    if (result->times.runs > 1 && result->times.different > 0)
        gbx_sink_print(sink, "; in %s of %s runs it left other bits than in the first",
                       gbx_text_count(&sink->texts, result->times.different),
                       gbx_text_count(&sink->texts, result->times.runs));
    if (findings > 0)
        gbx_sink_print(
            sink, "; %s",
            gbx_sink_colour(sink, GBX_RED, gbx_text_counted(&sink->texts, findings, "finding")));
    gbx_sink_print(sink, "\n");
}

static void print_head(gbx_sink *sink, const gbx_replay_result *result, const gbx_replay_sums *sums,
                       const char *run_end) {
    gbx_texts *t = &sink->texts;
    const char *elements = gbx_text_counted(t, sums->elements, "element");
    uint64_t written = sums->elements - sums->not_written;
    gbx_sink_print(sink, "%s: ", gbx_text_shown(t, result->title));
    if (result->verdict == GBX_REPLAY_FAULT)
        print_fault(sink, result, run_end, "it");
    else if (result->verdict == GBX_REPLAY_NOT_COMPARED)
        print_not_compared(sink, result, run_end);
    else
        gbx_sink_print(sink, "%s", word(sink, result->verdict, words_of[result->verdict].text));
    if (result->verdict == GBX_REPLAY_EXACT)
        gbx_sink_print(sink, ": the replay matches the dump (%s, %s)",
                       gbx_text_counted(t, sums->outputs, "output"), elements);
    else if (result->verdict == GBX_REPLAY_PARTLY)
        gbx_sink_print(sink, ": %s %s the dump; %s does not write the other %s",
                       gbx_text_counted(t, written, "element"),
                       gbx_text_verb(written, "matches", "match"),
                       result->dispatch >= 0 ? "this dispatch" : "the kernel",
                       gbx_text_count(t, sums->not_written));
    else if (result->verdict == GBX_REPLAY_DIFFERS)
        print_differs(sink, result, sums);
    else if (result->verdict == GBX_REPLAY_NOTHING_WRITTEN)
        gbx_sink_print(sink, ": its outputs have %s", elements);
    if (result->verdict <= GBX_REPLAY_NOTHING_WRITTEN && sums->not_compared > 0)
        gbx_sink_print(sink, "; %s not compared, because the dump lacks %s",
                       gbx_text_counted(t, sums->not_compared, "output"),
                       gbx_text_verb(sums->not_compared, "it", "them"));
    if (result->verdict <= GBX_REPLAY_NOTHING_WRITTEN && sums->unchanged > 0)
        gbx_sink_print(sink, "; %s unchanged by the call",
                       gbx_text_counted(t, sums->unchanged, "output"));
    print_runs(sink, result);
}

/* --- text: the lines below the table --- */

static void print_times(gbx_sink *sink, const gbx_replay_times *times) {
    gbx_texts *t = &sink->texts;
    if (times->runs < 2)
        return;
    gbx_sink_print(sink, "%s runs: %s median, %s to %s; %s\n", gbx_text_count(t, times->runs),
                   gbx_text_ns(t, times->median_ns), gbx_text_ns(t, times->min_ns),
                   gbx_text_ns(t, times->max_ns),
                   times->different == 0 ? "all left the same bits"
                                         : gbx_text_format(t, "%s left other bits than the first",
                                                           gbx_text_count(t, times->different)));
}

/* Why the order of dispatches was not asked about; NULL if it was, or if there is only one. */
static const char *why_no_order(const gbx_replay_result *result) {
    switch (result->order) {
    case GBX_ORDER_WAITS:
        return "its blocks wait for each other";
    case GBX_ORDER_SPINS:
        return "a block alone does not return, and does not yield while it waits";
    case GBX_ORDER_TOO_LARGE:
        return "it has too many blocks or too large outputs";
    case GBX_ORDER_FAILS:
        return "a block called alone fails";
    case GBX_ORDER_NO_MEMORY:
        return "memory or processes ran out";
    case GBX_ORDER_NOT_ASKED:
        return result->dispatch < 0 && result->did_complete && !result->fault
                   ? "a block called alone fails"
                   : NULL;
    default:
        return NULL;
    }
}

static bool has_race(const gbx_replay_result *result) {
    for (uint32_t i = 0; i < result->finding_count; ++i)
        if (result->findings[i].is.kind == GBX_WRITE_RACE ||
            result->findings[i].is.kind == GBX_READ_RACE)
            return true;
    return false;
}

/* One line for each finding, then each note; what was not asked; how long it took. */
static void print_notes(const gbx_replay_reporting *r, const gbx_replay_result *result) {
    gbx_sink *sink = r->sink;
    gbx_texts *t = &sink->texts;
    for (int are_notes = 0; are_notes < 2; ++are_notes)
        for (uint32_t i = 0; i < result->finding_count; ++i)
            if (gbx_replay_is_note(&result->findings[i]) == are_notes)
                gbx_sink_print(sink, "%s: %s\n",
                               are_notes ? gbx_sink_colour(sink, GBX_YELLOW, "note")
                                         : gbx_sink_colour(sink, GBX_RED, "finding"),
                               gbx_text_finding(t, r->reader, result, &result->findings[i]));
    gbx_sink_count(sink, "not listed: ", result->findings_left_out, "more finding", "");
    gbx_sink_count(sink, "not listed: ", result->notes_left_out, "more note", "");
    if (why_no_order(result))
        gbx_sink_print(sink, "not asked: %s, because %s\n",
                       has_race(result) ? "whether its blocks race in other ways"
                                        : "whether its blocks race",
                       why_no_order(result));
    if (result->flags_are_unknown)
        gbx_sink_print(sink, "not asked: whether flags of earlier tasks satisfy its waits, because "
                             "a block called alone fails, hangs or takes too long\n");
    print_times(sink, &result->times);
    if (result->stray_is_unknown)
        gbx_sink_print(sink, "not asked: writes outside its outputs, because its tensors are too "
                             "large\n");
    if (result->is_relocated)
        gbx_sink_print(sink, "tensors are at other addresses than in the run: the dump lacks the "
                             "addresses, or no chip has them\n");
}

static gbx_status print_text(const gbx_replay_reporting *r, const gbx_replay_result *result) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    gbx_sink *sink = r->sink;
    output_row row;
    print_head(sink, result, &sums, r->run_end);
    if (result->verdict != GBX_REPLAY_FAULT)
        GBX_TRY(gbx_rows_print(
            sink,
            GBX_ROWS_MADE(output_fields, result->outputs, result->output_count, make_output, &row),
            1));
    if (result->dispatch < 0)
        gbx_sink_count(sink, "not compared: ", sums.not_written, "element",
                       " that the kernel does not write; there the dump holds what was in memory "
                       "before");
    /* Where the same bits come out whatever the outputs held before, but not those of the dump. */
    if (result->verdict == GBX_REPLAY_DIFFERS && sums.unstable == 0)
        gbx_sink_print(sink,
                       "possible causes: the kernel reads what the dump lacks: memory outside its "
                       "arguments, static variables, buffer_bytes of a tensor (0 here)%s; another "
                       "task wrote to its tensors while it ran; the dump was changed (run glassbox "
                       "verify)\n",
                       result->has_core_ids
                           ? ""
                           : ", core_id (a guess, because the run was without --dump-args)");
    print_notes(r, result);
    return NULL;
}

/* --- text: several tasks --- */

const char *gbx_replay_verdict_text(gbx_sink *sink, gbx_replay_verdict verdict, uint64_t count) {
    const words *w = &words_of[verdict];
    return word(sink, verdict, count == 1 ? w->text : w->of_many);
}

gbx_status gbx_replay_print_rows(const gbx_replay_reporting *r, const gbx_replay_result *results,
                                 uint64_t count) {
    const task_source source = {r->sink, results};
    task_row row;
    return gbx_rows_print(r->sink, GBX_ROWS_MADE(task_fields, &source, count, make_task, &row), 1);
}

/* --- text: another kernel --- */

static void print_judged(gbx_sink *sink, const gbx_replay_swap *swap) {
    gbx_texts *t = &sink->texts;
    bool is_right = swap->judgement <= GBX_SWAP_RIGHT;
    gbx_sink_print(sink, "%s",
                   word(sink, is_right ? GBX_REPLAY_EXACT : GBX_REPLAY_DIFFERS,
                        judgements[swap->judgement].brief));
    if (is_right)
        gbx_sink_print(sink, " for its inputs according to the reference");
    else
        gbx_sink_print(sink, ": %s %s not match the reference",
                       gbx_text_counted(t, swap->wrong, "element"),
                       gbx_text_verb(swap->wrong, "does", "do"));
    gbx_sink_print(sink, " (rtol %s, atol %s)", gbx_text_exact(t, swap->rtol),
                   gbx_text_exact(t, swap->atol));
}

static gbx_status print_swap(const gbx_replay_reporting *r, const gbx_replay_swap *swap,
                             const char *files) {
    const gbx_replay_result *result = &swap->result;
    gbx_sink *sink = r->sink;
    gbx_texts *t = &sink->texts;
    output_row output;
    element_row element;
    gbx_sink_print(sink, "%s with %s: ", gbx_text_shown(t, result->title),
                   gbx_text_shown(t, files));
    if (result->verdict == GBX_REPLAY_FAULT)
        print_fault(sink, result, r->run_end, "the old kernel");
    else if (swap->judgement == GBX_SWAP_NOT_JUDGED)
        gbx_sink_print(sink, "not judged: %s", gbx_text_shown(t, swap->reason));
    else
        print_judged(sink, swap);
    print_runs(sink, result);
    if (result->verdict != GBX_REPLAY_FAULT) {
        GBX_TRY(gbx_rows_print(
            sink,
            GBX_ROWS_MADE(swap_fields, result->outputs, result->output_count, make_output, &output),
            1));
        GBX_TRY(gbx_rows_print(
            sink, GBX_ROWS_MADE(element_fields, swap, swap->element_count, make_element, &element),
            1));
    }
    print_notes(r, result);
    return NULL;
}

/* --- JSON --- */

void gbx_replay_put(const gbx_replay_reporting *r, const gbx_replay_result *result) {
    gbx_sink *sink = r->sink;
    gbx_json_writer *json = &sink->json;
    output_row output;
    task_row row;
    make_task(&(const task_source){sink, result}, 0, &row);
    gbx_json_put_row(json, GBX_ROWS(task_fields, &row, 1));
    gbx_json_put_objects(json, "outputs",
                         GBX_ROWS_MADE(output_fields, result->outputs,
                                       row.has_returned ? result->output_count : 0, make_output,
                                       &output));
    gbx_json_key(json, "fault");
    if (row.has_fault) {
        gbx_json_begin_object(json);
        gbx_json_put_row(json, GBX_ROWS(fault_fields, &row, 1));
        gbx_json_end_object(json);
    } else {
        gbx_json_null(json);
    }
    gbx_findings_put(sink, r->reader, result, 1);
    gbx_json_put_row(json, GBX_ROWS(effect_fields, &row, 1));
}

static gbx_status put_swap(const gbx_replay_reporting *r, const gbx_replay_swap *swap) {
    bool is_judged = swap->judgement != GBX_SWAP_NOT_JUDGED;
    element_row element;
    gbx_json_writer *json = gbx_sink_json_begin(r->sink);
    gbx_replay_put(r, &swap->result);
    gbx_json_put_string(json, "judgement", judgements[swap->judgement].name);
    gbx_json_put_string(json, "judgement_reason", is_judged ? NULL : swap->reason);
    if (is_judged) {
        gbx_json_put_u64(json, "wrong", swap->wrong);
        gbx_json_put_f64(json, "rtol", swap->rtol);
        gbx_json_put_f64(json, "atol", swap->atol);
    } else {
        gbx_json_put_null(json, "wrong");
        gbx_json_put_null(json, "rtol");
        gbx_json_put_null(json, "atol");
    }
    gbx_json_put_rows(
        json, "elements",
        GBX_ROWS_MADE(element_fields, swap, swap->element_count, make_element, &element));
    return gbx_sink_json_end(r->sink, NULL);
}

/* --- all of it --- */

gbx_status gbx_replay_print(const gbx_replay_reporting *r, const gbx_replay_result *result,
                            bool as_json) {
    if (!as_json)
        return print_text(r, result);
    gbx_sink_json_begin(r->sink);
    gbx_replay_put(r, result);
    return gbx_sink_json_end(r->sink, NULL);
}

gbx_status gbx_replay_print_swap(const gbx_replay_reporting *r, const gbx_replay_swap *swap,
                                 const char *files, bool as_json) {
    return as_json ? put_swap(r, swap) : print_swap(r, swap, files);
}
