/* The report of diff as one JSON document, written as records come. */

#include "cli/internal.h"

#define EXACT_END (UINT64_C(1) << 53)

/* A string where readers would round it. */
static void write_wide(gbx_json_writer *json, const char *key, uint64_t value) {
    gbx_json_key(json, key);
    if (value < EXACT_END)
        gbx_json_u64(json, value);
    else
        gbx_json_u64_text(json, value);
}

/* --- elements --- */

static void write_place(gbx_json_writer *json, const char *key, const gbx_entry *entry,
                        uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    gbx_entry_index(entry, number, index);
    gbx_json_put_numbers(json, key, index, entry->tensor ? entry->head->ndims : 0);
}

static void write_nulls(gbx_json_writer *json, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; ++i)
        gbx_json_put_null(json, keys[i]);
}

static void write_bad(gbx_json_writer *json, const gbx_diff_record *record) {
    static const char *const keys[] = {"first_bad", "first_bad_a", "first_bad_b",
                                       "worst",     "worst_a",     "worst_b"};
    const gbx_comparison *c = &record->comparison;
    if (!record->a || !record->has_metrics || c->mismatches == 0) {
        write_nulls(json, keys, sizeof keys / sizeof keys[0]);
        return;
    }
    write_place(json, keys[0], record->a, c->first_bad.index);
    gbx_json_put_value(json, keys[1], c->dtype, c->first_bad.got_bits);
    gbx_json_put_value(json, keys[2], c->dtype, c->first_bad.want_bits);
    write_place(json, keys[3], record->a, c->worst.index);
    gbx_json_put_value(json, keys[4], c->dtype, c->worst.got_bits);
    gbx_json_put_value(json, keys[5], c->dtype, c->worst.want_bits);
}

/* null where elements were not compared. */
static void write_metrics(gbx_json_writer *json, const gbx_diff_record *record) {
    static const char *const keys[] = {"elements", "unequal", "mismatches", "max_abs",
                                       "max_rel",  "rmse",    "cosine",     "max_ulp",
                                       "atol",     "rtol",    "ulp"};
    const gbx_comparison *c = &record->comparison;
    if (!record->has_metrics) {
        write_nulls(json, keys, sizeof keys / sizeof keys[0]);
        write_bad(json, record);
        return;
    }
    gbx_json_put_u64(json, "elements", c->elements);
    gbx_json_put_u64(json, "unequal", c->unequal);
    gbx_json_put_u64(json, "mismatches", c->mismatches);
    gbx_json_put_f64(json, "max_abs", c->max_abs);
    gbx_json_put_f64(json, "max_rel", c->max_rel);
    gbx_json_put_f64(json, "rmse", gbx_comparison_rmse(c));
    gbx_json_put_f64(json, "cosine", gbx_comparison_cosine(c));
    if (c->max_ulp == UINT64_MAX && gbx_dtype_is_float(c->dtype))
        write_nulls(json, &keys[7], 1);
    else
        write_wide(json, "max_ulp", c->max_ulp);
    gbx_json_put_f64(json, "atol", c->tolerance.atol);
    gbx_json_put_f64(json, "rtol", c->tolerance.rtol);
    write_wide(json, "ulp", c->tolerance.ulp);
    write_bad(json, record);
}

/* --- records --- */

static bool has_kernel(const gbx_entry *entry) {
    bool is_there = false;
    for (size_t i = 0; entry->task && i < GBX_SUBTASK_COUNT; ++i)
        is_there |= entry->task->func_ids[i] != UINT32_MAX;
    return is_there;
}

static void write_argument(gbx_json_writer *json, const gbx_diff_shown *shown) {
    const gbx_entry *entry = shown->entry;
    char kernel[GBX_VIEW_KERNEL_BYTES];
    gbx_view_kernel_text(shown->reader, entry->task, kernel);
    gbx_json_put_u64(json, "task_seq", entry->head->task);
    gbx_json_key(json, "task_id");
    if (entry->task)
        gbx_json_hex_text(json, entry->task->task_id);
    else
        gbx_json_null(json);
    gbx_json_put_string(json, "kernel", has_kernel(entry) ? kernel : NULL);
    gbx_json_put_u64(json, "arg_index", entry->head->arg_index);
    gbx_json_put_string(json, "arg_name", entry->arg_name);
    gbx_json_put_string(json, "role", gbx_name_of(&gbx_roles, entry->head->role));
    gbx_json_put_string(json, "stage", gbx_name_of(&gbx_stages, entry->head->stage));
}

/* What it is in one dump; "" or "_b" at the end of names. */
static void write_form(gbx_json_writer *json, const gbx_entry *entry, bool is_b) {
    gbx_json_put_string(json, is_b ? "kind_b" : "kind",
                        gbx_name_of(&gbx_kinds, entry->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR));
    gbx_json_put_string(json, is_b ? "dtype_b" : "dtype", gbx_dtype_name(entry->dtype));
    gbx_json_put_numbers(json, is_b ? "shape_b" : "shape",
                         entry->tensor ? gbx_record_shape(entry->tensor) : NULL,
                         entry->tensor ? entry->head->ndims : 0);
}

