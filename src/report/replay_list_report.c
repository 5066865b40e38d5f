#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/reports.h"
#include "report/table.h"

enum { ROWS_MAX = 20, ORDER_COUNT = GBX_ORDER_NOT_ASKED + 1 };

/* All tasks of a kernel or mix. */
typedef struct kernel_line {
    char *kernel;
    uint64_t tasks;
    uint64_t exact;
    uint64_t accused; /* tasks with findings */
    uint64_t notes;   /* tasks with notes only */
    uint64_t refused;
} kernel_line;

/* Findings of one kind about one kernel. */
typedef struct finding_line {
    char *kernel;
    const char *kind;
    bool is_note;
    uint64_t tasks;
    char *first; /* the sentence of the first */
} finding_line;

struct gbx_replay_listing {
    gbx_replay_reporting r;
    bool as_json;
    bool is_begun; /* the document */
    int exit_code;
    uint64_t count;
    uint64_t verdicts[GBX_REPLAY_VERDICT_COUNT];
    uint64_t orders[ORDER_COUNT]; /* of tasks of `asked` */
    uint64_t asked; /* tasks that completed in the run and now: all questions but the order */
    uint64_t in_flight;
    uint64_t flags_unknown;
    uint64_t findings_left_out;
    uint64_t notes_left_out;
    uint64_t accused;
    uint64_t stray_unknown;
    uint64_t first_accused; /* like the next two, valid if there are some */
    uint64_t first_fault;
    uint64_t first_different;
    bool has_fault;
    bool has_different;
    bool is_by_chance; /* the first different one differs only between runs */
    kernel_line *kernels;
    uint64_t kernel_count;
    uint64_t kernel_capacity;
    finding_line *findings;
    uint64_t finding_count;
    uint64_t finding_capacity;
    gbx_replay_result *kept; /* with findings, for JSON */
    uint64_t kept_count;
    uint64_t kept_capacity;
    gbx_replay_result rows[ROWS_MAX]; /* tasks that are not simply bit exact; all of few */
    uint64_t row_count;
    uint64_t row_total;
    gbx_replay_result early[ROWS_MAX]; /* the first tasks, for a short list */
    uint64_t early_count;
    gbx_replay_result refused; /* the first */
};

static const char doing[] = "listing replayed tasks";

/* --- collecting --- */

static gbx_status find_kernel(gbx_replay_listing *l, const char *name, kernel_line **out_line) {
    for (uint64_t i = 0; i < l->kernel_count; ++i)
        if (strcmp(l->kernels[i].kernel, name) == 0) {
            *out_line = &l->kernels[i];
            return NULL;
        }
    GBX_TRY(gbx_array_reserve(&l->kernels, &l->kernel_capacity, l->kernel_count + 1, doing));
    char *copy = strdup(name);
    if (!copy)
        return gbx_fail_memory("%s", doing);
    *out_line = &l->kernels[l->kernel_count++];
    **out_line = (kernel_line){.kernel = copy};
    return NULL;
}

static gbx_status add_finding(gbx_replay_listing *l, const gbx_replay_result *result,
                              const gbx_replay_finding *finding) {
    const char *kind = gbx_replay_finding_names[finding->is.kind];
    for (uint64_t i = 0; i < l->finding_count; ++i)
        if (l->findings[i].kind == kind && strcmp(l->findings[i].kernel, result->kernel) == 0) {
            l->findings[i].tasks++;
            return NULL;
        }
    GBX_TRY(gbx_array_reserve(&l->findings, &l->finding_capacity, l->finding_count + 1, doing));
    char *kernel = strdup(result->kernel);
    char *first = strdup(gbx_text_finding(&l->r.sink->texts, l->r.reader, result, finding));
    l->findings[l->finding_count++] = (finding_line){.kernel = kernel,
                                                     .kind = kind,
                                                     .is_note = gbx_replay_is_note(finding),
                                                     .tasks = 1,
                                                     .first = first};
    return kernel && first ? NULL : gbx_fail_memory("%s", doing);
}

/* A kind counts once a task. */
static gbx_status add_findings(gbx_replay_listing *l, const gbx_replay_result *result) {
    for (uint32_t i = 0; i < result->finding_count; ++i) {
        bool is_repeated = false;
        for (uint32_t k = 0; k < i; ++k)
            is_repeated |= result->findings[k].is.kind == result->findings[i].is.kind;
        if (!is_repeated)
            GBX_TRY(add_finding(l, result, &result->findings[i]));
    }
    return NULL;
}

