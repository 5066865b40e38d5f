#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "replay/sanitize/internal.h"
#include "text/plain_text.h"

/* --- lines --- */

/* What follows `root` in a path: "" or from a slash on; NULL if it is elsewhere. */
static const char *below(const char *path, const char *root) {
    size_t length = strlen(root);
    return length > 0 && strncmp(path, root, length) == 0 && strchr("/", path[length])
               ? path + length
               : NULL;
}

/* The user's own path of a file that the compiler had. */
static void name_file(const gbx_sanitize_context *c, const gbx_sanitize_frame *frame,
                      char out_file[GBX_SANITIZE_FILE_BYTES]) {
    char named[PATH_MAX], real[PATH_MAX], scene[PATH_MAX];
    snprintf(named, sizeof named, "%.*s", frame->file_length, frame->file);
    if (named[0] != '/' || !realpath(named, real))
        snprintf(real, sizeof real, "%s", named);
    const char *path = real;
    const gbx_sanitize_roots *roots =
        frame->subtask < GBX_SUBTASK_COUNT ? c->built->roots[frame->subtask] : NULL;
    const char *rest = roots && roots->compiled ? below(real, roots->compiled) : NULL;
    if (rest && snprintf(named, sizeof named, "%s%s", roots->own, rest) < PATH_MAX)
        path = named;
    const char *scene_path = c->session->kept ? c->session->kept->scene_path : NULL;
    const char *inside = scene_path ? below(path, scene_path) : NULL;
    if (!inside && scene_path && realpath(scene_path, scene))
        inside = below(path, scene);
    snprintf(out_file, GBX_SANITIZE_FILE_BYTES, "%.*s", GBX_SANITIZE_FILE_BYTES - 1,
             inside ? inside + 1 : path);
}

static void set_line(const gbx_sanitize_context *c, const gbx_raw_report *raw,
                     gbx_sanitize_stack stack, gbx_sanitize_line *line) {
    const gbx_sanitize_frame *frame = &raw->frames[stack];
    if (frame->function)
        snprintf(line->function, sizeof line->function, "%.*s", frame->function_length,
                 frame->function);
    if (!frame->file)
        return;
    name_file(c, frame, line->file);
    line->line = frame->line;
    line->column = frame->column;
}

/* --- one finding --- */

/* An uninitialised output is known by where it was stored, a use by where it is. */
static gbx_sanitize_stack main_stack(const gbx_raw_report *raw) {
    static const gbx_sanitize_stack order[] = {GBX_STACK_ACCESS, GBX_STACK_STORED,
                                               GBX_STACK_CREATED};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i)
        if (raw->frames[order[i]].file)
            return order[i];
    return GBX_STACK_ACCESS;
}

static bool is_in_memory(const gbx_sanitize_context *c, uint64_t address) {
    return address >= c->call->gm_base && address - c->call->gm_base < c->call->gm_bytes;
}

/* A dispatch of the call as one of the task. */
static uint32_t party_of(const gbx_sanitize_context *c, uint32_t dispatch) {
    int64_t only = c->session->config.dispatch;
    if (dispatch >= c->task->dispatch_count)
        return GBX_NO_PARTY;
    return only >= 0 ? (uint32_t)only : dispatch;
}

static uint64_t count_elements(const gbx_tensor *tensor, uint64_t bytes) {
    uint64_t bits = gbx_dtype_bits(tensor->dtype);
    return bits ? (bytes * 8 + bits - 1) / bits : 0;
}

static void place(const gbx_sanitize_context *c, const gbx_raw_report *raw,
                  gbx_sanitize_finding *finding) {
    uint32_t argument =
        raw->slot < GBX_CALL_SLOTS ? gbx_sanitize_argument(c->task, raw->slot) : GBX_NO_ARGUMENT;
    if (argument == GBX_NO_ARGUMENT) {
        gbx_sanitize_place(c->task, c->call, finding);
        return;
    }
    gbx_sanitize_place_in(c->task, c->call, argument, finding);
    if (!raw->is_watched)
        finding->elements =
            count_elements(&c->task->arguments[argument].tensor, raw->stained_bytes);
}

/* Of a watched access, the first byte that is wrong is known. */
static void place_byte(const gbx_sanitize_context *c, const gbx_raw_report *raw,
                       gbx_sanitize_finding *finding) {
    const uint32_t bytes = finding->bytes;
    if (raw->is_watched)
        finding->bytes = 1;
    place(c, raw, finding);
    finding->bytes = bytes;
}

