#include <inttypes.h>
#include <stdio.h>

#include "cli/dump_text.h"
#include "cli/json_output.h"
#include "cli/replay_json.h"
#include "cli/replay_report.h"
#include "cli/replay_swap.h"
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

/* --- JSON --- */

static void put_element(gbx_json_writer *json, const gbx_replay_swap *swap,
                        const gbx_swap_element *element) {
    const gbx_replay_compared *output = &swap->result.outputs[element->output];
    uint32_t dtype = output->tensor.dtype;
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "arg_index", output->slot);
    gbx_json_key(json, "index");
    gbx_json_index(json, &output->tensor, element->number);
    gbx_replay_json_value(json, "old", element->has_old, dtype, element->old_bits);
    gbx_replay_json_value(json, "new", element->has_new, dtype, element->new_bits);
    gbx_replay_json_value(json, "expected", element->has_expected, dtype, element->expected_bits);
    gbx_json_end_object(json);
}

static void put_judgement(gbx_json_writer *json, const gbx_replay_swap *swap) {
    static const char *const words[GBX_SWAP_JUDGEMENT_COUNT] = {
        [GBX_SWAP_FIXED] = "fixed",
        [GBX_SWAP_RIGHT] = "right",
        [GBX_SWAP_STILL_WRONG] = "still_wrong",
        [GBX_SWAP_BROKEN] = "broken",
        [GBX_SWAP_WRONG] = "wrong",
        [GBX_SWAP_NOT_JUDGED] = "not_judged"};
    bool is_judged = swap->judgement != GBX_SWAP_NOT_JUDGED;
    gbx_json_put_string(json, "judgement", words[swap->judgement]);
    gbx_json_put_string(json, "judgement_reason", is_judged ? NULL : swap->reason);
    gbx_replay_json_count(json, "wrong", is_judged, swap->wrong);
    gbx_replay_json_real(json, "rtol", is_judged, swap->rtol);
    gbx_replay_json_real(json, "atol", is_judged, swap->atol);
}

gbx_status gbx_replay_swap_print_json(const gbx_replay_swap *swap) {
    static gbx_json_writer json; /* too large for a stack */
    gbx_json_start(&json, gbx_json_to_stdout, NULL, GBX_JSON_PRETTY);
    gbx_json_begin_object(&json);
    gbx_replay_json_members(&json, &swap->result);
    put_judgement(&json, swap);
    gbx_json_key(&json, "elements");
    gbx_json_begin_array(&json);
    for (size_t i = 0; i < swap->element_count; ++i)
        put_element(&json, swap, &swap->elements[i]);
    gbx_json_end_array(&json);
    gbx_json_end_object(&json);
    return gbx_json_finish(&json);
}
