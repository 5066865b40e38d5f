#include <inttypes.h>
#include <stdio.h>

#include "cli/audit_report.h"
#include "cli/dump_text.h"

enum { SHOWN_MAX = 20 };

/* "" for nothing. */
static const char *what_is_missing(const gbx_audit_counts *counts) {
    static const char *const words[] = {
        [GBX_AUDIT_LACKS_NOTHING] = "",
        [GBX_AUDIT_LACKS_END] = "the dump is not complete",
        [GBX_AUDIT_LACKS_ARGUMENTS] = "the dump may not have all arguments of its tasks",
        [GBX_AUDIT_LACKS_SOME_OUTPUTS] = "outputs of some tasks are not in the dump"};
    return words[gbx_audit_find_lack(counts)];
}

static void print_good(const gbx_audit_counts *counts, const char *tasks) {
    char left_out[GBX_COUNT_TEXT_BYTES], records[GBX_COUNT_TEXT_BYTES];
    uint64_t all = counts->records + counts->in_flight;
    const char *missing = what_is_missing(counts);
    gbx_text_count(all, records);
    if (counts->records == 0)
        puts("nothing was audited: the dump has no tensors, or only those of tasks in flight");
    else if (gbx_audit_left_out(counts) > 0)
        printf("no findings, but %s of %s records of %s could not be audited%s%s\n",
               gbx_text_count(gbx_audit_left_out(counts), left_out), records, tasks,
               missing[0] ? ", and " : "", missing);
    else
        printf("no findings%s%s: %s record%s of %s do not contradict each other\n",
               missing[0] ? ", but " : "", missing, records, all == 1 ? "" : "s", tasks);
}

static void print_verdict(const gbx_audit *audit) {
    char findings[GBX_COUNT_TEXT_BYTES], records[GBX_COUNT_TEXT_BYTES];
    char tasks[GBX_COUNT_TEXT_BYTES + 8], count[GBX_COUNT_TEXT_BYTES];
    snprintf(tasks, sizeof tasks, "%s task%s", gbx_text_count(audit->counts.tasks, count),
             audit->counts.tasks == 1 ? "" : "s");
    if (audit->finding_count == 0)
        print_good(&audit->counts, tasks);
    else
        printf("%s%s finding%s in %s records of %s; the first:\n",
               audit->counts.has_more ? "more than " : "",
               gbx_text_count(audit->finding_count, findings), audit->finding_count == 1 ? "" : "s",
               gbx_text_count(audit->counts.records, records), tasks);
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
    if (tasks > 0 && tasks < UINT64_MAX && audit->counts.not_compared[GBX_GAP_MISSING_OUTPUTS] == 0)
        printf("left out: outputs of %s task%s that are not in the dump\n", count,
               tasks == 1 ? "" : "s");
}

static void print_inputs(const gbx_audit_counts *counts) {
    char compared[GBX_COUNT_TEXT_BYTES], inputs[GBX_COUNT_TEXT_BYTES], first[GBX_COUNT_TEXT_BYTES];
    printf("inputs: %s, of which %s %s compared with what was known of their memory and %s %s the "
           "first to read it\n",
           gbx_text_count(counts->inputs, inputs), gbx_text_count(counts->compared, compared),
           counts->compared == 1 ? "was" : "were", gbx_text_count(counts->first_reads, first),
           counts->first_reads == 1 ? "was" : "were");
    if (counts->raced > 0)
        printf("inputs that hold something else because they were read too early: %s\n",
               gbx_text_count(counts->raced, inputs));
}

/* What was written over them is not seen: nobody looked. */
static void print_outputs(const gbx_audit_counts *counts) {
    char outputs[GBX_COUNT_TEXT_BYTES], unread[GBX_COUNT_TEXT_BYTES];
    if (counts->unread > 0)
        printf("outputs: %s, of which %s %s read by no task afterwards: a change of %s is not "
               "seen\n",
               gbx_text_count(counts->outputs, outputs), gbx_text_count(counts->unread, unread),
               counts->unread == 1 ? "was" : "were", counts->unread == 1 ? "it" : "these");
}

/* What was not looked at, or less closely. */
static void print_notes(const gbx_audit *audit) {
    const gbx_audit_counts *counts = &audit->counts;
    char inputs[GBX_COUNT_TEXT_BYTES];
    print_inputs(counts);
    print_outputs(counts);
    print_missing(audit);
    print_gap(audit, GBX_GAP_NO_BYTES,
              "since the dump does not have all bytes of them or of what was there");
    print_gap(audit, GBX_GAP_PIECES, "since their views lie in more pieces than can be followed");
    if (counts->unfollowed > 0)
        printf("not audited: %s output%s, since their views lie in more pieces than can be "
               "followed\n",
               gbx_text_count(counts->unfollowed, inputs), counts->unfollowed == 1 ? "" : "s");
    if (counts->in_flight > 0)
        printf("left out: %s record%s of tasks that did not complete\n",
               gbx_text_count(counts->in_flight, inputs), counts->in_flight == 1 ? "" : "s");
    if (counts->damaged > 0)
        printf("left out: the bytes of %s record%s, which have not their hashes any more: glassbox "
               "verify tells more\n",
               gbx_text_count(counts->damaged, inputs), counts->damaged == 1 ? "" : "s");
    if (counts->bad_edges > 0)
        printf("left out: %s edge%s to no task or in a cycle\n",
               gbx_text_count(counts->bad_edges, inputs), counts->bad_edges == 1 ? "" : "s");
    if (!counts->has_edges)
        printf("order: by the times of this run alone, for the dump does not have all edges\n");
}

/* The first ones, then how many more of each kind there are. */
static gbx_status print_findings(const gbx_opened_dump *dump, const char *given,
                                 const gbx_audit *audit) {
    char count[GBX_COUNT_TEXT_BYTES];
    size_t shown = audit->finding_count < SHOWN_MAX ? audit->finding_count : SHOWN_MAX;
    for (size_t i = 0; i < shown; ++i)
        GBX_TRY(gbx_audit_print_finding(dump, given, &audit->findings[i]));
    for (uint32_t kind = 0; kind < GBX_AUDIT_KIND_COUNT; ++kind) {
        uint64_t more = 0;
        for (size_t i = shown; i < audit->finding_count; ++i)
            more += audit->findings[i].kind == (gbx_audit_kind)kind;
        if (more > 0)
            printf("and %s more %s (--json has %s)\n", gbx_text_count(more, count),
                   gbx_name_sentence(&gbx_audit_kinds, kind),
                   audit->counts.has_more ? "these" : "all");
    }
    return NULL;
}

/* In a group without order not every pair is listed. */
static void print_edges(const gbx_audit *audit) {
    bool is_missing = false;
    for (size_t i = 0; i < audit->finding_count; ++i)
        is_missing |= audit->findings[i].has_no_path;
    if (is_missing && !audit->counts.has_more)
        puts("the missing edges that findings name are enough: with them all that was audited has "
             "an order");
}

gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const char *given,
                                const gbx_audit *audit) {
    print_verdict(audit);
    GBX_TRY(print_findings(dump, given, audit));
    print_edges(audit);
    print_notes(audit);
    return NULL;
}