static bool is_plain(const gbx_replay_result *result) {
    return result->verdict == GBX_REPLAY_EXACT && result->finding_count == 0 &&
           result->times.different == 0;
}

static gbx_replay_result move(gbx_replay_result *from) {
    gbx_replay_result moved = *from;
    *from = (gbx_replay_result){0};
    return moved;
}

/* Findings of tasks are listed twice in JSON, with their task and all together. */
static gbx_status put(gbx_replay_listing *l, gbx_replay_result *result) {
    if (!l->is_begun) {
        gbx_json_writer *json = gbx_sink_json_begin(l->r.sink);
        gbx_json_key(json, "tasks");
        gbx_json_begin_array(json);
        l->is_begun = true;
    }
    gbx_json_begin_object(&l->r.sink->json);
    gbx_replay_put(&l->r, result);
    gbx_json_end_object(&l->r.sink->json);
    if (result->finding_count == 0)
        return NULL;
    GBX_TRY(gbx_array_reserve(&l->kept, &l->kept_capacity, l->kept_count + 1, doing));
    l->kept[l->kept_count++] = move(result);
    return NULL;
}

static void count_result(gbx_replay_listing *l, const gbx_replay_result *result) {
    bool is_accused = result->finding_count > result->note_count;
    bool is_replayed = result->verdict != GBX_REPLAY_REFUSED;
    l->verdicts[result->verdict]++;
    l->in_flight += is_replayed && !result->did_complete;
    /* One dispatch is called twice only. */
    bool is_asked = is_replayed && result->did_complete && !result->fault && result->dispatch < 0;
    l->asked += is_asked;
    l->stray_unknown += result->stray_is_unknown;
    l->flags_unknown += result->flags_are_unknown;
    l->findings_left_out += result->findings_left_out;
    l->notes_left_out += result->notes_left_out;
    if (is_asked)
        l->orders[result->order <= GBX_ORDER_NOT_ASKED ? result->order : GBX_ORDER_NOT_ASKED]++;
    if (is_accused && l->accused++ == 0)
        l->first_accused = result->task;
    if (result->verdict == GBX_REPLAY_FAULT && !l->has_fault) {
        l->has_fault = true;
        l->first_fault = result->task;
    }
    bool is_different = result->verdict == GBX_REPLAY_DIFFERS || result->times.different > 0;
    if (is_different && !l->has_different) {
        l->has_different = true;
        l->is_by_chance = result->verdict != GBX_REPLAY_DIFFERS;
        l->first_different = result->task;
    }
    l->exit_code = gbx_exit_worse(l->exit_code, gbx_replay_exit_code(result));
}

/* Rows that are shown: those with something to say or, of a short list, all. */
static void keep_row(gbx_replay_listing *l, gbx_replay_result *result) {
    bool has_row = !is_plain(result);
    l->row_total += has_row;
    if (l->count <= ROWS_MAX) {
        l->early[l->early_count++] = move(result);
        return;
    }
    for (uint64_t i = 0; i < l->early_count; ++i) { /* the list is no longer short */
        if (!is_plain(&l->early[i]))
            l->rows[l->row_count++] = move(&l->early[i]);
        gbx_replay_result_free(&l->early[i]);
    }
    l->early_count = 0;
    if (has_row && l->row_count < ROWS_MAX)
        l->rows[l->row_count++] = move(result);
}

gbx_status gbx_replay_listing_add(void *listing, gbx_replay_result *result) {
    gbx_replay_listing *l = listing;
    kernel_line *kernel;
    bool is_accused = result->finding_count > result->note_count;
    l->count++;
    count_result(l, result);
    GBX_TRY(find_kernel(l, result->kernel, &kernel));
    kernel->tasks++;
    kernel->exact += result->verdict == GBX_REPLAY_EXACT;
    kernel->accused += is_accused;
    kernel->notes += !is_accused && result->note_count > 0;
    kernel->refused += result->verdict == GBX_REPLAY_REFUSED;
    if (l->as_json)
        return put(l, result);
    GBX_TRY(add_findings(l, result));
    if (result->verdict == GBX_REPLAY_REFUSED && l->refused.verdict != GBX_REPLAY_REFUSED) {
        l->refused = *result;
        l->refused.refusal.reason =
            strdup(result->refusal.reason ? result->refusal.reason : "the host is out of memory");
        l->refused.refusal.sentence = NULL;
    }
    keep_row(l, result);
    return NULL;
}

/* --- text --- */