/* Which of two accesses is reported first is chance. */
static void order_race(gbx_sanitize_finding *finding) {
    const gbx_sanitize_finding as_reported = *finding;
    if (finding->parties[0] <= finding->parties[1])
        return;
    finding->parties[0] = as_reported.parties[1];
    finding->parties[1] = as_reported.parties[0];
    finding->at = as_reported.other;
    finding->other = as_reported.at;
    finding->is_write = as_reported.other_is_write;
    finding->other_is_write = as_reported.is_write;
}

static void make(const gbx_sanitize_context *c, const gbx_raw_report *raw,
                 gbx_sanitize_finding *finding) {
    gbx_sanitize_stack stack = main_stack(raw);
    *finding = (gbx_sanitize_finding){
        .kind = raw->kind,
        .sanitizer = c->sanitizer,
        .is_write = raw->is_write,
        .other_is_write = raw->other_is_write,
        .bytes = raw->bytes,
        .has_address = raw->has_address,
        .address = raw->address,
        .subtask = raw->frames[stack].function ? raw->frames[stack].subtask : GBX_SUBTASK_COUNT,
        .argument = GBX_NO_ARGUMENT,
        .element = GBX_NO_ELEMENT,
        .elements = 1,
        .parties = {party_of(c, raw->parties[0]), party_of(c, raw->parties[1])},
        .is_opening = stack == GBX_STACK_CREATED,
        .count = raw->count};
    memcpy(finding->what, raw->what, sizeof finding->what);
    bool is_access = raw->has_address && is_in_memory(c, raw->address);
    if (finding->kind == GBX_SANITIZE_CRASH && is_access && strncmp(raw->what, "SEGV", 4) == 0)
        finding->kind = raw->is_write ? GBX_SANITIZE_WRITE_OUTSIDE : GBX_SANITIZE_READ_OUTSIDE;
    if (finding->kind == GBX_SANITIZE_READ_OUTSIDE || finding->kind == GBX_SANITIZE_WRITE_OUTSIDE)
        finding->what[0] = '\0'; /* the kind says it */
    if (raw->has_address)
        place_byte(c, raw, finding);
    set_line(c, raw, stack, &finding->at);
    if (finding->kind == GBX_SANITIZE_RACE) {
        set_line(c, raw, GBX_STACK_OTHER, &finding->other);
        order_race(finding);
    } else if (stack == GBX_STACK_STORED && raw->frames[GBX_STACK_FIRST].file)
        set_line(c, raw, GBX_STACK_FIRST, &finding->other);
}

/* --- all of them --- */

static bool is_same_line(const gbx_sanitize_line *a, const gbx_sanitize_line *b) {
    return a->line == b->line && strcmp(a->file, b->file) == 0;
}

static bool is_of_arguments(const gbx_sanitize_finding *finding) {
    return finding->kind <= GBX_SANITIZE_WRITES_INPUT;
}

/* Two reports of one thing: another sanitizer saw it, too, or its crash follows from it. Of
 * accesses to arguments, the exact one stays. */
static bool is_repeated(const gbx_sanitize_finding *finding, const gbx_sanitize_finding *known) {
    if (!is_same_line(&finding->at, &known->at) || finding->at.line == 0)
        return false;
    if (is_of_arguments(finding) && is_of_arguments(known))
        return known->sanitizer == GBX_SANITIZE_ACCESS && finding->sanitizer != GBX_SANITIZE_ACCESS;
    bool is_of_variable =
        finding->kind == GBX_SANITIZE_STACK || finding->kind == GBX_SANITIZE_GLOBAL;
    if (is_of_variable && known->kind == GBX_SANITIZE_UNDEFINED)
        return strstr(known->what, "out of bounds") != NULL;
    return (finding->kind == GBX_SANITIZE_CRASH && known->kind == GBX_SANITIZE_UNDEFINED) ||
           (finding->kind == GBX_SANITIZE_UNINITIALISED &&
            known->kind == GBX_SANITIZE_READ_OUTSIDE);
}

