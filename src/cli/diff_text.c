/* The report of diff for people: the line that matters, what differs, and the counts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/array_text.h"
#include "cli/diff_report.h"
#include "cli/dump_text.h"
#include "cli/terminal.h"
#include "cli/view_head.h"

#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define PLAIN "\x1b[0m"

/* --- while records come --- */

static void metrics_text(const gbx_diff_record *record, char out_text[GBX_DIFF_NOTE_BYTES]) {
    const gbx_comparison *c = &record->comparison;
    char index[GBX_VIEW_SHAPE_BYTES], got[GBX_ELEMENT_TEXT_BYTES], want[GBX_ELEMENT_TEXT_BYTES];
    char bad[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES], ulp[GBX_COUNT_TEXT_BYTES] = "";
    gbx_diff_index_text(record->a, c->first_bad.index, index);
    gbx_element_format(c->dtype, c->first_bad.got_bits, got);
    gbx_element_format(c->dtype, c->first_bad.want_bits, want);
    if (c->max_ulp < UINT64_MAX)
        gbx_text_count(c->max_ulp, ulp);
    snprintf(out_text, GBX_DIFF_NOTE_BYTES,
             "%s of %s %selement%s differ%s, the first at %s: %s in A, %s in B; max abs %.5g, "
             "max rel %.5g%s%s",
             gbx_text_count(c->mismatches, bad), gbx_text_count(c->elements, all),
             record->is_truncated ? "kept " : "", c->elements == 1 ? "" : "s",
             c->mismatches == 1 ? "s" : "", index, got, want, c->max_abs, c->max_rel,
             ulp[0] ? ", max ulp " : "", ulp);
}

gbx_status gbx_diff_text_add(gbx_diff_text *text, const gbx_diff_dumps *dumps,
                             const gbx_diff_record *record) {
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    if (record->verdict == GBX_DIFF_NOT_COMPARED) {
        char *unknown = text->unknown[record->reason];
        if (!unknown[0])
            gbx_diff_place_text(shown.reader, shown.entry, unknown);
        return NULL;
    }
    if (record->verdict == GBX_DIFF_WITHIN)
        return gbx_diff_table_add(&text->within, dumps, record);
    if (record->verdict == GBX_DIFF_DIFFERENT && !text->has_form) {
        text->has_form = true;
        gbx_diff_form_text(record, text->form);
        if (!text->form[0])
            metrics_text(record, text->form);
    }
    return gbx_diff_table_add(record->verdict == GBX_DIFF_DIFFERENT ? &text->apart : &text->alone,
                              dumps, record);
}

void gbx_diff_text_free(gbx_diff_text *text) {
    gbx_text_table_free(&text->apart.table);
    gbx_text_table_free(&text->alone.table);
    gbx_text_table_free(&text->within.table);
}

/* --- the line that matters --- */

static void put_coloured(const char *text, const char *colour) {
    bool is_coloured = gbx_terminal_has_colour();
    printf("%s%s%s", is_coloured ? colour : "", text, is_coloured ? PLAIN : "");
}

static gbx_status print_graph(const gbx_diff_dumps *dumps, const gbx_diff_result *result) {
    char words[GBX_DIFF_WHY_BYTES];
    GBX_TRY(gbx_diff_graph_text(dumps, result, words));
    gbx_terminal_put(words);
    putchar('\n');
    return NULL;
}

static gbx_status print_first(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                              const gbx_diff_result *result) {
    char place[GBX_DIFF_PLACE_BYTES];
    char words[GBX_DIFF_WHY_BYTES];
    gbx_diff_shown shown;
    gbx_entry entry;
    GBX_TRY(gbx_diff_show_first(dumps, &result->first, &entry, &shown));
    gbx_diff_place_text(shown.reader, shown.entry, place);

    put_coloured("first difference", RED);
    printf(": ");
    gbx_terminal_put(place);
    printf(", %s: ", gbx_name_of(&gbx_stages, entry.head->stage));
    GBX_TRY(gbx_diff_why_text(dumps, result, words));
    gbx_terminal_put(words);
    printf("\n  %s%s\n", text->form,
           result->first.reason == GBX_DIFF_HASH
               ? ": by how much, or whether within tolerance, nobody can tell"
               : "");
    return NULL;
}

/* Ends a line that says that something is equal with what that is not known of. */
static void print_gaps(const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (result->truncated > 0)
        printf("; of %s the beginning alone", gbx_text_count(result->truncated, count));
    if (result->counts[GBX_DIFF_NOT_COMPARED] > 0)
        printf("; %s not compared", gbx_text_count(result->counts[GBX_DIFF_NOT_COMPARED], count));
    putchar('\n');
}

/* Why a dump may have less than the other. */
static void print_end(const char *name, const gbx_reader *reader) {
    if (!gbx_reader_is_complete(reader))
        printf("; %s is not complete", name);
    else if (!gbx_reader_has_ended_well(reader))
        printf("; the run of %s failed", name);
}

