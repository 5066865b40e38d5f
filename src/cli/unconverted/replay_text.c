#include <inttypes.h>
#include <stdio.h>

#include "cli/internal.h"
#include "text/float_text.h"

enum { EXIT_FAULT = 3, CELL_BYTES = 160, NOTE_BYTES = 512 };

/* What is said of a verdict. */
typedef struct words {
    const char *json;
    const char *text;
    const char *colour;
    int exit_code;
} words;

static const words words_of[GBX_REPLAY_VERDICT_COUNT] = {
    [GBX_REPLAY_EXACT] = {"bit_exact", "bit exact", GBX_GREEN, GBX_EXIT_OK},
    [GBX_REPLAY_PARTLY] = {"equal_where_written", "equal where written", GBX_YELLOW, GBX_EXIT_OK},
    [GBX_REPLAY_DIFFERS] = {"differs", "differs", GBX_RED, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOTHING_WRITTEN] = {"nothing_written", "writes nothing", GBX_RED, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOT_COMPARED] = {"not_compared", "not compared", GBX_YELLOW, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_FAULT] = {"fault", "fault", GBX_RED, EXIT_FAULT},
    [GBX_REPLAY_REFUSED] = {"not_replayed", "not replayed", GBX_RED, GBX_EXIT_USAGE}};

const char *gbx_replay_verdict_word(gbx_replay_verdict verdict) {
    return words_of[verdict].json;
}

int gbx_replay_exit_code(const gbx_replay_result *result) {
    int code = words_of[result->verdict].exit_code;
    return code == GBX_EXIT_OK && result->times.different > 0 ? GBX_EXIT_DIFFERS : code;
}

/* To stdout, on a terminal in the colour of the verdict. */
static void put_word(gbx_replay_verdict verdict, const char *word) {
    gbx_terminal_put_coloured(words_of[verdict].colour, word, "");
}

/* Of one output: "bit exact", "differs", "not written"... */
static const char *output_word(const gbx_replay_compared *output) {
    if (!output->is_compared)
        return "not in the dump";
    if (output->bits.mismatches > 0)
        return "differs";
    if (output->is_exact)
        return "bit exact";
    return output->bits.not_written == output->bits.elements ? "not written"
                                                             : "equal where written";
}

/* --- the first line --- */

static void put_differs(const gbx_replay_result *result, const gbx_replay_sums *sums) {
    char count[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES], index[GBX_NUMBERS_TEXT_BYTES];
    put_word(GBX_REPLAY_DIFFERS, "differs");
    printf(": %s of %s elements %s not what the dump holds",
           gbx_text_count(sums->mismatches, count), gbx_text_count(sums->elements, all),
           sums->mismatches == 1 ? "is" : "are");
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        if (output->bits.mismatches == 0)
            continue;
        printf(", the first in argument %" PRIu32, output->slot);
        if (output->name)
            gbx_terminal_quote(" ", output->name, "");
        printf(" at %s", gbx_text_index(&output->tensor, output->bits.first_bad, index));
        return;
    }
}

static void put_not_compared(const gbx_replay_result *result, const char *run_end) {
    if (result->did_complete) {
        put_word(GBX_REPLAY_NOT_COMPARED, "ran, not compared");
        printf(result->output_count > 0 ? ": the dump does not have the outputs that it writes"
                                        : ": it has no outputs");
        return;
    }
    put_word(GBX_REPLAY_NOT_COMPARED, "returned this time, not compared");
    printf(": it did not complete in the recorded run, whose outputs of it were in flight");
    if (run_end[0])
        gbx_terminal_quote(" (", run_end, ")");
}

/* "kernel x crashed (...): SIGSEGV..., as in the recorded run: ..."; without a line's end. */
static void put_fault(const gbx_replay_result *result, const char *run_end) {
    gbx_terminal_put(result->outcome.fault.text);
    if (result->fault_run > 0)
        printf(", in run %" PRIu64, result->fault_run);
    if (result->is_other_poison)
        printf("; not so with its outputs filled with 0x%02x before, but with 0x%02x: it reads "
               "them",
               GBX_REPLAY_POISON, GBX_REPLAY_OTHER_POISON);
    if (result->did_complete) {
        printf("; in the recorded run it completed%s",
               result->dispatch >= 0 && result->outcome.fault.is_hang
                   ? ": one dispatch may wait for others, replay it without --dispatch"
                   : "");
        return;
    }
    printf(result->is_end_of_run ? "; as in the recorded run"
                                 : "; in the recorded run it did not complete");
    if (run_end[0])
        gbx_terminal_quote(": ", run_end, "");
    if (result->is_end_unknown)
        printf(" (the dump does not record whether that was this task)");
}