static void print_verdicts(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    gbx_texts *t = &sink->texts;
    const char *comma = "";
    gbx_sink_print(sink, "%s: ", gbx_text_counted(t, l->count, "task"));
    for (gbx_replay_verdict v = 0; v < GBX_REPLAY_VERDICT_COUNT; ++v) {
        if (l->verdicts[v] == 0)
            continue;
        gbx_sink_print(sink, "%s%s %s", comma,
                       l->verdicts[v] == l->count ? "all" : gbx_text_count(t, l->verdicts[v]),
                       gbx_replay_verdict_text(sink, v, l->verdicts[v]));
        comma = ", ";
    }
}

/* The first line says what to look at first. */
static void print_head(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    gbx_texts *t = &sink->texts;
    print_verdicts(l);
    if (l->accused > 0)
        gbx_sink_print(sink, "; %s with findings, the first is task %s",
                       gbx_sink_colour(sink, GBX_RED, gbx_text_count(t, l->accused)),
                       gbx_text_number(t, l->first_accused));
    if (l->has_fault)
        gbx_sink_print(sink, "; the first that fails is task %s",
                       gbx_text_number(t, l->first_fault));
    else if (l->has_different)
        gbx_sink_print(sink, "; the first that %s is task %s",
                       l->is_by_chance ? "is not the same in all runs" : "differs",
                       gbx_text_number(t, l->first_different));
    else if (l->refused.verdict == GBX_REPLAY_REFUSED)
        gbx_sink_print(sink, "; the first that is not replayed is task %s: %s",
                       gbx_text_number(t, l->refused.task),
                       gbx_text_shown(t, l->refused.refusal.reason));
    else if (l->accused == 0)
        gbx_sink_print(sink, "; no findings");
    gbx_sink_print(sink, "\n");
}

static int by_kind(const void *a, const void *b) {
    const finding_line *left = a, *right = b;
    int kernels = strcmp(left->kernel, right->kernel);
    if (left->is_note != right->is_note)
        return left->is_note ? 1 : -1;
    return kernels ? kernels : strcmp(left->kind, right->kind);
}

/* One line for each kind of finding about a kernel: "finding: stray_write, kernel add, 3 tasks; the
 * first: task 12, ..." */
static void print_findings(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    gbx_texts *t = &sink->texts;
    if (l->finding_count > 1)
        qsort(l->findings, l->finding_count, sizeof *l->findings, by_kind);
    for (uint64_t i = 0; i < l->finding_count; ++i) {
        const finding_line *line = &l->findings[i];
        gbx_sink_print(sink, "%s: %s, kernel %s, %s%s %s\n",
                       line->is_note ? gbx_sink_colour(sink, GBX_YELLOW, "note")
                                     : gbx_sink_colour(sink, GBX_RED, "finding"),
                       line->kind, gbx_text_shown(t, line->kernel),
                       gbx_text_counted(t, line->tasks, "task"),
                       line->tasks > 1 ? "; the first:" : ":", line->first);
    }
}

static const gbx_field kernel_fields[] = {
    GBX_FIELD(kernel_line, kernel, STRING, NULL, "KERNEL", .narrowest = 8),
    GBX_FIELD(kernel_line, tasks, COUNT, NULL, "TASKS"),
    GBX_FIELD(kernel_line, exact, COUNT, NULL, "BIT EXACT", .leaves = 4),
    GBX_FIELD(kernel_line, accused, COUNT, NULL, "FINDINGS"),
    GBX_FIELD(kernel_line, notes, COUNT, NULL, "NOTES ONLY", .hides_zero = true, .leaves = 2),
    GBX_FIELD(kernel_line, refused, COUNT, NULL, "NOT REPLAYED", .hides_zero = true, .leaves = 3)};

static void print_asked(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink,
                   "asked: %s called in memory with a pattern, again, and with another pattern",
                   gbx_text_counted(t, l->asked, "task"));
    if (l->orders[GBX_ORDER_ASKED] > 0)
        gbx_sink_print(sink, "; %s block by block in both orders",
                       gbx_text_count(t, l->orders[GBX_ORDER_ASKED]));
    gbx_sink_print(sink, "\n");
}

