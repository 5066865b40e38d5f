#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/dump.h>
#include <glassbox/tensor.h>
#include <jansson.h>

#include "analysis/array_text.h"
#include "analysis/export/export.h"
#include "analysis/export/internal.h"
#include "analysis/internal.h"
#include "base/memory.h"
#include "base/staging.h"
#include "tensor/dtype_table.h"
#include "text/names.h"

enum { CHECKED_EVERY = 1024 };

#define MADE_UP_ID UINT64_C(0xffffffff00000000)

/* --- payloads: each stored once, in the order of the dump --- */

typedef struct span {
    uint64_t offset; /* in the dump */
    uint64_t size;
    uint64_t moved; /* in args.bin */
} span;

typedef struct spans {
    span *items;
    size_t count;
} spans;

static bool is_exported(const gbx_entry *entry) {
    return !(entry->head->flags & GBX_FLAG_IN_FLIGHT);
}

/* Every so often in a loop over all entries. */
static gbx_status check_signals(const gbx_export_job *dump, uint64_t i) {
    return i % CHECKED_EVERY == 0 ? gbx_signals_check(dump->signals) : NULL;
}

static gbx_status collect_spans(const gbx_export_job *dump, spans *out_spans) {
    out_spans->items = malloc((dump->count + 1) * sizeof *out_spans->items);
    if (!out_spans->items)
        return gbx_fail_memory("exporting %" PRIu64 " payloads", dump->count);
    for (uint64_t i = 0; i < dump->count; ++i) {
        gbx_entry entry;
        GBX_TRY(check_signals(dump, i));
        GBX_TRY(gbx_entries_at(dump->entries, dump->indices[i], &entry));
        if (is_exported(&entry) && gbx_entry_stored_bytes(&entry) > 0)
            out_spans->items[out_spans->count++] =
                (span){entry.tensor->bin_offset, entry.tensor->bin_size, 0};
    }
    return NULL;
}

/* Sorts them, removes duplicates, and places each in args.bin; returns its size. */
static uint64_t place_spans(spans *all) {
    size_t kept = 0;
    uint64_t end = 0;
    if (all->count > 1)
        qsort(all->items, all->count, sizeof *all->items, gbx_compare_pairs);
    for (size_t i = 0; i < all->count; ++i) {
        span *last = kept > 0 ? &all->items[kept - 1] : NULL;
        if (last && gbx_compare_pairs(last, &all->items[i]) == 0)
            continue;
        all->items[kept] = all->items[i];
        all->items[kept].moved = end;
        end += all->items[kept++].size;
    }
    all->count = kept;
    return end;
}

static uint64_t find_moved(const spans *all, const gbx_entry *entry) {
    if (gbx_entry_stored_bytes(entry) == 0)
        return 0;
    const span wanted = {entry->tensor->bin_offset, entry->tensor->bin_size, 0};
    const span *found =
        bsearch(&wanted, all->items, all->count, sizeof *all->items, gbx_compare_pairs);
    return found ? found->moved : 0;
}

static gbx_status write_payloads(const gbx_export_job *dump, const spans *all, FILE *bin) {
    for (size_t i = 0; i < all->count && !ferror(bin); ++i)
        GBX_TRY(gbx_payload_copy(gbx_entries_reader(dump->entries), all->items[i].offset,
                                 all->items[i].size, dump->signals, NULL, bin));
    return NULL;
}

/* --- an entry --- */

static void write_numbers(FILE *json, const char *key, const int64_t *numbers, uint32_t count) {
    fprintf(json, ", \"%s\": [", key);
    gbx_export_numbers(json, numbers, count);
    fputc(']', json);
}

/* Also numbers of 64 bits; a float has a point or an exponent, or is quoted if not finite. */
static void write_value(FILE *json, const gbx_entry *entry, gbx_simpler_report *report) {
    char text[GBX_ELEMENT_TEXT_BYTES];
    uint32_t dtype = gbx_entry_element_dtype(entry);
    uint64_t bits = entry->scalar->bits & UINT64_MAX >> (64 - gbx_dtype_bits(dtype));
    bool is_number = !gbx_dtype_is_float(dtype) || isfinite(gbx_dtype_to_f64(dtype, bits));
    if (dtype == GBX_BOOL)
        snprintf(text, GBX_ELEMENT_TEXT_BYTES, bits ? "true" : "false");
    else
        gbx_element_format(dtype, bits, text);
    report->not_numbers += !is_number;
    fprintf(json, is_number ? ", \"value\": %s" : ", \"value\": \"%s\"", text);
}