/* "; in 4 of 5 runs it does not leave the bits of the first"; nothing where all do. */
static void put_runs(const gbx_replay_result *result) {
    char different[GBX_COUNT_TEXT_BYTES], runs[GBX_COUNT_TEXT_BYTES];
    if (result->times.runs > 1 && result->times.different > 0)
        printf("; in %s of %s runs it does not leave the bits of the first",
               gbx_text_count(result->times.different, different),
               gbx_text_count(result->times.runs, runs));
}

static void print_head(const gbx_replay_result *result, const char *run_end) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    char count[GBX_COUNT_TEXT_BYTES], elements[GBX_COUNT_TEXT_BYTES];
    uint64_t written = sums.elements - sums.not_written;
    gbx_terminal_quote("", result->title, ": ");
    switch (result->verdict) {
    case GBX_REPLAY_EXACT:
        put_word(GBX_REPLAY_EXACT, "bit exact");
        printf(": the replay gives what the dump holds (%s output%s, %s element%s)",
               gbx_text_count(sums.outputs, count), gbx_text_plural(sums.outputs),
               gbx_text_count(sums.elements, elements), gbx_text_plural(sums.elements));
        break;
    case GBX_REPLAY_PARTLY:
        put_word(GBX_REPLAY_PARTLY, "equal where it writes");
        printf(": %s element%s the dump's bits; %s %s not written by %s",
               gbx_text_count(written, elements), written == 1 ? " has" : "s have",
               gbx_text_count(sums.not_written, count), sums.not_written == 1 ? "is" : "are",
               result->dispatch >= 0 ? "this dispatch" : "the kernel");
        break;
    case GBX_REPLAY_DIFFERS:
        put_differs(result, &sums);
        break;
    case GBX_REPLAY_NOTHING_WRITTEN:
        put_word(GBX_REPLAY_NOTHING_WRITTEN, "writes nothing");
        printf(": none of the %s elements of its outputs", gbx_text_count(sums.elements, elements));
        break;
    case GBX_REPLAY_FAULT:
        put_fault(result, run_end);
        break;
    default:
        put_not_compared(result, run_end);
        break;
    }
    /* What the verdict says nothing of. */
    bool is_compared = result->verdict <= GBX_REPLAY_NOTHING_WRITTEN;
    if (is_compared && sums.not_compared > 0)
        printf("; %s output%s not in the dump and not compared",
               gbx_text_count(sums.not_compared, count), sums.not_compared == 1 ? " is" : "s are");
    if (is_compared && sums.unchanged > 0)
        printf("; %s output%s what %s held before", gbx_text_count(sums.unchanged, count),
               sums.unchanged == 1 ? " holds" : "s hold", sums.unchanged == 1 ? "it" : "they");
    put_runs(result);
    putchar('\n');
}

/* --- the outputs --- */

static const gbx_text_table_column output_columns[] = {
    {"ARG", true, 0, 0},         {"NAME", false, 6, 6},    {"DTYPE", false, 0, 1},
    {"SHAPE", false, 6, 2},      {"VERDICT", false, 0, 0}, {"MISMATCHES", true, 0, 5},
    {"NOT WRITTEN", true, 0, 4}, {"MAX ABS", true, 0, 3},  {"FIRST", false, 0, 0},
    {"DUMP", true, 0, 0},        {"REPLAY", true, 0, 0}};
enum { OUTPUT_COLUMNS = sizeof output_columns / sizeof output_columns[0] };