/* Of records that are in one dump alone. */
static void print_alone(const gbx_diff_dumps *dumps, const gbx_diff_result *result) {
    char counts[3][GBX_COUNT_TEXT_BYTES];
    uint64_t a = result->counts[GBX_DIFF_ONLY_A];
    uint64_t b = result->counts[GBX_DIFF_ONLY_B];
    put_coloured("not the same records", RED);
    printf(": %s only in A, %s only in B", gbx_text_count(a, counts[0]),
           gbx_text_count(b, counts[1]));
    print_end("A", dumps->a.reader);
    print_end("B", dumps->b.reader);
    if (result->compared > 0)
        printf("; of %s compared none differs", gbx_text_count(result->compared, counts[2]));
    else
        printf("; nothing was compared");
    print_gaps(result);
}

static void print_alike(const gbx_diff_dumps *dumps, const gbx_diff_result *result) {
    char all[GBX_COUNT_TEXT_BYTES], equal[GBX_COUNT_TEXT_BYTES], near[GBX_COUNT_TEXT_BYTES];
    uint64_t within = result->counts[GBX_DIFF_WITHIN];
    if (result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B] > 0) {
        print_alone(dumps, result);
        return;
    }
    if (result->compared == 0) {
        put_coloured("nothing was compared", RED);
        putchar('\n');
        return;
    }
    put_coloured(within > 0 ? "equal within tolerance" : "equal", GREEN);
    printf(": %s record%s compared", gbx_text_count(result->compared, all),
           result->compared == 1 ? "" : "s");
    if (within > 0)
        printf(", %s equal, %s near", gbx_text_count(result->counts[GBX_DIFF_EQUAL], equal),
               gbx_text_count(within, near));
    else
        printf(", all the same");
    print_gaps(result);
}

static gbx_status print_lead(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                             const gbx_diff_result *result) {
    bool is_graph_first = result->has_other_graph && (!result->has_first || result->is_graph_first);
    if (is_graph_first)
        GBX_TRY(print_graph(dumps, result));
    if (result->has_first)
        GBX_TRY(print_first(text, dumps, result));
    else
        print_alike(dumps, result);
    if (result->has_other_graph && !is_graph_first)
        GBX_TRY(print_graph(dumps, result));
    return NULL;
}

/* --- the rest --- */

static void print_counts(const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES], introduced[GBX_COUNT_TEXT_BYTES],
        unknown[GBX_COUNT_TEXT_BYTES];
    printf("compared %s: ", gbx_text_count(result->compared, count));
    for (uint32_t i = 0; i < GBX_DIFF_VERDICT_COUNT; ++i)
        printf("%s%s %s",
               i == 0                    ? ""
               : i <= GBX_DIFF_DIFFERENT ? ", "
                                         : "; ",
               gbx_text_count(result->counts[i], count), gbx_name_sentence(&gbx_diff_verdicts, i));
    putchar('\n');
    if (result->tasks_different > 1)
        printf("%s tasks differ, %s introduced a difference%s%s\n",
               gbx_text_count(result->tasks_different, count),
               gbx_text_count(result->tasks_introduced, introduced),
               result->tasks_unknown > 0 ? ", not known: " : "",
               result->tasks_unknown > 0 ? gbx_text_count(result->tasks_unknown, unknown) : "");
}

/* "not compared: 2: in flight...; the first is task 3, ...". */
static void print_unknown(const gbx_diff_text *text, const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES];
    for (uint32_t i = 0; i < GBX_DIFF_REASON_COUNT; ++i) {
        if (!text->unknown[i][0])
            continue;
        printf("not compared: %s, %s; the first: ", gbx_text_count(result->reasons[i], count),
               gbx_name_sentence(&gbx_diff_reasons, i));
        gbx_terminal_put(text->unknown[i]);
        putchar('\n');
    }
}

static void print_notes(const gbx_diff_result *result) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (result->truncated > 0)
        printf("truncated: of %s record%s the beginning alone was compared\n",
               gbx_text_count(result->truncated, count), result->truncated == 1 ? "" : "s");
    if (result->matching == GBX_DIFF_BY_TASK_ID)
        printf("tasks are matched by task_id, for a dump does not number them\n");
    if (result->matching == GBX_DIFF_BY_ORDER)
        printf("tasks are matched in the order in which they appear, for a dump does not number "
               "them, and their ids do not match\n");
    if (result->bad_edges > 0)
        printf("graph: %s edge%s no sense, and %s left out of its order\n",
               gbx_text_count(result->bad_edges, count),
               result->bad_edges == 1 ? " makes" : "s make", result->bad_edges == 1 ? "is" : "are");
}

gbx_status gbx_diff_text_print(const gbx_diff_text *text, const gbx_diff_dumps *dumps,
                               const gbx_diff_result *result) {
    GBX_TRY(print_lead(text, dumps, result));
    if (text->apart.all > 0)
        gbx_diff_table_print(&text->apart, &text->alone);
    else if (text->alone.all > 0)
        gbx_diff_table_print(&text->alone, NULL);
    else if (text->within.all > 0)
        gbx_diff_table_print(&text->within, NULL);
    print_counts(result);
    print_unknown(text, result);
    print_notes(result);
    printf("A: ");
    gbx_view_head_print(&dumps->a);
    printf("B: ");
    gbx_view_head_print(&dumps->b);
    return NULL;
}
