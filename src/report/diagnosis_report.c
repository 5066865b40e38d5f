/* The verdict of a diagnosis: for people, and as a document. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "report/party.h"
#include "report/reports.h"

enum { SHOWN_FINDINGS = 20, SHOWN_EVIDENCE = 8, SHOWN_TASKS = 8, SOURCE_BYTES_MAX = 16 << 20 };

/* --- parts --- */

/* "3, 4, 5 and 12 more" */
static const char *list_tasks(gbx_texts *t, const uint64_t *tasks, size_t count) {
    const char *text = "";
    for (size_t i = 0; i < count && i < SHOWN_TASKS; ++i)
        text = gbx_text_format(t, "%s%s%" PRIu64, text,
                               i == 0                                   ? ""
                               : i + 1 == count && count <= SHOWN_TASKS ? " and "
                                                                        : ", ",
                               tasks[i]);
    if (count > SHOWN_TASKS)
        text = gbx_text_format(t, "%s and %s more", text, gbx_text_count(t, count - SHOWN_TASKS));
    return text;
}

static bool has_kernel(const gbx_diagnosis_finding *f) {
    return f->task != GBX_DIAGNOSIS_NOBODY;
}

/* The command that shows it again. */
const char *gbx_text_diagnosis_command(const gbx_reporting *r, const gbx_diagnosis *d,
                                       const gbx_diagnosis_finding *f) {
    gbx_texts *t = &r->sink->texts;
    switch (f->kind) {
    case GBX_DIAGNOSIS_DAMAGED_DUMP:
        return gbx_text_command(t, r->dump, r->given, "verify", "");
    case GBX_DIAGNOSIS_READ_TOO_EARLY:
    case GBX_DIAGNOSIS_OVERLAPPING_WRITES:
    case GBX_DIAGNOSIS_UNDECLARED_WRITE:
    case GBX_DIAGNOSIS_CHANGED_RESULT:
        return gbx_text_command(t, r->dump, r->given, "audit", "");
    case GBX_DIAGNOSIS_WRONG_OUTPUT:
        return d->has_blame ? gbx_text_blame(t, r->dump, r->given, &d->blamed)
                            : gbx_text_command(t, r->dump, r->given, "blame", "");
    case GBX_DIAGNOSIS_NAN:
        return gbx_text_command(t, r->dump, r->given, "blame", "--nan");
    default:
        break;
    }
    if (!has_kernel(f))
        return gbx_text_command(t, r->dump, r->given, "view", "");
    const char *task = gbx_text_task(t, r->dump->reader, f->task, f->task_id);
    if (f->kind >= GBX_DIAGNOSIS_ODD_MEMORY && f->kind != GBX_DIAGNOSIS_UNWRITTEN)
        return gbx_text_command(t, r->dump, r->given, "view",
                                gbx_text_format(t, "--task %s", task));
    const gbx_replay_task *of;
    const gbx_sanitize_finding *line = gbx_diagnosis_line_of(d, f, &of);
    const char *command = gbx_text_replay(t, r->dump, r->given, task);
    if (!line || f->clues[0].source != GBX_CLUE_SANITIZER)
        return command;
    return gbx_text_format(t, "%s --sanitize=%s", command,
                           gbx_name_of(&gbx_sanitizers, line->sanitizer));
}

/* --- text --- */

static void print_tasks(gbx_sink *sink, const gbx_diagnosis_finding *f) {
    gbx_texts *t = &sink->texts;
    if (f->task_count > 1)
        gbx_sink_print(sink, "  the same in %s of this kernel: %s\n",
                       gbx_text_counted(t, f->task_count - 1, "more task"),
                       list_tasks(t, f->tasks + 1, f->task_count - 1));
    if (f->victim_count > 0)
        gbx_sink_print(sink, "  hurt: %s %s what it left: %s\n",
                       gbx_text_counted(t, f->victim_count, "task"),
                       gbx_text_verb(f->victim_count, "reads", "read"),
                       list_tasks(t, f->victims, f->victim_count));
    if (has_kernel(f) && !f->are_victims_known)
        gbx_sink_print(sink, "  who else reads what it left is not completely known\n");
}