static gbx_status add_output(gbx_text_table *table, const gbx_replay_compared *output) {
    const gbx_bits_comparison *bits = &output->bits;
    char slot[CELL_BYTES], shape[GBX_NUMBERS_TEXT_BYTES], mismatches[GBX_COUNT_TEXT_BYTES];
    char rest[GBX_COUNT_TEXT_BYTES], distance[CELL_BYTES], index[GBX_NUMBERS_TEXT_BYTES];
    char dump[GBX_TEXT_VALUE_BYTES], replay[GBX_TEXT_VALUE_BYTES];
    bool is_bad = output->is_compared && bits->mismatches > 0;
    snprintf(slot, sizeof slot, "%" PRIu32, output->slot);
    snprintf(distance, sizeof distance, "%.6g", bits->max_abs);
    const char *cells[OUTPUT_COLUMNS] = {
        slot,
        output->name,
        gbx_dtype_name(output->tensor.dtype),
        gbx_text_numbers(output->tensor.shape, output->tensor.ndims, shape),
        output_word(output),
        is_bad ? gbx_text_count(bits->mismatches, mismatches) : "",
        bits->not_written ? gbx_text_count(bits->not_written, rest) : "",
        is_bad ? distance : "",
        is_bad ? gbx_text_index(&output->tensor, bits->first_bad, index) : "",
        is_bad ? gbx_text_value(output->tensor.dtype, bits->dump_bits, dump) : "",
        is_bad ? gbx_text_value(output->tensor.dtype, bits->replay_bits, replay) : ""};
    return gbx_text_table_add(table, cells);
}

static gbx_status print_outputs(const gbx_replay_result *result) {
    gbx_text_table table = {.columns = output_columns, .column_count = OUTPUT_COLUMNS, .gap = 1};
    gbx_status status = NULL;
    for (size_t i = 0; i < result->output_count && !status; ++i)
        status = add_output(&table, &result->outputs[i]);
    return gbx_text_table_finish(&table, status);
}

/* --- notes --- */

static void print_times(const gbx_replay_result *result) {
    char low[GBX_TIME_TEXT_BYTES], middle[GBX_TIME_TEXT_BYTES], high[GBX_TIME_TEXT_BYTES];
    char runs[GBX_COUNT_TEXT_BYTES], different[GBX_COUNT_TEXT_BYTES];
    const gbx_replay_times *times = &result->times;
    if (times->runs < 2)
        return;
    printf("%s runs: %s median, %s to %s; ", gbx_text_count(times->runs, runs),
           gbx_text_ns(times->median_ns, middle), gbx_text_ns(times->min_ns, low),
           gbx_text_ns(times->max_ns, high));
    if (times->different == 0)
        printf("the same bits all %s times\n", runs);
    else
        printf("%s of them %s not leave the bits of the first\n",
               gbx_text_count(times->different, different), times->different == 1 ? "does" : "do");
}

/* The lines below the table: what depends on chance, what else it wrote, how long it took. */
static void print_notes(const gbx_replay_result *result) {
    char count[GBX_COUNT_TEXT_BYTES];
    uint64_t unstable = gbx_replay_result_sums(result).unstable;
    uint64_t stray = result->outcome.stray_bytes;
    if (unstable > 0)
        printf("%s element%s not the same when its outputs hold other bytes before: it reads its "
               "output before it writes it, keeps static variables from call to call, or is not "
               "deterministic\n",
               gbx_text_count(unstable, count), unstable == 1 ? " is" : "s are");
    if (stray > 0) {
        printf("it also changed %s byte%s outside of its outputs, the first at 0x%" PRIx64,
               gbx_text_count(stray, count), gbx_text_plural(stray), result->outcome.stray_address);
        if (result->stray_argument >= 0)
            printf(", in argument %" PRId64, result->stray_argument);
        if (result->stray_argument >= 0 && result->stray_name)
            gbx_terminal_quote(" ", result->stray_name, "");
        putchar('\n');
    }
    print_times(result);
    if (result->outcome.stray_is_unknown)
        printf(
            "its tensors are too large to look for bytes that it wrote outside of its outputs\n");
    if (result->outcome.is_relocated)
        printf("tensors lie at other addresses than in the run, which the dump does not tell or "
               "no chip has\n");
}

