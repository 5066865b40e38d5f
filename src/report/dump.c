#include "report/dump.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "base/memory.h"
#include "report/ending.h"
#include "report/table.h"
#include "store/dump_path.h"
#include "store/manifest/manifest.h"
#include "text/near_names.h"

enum { LINES_MAX = 20 };

/* --- opening --- */

static gbx_status check_extent(const gbx_opened_dump *dump) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(dump->reader);
    const gbx_reader_totals *totals = gbx_reader_get_totals(dump->reader);
    uint64_t readable = totals->records + totals->in_flight;
    gbx_texts texts = {0};
    const char *advice =
        "the checksum of the block matches, so it was written like this: a newer glassbox may read "
        "it";
    if (extent->stop == GBX_STOP_END)
        return NULL;
    if (gbx_reader_stop_is_damage(extent->stop))
        advice = gbx_text_format(
            &texts, "the %s before it %s readable: glassbox recover %s keeps %s",
            gbx_text_counted(&texts, readable, "record"), gbx_text_verb(readable, "is", "are"),
            gbx_text_word(&texts, dump->directory), gbx_text_verb(readable, "it", "them"));
    return gbx_fail(GBX_BAD_FORMAT, "reading %s: at offset %" PRIu64 " of %" PRIu64 ", %s; %s",
                    gbx_reader_get_origin(dump->reader)->records_path, extent->stop_offset,
                    extent->file_bytes, extent->stop_text, advice);
}

static void warn_of_newer(const gbx_opened_dump *dump) {
    gbx_texts texts = {0};
    uint64_t newer = gbx_reader_get_extent(dump->reader)->newer_count;
    if (newer > 0)
        fprintf(stderr, "glassbox: %s: skipped %s of types newer than this version\n",
                gbx_text_shown(&texts, dump->directory), gbx_text_counted(&texts, newer, "record"));
}

static gbx_status open_all(const char *given, unsigned indexed, gbx_opened_dump *dump) {
    GBX_TRY(gbx_dump_path_find(given, &dump->directory));
    GBX_TRY(gbx_reader_open(dump->directory, GBX_INDEX_ARGUMENTS | indexed, &dump->reader));
    GBX_TRY(check_extent(dump));
    GBX_TRY(gbx_reader_open_payload(dump->reader));
    GBX_TRY(gbx_entries_create(dump->reader, &dump->entries));
    warn_of_newer(dump);
    return NULL;
}

gbx_status gbx_opened_dump_open(const char *given, unsigned indexed, gbx_opened_dump *out_dump) {
    *out_dump = (gbx_opened_dump){0};
    gbx_status status = open_all(given, indexed, out_dump);
    if (status)
        gbx_opened_dump_close(out_dump);
    return status;
}

/* *out_is_good is false for a journal with a broken block. */
static gbx_status open_tasks(const char *given, unsigned indexed, uint64_t first, uint64_t last,
                             gbx_opened_dump *dump, bool *out_is_good) {
    GBX_TRY(gbx_dump_path_find(given, &dump->directory));
    GBX_TRY(gbx_reader_open_tasks(dump->directory, GBX_INDEX_ARGUMENTS | indexed, first, last,
                                  &dump->reader));
    *out_is_good = gbx_reader_get_extent(dump->reader)->stop == GBX_STOP_END;
    if (!*out_is_good)
        return NULL;
    GBX_TRY(gbx_reader_open_payload(dump->reader));
    return gbx_entries_create(dump->reader, &dump->entries);
}

gbx_status gbx_opened_dump_open_tasks(const char *given, unsigned indexed, uint64_t first,
                                      uint64_t last, gbx_opened_dump *out_dump) {
    *out_dump = (gbx_opened_dump){0};
    bool is_good = false;
    gbx_status status = open_tasks(given, indexed, first, last, out_dump, &is_good);
    if (status || !is_good) {
        gbx_status_free(status);
        gbx_opened_dump_close(out_dump);
        return gbx_opened_dump_open(given, indexed, out_dump);
    }
    warn_of_newer(out_dump);
    return NULL;
}

