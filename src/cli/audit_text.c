#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/internal.h"

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
    printf("task %" PRIu64, task);
    gbx_terminal_quote(" (", kernel, ")");
}

/* "argument 0 x" */
static void print_argument(const party *p) {
    printf("argument %u", p->entry.head->arg_index);
    gbx_terminal_quote(p->name[0] ? " " : "", p->name, "");
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

static void print_claim(const gbx_audit_finding *f, const party *first, const party *second) {
    const char *between = ", and ", *end = ", are in no order";
    bool is_second_first = f->kind != GBX_AUDIT_OVERLAPPING_WRITES;
    switch (f->kind) {
    case GBX_AUDIT_UNDECLARED_WRITE:
        fputs("undeclared write: ", stdout);
        between = ", does not hold what ";
        end = f->is_seen ? ", saw there" : ", left there";
        break;
    case GBX_AUDIT_READ_TOO_EARLY:
        fputs(f->is_read_first ? "read too late: " : "read too early: ", stdout);
        if (f->is_concurrent) {
            between = f->is_read_first ? ", was to be read before " : ", was read while ";
            end = f->is_read_first ? ", is written, and both ran at the same time"
                                   : ", was being written";
        } else {
            fputs("nothing orders ", stdout);
            between = f->is_read_first ? ", before " : ", after ";
            end = ", which writes it";
        }
        break;
    case GBX_AUDIT_OVERLAPPING_WRITES:
    case GBX_AUDIT_KIND_COUNT:
        fputs("overlapping writes: ", stdout);
        if (f->is_concurrent)
            end = ", were written at the same time";
        break;
    }
    print_party(is_second_first ? f->second.task : f->first.task, is_second_first ? second : first);
    fputs(between, stdout);
    print_party(is_second_first ? f->first.task : f->second.task, is_second_first ? first : second);
    puts(end);
}

/* "within 64 bytes at 0x7e9000001000: bytes 128 to 191 of the buffer of argument 0 x of task 7" */
static void print_range(const gbx_audit_finding *f, const party *second) {
    char count[GBX_COUNT_TEXT_BYTES];
    bool is_one = f->bytes == 1;
    printf("  within %s byte%s at 0x%" PRIx64 ": byte%s %" PRId64, gbx_text_count(f->bytes, count),
           gbx_text_plural(f->bytes), f->address, gbx_text_plural(f->bytes), f->second.begin);
    if (!is_one)
        printf(" to %" PRId64, f->second.end - 1);
    fputs(" of the buffer of ", stdout);
    print_argument(second);
    printf(" of task %" PRIu64 "\n", f->second.task);
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
    char expected[GBX_TEXT_VALUE_BYTES], found[GBX_TEXT_VALUE_BYTES];
    char place[GBX_NUMBERS_TEXT_BYTES];
    int64_t index[GBX_MAX_DIMS];
    if (!f->has_element) {
        printf("  %s\n", no_element_text(f));
        return;
    }
    gbx_text_value(f->dtype, f->expected, expected);
    gbx_text_value(f->dtype, f->found, found);
    fputs("  first element that differs: ", stdout);
    gbx_entry_index(&second->entry, f->element, index);
    fputs(gbx_text_numbers(index, second->entry.head->ndims, place), stdout);
    if (f->kind == GBX_AUDIT_OVERLAPPING_WRITES)
        printf(", task %" PRIu64 " left %s, task %" PRIu64 " %s\n", f->first.task, expected,
               f->second.task, found);
    else
        printf(", expected %s, found %s\n", expected, found);
}

/* "    task 7 (softmax), whose argument 0 x lies there" */
static gbx_status print_suspect(const gbx_opened_dump *dump, const gbx_audit_suspect *suspect) {
    char kernel[GBX_VIEW_KERNEL_BYTES], count[GBX_COUNT_TEXT_BYTES];
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
        bool is_before = suspect->reason == GBX_SUSPECT_ENDS_BEFORE;
        if (suspect->reason == GBX_SUSPECT_HAS_IT)
            fputs(" lies there", stdout);
        else if (suspect->distance == 0)
            fputs(is_before ? " ends right before" : " begins right after", stdout);
        else
            printf(" %s %s byte%s %s", is_before ? "ends" : "begins",
                   gbx_text_count(suspect->distance, count), gbx_text_plural(suspect->distance),
                   is_before ? "before" : "after");
    }
    fputs("\n", stdout);
    return NULL;
}