gbx_status gbx_replay_report_print(const gbx_replay_result *result, const char *run_end) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    char count[GBX_COUNT_TEXT_BYTES];
    print_head(result, run_end);
    if (result->verdict != GBX_REPLAY_FAULT && result->output_count > 0)
        GBX_TRY(print_outputs(result));
    if (sums.not_written > 0 && result->dispatch < 0)
        printf("%s element%s of its outputs the kernel does not write: not compared, the dump has "
               "there what was in memory before\n",
               gbx_text_count(sums.not_written, count), gbx_text_plural(sums.not_written));
    /* Where the same bits come out whatever the outputs held before, but not those of the dump. */
    if (result->verdict == GBX_REPLAY_DIFFERS && sums.unstable == 0)
        printf("the kernel may look at what the dump does not have: memory outside of its "
               "arguments, static variables, buffer_bytes of a tensor (0 here)%s; or another task "
               "wrote there while it ran; or the dump was changed (glassbox verify tells)\n",
               result->has_core_ids ? ""
                                    : ", core_id (a guess, for the run was without --dump-args)");
    print_notes(result);
    return NULL;
}

/* --- several tasks: one line each --- */

static const gbx_text_table_column task_columns[] = {
    {"TASK", true, 0, 0},        {"KERNEL", false, 6, 0},  {"OUTPUTS", true, 0, 2},
    {"ELEMENTS", true, 0, 3},    {"VERDICT", false, 0, 0}, {"MISMATCHES", true, 0, 5},
    {"NOT WRITTEN", true, 0, 4}, {"TIME", true, 0, 1},     {"NOTE", false, 6, 0}};
enum { TASK_COLUMNS = sizeof task_columns / sizeof task_columns[0] };

/* The line says which task it is. */
static const char *refusal_reason(const gbx_replay_result *result) {
    return result->refusal.reason ? result->refusal.reason : "the host is out of memory";
}

static const char *row_note(const gbx_replay_result *result, const gbx_replay_sums *sums,
                            char out_text[NOTE_BYTES]) {
    if (result->verdict == GBX_REPLAY_REFUSED)
        return refusal_reason(result);
    if (result->verdict == GBX_REPLAY_FAULT)
        return result->outcome.fault.text;
    if (result->outcome.stray_bytes > 0)
        snprintf(out_text, NOTE_BYTES, "changed %" PRIu64 " byte%s outside of its outputs",
                 result->outcome.stray_bytes, gbx_text_plural(result->outcome.stray_bytes));
    else if (result->verdict != GBX_REPLAY_NOT_COMPARED && sums->not_compared > 0)
        snprintf(out_text, NOTE_BYTES, "%" PRIu64 " output%s not compared", sums->not_compared,
                 gbx_text_plural(sums->not_compared));
    else
        snprintf(out_text, NOTE_BYTES, "%s",
                 sums->unstable > 0            ? "reads its output, or is not deterministic"
                 : result->times.different > 0 ? "not the same in all runs"
                 : sums->unchanged > 0         ? "holds what it held before"
                                               : "");
    return out_text;
}

static gbx_status add_task(gbx_text_table *table, const gbx_replay_result *result) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    char task[CELL_BYTES], outputs[CELL_BYTES], note[NOTE_BYTES];
    char elements[GBX_COUNT_TEXT_BYTES], mismatches[GBX_COUNT_TEXT_BYTES];
    char rest[GBX_COUNT_TEXT_BYTES], time[GBX_TIME_TEXT_BYTES];
    bool has_run = result->verdict != GBX_REPLAY_REFUSED && result->verdict != GBX_REPLAY_FAULT;
    snprintf(task, sizeof task, "%" PRIu64, result->task);
    snprintf(outputs, sizeof outputs, "%" PRIu64, sums.outputs);
    const char *cells[TASK_COLUMNS] = {
        task,
        result->kernel,
        has_run ? outputs : "",
        has_run ? gbx_text_count(sums.elements, elements) : "",
        words_of[result->verdict].text,
        sums.mismatches ? gbx_text_count(sums.mismatches, mismatches) : "",
        sums.not_written ? gbx_text_count(sums.not_written, rest) : "",
        has_run ? gbx_text_ns(result->times.median_ns, time) : "",
        row_note(result, &sums, note)};
    return gbx_text_table_add(table, cells);
}

/* What the first line names the first task with; NULL for nothing. */
static const char *trouble(const gbx_replay_result *result) {
    if (result->verdict == GBX_REPLAY_FAULT)
        return "fails";
    if (result->verdict == GBX_REPLAY_DIFFERS)
        return "differs";
    return result->times.different > 0 ? "is not the same in all runs" : NULL;
}