void gbx_opened_dump_close(gbx_opened_dump *dump) {
    gbx_entries_destroy(dump->entries);
    gbx_reader_close(dump->reader);
    free(dump->directory);
    *dump = (gbx_opened_dump){0};
}

/* --- commands about it --- */

/* Where a link called latest points to now: after the next run it points elsewhere. NULL where it
 * is no such link. */
static const char *follow_latest(gbx_texts *texts, const char *directory) {
    char link[PATH_MAX], target[PATH_MAX];
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        --length;
    if (length >= sizeof link)
        return NULL;
    *(char *)mempcpy(link, directory, length) = '\0';
    char *slash = strrchr(link, '/'), *name = slash ? slash + 1 : link;
    ssize_t bytes = strcmp(name, "latest") == 0 ? readlink(link, target, sizeof target - 1) : -1;
    if (bytes <= 0)
        return NULL;
    target[bytes] = '\0';
    *name = '\0';
    return gbx_text_join(texts, target[0] == '/' ? "" : link, target, "");
}

/* As the user named it, so that the line is short and works in the same directory. */
static const char *dump_name(gbx_texts *texts, const gbx_opened_dump *dump, const char *given) {
    const char *directory = dump->directory;
    const char *followed = follow_latest(texts, directory);
    if (followed)
        return followed;
    /* Around a tensor_dump that was named, the directory is known by its whole path. */
    if (given && given[0] != '/' && directory[0] == '/')
        directory = given;
    return gbx_text_join(texts, directory[0] == '-' ? "./" : "", directory, "");
}

const char *gbx_text_command(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                             const char *command, const char *rest) {
    return gbx_text_format(texts, "glassbox %s %s%s%s", command,
                           gbx_text_word(texts, dump_name(texts, dump, given)), rest[0] ? " " : "",
                           rest);
}

const char *gbx_text_replay(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                            const char *task) {
    return gbx_text_command(texts, dump, given, "replay",
                            gbx_text_join(texts, "--task", " ", task));
}

/* --- names --- */

const char *gbx_text_func(gbx_texts *texts, const gbx_reader *reader, uint32_t func_id) {
    const gbx_run_kernel *kernel = gbx_run_info_kernel(gbx_reader_run(reader), func_id);
    return kernel ? gbx_text_cut(texts, kernel->name, GBX_MAX_KERNEL_NAME)
                  : gbx_text_format(texts, "func %" PRIu32, func_id);
}

const char *gbx_text_kernel(gbx_texts *texts, const gbx_reader *reader,
                            const gbx_record_task *task) {
    const char *text = NULL;
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i) {
        uint32_t func_id = task->func_ids[i];
        if (func_id == GBX_NO_KERNEL)
            continue;
        const char *name = gbx_text_func(texts, reader, func_id);
        text = text ? gbx_text_join(texts, text, "+", name) : name;
    }
    return text ? text : "unknown";
}

const char *gbx_text_task(gbx_texts *texts, const gbx_reader *reader, uint64_t task,
                          uint64_t task_id) {
    if (gbx_reader_get_origin(reader)->known & GBX_KNOWN_TASK_SEQ)
        return gbx_text_number(texts, task);
    return gbx_text_format(texts, "0x%" PRIx64, task_id);
}

const char *gbx_text_task_of(gbx_texts *texts, const gbx_reader *reader, const gbx_entry *entry) {
    uint64_t task = entry->head->task;
    return gbx_text_task(texts, reader, task, entry->task ? entry->task->task_id : task);
}

const char *gbx_text_arg(gbx_texts *texts, uint32_t slot, const char *name) {
    const char *number = gbx_text_number(texts, slot);
    return name ? gbx_text_join(texts, number, " ", gbx_text_cut(texts, name, GBX_MAX_KERNEL_NAME))
                : number;
}

const char *gbx_text_scalar(gbx_texts *texts, uint32_t dtype, uint64_t bits) {
    const char *value = gbx_text_element(texts, dtype, bits);
    return dtype == GBX_DTYPE_NONE
               ? gbx_text_format(texts, "= %s, %s", value, gbx_text_readings(texts, bits))
               : gbx_text_join(texts, "= ", value, "");
}