static void write_entry(FILE *json, const gbx_entry *entry, const spans *all,
                        gbx_simpler_report *report) {
    uint64_t task_id = entry->task ? entry->task->task_id : MADE_UP_ID + entry->head->task;
    report->made_up_ids += entry->task == NULL;
    fprintf(json, "    {\"task_id\": \"0x%016" PRIx64 "\", \"func_id\": [", task_id);
    const char *separator = "";
    for (size_t i = 0; entry->task && i < GBX_SUBTASK_COUNT; ++i)
        if (entry->task->func_ids[i] != UINT32_MAX) {
            fprintf(json, "%s%" PRIu32, separator, entry->task->func_ids[i]);
            separator = ", ";
        }
    fputc(']', json);
    fprintf(json,
            ", \"arg_index\": %u, \"role\": \"%s\", \"stage\": \"%s\", \"kind\": \"%s\""
            ", \"dtype\": \"%s\"",
            entry->head->arg_index, gbx_name_of(&gbx_roles, entry->head->role),
            gbx_name_of(&gbx_stages, entry->head->stage),
            gbx_name_of(&gbx_kinds, entry->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR),
            gbx_dtype_info_of(gbx_entry_element_dtype(entry))->simpler);
    if (entry->scalar)
        write_value(json, entry, report);
    const gbx_record_tensor *tensor = entry->tensor;
    bool is_contiguous = !tensor || entry->head->flags & GBX_FLAG_CONTIGUOUS;
    fprintf(json, ", \"is_contiguous\": %s", is_contiguous ? "true" : "false");
    uint32_t ndims = tensor ? entry->head->ndims : 0;
    write_numbers(json, "shape", tensor ? gbx_record_shape(tensor) : NULL, ndims);
    write_numbers(json, "strides", tensor ? gbx_record_strides(tensor) : NULL, ndims);
    fprintf(json, ", \"start_offset\": %" PRId64 ", \"numel\": %" PRIu64,
            tensor ? tensor->start_offset : 0, gbx_entry_numel(entry));
    fprintf(json,
            ", \"bin_offset\": %" PRIu64 ", \"bin_size\": %" PRIu64
            ", \"truncated\": %s, \"overwritten\": %s}",
            find_moved(all, entry), gbx_entry_stored_bytes(entry),
            entry->head->flags & GBX_FLAG_TRUNCATED ? "true" : "false",
            entry->head->flags & GBX_FLAG_OVERWRITTEN ? "true" : "false");
    report->foreign_dtypes += !gbx_dtype_info_of(entry->dtype)->is_simpler;
}

/* --- args_dump.json --- */

typedef struct totals {
    uint64_t all;
    uint64_t stages[2];
    uint64_t roles[3];
    uint64_t truncated;
} totals;

static gbx_status count_entries(const gbx_export_job *dump, totals *out_totals,
                                gbx_simpler_report *report) {
    for (uint64_t i = 0; i < dump->count; ++i) {
        gbx_entry entry;
        GBX_TRY(check_signals(dump, i));
        GBX_TRY(gbx_entries_at(dump->entries, dump->indices[i], &entry));
        report->in_flight += !is_exported(&entry);
        if (!is_exported(&entry))
            continue;
        out_totals->all += 1;
        out_totals->stages[entry.head->stage] += 1;
        out_totals->roles[entry.head->role] += 1;
        out_totals->truncated += (entry.head->flags & GBX_FLAG_TRUNCATED) != 0;
    }
    return NULL;
}

/* 1: only what is marked; 2: everything; 3: everything, with payload only for what is marked; 0:
 * the dump does not record its level. */
static int level_of(const char *dump_level) {
    static const int levels[] = {
        [GBX_DUMP_PARTIAL] = 1, [GBX_DUMP_FULL] = 2, [GBX_DUMP_HYBRID] = 3, [GBX_DUMP_STATS] = 3};
    uint32_t level = GBX_DUMP_OFF;
    if (!dump_level || !gbx_name_find(&gbx_dump_levels, dump_level, &level) ||
        level >= sizeof levels / sizeof levels[0])
        return 0;
    return levels[level];
}