/* The table may be long: the first line says where to look. */
static void put_first(const gbx_replay_result *results, size_t count) {
    const gbx_replay_result *refused = NULL;
    for (size_t i = 0; i < count; ++i) {
        if (results[i].verdict == GBX_REPLAY_REFUSED && !refused)
            refused = &results[i];
        if (trouble(&results[i])) {
            printf("; the first that %s is task %" PRIu64, trouble(&results[i]), results[i].task);
            return;
        }
    }
    if (refused) {
        printf("; the first that is not replayed is task %" PRIu64, refused->task);
        gbx_terminal_quote(": ", refusal_reason(refused), "");
    }
}

static void print_counts(const gbx_replay_result *results, size_t count) {
    uint64_t counts[GBX_REPLAY_VERDICT_COUNT] = {0};
    char text[GBX_COUNT_TEXT_BYTES];
    const char *comma = "";
    for (size_t i = 0; i < count; ++i)
        counts[results[i].verdict]++;
    printf("%s task%s: ", gbx_text_count(count, text), gbx_text_plural(count));
    for (gbx_replay_verdict verdict = 0; verdict < GBX_REPLAY_VERDICT_COUNT; ++verdict) {
        if (counts[verdict] == 0)
            continue;
        printf("%s%s ", comma,
               counts[verdict] == count ? "all" : gbx_text_count(counts[verdict], text));
        put_word(verdict, words_of[verdict].text);
        comma = ", ";
    }
    put_first(results, count);
    putchar('\n');
}

gbx_status gbx_replay_report_print_all(const gbx_replay_result *results, size_t count,
                                       const char *run_end) {
    gbx_text_table table = {.columns = task_columns, .column_count = TASK_COLUMNS, .gap = 1};
    gbx_status status = NULL;
    print_counts(results, count);
    for (size_t i = 0; i < count && !status; ++i)
        status = add_task(&table, &results[i]);
    GBX_TRY(gbx_text_table_finish(&table, status));
    if (run_end[0])
        gbx_terminal_quote("the recorded run ended with: ", run_end, "\n");
    return NULL;
}

/* --- another kernel --- */

static void put_judged(const gbx_replay_swap *swap) {
    static const char *const judgements[GBX_SWAP_JUDGEMENT_COUNT] = {
        [GBX_SWAP_FIXED] = "fixed: right",
        [GBX_SWAP_RIGHT] = "right",
        [GBX_SWAP_STILL_WRONG] = "still wrong",
        [GBX_SWAP_BROKEN] = "wrong, where the old kernel was right",
        [GBX_SWAP_WRONG] = "wrong"};
    char rtol[GBX_FLOAT_TEXT_BYTES], atol[GBX_FLOAT_TEXT_BYTES], count[GBX_COUNT_TEXT_BYTES];
    bool is_right = swap->judgement <= GBX_SWAP_RIGHT;
    gbx_f64_format(swap->rtol, rtol);
    gbx_f64_format(swap->atol, atol);
    put_word(is_right ? GBX_REPLAY_EXACT : GBX_REPLAY_DIFFERS, judgements[swap->judgement]);
    if (is_right)
        printf(" for its inputs by the reference");
    else
        printf(": %s element%s not what the reference gives", gbx_text_count(swap->wrong, count),
               swap->wrong == 1 ? " is" : "s are");
    printf(" (rtol %s, atol %s)", rtol, atol);
}

static const gbx_text_table_column swap_columns[] = {
    {"ARG", true, 0, 0},     {"NAME", false, 6, 5},       {"DTYPE", false, 0, 1},
    {"SHAPE", false, 6, 2},  {"ELEMENTS", true, 0, 3},    {"CHANGED", true, 0, 0},
    {"MAX ABS", true, 0, 4}, {"NOT WRITTEN", true, 0, 0}, {"NOTE", false, 6, 0}};
enum { SWAP_COLUMNS = sizeof swap_columns / sizeof swap_columns[0] };