/* "not asked: races in 3 tasks, because blocks wait for each other" */
static void print_not_asked(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    gbx_texts *t = &sink->texts;
    uint64_t refused = l->verdicts[GBX_REPLAY_REFUSED], failed = l->verdicts[GBX_REPLAY_FAULT];
    const struct {
        uint64_t count;
        const char *what;
        const char *why;
    } left_out[] = {
        {refused, "",
         gbx_text_verb(refused, "it is incomplete in the dump, or its kernel is not trusted",
                       "they are incomplete in the dump, or their kernels are not trusted")},
        {l->in_flight, "",
         gbx_text_verb(l->in_flight, "it was in flight when the run ended; it was only called",
                       "they were in flight when the run ended; they were only called")},
        {failed, "", gbx_text_verb(failed, "it crashed or hung", "they crashed or hung")},
        {l->orders[GBX_ORDER_WAITS], "races in ", "blocks wait for each other"},
        {l->orders[GBX_ORDER_SPINS], "races in ", "blocks wait without yielding"},
        {l->orders[GBX_ORDER_TOO_LARGE], "races in ",
         "there are too many blocks or too large outputs"},
        {l->orders[GBX_ORDER_FAILS] + l->orders[GBX_ORDER_NOT_ASKED], "races in ",
         "a block called alone fails"},
        {l->orders[GBX_ORDER_NO_MEMORY], "races in ", "memory or processes ran out"},
        {l->flags_unknown, "whether flags of earlier tasks satisfy waits in ",
         "a block called alone fails, hangs or takes too long"},
        {l->stray_unknown, "stray writes in ", "tensors are too large"}};
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; ++i)
        if (left_out[i].count > 0)
            gbx_sink_print(sink, "not asked: %s%s, because %s\n", left_out[i].what,
                           gbx_text_counted(t, left_out[i].count, "task"), left_out[i].why);
    gbx_sink_count(sink, "not listed: ", l->findings_left_out, "more finding", "");
    gbx_sink_count(sink, "not listed: ", l->notes_left_out, "more note", "");
}

static gbx_status print_list(const gbx_replay_listing *l) {
    gbx_sink *sink = l->r.sink;
    bool is_short = l->count <= ROWS_MAX;
    print_head(l);
    print_findings(l);
    GBX_TRY(gbx_rows_print(sink, GBX_ROWS(kernel_fields, l->kernels, l->kernel_count), 2));
    print_asked(l);
    print_not_asked(l);
    if (is_short)
        GBX_TRY(gbx_replay_print_rows(&l->r, l->early, l->early_count));
    else
        GBX_TRY(gbx_replay_print_rows(&l->r, l->rows, l->row_count));
    if (!is_short)
        gbx_sink_more(sink, "", l->row_total, l->row_count, "; --json has all\n");
    if (l->r.run_end[0])
        gbx_sink_print(sink, "the recorded run ended with: %s\n",
                       gbx_text_shown(&sink->texts, l->r.run_end));
    return NULL;
}

/* --- JSON --- */

static gbx_status put_rest(gbx_replay_listing *l, gbx_status status) {
    gbx_json_writer *json = &l->r.sink->json;
    gbx_json_end_array(json);
    gbx_findings_put(l->r.sink, l->r.reader, l->kept, l->kept_count);
    gbx_json_key(json, "verdicts");
    gbx_json_begin_object_inline(json);
    for (gbx_replay_verdict v = 0; v < GBX_REPLAY_VERDICT_COUNT; ++v)
        gbx_json_put_u64(json, gbx_replay_verdict_name(v), l->verdicts[v]);
    gbx_json_end_object(json);
    return gbx_sink_json_end(l->r.sink, status);
}

/* --- beginning and end --- */

gbx_status gbx_replay_listing_begin(const gbx_replay_reporting *r, bool as_json,
                                    gbx_replay_listing **out_listing) {
    gbx_replay_listing *l = calloc(1, sizeof *l);
    if (!l)
        return gbx_fail_memory("%s", doing);
    l->r = *r;
    l->as_json = as_json;
    *out_listing = l;
    return NULL;
}

static void destroy(gbx_replay_listing *l) {
    for (uint64_t i = 0; i < l->kernel_count; ++i)
        free(l->kernels[i].kernel);
    for (uint64_t i = 0; i < l->finding_count; ++i) {
        free(l->findings[i].kernel);
        free(l->findings[i].first);
    }
    for (uint64_t i = 0; i < l->kept_count; ++i)
        gbx_replay_result_free(&l->kept[i]);
    for (uint64_t i = 0; i < l->row_count; ++i)
        gbx_replay_result_free(&l->rows[i]);
    for (uint64_t i = 0; i < l->early_count; ++i)
        gbx_replay_result_free(&l->early[i]);
    free(l->refused.refusal.reason);
    free(l->kernels);
    free(l->findings);
    free(l->kept);
    free(l);
}

gbx_status gbx_replay_listing_end(gbx_replay_listing *listing, gbx_status status,
                                  int *out_exit_code) {
    *out_exit_code = listing->exit_code;
    if (listing->is_begun)
        status = put_rest(listing, status);
    else if (!status)
        status = print_list(listing);
    destroy(listing);
    return status;
}