/* Who may have written it, and what shows whether it was the likeliest one. */
static gbx_status print_suspects(const gbx_opened_dump *dump, const char *given,
                                 const gbx_audit_finding *f) {
    char count[GBX_COUNT_TEXT_BYTES];
    char *line;
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
    GBX_TRY(gbx_audit_replay_line(dump, given, f->suspects[0].task, &line));
    printf("  a replay shows what %s writes outside of its outputs:\n",
           f->suspect_count > 1 ? "the first of them" : "it");
    gbx_terminal_quote("    ", line, "\n");
    free(line);
    return NULL;
}

/* The entries of both are read one after the other: each lives until the next is read. */
static gbx_status print_finding(const gbx_opened_dump *dump, const char *given,
                                const gbx_audit_finding *f) {
    party first, second;
    GBX_TRY(find_party(dump, f->first.entry, &first));
    gbx_record first_head = *first.entry.head;
    GBX_TRY(find_party(dump, f->second.entry, &second));
    first.entry.head = &first_head;
    print_claim(f, &first, &second);
    print_range(f, &second);
    print_element(f, &second);
    uint64_t from, to;
    gbx_audit_missing_edge(f, &from, &to);
    if (f->has_no_path) /* the user knows which way, where both write */
        printf(f->kind == GBX_AUDIT_OVERLAPPING_WRITES
                   ? "  missing: an edge between task %" PRIu64 " and task %" PRIu64 "\n"
                   : "  missing: an edge from task %" PRIu64 " to task %" PRIu64 "\n",
               from, to);
    return f->kind == GBX_AUDIT_UNDECLARED_WRITE ? print_suspects(dump, given, f) : NULL;
}

/* --- all of it --- */

enum { SHOWN_MAX = 20 };

static void print_verdict(const gbx_audit *audit) {
    static const char *const lacks[] = {
        [GBX_AUDIT_LACKS_NOTHING] = "",
        [GBX_AUDIT_LACKS_END] = "the dump is not complete",
        [GBX_AUDIT_LACKS_ARGUMENTS] = "the dump may not have all arguments of its tasks",
        [GBX_AUDIT_LACKS_SOME_OUTPUTS] = "outputs of some tasks are not in the dump"};
    const gbx_audit_counts *counts = &audit->counts;
    const char *missing = lacks[gbx_audit_find_lack(counts)];
    uint64_t all = counts->records + counts->in_flight, left_out = gbx_audit_left_out(counts);
    char findings[GBX_COUNT_TEXT_BYTES], records[GBX_COUNT_TEXT_BYTES];
    char tasks[GBX_COUNT_TEXT_BYTES + 8], count[GBX_COUNT_TEXT_BYTES];
    snprintf(tasks, sizeof tasks, "%s task%s", gbx_text_count(counts->tasks, count),
             gbx_text_plural(counts->tasks));
    if (audit->finding_count == 0 && counts->records == 0)
        puts("nothing was audited: the dump has no tensors, or only those of tasks in flight");
    else if (audit->finding_count == 0 && left_out > 0)
        printf("no findings, but %s of %s records of %s could not be audited%s%s\n",
               gbx_text_count(left_out, count), gbx_text_count(all, records), tasks,
               missing[0] ? ", and " : "", missing);
    else if (audit->finding_count == 0)
        printf("no findings%s%s: %s record%s of %s do not contradict each other\n",
               missing[0] ? ", but " : "", missing, gbx_text_count(all, records),
               gbx_text_plural(all), tasks);
    else
        printf("%s%s finding%s in %s records of %s; the first:\n",
               audit->counts.has_more ? "more than " : "",
               gbx_text_count(audit->finding_count, findings),
               gbx_text_plural(audit->finding_count),
               gbx_text_count(audit->counts.records, records), tasks);
}

static void print_gap(const gbx_audit *audit, gbx_audit_gap gap, const char *why) {
    char count[GBX_COUNT_TEXT_BYTES];
    uint64_t inputs = audit->counts.not_compared[gap];
    if (inputs > 0)
        printf("not audited: %s input%s, %s\n", gbx_text_count(inputs, count),
               gbx_text_plural(inputs), why);
}