static void write_head(FILE *json, const gbx_export_job *dump, const char *run_dir,
                       const totals *counted, gbx_simpler_report *report) {
    gbx_reader *reader = gbx_entries_reader(dump->entries);
    fputs("{\n", json);
    /* In quotes; a name that is not UTF-8 is replaced by the other tool's default. */
    json_t *string = json_string(run_dir);
    char *text = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    fprintf(json, "  \"run_dir\": %s,\n", text ? text : "\"args_dump\"");
    free(text);
    json_decref(string);
    fputs("  \"bin_format\": {\n    \"type\": \"logical_contiguous\",\n"
          "    \"byte_order\": \"little_endian\"\n  },\n",
          json);
    int level = level_of(gbx_reader_run(reader)->dump_level);
    report->has_level = level != 0;
    if (level != 0)
        fprintf(json, "  \"dump_args_level\": %d,\n", level);
    fprintf(json,
            "  \"total_args\": %" PRIu64 ",\n  \"before_dispatch\": %" PRIu64
            ",\n  \"after_completion\": %" PRIu64 ",\n  \"input_args\": %" PRIu64
            ",\n  \"output_args\": %" PRIu64 ",\n  \"inout_args\": %" PRIu64
            ",\n  \"truncated_args\": %" PRIu64 ",\n",
            counted->all, counted->stages[GBX_STAGE_BEFORE], counted->stages[GBX_STAGE_AFTER],
            counted->roles[0], counted->roles[1], counted->roles[2], counted->truncated);
    /* The other tool counts records dropped because of overwriting separately. */
    const gbx_import_totals *imported = gbx_reader_get_import_totals(reader);
    uint64_t dropped = gbx_reader_get_totals(reader)->dropped;
    uint64_t overwritten = imported ? imported->values[GBX_TOTAL_OVERWRITTEN] : 0;
    if (imported && !imported->has_losses)
        dropped = imported->values[GBX_TOTAL_DROPPED];
    else
        dropped -= overwritten < dropped ? overwritten : dropped;
    fprintf(json, "  \"dropped_records\": %" PRIu64 ",\n  \"dropped_overwrite\": %" PRIu64 ",\n",
            dropped, overwritten);
    fputs("  \"bin_file\": \"args.bin\",\n  \"args\": [\n", json);
}

static gbx_status write_entries(const gbx_export_job *dump, const spans *all, FILE *json,
                                gbx_simpler_report *report) {
    for (uint64_t i = 0; i < dump->count && !ferror(json); ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(dump->entries, dump->indices[i], &entry));
        if (!is_exported(&entry))
            continue;
        fputs(report->arguments++ > 0 ? ",\n" : "", json);
        write_entry(json, &entry, all, report);
    }
    fputs("\n  ]\n}\n", json);
    return NULL;
}

/* Write errors of both streams are reported by the caller. */
static gbx_status write_both(const gbx_export_job *dump, const char *run_dir, FILE *json, FILE *bin,
                             gbx_simpler_report *report) {
    totals counted = {0};
    spans all = {0};
    gbx_status status = count_entries(dump, &counted, report);
    if (!status)
        status = collect_spans(dump, &all);
    if (!status) {
        report->payload_bytes = place_spans(&all);
        status = write_payloads(dump, &all, bin);
    }
    if (!status) {
        write_head(json, dump, run_dir, &counted, report);
        status = write_entries(dump, &all, json, report);
    }
    free(all.items);
    return status;
}

static gbx_status open_part(const gbx_export_job *dump, const gbx_staging *staging,
                            const char *name, gbx_output *out_output) {
    int fd;
    GBX_TRY(gbx_staging_open(staging, name, &fd));
    return gbx_output_open(out_output, fd, dump->signals);
}

static gbx_status write_parts(const gbx_export_job *dump, const char *directory,
                              const gbx_staging *staging, gbx_simpler_report *report) {
    const char *slash = strrchr(staging->path, '/');
    const char *run_dir = slash && slash[1] ? slash + 1 : staging->path;
    gbx_output json, bin;
    GBX_TRY(open_part(dump, staging, "args_dump.json", &json));
    gbx_status status = open_part(dump, staging, "args.bin", &bin);
    if (!status) {
        status = write_both(dump, run_dir, json.stream, bin.stream, report);
        status = gbx_output_close(&bin, directory, status);
    }
    return gbx_output_close(&json, directory, status);
}

gbx_status gbx_export_simpler(const gbx_export_job *job, const char *directory,
                              gbx_simpler_report *out_report) {
    gbx_staging staging;
    *out_report = (gbx_simpler_report){0};
    GBX_TRY(gbx_staging_check_free(directory));
    GBX_TRY(gbx_staging_create_directory(directory, &staging));
    gbx_status status = write_parts(job, directory, &staging, out_report);
    if (!status && out_report->arguments == 0) {
        gbx_staging_discard(&staging);
        return NULL;
    }
    return gbx_staging_finish(&staging, GBX_PUBLISH_WHOLE, status);
}