void gbx_diff_json_add(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                       const gbx_diff_record *record) {
    bool has_other_form = record->reason == GBX_DIFF_KIND || record->reason == GBX_DIFF_DTYPE ||
                          record->reason == GBX_DIFF_SHAPE;
    gbx_diff_shown shown = gbx_diff_show(dumps, record);
    gbx_json_begin_object_inline(json);
    gbx_json_put_string(json, "verdict", gbx_name_of(&gbx_diff_verdicts, record->verdict));
    gbx_json_put_string(json, "reason", gbx_name_of(&gbx_diff_reasons, record->reason));
    gbx_json_put_string(json, "cause", gbx_name_of(&gbx_diff_causes, record->cause));
    gbx_json_put_known(json, "index_a", record->index_a != GBX_DIFF_NONE, record->index_a);
    gbx_json_put_known(json, "index_b", record->index_b != GBX_DIFF_NONE, record->index_b);
    write_argument(json, &shown);
    write_form(json, record->a ? record->a : record->b, false);
    if (has_other_form)
        write_form(json, record->b, true);
    gbx_json_put_bool(json, "truncated", record->is_truncated);
    write_metrics(json, record);
    gbx_json_end_object(json);
}

/* --- all --- */

void gbx_diff_json_begin(gbx_json_writer *json, const gbx_diff_dumps *dumps) {
    gbx_json_start_stdout(json);
    gbx_json_put_string(json, "a", dumps->a.directory);
    gbx_json_put_string(json, "b", dumps->b.directory);
    gbx_json_key(json, "records");
    gbx_json_begin_array(json);
}

static void write_counts(gbx_json_writer *json, const gbx_diff_result *result) {
    gbx_json_put_u64(json, "compared", result->compared);
    for (uint32_t i = 0; i < GBX_DIFF_VERDICT_COUNT; ++i)
        gbx_json_put_u64(json, gbx_name_of(&gbx_diff_verdicts, i), result->counts[i]);
    gbx_json_key(json, "not_compared_reasons");
    gbx_json_begin_object_inline(json);
    for (uint32_t i = 0; i < GBX_DIFF_REASON_COUNT; ++i)
        if (gbx_diff_reason_is_gap((gbx_diff_reason)i))
            gbx_json_put_u64(json, gbx_name_of(&gbx_diff_reasons, i), result->reasons[i]);
    gbx_json_end_object(json);
    gbx_json_put_u64(json, "tasks_different", result->tasks_different);
    gbx_json_put_u64(json, "tasks_introduced", result->tasks_introduced);
    gbx_json_put_u64(json, "tasks_unknown", result->tasks_unknown);
    gbx_json_put_u64(json, "truncated", result->truncated);
    gbx_json_put_u64(json, "equal_by_hash", result->hashed);
    gbx_json_put_u64(json, "bytes_read", result->read_bytes);
    gbx_json_put_string(json, "tasks_matched_by",
                        gbx_name_of(&gbx_diff_matchings, result->matching));
    gbx_json_put_u64(json, "bad_edges", result->bad_edges);
}

static gbx_status write_first(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                              const gbx_diff_result *result) {
    const gbx_diff_record *first = &result->first;
    char why[GBX_DIFF_WHY_BYTES];
    gbx_diff_shown shown;
    gbx_entry entry;
    gbx_json_key(json, "first");
    if (!result->has_first) {
        gbx_json_null(json);
        return NULL;
    }
    GBX_TRY(gbx_diff_why_text(dumps, result, why));
    GBX_TRY(gbx_diff_show_first(dumps, first, &entry, &shown));
    gbx_json_begin_object(json);
    write_argument(json, &shown);
    gbx_json_put_string(json, "cause", gbx_name_of(&gbx_diff_causes, first->cause));
    gbx_json_put_string(json, "why", why);
    gbx_json_put_known(json, "index_a", first->index_a != GBX_DIFF_NONE, first->index_a);
    gbx_json_put_known(json, "index_b", first->index_b != GBX_DIFF_NONE, first->index_b);
    gbx_json_end_object(json);
    return NULL;
}

gbx_status gbx_diff_json_end(gbx_json_writer *json, const gbx_diff_dumps *dumps,
                             const gbx_diff_result *result, gbx_status status) {
    char words[GBX_DIFF_WHY_BYTES];
    if (!status) {
        gbx_json_end_array(json);
        write_counts(json, result);
        status = write_first(json, dumps, result);
    }
    if (!status && result->has_other_graph)
        status = gbx_diff_graph_text(dumps, result, words);
    if (!status)
        gbx_json_put_string(json, "graphs_differ", result->has_other_graph ? words : NULL);
    return gbx_json_finish_stdout(json, status);
}