static bool is_alike(const gbx_sanitize_finding *finding, const gbx_sanitize_finding *known) {
    bool is_like = finding->kind == known->kind && finding->argument == known->argument;
    bool is_same = is_like && is_same_line(&finding->at, &known->at);
    /* Of an access that is long past, the line is lost. */
    if (finding->kind == GBX_SANITIZE_RACE)
        return (is_same && (finding->other.line == 0 || known->other.line == 0)) ||
               (is_same && is_same_line(&finding->other, &known->other)) ||
               (is_like && is_same_line(&finding->at, &known->other) &&
                is_same_line(&finding->other, &known->at));
    /* Of many values from one variable, a sanitizer keeps only the first ways. */
    if (is_like && finding->is_opening != known->is_opening)
        return strcmp(finding->what, known->what) == 0;
    return is_same && (finding->at.line > 0 || finding->kind == GBX_SANITIZE_UNWRITTEN ||
                       strcmp(finding->what, known->what) == 0);
}

/* The first element stays; of outputs, the lowest. */
static void join(gbx_sanitize_finding *known, const gbx_sanitize_finding *finding) {
    if (finding->sanitizer == known->sanitizer)
        known->count += finding->count;
    if (finding->kind == GBX_SANITIZE_RACE && known->other.line == 0)
        *known = *finding;
    if (finding->kind != GBX_SANITIZE_UNINITIALISED && finding->kind != GBX_SANITIZE_UNWRITTEN)
        return;
    bool is_way_known = !finding->is_opening || known->is_opening;
    known->elements += finding->elements;
    if (known->is_opening && is_way_known) {
        known->at = finding->at;
        known->other = finding->other;
        known->is_opening = finding->is_opening;
    }
    if (finding->element < known->element) {
        known->element = finding->element;
        known->address = finding->address;
        memcpy(known->what, finding->what, sizeof known->what);
        if (is_way_known)
            known->other = finding->other;
    }
}

static gbx_status add(gbx_sanitize_report *report, const gbx_sanitize_finding *finding) {
    for (size_t i = 0; i < report->finding_count; ++i) {
        if (is_repeated(finding, &report->findings[i]))
            return NULL;
        if (is_alike(finding, &report->findings[i])) {
            join(&report->findings[i], finding);
            return NULL;
        }
        if (is_repeated(&report->findings[i], finding)) {
            report->findings[i] = *finding;
            return NULL;
        }
    }
    gbx_sanitize_finding *grown =
        realloc(report->findings, (report->finding_count + 1) * sizeof *grown);
    if (!grown)
        return gbx_fail_memory("reading the reports of a sanitizer");
    /* Notes come last. */
    size_t at = report->finding_count++;
    report->findings = grown;
    for (; !gbx_sanitize_is_note(finding) && at > 0 && gbx_sanitize_is_note(&grown[at - 1]); --at)
        grown[at] = grown[at - 1];
    grown[at] = *finding;
    report->note_count += gbx_sanitize_is_note(finding);
    return NULL;
}

/* --- how it ended --- */

/* Why a sanitizer was not asked, or not completely; `length` is what asprintf returned. */
static gbx_status check_reason(const gbx_sanitize_context *c, gbx_sanitize_report *report,
                               int length) {
    report->asked[c->sanitizer].was_asked = false;
    if (length >= 0)
        return NULL;
    report->asked[c->sanitizer].why_not = NULL;
    return gbx_fail_memory("reading the reports of a sanitizer");
}

/* Without a report of its own. */
static gbx_status add_end(const gbx_sanitize_context *c, const gbx_sanitize_run *run,
                          const gbx_raw_reports *raw, gbx_sanitize_report *report) {
    gbx_sanitize_finding finding = {.kind = GBX_SANITIZE_CRASH,
                                    .sanitizer = c->sanitizer,
                                    .subtask = GBX_SUBTASK_COUNT,
                                    .argument = GBX_NO_ARGUMENT,
                                    .element = GBX_NO_ELEMENT,
                                    .elements = 1,
                                    .parties = {party_of(c, raw->exited), GBX_NO_PARTY},
                                    .count = 1};
    if (raw->exited != GBX_NO_PARTY)
        snprintf(finding.what, sizeof finding.what, "exit with code %d", run->exit_code);
    else if (run->signal)
        snprintf(finding.what, sizeof finding.what, "SIG%s", sigabbrev_np(run->signal));
    else if (run->exit_code == GBX_CALL_FAULT_EXIT)
        snprintf(finding.what, sizeof finding.what, "end of its thread");
    else
        snprintf(finding.what, sizeof finding.what, "end of the process with code %d",
                 run->exit_code);
    return add(report, &finding);
}

