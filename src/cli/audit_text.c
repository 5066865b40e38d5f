#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "cli/audit_report.h"
#include "cli/dump_text.h"
#include "cli/terminal.h"
#include "cli/view_row.h"

enum { SHOWN_MAX = 20 };

/* A task and its argument, with the names that the dump has for them. */
typedef struct party {
    gbx_entry entry;
    char kernel[GBX_VIEW_KERNEL_BYTES];
    char name[GBX_VIEW_NAME_BYTES]; /* "" where it has none */
} party;

static gbx_status find_party(const gbx_opened_dump *dump, uint64_t entry, party *out_party) {
    GBX_TRY(gbx_entries_at(dump->entries, entry, &out_party->entry));
    gbx_view_kernel_text(dump->reader, out_party->entry.task, out_party->kernel);
    const char *name = out_party->entry.arg_name;
    char cut[GBX_VIEW_NAME_BYTES];
    snprintf(out_party->name, sizeof out_party->name, "%s",
             name ? gbx_terminal_cut(name, GBX_VIEW_NAME_WIDTH, cut, sizeof cut) : "");
    return NULL;
}

/* "task 7 (softmax)" */
static void print_task(uint64_t task, const char *kernel) {
    printf("task %" PRIu64 " (", task);
    gbx_terminal_put(kernel);
    fputs(")", stdout);
}

/* "argument 0 x" */
static void print_argument(const party *p) {
    printf("argument %u", p->entry.head->arg_index);
    if (p->name[0])
        fputs(" ", stdout);
    gbx_terminal_put(p->name);
}

static void print_party(uint64_t task, const party *p) {
    print_task(task, p->kernel);
    fputs(", ", stdout);
    print_argument(p);
}

void gbx_audit_index(const gbx_entry *entry, uint64_t element, int64_t out_index[GBX_MAX_DIMS]) {
    const int64_t *shape = gbx_record_shape(entry->tensor);
    for (uint32_t i = entry->head->ndims; i-- > 0;) {
        out_index[i] = (int64_t)(element % (uint64_t)shape[i]);
        element /= (uint64_t)shape[i];
    }
}

/* --- a finding --- */

static void print_change(const gbx_audit_finding *f, const party *first, const party *second) {
    fputs("undeclared write: ", stdout);
    print_party(f->second.task, second);
    fputs(", does not hold what ", stdout);
    print_party(f->first.task, first);
    fputs(f->is_seen ? ", saw there" : ", left there", stdout);
}

static void print_read(const gbx_audit_finding *f, const party *first, const party *second) {
    fputs(f->is_read_first ? "read too late: " : "read too early: ", stdout);
    if (f->is_concurrent) {
        print_party(f->second.task, second);
        fputs(f->is_read_first ? ", was to be read before " : ", was read while ", stdout);
        print_party(f->first.task, first);
        fputs(f->is_read_first ? ", is written, and both ran at the same time"
                               : ", was being written",
              stdout);
        return;
    }
    fputs("nothing orders ", stdout);
    print_party(f->second.task, second);
    fputs(f->is_read_first ? ", before " : ", after ", stdout);
    print_party(f->first.task, first);
    fputs(", which writes it", stdout);
}

static void print_writes(const gbx_audit_finding *f, const party *first, const party *second) {
    fputs("overlapping writes: ", stdout);
    print_party(f->first.task, first);
    fputs(", and ", stdout);
    print_party(f->second.task, second);
    fputs(f->is_concurrent ? ", were written at the same time" : ", are in no order", stdout);
}

static void print_claim(const gbx_audit_finding *f, const party *first, const party *second) {
    static void (*const printers[GBX_AUDIT_KIND_COUNT])(const gbx_audit_finding *, const party *,
                                                        const party *) = {
        [GBX_AUDIT_UNDECLARED_WRITE] = print_change,
        [GBX_AUDIT_READ_TOO_EARLY] = print_read,
        [GBX_AUDIT_OVERLAPPING_WRITES] = print_writes};
    printers[f->kind](f, first, second);
    fputs("\n", stdout);
}

/* "64 bytes at 0x7e9000001000: 128 to 191 of x" */
static void print_range(const gbx_audit_finding *f, const party *second) {
    char count[GBX_COUNT_TEXT_BYTES];
    printf("  %s byte%s at 0x%" PRIx64 ", byte %" PRId64 " to %" PRId64 " of the buffer of ",
           gbx_text_count(f->bytes, count), f->bytes == 1 ? "" : "s", f->address, f->second.begin,
           f->second.end - 1);
    print_argument(second);
    fputs("\n", stdout);
}