/* What follows the title and a comma, where a text begins with them. */
static const char *without_title(const char *text, const char *title) {
    size_t length = strlen(title);
    bool has_it =
        length > 0 && strncmp(text, title, length) == 0 && strncmp(text + length, ", ", 2) == 0;
    return has_it ? text + length + 2 : text;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_called(const gbx_kept_kernel *kernel, const char *file) {
    return kernel->origin && strcmp(last_part(kernel->origin), last_part(file)) == 0;
}

/* The copy in the dump of a file that a kernel is made of; freed by the caller, NULL for none. */
static char *find_copy(const gbx_kept_kernel *kernel, const char *file) {
    char *path = NULL;
    if (is_called(kernel, file))
        return strdup(kernel->source);
    int folder = (int)(last_part(kernel->source) - kernel->source);
    return asprintf(&path, "%.*s%s", folder, kernel->source, last_part(file)) < 0 ? NULL : path;
}

/* A line of a file without the blanks around it; freed by the caller, NULL if there is none. */
static char *cut_line(const char *text, uint32_t number) {
    for (uint32_t i = 1; text && i < number; ++i) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (!text)
        return NULL;
    text += strspn(text, " \t");
    return strndup(text, strcspn(text, "\r\n"));
}

/* A line of the copy that a kernel's file has in the dump; NULL for none. */
static char *read_copy(const gbx_kept_kernel *kernel, const gbx_sanitize_line *at) {
    char *path = find_copy(kernel, at->file), *bytes = NULL;
    size_t size;
    gbx_status status = path ? gbx_read_file(path, SOURCE_BYTES_MAX, &bytes, &size) : NULL;
    char *line = bytes ? cut_line(bytes, at->line) : NULL;
    gbx_status_free(status);
    free(bytes);
    free(path);
    return line;
}

/* What the dump has on a line: of the kernel with this source, else of a file beside one. NULL
 * where it does not have it. */
static char *read_line(const gbx_reporting *r, const gbx_replay_task *task,
                       const gbx_sanitize_line *at) {
    gbx_kept_run *kept = NULL;
    char *line = NULL;
    gbx_status status = gbx_kept_run_read(r->dump->directory, &kept);
    for (int pass = 0; pass < 2 && !status; ++pass)
        for (uint32_t i = 0; i < GBX_SUBTASK_COUNT && !line; ++i) {
            const gbx_kept_kernel *kernel = gbx_kept_run_kernel(kept, task->func_ids[i]);
            if (kernel && kernel->source && is_called(kernel, at->file) == (pass == 0))
                line = read_copy(kernel, at);
        }
    gbx_status_free(status);
    gbx_kept_run_free(kept);
    return line;
}

static void print_source(const gbx_reporting *r, const gbx_diagnosis *d,
                         const gbx_diagnosis_finding *f) {
    const gbx_replay_task *task;
    const gbx_sanitize_finding *found = gbx_diagnosis_line_of(d, f, &task);
    gbx_texts *t = &r->sink->texts;
    if (!found)
        return;
    char *line = read_line(r, task, &found->at);
    gbx_sink_print(r->sink, "  line: %s:%" PRIu32 "%s%s\n", gbx_text_shown(t, found->at.file),
                   found->at.line, line ? ": " : "", line ? gbx_text_shown(t, line) : "");
    free(line);
}

static gbx_status print_finding(const gbx_reporting *r, const gbx_diagnosis *d, size_t number) {
    const gbx_diagnosis_finding *f = &d->findings[number];
    const char *text;
    size_t shown = f->clue_count < SHOWN_EVIDENCE ? f->clue_count : SHOWN_EVIDENCE;
    GBX_TRY(gbx_diagnosis_say(r, d, f, &text));
    gbx_sink_print(r->sink, "%s\n", text);
    for (size_t i = 1; i < shown; ++i) {
        const char *title = "";
        if (has_kernel(f))
            GBX_TRY(gbx_diagnosis_title(r, f->task, &title));
        GBX_TRY(gbx_diagnosis_say_clue(r, d, &f->clues[i], &text));
        gbx_sink_print(r->sink, "  evidence: %s\n", without_title(text, title));
    }
    gbx_sink_more(r->sink, "  evidence: ", f->clue_count, shown, "; --json has all\n");
    if (f->follows >= 0)
        gbx_sink_print(r->sink,
                       "  it reads what task %" PRIu64
                       " left, which is wrong itself: this may only follow from that\n",
                       d->findings[f->follows].task);
    print_tasks(r->sink, f);
    print_source(r, d, f);
    gbx_sink_print(r->sink, "  again: %s\n",
                   gbx_text_shown(&r->sink->texts, gbx_text_diagnosis_command(r, d, f)));
    return NULL;
}

/* What was asked of all tasks, and answered: one line. */
static void print_innocent(gbx_sink *sink, const gbx_diagnosis *d) {
    static const struct {
        gbx_diagnosis_question question;
        const char *what; /* after a number of tasks */
    } parts[] = {{GBX_ASKED_AUDIT, "audited"},
                 {GBX_ASKED_REPLAY, "called again"},
                 {GBX_ASKED_RACES, "asked for races"},
                 {GBX_ASKED_REFERENCES, "compared with references"},
                 {GBX_ASKED_SANITIZERS, "called with sanitizers"}};
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "not accused: %s of %s; ", gbx_text_count(t, d->innocent),
                   gbx_text_counted(t, d->chosen, "task"));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i)
        gbx_sink_print(sink, "%s%s %s", i > 0 ? ", " : "",
                       gbx_text_count(t, d->asked[parts[i].question].tasks), parts[i].what);
    gbx_sink_print(sink, "\n");
}

