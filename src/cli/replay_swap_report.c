#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/dump_text.h"
#include "cli/replay_report.h"
#include "cli/replay_text.h"
#include "cli/terminal.h"
#include "cli/text_table.h"
#include "text/float_text.h"

enum { CELL_BYTES = 96 };

/* --- the first line --- */

static void put_word(const gbx_replay_swap *swap) {
    static const char *const words[GBX_SWAP_JUDGEMENT_COUNT] = {
        [GBX_SWAP_FIXED] = "fixed: right",
        [GBX_SWAP_RIGHT] = "right",
        [GBX_SWAP_STILL_WRONG] = "still wrong",
        [GBX_SWAP_BROKEN] = "wrong, where the old kernel was right",
        [GBX_SWAP_WRONG] = "wrong"};
    bool is_right = swap->judgement <= GBX_SWAP_RIGHT;
    gbx_replay_put_word(is_right ? GBX_REPLAY_EXACT : GBX_REPLAY_DIFFERS, words[swap->judgement]);
}

static void put_judged(const gbx_replay_swap *swap) {
    char rtol[GBX_FLOAT_TEXT_BYTES], atol[GBX_FLOAT_TEXT_BYTES], count[GBX_COUNT_TEXT_BYTES];
    gbx_f64_format(swap->rtol, rtol);
    gbx_f64_format(swap->atol, atol);
    put_word(swap);
    if (swap->judgement <= GBX_SWAP_RIGHT)
        printf(" for its inputs by the reference");
    else
        printf(": %s element%s not what the reference gives", gbx_text_count(swap->wrong, count),
               swap->wrong == 1 ? " is" : "s are");
    printf(" (rtol %s, atol %s)", rtol, atol);
}

static void put_head(const gbx_replay_swap *swap, const char *files, const char *run_end) {
    gbx_terminal_put(swap->result.title);
    printf(" with ");
    gbx_terminal_put(files);
    printf(": ");
    if (swap->result.verdict == GBX_REPLAY_FAULT) {
        gbx_replay_report_fault(&swap->result, run_end);
    } else if (swap->judgement == GBX_SWAP_NOT_JUDGED) {
        printf("not judged: ");
        gbx_terminal_put(swap->reason);
    } else {
        put_judged(swap);
    }
    gbx_replay_report_runs(&swap->result);
    putchar('\n');
}

/* --- tables --- */

static const gbx_text_table_column output_columns[] = {
    {"ARG", true, 0, 0},     {"NAME", false, 6, 5},       {"DTYPE", false, 0, 1},
    {"SHAPE", false, 6, 2},  {"ELEMENTS", true, 0, 3},    {"CHANGED", true, 0, 0},
    {"MAX ABS", true, 0, 4}, {"NOT WRITTEN", true, 0, 0}, {"NOTE", false, 6, 0}};
enum { OUTPUT_COLUMNS = sizeof output_columns / sizeof output_columns[0] };

static gbx_status add_output(gbx_text_table *table, const gbx_replay_compared *output) {
    char slot[CELL_BYTES], shape[GBX_INDEX_TEXT_BYTES], elements[GBX_COUNT_TEXT_BYTES];
    char changed[GBX_COUNT_TEXT_BYTES], distance[CELL_BYTES], rest[GBX_COUNT_TEXT_BYTES];
    bool is_compared = output->is_compared;
    snprintf(slot, sizeof slot, "%" PRIu32, output->slot);
    snprintf(distance, sizeof distance, "%.6g", output->bits.max_abs);
    const char *cells[OUTPUT_COLUMNS] = {
        slot,
        output->name,
        gbx_dtype_name(output->tensor.dtype),
        gbx_text_shape(&output->tensor, shape),
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
    char slot[CELL_BYTES], index[GBX_INDEX_TEXT_BYTES], old[GBX_VALUE_TEXT_BYTES];
    char new[GBX_VALUE_TEXT_BYTES], expected[GBX_VALUE_TEXT_BYTES];
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

static gbx_status print_outputs(const gbx_replay_swap *swap) {
    gbx_text_table table = {.columns = output_columns, .column_count = OUTPUT_COLUMNS, .gap = 1};
    gbx_status status = NULL;
    for (size_t i = 0; i < swap->result.output_count && !status; ++i)
        status = add_output(&table, &swap->result.outputs[i]);
    return gbx_text_table_finish(&table, status);
}

static gbx_status print_elements(const gbx_replay_swap *swap) {
    gbx_text_table table = {.columns = element_columns, .column_count = ELEMENT_COLUMNS, .gap = 1};
    gbx_status status = NULL;
    for (size_t i = 0; i < swap->element_count && !status; ++i)
        status = add_element(&table, swap, &swap->elements[i]);
    return gbx_text_table_finish(&table, status);
}

gbx_status gbx_replay_swap_print(const gbx_replay_swap *swap, const char *files,
                                 const char *run_end) {
    put_head(swap, files, run_end);
    if (swap->result.verdict != GBX_REPLAY_FAULT) {
        if (swap->result.output_count > 0)
            GBX_TRY(print_outputs(swap));
        if (swap->element_count > 0)
            GBX_TRY(print_elements(swap));
    }
    gbx_replay_report_notes(&swap->result);
    return NULL;
}

/* --- the exit code --- */

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
