#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/verify/internal.h"

/* --- what the dump says is not there --- */

static int compare_tasks(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Arguments that were skipped, by task; not complete tasks, which announce nothing. */
static gbx_status list_skipped(gbx_sums_check *sums) {
    uint64_t count = gbx_reader_list_count(sums->reader, GBX_LIST_SKIPPED);
    uint64_t capacity = 0;
    GBX_TRY(gbx_array_reserve(&sums->skipped, &capacity, count, "listing what was skipped"));
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(sums->reader, GBX_LIST_SKIPPED, i, &record));
        if (record->arg_index != GBX_ARG_NONE)
            sums->skipped[sums->skipped_count++] = record->task;
    }
    if (sums->skipped_count)
        qsort(sums->skipped, sums->skipped_count, sizeof *sums->skipped, compare_tasks);
    return NULL;
}

static gbx_status count_lost(gbx_sums_check *sums) {
    uint64_t count = gbx_reader_list_count(sums->reader, GBX_LIST_LOSSES);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record;
        uint64_t arguments = 0;
        GBX_TRY(gbx_reader_list_at(sums->reader, GBX_LIST_LOSSES, i, &record));
        const gbx_record_loss *loss = (const gbx_record_loss *)(const void *)record;
        bool is_known = gbx_record_get_lost_arguments(loss, &arguments);
        sums->is_loss_known &= is_known && !loss->is_least;
        sums->lost += arguments;
    }
    return NULL;
}

gbx_status gbx_sums_begin(gbx_sums_check *sums, gbx_reader *reader, gbx_findings *findings) {
    *sums = (gbx_sums_check){.reader = reader, .findings = findings, .is_loss_known = true};
    GBX_TRY(list_skipped(sums));
    return count_lost(sums);
}

void gbx_sums_free(gbx_sums_check *sums) {
    free(sums->skipped);
    sums->skipped = NULL;
}

/* --- one task --- */

static uint64_t skipped_of(gbx_sums_check *sums, uint64_t task) {
    uint64_t count = 0;
    while (sums->skipped_at < sums->skipped_count && sums->skipped[sums->skipped_at] < task)
        ++sums->skipped_at;
    while (sums->skipped_at < sums->skipped_count && sums->skipped[sums->skipped_at] == task) {
        ++sums->skipped_at;
        ++count;
    }
    return count;
}

static const char *kernel_of(const gbx_sums_check *sums, const gbx_record_task *about) {
    for (size_t i = 0; i < 3; ++i) {
        const gbx_run_kernel *kernel =
            gbx_run_info_kernel(gbx_reader_run(sums->reader), about->func_ids[i]);
        if (about->func_ids[i] != UINT32_MAX && kernel)
            return kernel->name;
    }
    return "unknown";
}

static void report(gbx_sums_check *sums, const gbx_sums_task *task, const gbx_record_task *about) {
    char what[256];
    snprintf(what, sizeof what,
             "task %" PRIu64
             ", kernel %s: arguments that it announced, and those that are recorded, skipped or "
             "lost",
             task->task, kernel_of(sums, about));
    gbx_findings_compare(sums->findings, GBX_FINDING_TASK, what, task->expected, task->found);
}

void gbx_sums_add_task(gbx_sums_check *sums, const gbx_record_task *about,
                       const gbx_record_announced *announced, uint64_t before, uint64_t after,
                       bool is_done, bool is_strict) {
    uint64_t skipped = skipped_of(sums, about->head.task);
    uint64_t all = (uint64_t)announced->before + announced->after;
    gbx_sums_task task = {
        .task = about->head.task, .expected = all, .found = before + after + skipped};
    /* One that did not complete may have none of its outputs. */
    if (!is_done && task.found <= all) {
        task.expected = announced->before;
        task.found = before + skipped < announced->before ? before + skipped : announced->before;
    }
    if (task.found >= task.expected && task.found <= all)
        return;
    if (task.found > all || is_strict) {
        report(sums, &task, about);
        return;
    }
    if (sums->missing == 0) {
        sums->first = task;
        sums->first_about = *about;
    }
    sums->missing += task.expected - task.found;
}

/* --- all --- */

void gbx_sums_end(gbx_sums_check *sums) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(sums->reader);
    const gbx_record_sums *stated = gbx_reader_sums(sums->reader);
    /* What is missing of the tasks whose own records are there is part of what was lost. */
    if (gbx_reader_is_complete(sums->reader) || stated) {
        if (sums->is_loss_known && sums->missing > sums->lost)
            report(sums, &sums->first, &sums->first_about);
    }
    if (!stated)
        return;
    gbx_findings_compare(sums->findings, GBX_FINDING_COUNT, "lost_arguments of the END record",
                         sums->lost, stated->lost_arguments);
    gbx_findings_compare(
        sums->findings, GBX_FINDING_COUNT,
        "announced of the END record, and arguments that are recorded, skipped or lost",
        totals->records + totals->in_flight + sums->skipped_count + sums->lost, stated->announced);
}