static void print_index(const gbx_entry *entry, uint64_t element) {
    int64_t index[GBX_MAX_DIMS];
    gbx_audit_index(entry, element, index);
    fputs("[", stdout);
    for (uint32_t i = 0; i < entry->head->ndims; ++i)
        printf("%s%" PRId64, i ? ", " : "", index[i]);
    fputs("]", stdout);
}

static const char *no_element_text(const gbx_audit_finding *f) {
    if (f->kind == GBX_AUDIT_READ_TOO_EARLY && f->is_read_first)
        return "whether it read the old bytes cannot be told";
    if (!f->is_compared)
        return "the dump does not have the bytes of both";
    return f->kind == GBX_AUDIT_READ_TOO_EARLY ? "this time it read what was written in the end"
                                               : "this time both left the same bytes";
}

static void print_element(const gbx_audit_finding *f, const party *second) {
    char expected[GBX_ELEMENT_TEXT_BYTES], found[GBX_ELEMENT_TEXT_BYTES];
    if (!f->has_element) {
        printf("  %s\n", no_element_text(f));
        return;
    }
    gbx_element_format(f->dtype, f->expected, expected);
    gbx_element_format(f->dtype, f->found, found);
    fputs("  first element that differs: ", stdout);
    print_index(&second->entry, f->element);
    if (f->kind == GBX_AUDIT_OVERLAPPING_WRITES)
        printf(", task %" PRIu64 " left %s, task %" PRIu64 " %s\n", f->first.task, expected,
               f->second.task, found);
    else
        printf(", expected %s, found %s\n", expected, found);
}

static gbx_status print_suspect(const gbx_opened_dump *dump, const gbx_audit_suspect *suspect) {
    char kernel[GBX_VIEW_KERNEL_BYTES], count[GBX_COUNT_TEXT_BYTES];
    gbx_record_task task;
    bool is_found = false;
    party p;
    GBX_TRY(gbx_reader_find_task(dump->reader, suspect->task, &task, &is_found));
    gbx_view_kernel_text(dump->reader, is_found ? &task : NULL, kernel);
    print_task(suspect->task, kernel);
    if (suspect->reason == GBX_SUSPECT_RAN)
        return NULL;
    GBX_TRY(find_party(dump, suspect->entry, &p));
    fputs(" whose ", stdout);
    print_argument(&p);
    if (suspect->reason == GBX_SUSPECT_HAS_IT)
        fputs(" lies there", stdout);
    else if (suspect->reason == GBX_SUSPECT_ENDS_BEFORE)
        printf(" ends %s bytes before", gbx_text_count(suspect->distance, count));
    else
        printf(" begins %s bytes after", gbx_text_count(suspect->distance, count));
    return NULL;
}

/* Who may have written it. */
static gbx_status print_suspects(const gbx_opened_dump *dump, const gbx_audit_finding *f) {
    char count[GBX_COUNT_TEXT_BYTES];
    uint64_t shown = f->suspect_count < GBX_AUDIT_SUSPECTS ? f->suspect_count : GBX_AUDIT_SUSPECTS;
    if (f->kind != GBX_AUDIT_UNDECLARED_WRITE)
        return NULL;
    fputs(shown > 0 ? "  ran meanwhile: "
                    : "  no task ran meanwhile: the orchestration may have "
                      "written it",
          stdout);
    for (uint64_t i = 0; i < shown; ++i) {
        fputs(i > 0 ? "; " : "", stdout);
        GBX_TRY(print_suspect(dump, &f->suspects[i]));
    }
    if (f->suspect_count > shown)
        printf("; and %s more", gbx_text_count(f->suspect_count - shown, count));
    fputs("\n", stdout);
    return NULL;
}

/* The entries of both are read one after the other: each lives until the next is read. */
static gbx_status print_finding(const gbx_opened_dump *dump, const gbx_audit_finding *f) {
    party first, second;
    GBX_TRY(find_party(dump, f->first.entry, &first));
    gbx_record first_head = *first.entry.head;
    GBX_TRY(find_party(dump, f->second.entry, &second));
    first.entry.head = &first_head;
    print_claim(f, &first, &second);
    print_range(f, &second);
    print_element(f, &second);
    return print_suspects(dump, f);
}