const char *gbx_text_shape(gbx_texts *texts, const gbx_entry *entry) {
    if (entry->scalar)
        return gbx_text_scalar(texts, entry->dtype, entry->scalar->bits);
    return gbx_text_numbers(texts, gbx_record_shape(entry->tensor), entry->head->ndims);
}

/* --- what is in it --- */

/* "; 3 lost", in a colour where it is more than none. */
static void print_count(gbx_sink *sink, const char *what, uint64_t count, const char *colour) {
    const char *text =
        gbx_text_format(&sink->texts, "%s %s", gbx_text_count(&sink->texts, count), what);
    gbx_sink_print(sink, "; %s", count > 0 ? gbx_sink_colour(sink, colour, text) : text);
}

static void print_run(gbx_sink *sink, const gbx_opened_dump *dump) {
    const gbx_run_info *run = gbx_reader_run(dump->reader);
    const char *const parts[] = {run->platform, run->runtime, run->dump_level};
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "%s", gbx_text_shown(t, run->scene ? run->scene : dump->directory));
    if (run->scene && run->case_name)
        gbx_sink_print(sink, " %s", gbx_text_shown(t, run->case_name));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i)
        if (parts[i])
            gbx_sink_print(sink, ", %s", gbx_text_shown(t, parts[i]));
}

/* What is missing, and how the run ended. */
static void print_state(gbx_sink *sink, const gbx_reader *reader) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    bool is_complete = gbx_reader_is_complete(reader);
    gbx_texts *t = &sink->texts;
    print_count(sink, "lost", totals->dropped, GBX_RED);
    print_count(sink, "skipped", totals->skipped, GBX_YELLOW);
    if (totals->truncated > 0)
        print_count(sink, "truncated", totals->truncated, GBX_YELLOW);
    if (totals->in_flight > 0)
        print_count(sink, "in flight", totals->in_flight, GBX_RED);
    if (totals->results > 0)
        gbx_sink_print(sink, "; %s", gbx_text_counted(t, totals->results, "result"));
    if ((gbx_reader_get_origin(reader)->known & GBX_KNOWN_STATUS) &&
        !(is_complete && gbx_reader_has_ended_well(reader))) {
        const char *end = gbx_reader_end(reader) ? gbx_reader_end_text(reader) : "killed";
        const char *text =
            gbx_text_format(t, "%s%s", is_complete ? "" : "not complete: ", gbx_text_shown(t, end));
        gbx_sink_print(sink, "; %s", gbx_sink_colour(sink, GBX_RED, text));
    }
    if (totals->findings > 0)
        print_count(sink, gbx_text_verb(totals->findings, "finding", "findings"), totals->findings,
                    GBX_RED);
    gbx_sink_print(sink, "\n");
}

void gbx_dump_print_head(gbx_sink *sink, const gbx_opened_dump *dump) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(dump->reader);
    gbx_texts *t = &sink->texts;
    print_run(sink, dump);
    gbx_sink_print(
        sink, ": %s of %s, %s", gbx_text_counted(t, totals->records + totals->in_flight, "entry"),
        gbx_text_counted(t, totals->tasks, "task"), gbx_text_bytes(t, totals->payload_bytes));
    if (totals->stored_bytes != totals->payload_bytes)
        gbx_sink_print(sink, " (%s stored)", gbx_text_bytes(t, totals->stored_bytes));
    print_state(sink, dump->reader);
}

void gbx_dump_print_dispatch_head(gbx_sink *sink, const gbx_opened_dump *dump) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(dump->reader);
    gbx_texts *t = &sink->texts;
    print_run(sink, dump);
    gbx_sink_print(sink, ": %s of %s", gbx_text_counted(t, totals->dispatches, "dispatch"),
                   gbx_text_counted(t, totals->tasks, "task"));
    print_state(sink, dump->reader);
}