static bool has_crash(const gbx_raw_reports *raw) {
    for (size_t i = 0; i < raw->count; ++i)
        if (raw->items[i].kind == GBX_SANITIZE_CRASH)
            return true;
    return false;
}

enum { KERNEL_NAME_BYTES = 128 };

static const char *kernel_name(const gbx_sanitize_context *c, uint32_t subtask,
                               char out_name[KERNEL_NAME_BYTES]) {
    snprintf(out_name, KERNEL_NAME_BYTES, "%s", c->task->kernel_names[subtask]);
    gbx_text_make_plain(out_name);
    return out_name;
}

/* Its runtime refused to start, or a kernel failed while it was loaded: its constructors. */
static gbx_status check_early_end(const gbx_sanitize_context *c, const gbx_sanitize_run *run,
                                  gbx_sanitize_report *report) {
    char name[KERNEL_NAME_BYTES], how[160];
    uint32_t subtask = 0;
    while (subtask + 1 < GBX_SUBTASK_COUNT && c->task->func_ids[subtask] == UINT32_MAX)
        ++subtask;
    if (run->text[strspn(run->text, "\n")])
        snprintf(how, sizeof how, "%.*s", (int)strcspn(run->text, "\n"), run->text);
    else if (run->signal)
        snprintf(how, sizeof how, "SIG%s", sigabbrev_np(run->signal));
    else
        snprintf(how, sizeof how, "exit with code %d", run->exit_code);
    gbx_text_make_plain(how);
    return check_reason(c, report,
                        asprintf(&report->asked[c->sanitizer].why_not,
                                 "the program that calls kernel %s ended before the first call: %s",
                                 kernel_name(c, subtask, name), how));
}

static gbx_status judge_end(const gbx_sanitize_context *c, const gbx_sanitize_run *run,
                            const gbx_raw_reports *raw, gbx_sanitize_report *report) {
    gbx_sanitize_asked *asked = &report->asked[c->sanitizer];
    const uint32_t ms = c->session->config.timeout_ms;
    char name[KERNEL_NAME_BYTES];
    asked->was_asked = true;
    asked->did_return = raw->is_done;
    if (run->is_late)
        return check_reason(c, report,
                            asprintf(&asked->why_not,
                                     "its calls did not end within %g s; --timeout gives them more",
                                     (ms ? ms : GBX_SANITIZE_TIMEOUT_MS) / 1000.0));
    if (raw->failure)
        return check_reason(c, report,
                            asprintf(&asked->why_not, "the kernels could not be called: %.*s",
                                     (int)strcspn(raw->failure, "\n"), raw->failure));
    if (raw->unknown && raw->unknown_of < GBX_SUBTASK_COUNT)
        return check_reason(
            c, report,
            asprintf(&asked->why_not, "kernel %s calls %.*s, which the %s sanitizer does not know",
                     kernel_name(c, raw->unknown_of, name), (int)strcspn(raw->unknown, "\n"),
                     raw->unknown, gbx_name_of(&gbx_sanitizers, c->sanitizer)));
    if (!raw->has_begun)
        return check_early_end(c, run, report);
    if (run->left_out_bytes > 0)
        GBX_TRY(check_reason(c, report,
                             asprintf(&asked->why_not,
                                      "the kernels printed so much that reports may be among "
                                      "%" PRIu64 " bytes that were not read",
                                      run->left_out_bytes)));
    if (raw->schedules < raw->schedules_wanted) {
        GBX_TRY(check_reason(c, report,
                             asprintf(&asked->why_not,
                                      "dispatches wait for each other, and only %" PRIu32
                                      " of %" PRIu32 " other schedules were tried in time",
                                      raw->schedules, raw->schedules_wanted)));
        asked->was_asked = true;
    }
    return raw->is_done || has_crash(raw) ? NULL : add_end(c, run, raw, report);
}

gbx_status gbx_sanitize_add(const gbx_sanitize_context *context, const gbx_sanitize_run *run,
                            gbx_sanitize_report *report) {
    gbx_raw_reports raw;
    gbx_status status = gbx_sanitize_read_reports(run->text, context->built->objects, &raw);
    if (!status)
        status = gbx_sanitize_locate(context->built, &raw);
    for (size_t i = 0; i < raw.count && !status; ++i) {
        gbx_sanitize_finding finding;
        make(context, &raw.items[i], &finding);
        status = add(report, &finding);
    }
    if (!status)
        status = judge_end(context, run, &raw, report);
    gbx_sanitize_free_reports(&raw);
    return status;
}