static bool is_same_lack(const gbx_diagnosis_asked *a, const gbx_diagnosis_asked *b) {
    return a->not_asked == b->not_asked && a->why && b->why && strcmp(a->why, b->why) == 0;
}

/* Questions that lack the same are one line. */
static void print_lack(gbx_sink *sink, const gbx_diagnosis *d, uint32_t first) {
    const gbx_diagnosis_asked *asked = &d->asked[first];
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "%s%s: %s",
                   asked->not_asked > 0 ? "not asked of " : "not completely asked",
                   asked->not_asked > 0 ? gbx_text_counted(t, asked->not_asked, "task") : "",
                   gbx_name_sentence(&gbx_diagnosis_questions, first));
    for (uint32_t i = first + 1; i < GBX_ASKED_QUESTION_COUNT; ++i)
        if (is_same_lack(&d->asked[i], asked))
            gbx_sink_print(sink, "; %s", gbx_name_sentence(&gbx_diagnosis_questions, i));
    gbx_sink_print(sink, "%s%s\n", asked->why ? ": " : "",
                   asked->why ? gbx_text_shown(t, asked->why) : "");
}

static void print_not_asked(gbx_sink *sink, const gbx_diagnosis *d) {
    gbx_texts *t = &sink->texts;
    for (uint32_t i = 0; i < GBX_ASKED_QUESTION_COUNT; ++i) {
        bool is_said = d->asked[i].not_asked == 0 && !d->asked[i].why;
        for (uint32_t k = 0; k < i && !is_said; ++k)
            is_said = is_same_lack(&d->asked[k], &d->asked[i]);
        if (!is_said)
            print_lack(sink, d, i);
    }
    for (uint32_t i = 0; i < GBX_ASKED_QUESTION_COUNT; ++i)
        if (d->asked[i].harmless)
            gbx_sink_print(sink, "harmless: %s\n", gbx_text_shown(t, d->asked[i].harmless));
    if (d->chosen < d->tasks)
        gbx_sink_print(sink, "left out by --task: %s\n",
                       gbx_text_counted(t, d->tasks - d->chosen, "task"));
}

/* Levels and filters: what the dump never had. */
static void print_dump_state(gbx_sink *sink, const gbx_reader *reader) {
    const gbx_run_info *run = gbx_reader_run(reader);
    gbx_texts *t = &sink->texts;
    uint64_t dropped = gbx_reader_dropped(reader);
    if (run->dump_level && strcmp(run->dump_level, "full") != 0)
        gbx_sink_print(sink, "the dump's level is %s: run again with --dump-tensor to ask all\n",
                       gbx_text_shown(t, run->dump_level));
    else if (run->filter_count > 0)
        gbx_sink_print(sink, "the dump was filtered: run again without --dump-filter to ask all\n");
    if (dropped > 0)
        gbx_sink_print(sink, "%s of the run %s lost\n", gbx_text_counted(t, dropped, "record"),
                       gbx_text_verb(dropped, "was", "were"));
    if (gbx_reader_get_totals(reader)->skipped > 0)
        gbx_sink_print(
            sink, "%s never described, and not recorded\n",
            gbx_text_counted(t, gbx_reader_get_totals(reader)->skipped, "task or argument"));
}

static gbx_status print_text(const gbx_reporting *r, const gbx_diagnosis *d) {
    size_t shown = d->finding_count < SHOWN_FINDINGS ? d->finding_count : SHOWN_FINDINGS;
    if (d->finding_count == 0)
        gbx_sink_print(r->sink, "no finding in %s; what was asked is below\n",
                       gbx_text_counted(&r->sink->texts, d->chosen, "task"));
    for (size_t i = 0; i < shown; ++i)
        GBX_TRY(print_finding(r, d, i));
    gbx_sink_more(r->sink, "", d->finding_count, shown, " findings; --json has all\n");
    print_innocent(r->sink, d);
    print_not_asked(r->sink, d);
    print_dump_state(r->sink, r->dump->reader);
    return NULL;
}

/* --- all of it --- */

gbx_status gbx_diagnosis_print(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                               const gbx_diagnosis *diagnosis, bool as_json) {
    const gbx_reporting r = {sink, dump, given};
    return as_json ? gbx_diagnosis_put(&r, diagnosis) : print_text(&r, diagnosis);
}
