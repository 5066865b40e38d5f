#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "cli/audit_report.h"
#include "cli/dump_text.h"
#include "cli/replay_line.h"
#include "cli/replay_text.h"
#include "cli/terminal.h"
#include "cli/view_row.h"

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

gbx_status gbx_audit_replay_line(const gbx_opened_dump *dump, const char *given, uint64_t task,
                                 char **out_text) {
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, task);
    return gbx_replay_line(dump, given, number, out_text);
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

/* "within 64 bytes at 0x7e9000001000: bytes 128 to 191 of the buffer of argument 0 x of task 7" */
static void print_range(const gbx_audit_finding *f, const party *second) {
    char count[GBX_COUNT_TEXT_BYTES];
    bool is_one = f->bytes == 1;
    printf("  within %s byte%s at 0x%" PRIx64 ": byte%s %" PRId64, gbx_text_count(f->bytes, count),
           is_one ? "" : "s", f->address, is_one ? "" : "s", f->second.begin);
    if (!is_one)
        printf(" to %" PRId64, f->second.end - 1);
    fputs(" of the buffer of ", stdout);
    print_argument(second);
    printf(" of task %" PRIu64 "\n", f->second.task);
}

static void print_index(const gbx_entry *entry, uint64_t element) {
    int64_t index[GBX_MAX_DIMS];
    gbx_entry_index(entry, element, index);
    fputs("[", stdout);
    for (uint32_t i = 0; i < entry->head->ndims; ++i)
        printf("%s%" PRId64, i ? ", " : "", index[i]);
    fputs("]", stdout);
}

static const char *no_element_text(const gbx_audit_finding *f) {
    if (f->is_read_late)
        return "this time it was read after that had been written";
    if (f->is_read_first)
        return f->is_concurrent ? "whether it read the old bytes cannot be told"
                                : "this time it was read before that was written";
    if (!f->is_compared)
        return "not all bytes of both are in the dump, or they lie in too many pieces to compare";
    return f->kind == GBX_AUDIT_READ_TOO_EARLY ? "this time it read what was written in the end"
                                               : "this time both left the same bytes";
}

static void print_element(const gbx_audit_finding *f, const party *second) {
    char expected[GBX_VALUE_TEXT_BYTES], found[GBX_VALUE_TEXT_BYTES];
    if (!f->has_element) {
        printf("  %s\n", no_element_text(f));
        return;
    }
    gbx_text_value(f->dtype, f->expected, expected);
    gbx_text_value(f->dtype, f->found, found);
    fputs("  first element that differs: ", stdout);
    print_index(&second->entry, f->element);
    if (f->kind == GBX_AUDIT_OVERLAPPING_WRITES)
        printf(", task %" PRIu64 " left %s, task %" PRIu64 " %s\n", f->first.task, expected,
               f->second.task, found);
    else
        printf(", expected %s, found %s\n", expected, found);
}

/* Which edge is missing; the user knows which way, where both write. */
static void print_edge(const gbx_audit_finding *f) {
    if (!f->has_no_path)
        return;
    bool is_write = f->kind == GBX_AUDIT_OVERLAPPING_WRITES;
    uint64_t from, to;
    gbx_audit_missing_edge(f, &from, &to);
    printf(is_write ? "  missing: an edge between task %" PRIu64 " and task %" PRIu64 "\n"
                    : "  missing: an edge from task %" PRIu64 " to task %" PRIu64 "\n",
           from, to);
}

static void print_distance(const gbx_audit_suspect *suspect) {
    char count[GBX_COUNT_TEXT_BYTES];
    bool is_before = suspect->reason == GBX_SUSPECT_ENDS_BEFORE;
    if (suspect->distance == 0)
        fputs(is_before ? " ends right before" : " begins right after", stdout);
    else
        printf(" %s %s byte%s %s", is_before ? "ends" : "begins",
               gbx_text_count(suspect->distance, count), suspect->distance == 1 ? "" : "s",
               is_before ? "before" : "after");
}

/* "    task 7 (softmax), whose argument 0 x lies there" */
static gbx_status print_suspect(const gbx_opened_dump *dump, const gbx_audit_suspect *suspect) {
    char kernel[GBX_VIEW_KERNEL_BYTES];
    gbx_record_task task;
    bool is_found = false;
    party p;
    GBX_TRY(gbx_reader_find_task(dump->reader, suspect->task, &task, &is_found));
    gbx_view_kernel_text(dump->reader, is_found ? &task : NULL, kernel);
    fputs("    ", stdout);
    print_task(suspect->task, kernel);
    if (suspect->reason != GBX_SUSPECT_RAN) {
        GBX_TRY(find_party(dump, suspect->entry, &p));
        fputs(", whose ", stdout);
        print_argument(&p);
        if (suspect->reason == GBX_SUSPECT_HAS_IT)
            fputs(" lies there", stdout);
        else
            print_distance(suspect);
    }
    fputs("\n", stdout);
    return NULL;
}

/* What shows whether it was the likeliest one. */
static gbx_status print_replay(const gbx_opened_dump *dump, const char *given,
                               const gbx_audit_finding *f) {
    char *line;
    GBX_TRY(gbx_audit_replay_line(dump, given, f->suspects[0].task, &line));
    printf("  a replay shows what %s writes outside of its outputs:\n    ",
           f->suspect_count > 1 ? "the first of them" : "it");
    gbx_terminal_put(line);
    fputs("\n", stdout);
    free(line);
    return NULL;
}

/* Who may have written it. */
static gbx_status print_suspects(const gbx_opened_dump *dump, const char *given,
                                 const gbx_audit_finding *f) {
    char count[GBX_COUNT_TEXT_BYTES];
    uint64_t shown = f->suspect_count < GBX_AUDIT_SUSPECTS ? f->suspect_count : GBX_AUDIT_SUSPECTS;
    if (f->suspect_count == 0) {
        puts(f->has_suspects ? "  no task ran meanwhile: the orchestration may have written it"
                             : "  who ran meanwhile was not looked for: there are many findings");
        return NULL;
    }
    puts(shown > 1 ? "  tasks that ran meanwhile, the likeliest to have written it first:"
                   : "  the only task that ran meanwhile:");
    for (uint64_t i = 0; i < shown; ++i)
        GBX_TRY(print_suspect(dump, &f->suspects[i]));
    if (f->suspect_count > shown)
        printf("    and %s more\n", gbx_text_count(f->suspect_count - shown, count));
    return print_replay(dump, given, f);
}

/* The entries of both are read one after the other: each lives until the next is read. */
gbx_status gbx_audit_print_finding(const gbx_opened_dump *dump, const char *given,
                                   const gbx_audit_finding *f) {
    party first, second;
    GBX_TRY(find_party(dump, f->first.entry, &first));
    gbx_record first_head = *first.entry.head;
    GBX_TRY(find_party(dump, f->second.entry, &second));
    first.entry.head = &first_head;
    print_claim(f, &first, &second);
    print_range(f, &second);
    print_element(f, &second);
    print_edge(f);
    return f->kind == GBX_AUDIT_UNDECLARED_WRITE ? print_suspects(dump, given, f) : NULL;
}