gbx_status gbx_dump_print_run_findings(gbx_sink *sink, const gbx_opened_dump *dump) {
    const gbx_reader *reader = dump->reader;
    uint64_t count = gbx_reader_list_count(reader, GBX_LIST_FINDINGS);
    char text[GBX_FINDING_TEXT_BYTES];
    for (uint64_t i = 0; i < count && i < LINES_MAX; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(dump->reader, GBX_LIST_FINDINGS, i, &record));
        gbx_manifest_finding_text(gbx_reader_run(reader),
                                  &((const gbx_record_finding *)(const void *)record)->finding,
                                  text);
        gbx_sink_print(sink, "finding: %s\n", gbx_text_shown(&sink->texts, text));
    }
    gbx_sink_more(sink, "finding: ", gbx_reader_get_totals(reader)->findings,
                  count < LINES_MAX ? count : LINES_MAX, " in findings of --json\n");
    return NULL;
}

/* --- findings --- */

static void print_finding(gbx_sink *sink, const gbx_finding *finding) {
    gbx_texts *t = &sink->texts;
    if (finding->has_place)
        gbx_sink_print(sink, "  entry %" PRIu64 ": task %" PRIu64 ", kernel %s, arg %u, %s: ",
                       finding->place.index, finding->place.task,
                       gbx_text_shown(t, finding->kernel ? finding->kernel : "unknown"),
                       finding->place.arg_index, gbx_name_of(&gbx_stages, finding->place.stage));
    else
        gbx_sink_print(sink, "  %s: ", gbx_name_of(&gbx_finding_kinds, finding->kind));
    gbx_sink_print(sink, "%s", gbx_text_shown(t, finding->what));
    if (finding->expected)
        gbx_sink_print(sink, ": expected %s, got %s", gbx_text_shown(t, finding->expected),
                       gbx_text_shown(t, finding->got));
    gbx_sink_print(sink, "\n");
}

void gbx_findings_print(gbx_sink *sink, const gbx_findings *findings, const char *more) {
    for (size_t i = 0; i < findings->count && i < LINES_MAX; ++i)
        print_finding(sink, &findings->items[i]);
    gbx_sink_more(sink, "  ", findings->count, LINES_MAX, more);
}

/* --- names that nothing has --- */

enum { NEAR_SHOWN = 12 };

static bool is_known_kernel(const gbx_run_info *run, const char *wanted) {
    const gbx_selection_names one = {.items = {wanted}, .count = 1};
    for (size_t i = 0; i < run->kernel_count; ++i)
        if (gbx_selection_has_name(&one, run->kernels[i].name))
            return true;
    return false;
}

static const char *near_kernels(gbx_texts *texts, const gbx_run_info *run, const char *wanted) {
    const char **names = malloc((run->kernel_count + 1) * sizeof *names);
    size_t *order = malloc((run->kernel_count + 1) * sizeof *order);
    const char *text = "";
    for (size_t i = 0; names && i < run->kernel_count; ++i)
        names[i] = run->kernels[i].name;
    if (names && order)
        gbx_near_sort(wanted, names, run->kernel_count, order);
    for (size_t i = 0; names && order && i < run->kernel_count && i < NEAR_SHOWN; ++i)
        text = gbx_text_join(texts, text, i ? ", " : "", names[order[i]]);
    if (run->kernel_count > NEAR_SHOWN)
        text = gbx_text_format(texts, "%s and %zu more", text, run->kernel_count - NEAR_SHOWN);
    free(names);
    free(order);
    return text;
}

const char *gbx_text_unknown_kernel(gbx_texts *texts, const gbx_opened_dump *dump,
                                    const gbx_selection_names *kernels) {
    const gbx_run_info *run = gbx_reader_run(dump->reader);
    for (size_t i = 0; i < kernels->count && run->kernel_count > 0; ++i)
        if (!is_known_kernel(run, kernels->items[i]))
            return gbx_text_format(texts, ": no kernel matches \"%.80s\"; there are %s",
                                   kernels->items[i], near_kernels(texts, run, kernels->items[i]));
    return "";
}