static gbx_status add_swap_output(gbx_text_table *table, const gbx_replay_compared *output) {
    char slot[CELL_BYTES], shape[GBX_NUMBERS_TEXT_BYTES], elements[GBX_COUNT_TEXT_BYTES];
    char changed[GBX_COUNT_TEXT_BYTES], distance[CELL_BYTES], rest[GBX_COUNT_TEXT_BYTES];
    bool is_compared = output->is_compared;
    snprintf(slot, sizeof slot, "%" PRIu32, output->slot);
    snprintf(distance, sizeof distance, "%.6g", output->bits.max_abs);
    const char *cells[SWAP_COLUMNS] = {
        slot,
        output->name,
        gbx_dtype_name(output->tensor.dtype),
        gbx_text_numbers(output->tensor.shape, output->tensor.ndims, shape),
        gbx_text_count(output->bits.elements, elements),
        is_compared ? gbx_text_count(output->bits.mismatches, changed) : "",
        is_compared && output->bits.mismatches > 0 ? distance : "",
        output->bits.not_written > 0 ? gbx_text_count(output->bits.not_written, rest) : "",
        is_compared ? "" : "the dump does not have what the old one left"};
    return gbx_text_table_add(table, cells);
}

static const gbx_text_table_column element_columns[] = {
    {"ARG", true, 0, 0},        {"NAME", false, 6, 1}, {"INDEX", false, 0, 0},
    {"OLD (DUMP)", true, 0, 0}, {"NEW", true, 0, 0},   {"EXPECTED", true, 0, 0}};
enum { ELEMENT_COLUMNS = sizeof element_columns / sizeof element_columns[0] };

static gbx_status add_element(gbx_text_table *table, const gbx_replay_swap *swap,
                              const gbx_swap_element *element) {
    const gbx_replay_compared *output = &swap->result.outputs[element->output];
    uint32_t dtype = output->tensor.dtype;
    char slot[CELL_BYTES], index[GBX_NUMBERS_TEXT_BYTES], old[GBX_TEXT_VALUE_BYTES];
    char new[GBX_TEXT_VALUE_BYTES], expected[GBX_TEXT_VALUE_BYTES];
    snprintf(slot, sizeof slot, "%" PRIu32, output->slot);
    const char *cells[ELEMENT_COLUMNS] = {
        slot,
        output->name,
        gbx_text_index(&output->tensor, element->number, index),
        element->has_old ? gbx_text_value(dtype, element->old_bits, old) : "",
        element->has_new ? gbx_text_value(dtype, element->new_bits, new) : "not written",
        element->has_expected ? gbx_text_value(dtype, element->expected_bits, expected) : ""};
    return gbx_text_table_add(table, cells);
}

gbx_status gbx_replay_swap_print(const gbx_replay_swap *swap, const char *files,
                                 const char *run_end) {
    gbx_text_table outputs = {.columns = swap_columns, .column_count = SWAP_COLUMNS, .gap = 1};
    gbx_text_table elements = {
        .columns = element_columns, .column_count = ELEMENT_COLUMNS, .gap = 1};
    bool has_run = swap->result.verdict != GBX_REPLAY_FAULT;
    gbx_status status = NULL;
    gbx_terminal_put(swap->result.title);
    gbx_terminal_quote(" with ", files, ": ");
    if (!has_run)
        put_fault(&swap->result, run_end);
    else if (swap->judgement == GBX_SWAP_NOT_JUDGED)
        gbx_terminal_quote("not judged: ", swap->reason, "");
    else
        put_judged(swap);
    put_runs(&swap->result);
    putchar('\n');
    for (size_t i = 0; has_run && i < swap->result.output_count && !status; ++i)
        status = add_swap_output(&outputs, &swap->result.outputs[i]);
    if (has_run && swap->result.output_count > 0)
        GBX_TRY(gbx_text_table_finish(&outputs, status));
    for (size_t i = 0; has_run && i < swap->element_count && !status; ++i)
        status = add_element(&elements, swap, &swap->elements[i]);
    if (has_run && swap->element_count > 0)
        GBX_TRY(gbx_text_table_finish(&elements, status));
    print_notes(&swap->result);
    return NULL;
}

/* Without a judgement it counts whether something changed. What the new kernel of a task does not
 * write, the old one may have written. */
int gbx_replay_swap_exit_code(const gbx_replay_swap *swap) {
    gbx_replay_verdict verdict = swap->result.verdict;
    bool is_right = swap->judgement <= GBX_SWAP_RIGHT && swap->result.times.different == 0;
    if (verdict != GBX_REPLAY_FAULT && swap->judgement != GBX_SWAP_NOT_JUDGED)
        return is_right ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    if (verdict == GBX_REPLAY_PARTLY && swap->result.dispatch < 0)
        return GBX_EXIT_DIFFERS;
    return gbx_replay_exit_code(&swap->result);
}