static void print_missing(const gbx_audit *audit) {
    char why[160], count[GBX_COUNT_TEXT_BYTES];
    uint64_t tasks = audit->counts.missing_tasks;
    if (tasks == UINT64_MAX)
        snprintf(why, sizeof why,
                 "which may have been written by outputs that are not in the dump");
    else
        snprintf(why, sizeof why, "since outputs of %s task%s are not in the dump",
                 gbx_text_count(tasks, count), gbx_text_plural(tasks));
    print_gap(audit, GBX_GAP_MISSING_OUTPUTS, why);
    if (tasks > 0 && tasks < UINT64_MAX && audit->counts.not_compared[GBX_GAP_MISSING_OUTPUTS] == 0)
        printf("left out: outputs of %s task%s that are not in the dump\n", count,
               gbx_text_plural(tasks));
}

/* What was not looked at, or less closely. */
static void print_notes(const gbx_audit *audit) {
    const gbx_audit_counts *counts = &audit->counts;
    char inputs[GBX_COUNT_TEXT_BYTES];
    char compared[GBX_COUNT_TEXT_BYTES], first[GBX_COUNT_TEXT_BYTES];
    printf("inputs: %s, of which %s %s compared with what was known of their memory and %s %s the "
           "first to read it\n",
           gbx_text_count(counts->inputs, inputs), gbx_text_count(counts->compared, compared),
           counts->compared == 1 ? "was" : "were", gbx_text_count(counts->first_reads, first),
           counts->first_reads == 1 ? "was" : "were");
    if (counts->raced > 0)
        printf("inputs that hold something else because they were read too early: %s\n",
               gbx_text_count(counts->raced, inputs));
    /* What was written over them is not seen: no task looked. */
    if (counts->unread > 0)
        printf("outputs: %s, of which %s %s read by no task afterwards: a change of %s is not "
               "seen\n",
               gbx_text_count(counts->outputs, inputs), gbx_text_count(counts->unread, first),
               counts->unread == 1 ? "was" : "were", counts->unread == 1 ? "it" : "these");
    print_missing(audit);
    print_gap(audit, GBX_GAP_NO_BYTES,
              "since the dump does not have all bytes of them or of what was there");
    print_gap(audit, GBX_GAP_PIECES, "since their views lie in more pieces than can be followed");
    if (counts->unfollowed > 0)
        printf("not audited: %s output%s, since their views lie in more pieces than can be "
               "followed\n",
               gbx_text_count(counts->unfollowed, inputs), gbx_text_plural(counts->unfollowed));
    if (counts->in_flight > 0)
        printf("left out: %s record%s of tasks that did not complete\n",
               gbx_text_count(counts->in_flight, inputs), gbx_text_plural(counts->in_flight));
    if (counts->damaged > 0)
        printf("left out: the bytes of %s record%s, which have not their hashes any more: glassbox "
               "verify tells more\n",
               gbx_text_count(counts->damaged, inputs), gbx_text_plural(counts->damaged));
    if (counts->bad_edges > 0)
        printf("left out: %s edge%s to no task or in a cycle\n",
               gbx_text_count(counts->bad_edges, inputs), gbx_text_plural(counts->bad_edges));
    if (!counts->has_edges)
        printf("order: by the times of this run alone, for the dump does not have all edges\n");
}

gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const char *given,
                                const gbx_audit *audit) {
    char count[GBX_COUNT_TEXT_BYTES];
    size_t shown = audit->finding_count < SHOWN_MAX ? audit->finding_count : SHOWN_MAX;
    bool is_missing = false;
    print_verdict(audit);
    for (size_t i = 0; i < shown; ++i)
        GBX_TRY(print_finding(dump, given, &audit->findings[i]));
    for (uint32_t kind = 0; kind < GBX_AUDIT_KIND_COUNT; ++kind) {
        uint64_t more = 0;
        for (size_t i = shown; i < audit->finding_count; ++i)
            more += audit->findings[i].kind == (gbx_audit_kind)kind;
        if (more > 0)
            printf("and %s more %s (--json has %s)\n", gbx_text_count(more, count),
                   gbx_name_sentence(&gbx_audit_kinds, kind),
                   audit->counts.has_more ? "these" : "all");
    }
    /* In a group without order not every pair is listed. */
    for (size_t i = 0; i < audit->finding_count; ++i)
        is_missing |= audit->findings[i].has_no_path;
    if (is_missing && !audit->counts.has_more)
        puts("the missing edges that findings name are enough: with them all that was audited has "
             "an order");
    print_notes(audit);
    return NULL;
}