/* --- the whole --- */

static void print_verdict(const gbx_audit *audit) {
    char findings[GBX_COUNT_TEXT_BYTES], records[GBX_COUNT_TEXT_BYTES];
    char tasks[GBX_COUNT_TEXT_BYTES];
    gbx_text_count(audit->finding_count, findings);
    gbx_text_count(audit->counts.records, records);
    gbx_text_count(audit->counts.tasks, tasks);
    const char *plural = audit->counts.tasks == 1 ? "" : "s";
    if (audit->finding_count == 0)
        printf("no findings: %s records of %s task%s do not contradict each other\n", records,
               tasks, plural);
    else
        printf("%s finding%s in %s records of %s task%s; the first:\n", findings,
               audit->finding_count == 1 ? "" : "s", records, tasks, plural);
}

static void print_gap(const gbx_audit *audit, gbx_audit_gap gap, const char *why) {
    char count[GBX_COUNT_TEXT_BYTES];
    uint64_t inputs = audit->counts.not_compared[gap];
    if (inputs > 0)
        printf("not audited: %s input%s, %s\n", gbx_text_count(inputs, count),
               inputs == 1 ? "" : "s", why);
}

static void print_missing(const gbx_audit *audit) {
    char why[160], count[GBX_COUNT_TEXT_BYTES];
    uint64_t tasks = audit->counts.missing_tasks;
    if (tasks == UINT64_MAX)
        snprintf(why, sizeof why,
                 "which may have been written by outputs that are not in the dump");
    else
        snprintf(why, sizeof why, "since outputs of %s task%s are not in the dump",
                 gbx_text_count(tasks, count), tasks == 1 ? "" : "s");
    print_gap(audit, GBX_GAP_MISSING_OUTPUTS, why);
}

/* What was not looked at, or less closely. */
static void print_notes(const gbx_audit *audit) {
    const gbx_audit_counts *counts = &audit->counts;
    char compared[GBX_COUNT_TEXT_BYTES], inputs[GBX_COUNT_TEXT_BYTES], first[GBX_COUNT_TEXT_BYTES];
    printf("inputs: %s, of which %s were compared with what was known of their memory and %s were "
           "the first to read it\n",
           gbx_text_count(counts->inputs, inputs), gbx_text_count(counts->compared, compared),
           gbx_text_count(counts->first_reads, first));
    print_missing(audit);
    print_gap(audit, GBX_GAP_NO_BYTES,
              "since the dump does not have all bytes of them or of what was there");
    print_gap(audit, GBX_GAP_PIECES, "since their views lie in more pieces than can be followed");
    if (counts->unfollowed > 0)
        printf("not audited: %s outputs, since their views lie in more pieces than can be "
               "followed\n",
               gbx_text_count(counts->unfollowed, inputs));
    if (counts->in_flight > 0)
        printf("left out: %s records of tasks that did not complete\n",
               gbx_text_count(counts->in_flight, inputs));
    if (counts->bad_edges > 0)
        printf("left out: %s edges that lead to no task or make a cycle\n",
               gbx_text_count(counts->bad_edges, inputs));
    if (!counts->has_edges)
        printf("order: by the times of this run alone, for the dump does not have all edges\n");
}

/* The first ones, then how many more of each kind there are. */
static gbx_status print_findings(const gbx_opened_dump *dump, const gbx_audit *audit) {
    char count[GBX_COUNT_TEXT_BYTES];
    size_t shown = audit->finding_count < SHOWN_MAX ? audit->finding_count : SHOWN_MAX;
    for (size_t i = 0; i < shown; ++i)
        GBX_TRY(print_finding(dump, &audit->findings[i]));
    for (int kind = 0; kind < GBX_AUDIT_KIND_COUNT; ++kind) {
        static const char *const names[GBX_AUDIT_KIND_COUNT] = {
            "undeclared writes", "reads too early", "overlapping writes"};
        uint64_t more = 0;
        for (size_t i = shown; i < audit->finding_count; ++i)
            more += audit->findings[i].kind == (gbx_audit_kind)kind;
        if (more > 0)
            printf("and %s more %s (--json has all)\n", gbx_text_count(more, count), names[kind]);
    }
    return NULL;
}

gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const gbx_audit *audit) {
    print_verdict(audit);
    GBX_TRY(print_findings(dump, audit));
    print_notes(audit);
    return NULL;
}
