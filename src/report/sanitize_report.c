#include <inttypes.h>
#include <string.h>

#include "report/reports.h"

/* What a sentence is made of. */
enum { WIDEST_ACCESS = 16 }; /* of one instruction; more is a copy */

typedef struct speaking {
    gbx_texts *texts;
    const gbx_replay_task *task;
    const gbx_sanitize_finding *finding;
} speaking;

/* --- parts --- */

static bool is_mix(const gbx_replay_task *task) {
    size_t count = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        count += task->func_ids[i] != UINT32_MAX;
    return count > 1;
}

/* "task 5, kernel scale"; of a mix the kernel that it is about, where that is known. */
static const char *title(const speaking *s) {
    char text[GBX_REPLAY_TITLE_BYTES];
    uint32_t subtask = s->finding->subtask;
    bool is_of_one = s->finding->kind != GBX_SANITIZE_RACE; /* which has two sides */
    if (is_of_one && subtask < GBX_SUBTASK_COUNT && s->task->kernel_names[subtask] &&
        is_mix(s->task))
        return gbx_text_format(s->texts, "task %" PRIu64 ", kernel %s (%s)", s->task->task,
                               gbx_text_shown(s->texts, s->task->kernel_names[subtask]),
                               gbx_name_of(&gbx_subtasks, subtask));
    return gbx_text_format(s->texts, "%s",
                           gbx_text_shown(s->texts, gbx_replay_task_title(s->task, text)));
}

static const gbx_replay_argument *argument_of(const speaking *s) {
    return s->finding->argument < s->task->argument_count
               ? &s->task->arguments[s->finding->argument]
               : NULL;
}

/* "argument 1 y", "argument 1 y[3, 0]" */
static const char *argument(const speaking *s, bool has_index) {
    gbx_texts *t = s->texts;
    const gbx_replay_argument *a = argument_of(s);
    bool is_shown = has_index && s->finding->element != GBX_NO_ELEMENT && a->tensor.ndims > 0;
    return gbx_text_format(t, "argument %s%s", gbx_text_shown(t, gbx_text_arg(t, a->slot, a->name)),
                           is_shown ? gbx_text_index(t, &a->tensor, s->finding->element) : "");
}

/* " at kernels/scale.c:7", "" */
static const char *place(const speaking *s, const gbx_sanitize_line *line) {
    if (line->line == 0)
        return line->function[0] ? gbx_text_format(s->texts, " in function %s",
                                                   gbx_text_shown(s->texts, line->function))
                                 : "";
    return gbx_text_format(s->texts, " at %s:%" PRIu32, gbx_text_shown(s->texts, line->file),
                           line->line);
}

/* "block 0 (aiv0)" */
static const char *party(const speaking *s, int number) {
    uint32_t dispatch = s->finding->parties[number];
    if (dispatch >= s->task->dispatch_count)
        return "a block";
    const gbx_replay_dispatch *of = &s->task->dispatches[dispatch];
    return gbx_text_format(s->texts, "block %" PRIu32 " (%s)", of->block_idx,
                           gbx_name_of(&gbx_subtasks, of->subtask));
}

/* ", in block 3 (aiv0)" of a task with several */
static const char *in_block(const speaking *s) {
    return s->finding->parties[0] < s->task->dispatch_count && s->task->dispatch_count > 1
               ? gbx_text_format(s->texts, ", in %s", party(s, 0))
               : "";
}

static const char *more(const speaking *s) {
    if (s->finding->elements < 2)
        return "";
    return gbx_text_format(s->texts, ", and %s",
                           gbx_text_counted(s->texts, s->finding->elements - 1, "more element"));
}

/* "4 bytes ", "" */
static const char *amount(const speaking *s) {
    return s->finding->bytes
               ? gbx_text_format(s->texts, "%s ",
                                 gbx_text_counted(s->texts, s->finding->bytes, "byte"))
               : "";
}

/* --- outside of arguments --- */

/* " (element [64] of [64])" of a vector, whose indices go on before and behind it. */
static const char *virtual_element(const speaking *s) {
    const gbx_tensor *v = &argument_of(s)->tensor;
    const gbx_sanitize_finding *f = s->finding;
    uint64_t bits = gbx_dtype_bits(v->dtype);
    if (v->ndims != 1 || v->strides[0] == 0 || bits < 8 || !f->has_address)
        return "";
    int64_t bytes = (int64_t)(f->address - v->data), width = (int64_t)(bits / 8);
    int64_t offset = bytes / width - v->start_offset;
    int64_t index = offset / v->strides[0];
    bool is_inside = index >= 0 && index < v->shape[0]; /* a wide access begins inside */
    if (bytes % width != 0 || offset % v->strides[0] != 0 || is_inside)
        return "";
    return gbx_text_format(s->texts, " (element [%" PRId64 "] of %s)", index,
                           gbx_text_numbers(s->texts, v->shape, v->ndims));
}

/* "right behind argument 0 x (element [64] of [64])" */
static const char *outside(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    if (!argument_of(s))
        return f->has_address
                   ? gbx_text_format(t, "at 0x%" PRIx64 ", outside its arguments", f->address)
                   : "outside its arguments";
    if (f->distance == 0)
        return gbx_text_format(t, "in a gap of argument %s",
                               argument(s, false) + strlen("argument "));
    uint64_t between =
        f->distance > 0 ? (uint64_t)f->distance - 1 : 0 - (uint64_t)f->distance - f->bytes;
    if (f->distance < 0 && 0 - (uint64_t)f->distance < f->bytes)
        between = 0;
    const char *side = f->distance > 0 ? "behind" : "before";
    const char *far = between ? gbx_text_counted(t, between, "byte") : "right";
    return gbx_text_format(t, "%s %s %s%s", far, side, argument(s, false), virtual_element(s));
}

static const char *say_outside(const speaking *s) {
    const char *gap = "";
    if (argument_of(s) && s->finding->distance == 0 && s->finding->element != GBX_NO_ELEMENT)
        gap =
            gbx_text_format(s->texts, ", behind its element %s",
                            gbx_text_index(s->texts, &argument_of(s)->tensor, s->finding->element));
    return gbx_text_format(s->texts, "%s %s%s%s%s%s",
                           s->finding->kind == GBX_SANITIZE_WRITE_OUTSIDE ? "writes" : "reads",
                           amount(s), outside(s), gap, place(s, &s->finding->at), in_block(s));
}

/* "writes argument 1 counts[3], an input, at kernels/count.c:7" */
static const char *say_input(const speaking *s) {
    const char *where = place(s, &s->finding->at);
    return gbx_text_format(s->texts, "writes %s, an input%s%s%s",
                           argument_of(s) ? argument(s, true) : "an argument", where[0] ? "," : "",
                           where, in_block(s));
}

/* --- the others --- */

static const char *say_uninitialised(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    const char *from = f->what[0]
                           ? gbx_text_format(t, "%s, which is not set", gbx_text_shown(t, f->what))
                           : "unwritten memory";
    if (!argument_of(s))
        return gbx_text_format(t, "uses %s,%s%s", from, place(s, &f->at), in_block(s));
    const char *first =
        f->other.line && (f->other.line != f->at.line || strcmp(f->other.file, f->at.file) != 0)
            ? gbx_text_format(t, " (first used%s)", place(s, &f->other))
            : "";
    return gbx_text_format(t, "computes %s%s from %s,%s%s", argument(s, true), more(s), from,
                           place(s, &f->at), first);
}

static const char *say_race(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    const char *what = argument_of(s) ? gbx_text_format(t, " on %s", argument(s, true)) : "";
    return gbx_text_format(t, "has a data race%s: %s %s%s, and %s %s%s", what, party(s, 0),
                           f->is_write ? "writes" : "reads", place(s, &f->at), party(s, 1),
                           f->other_is_write ? "writes" : "reads", place(s, &f->other));
}

/* "writes 4 bytes outside a local variable at FILE:LINE (stack-buffer-overflow, variable 'list')";
 * of a copy, only some of its bytes are. */
static const char *say_variable(const speaking *s, const char *whose) {
    const gbx_sanitize_finding *f = s->finding;
    const char *reach = f->bytes > WIDEST_ACCESS ? "that reach " : "";
    return gbx_text_format(s->texts, "%s %s%soutside %s%s (%s)%s", f->is_write ? "writes" : "reads",
                           amount(s), reach, whose, place(s, &f->at),
                           gbx_text_shown(s->texts, f->what), in_block(s));
}

static const char *say_heap(const speaking *s) {
    const gbx_sanitize_finding *f = s->finding;
    if (strncmp(f->what, "attempting", 10) == 0)
        return gbx_text_format(s->texts, "frees memory that it must not free%s (%s)%s",
                               place(s, &f->at), gbx_text_shown(s->texts, f->what), in_block(s));
    if (!strstr(f->what, "use-after-free"))
        return say_variable(s, "an allocation");
    return gbx_text_format(s->texts, "%s %sof freed memory%s (%s)%s",
                           f->is_write ? "writes" : "reads", amount(s), place(s, &f->at),
                           gbx_text_shown(s->texts, f->what), in_block(s));
}

static const char *say_undefined(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    return gbx_text_format(t, "has undefined behaviour%s: %s%s%s%s", place(s, &f->at),
                           gbx_text_shown(t, f->what), argument_of(s) ? ", which is in " : "",
                           argument_of(s) ? argument(s, true) : "", in_block(s));
}

static const char *say_crash(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    const char *address = f->has_address && strcmp(f->what, "SEGV") == 0
                              ? gbx_text_format(t, " at address 0x%" PRIx64, f->address)
                              : "";
    return gbx_text_format(t, "crashes%s: %s%s%s", place(s, &f->at), gbx_text_shown(t, f->what),
                           address, in_block(s));
}

static const char *say_unwritten(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_sanitize_finding *f = s->finding;
    const char *first =
        f->element != GBX_NO_ELEMENT && argument_of(s)->tensor.ndims > 0
            ? gbx_text_format(t, ", the first at %s",
                              gbx_text_index(t, &argument_of(s)->tensor, f->element))
            : "";
    return gbx_text_format(t, "does not write %s of %s%s",
                           gbx_text_counted(t, f->elements, "element"), argument(s, false), first);
}

static const char *say(const speaking *s) {
    switch (s->finding->kind) {
    case GBX_SANITIZE_READ_OUTSIDE:
    case GBX_SANITIZE_WRITE_OUTSIDE:
        return say_outside(s);
    case GBX_SANITIZE_WRITES_INPUT:
        return say_input(s);
    case GBX_SANITIZE_UNINITIALISED:
        return say_uninitialised(s);
    case GBX_SANITIZE_UNDEFINED:
        return say_undefined(s);
    case GBX_SANITIZE_RACE:
        return say_race(s);
    case GBX_SANITIZE_STACK:
        return say_variable(s, "a local variable");
    case GBX_SANITIZE_GLOBAL:
        return say_variable(s, "a global variable");
    case GBX_SANITIZE_HEAP:
        return say_heap(s);
    case GBX_SANITIZE_CRASH:
        return say_crash(s);
    case GBX_SANITIZE_UNWRITTEN:
        return say_unwritten(s);
    default:
        return gbx_text_format(s->texts, "makes a mistake%s: %s%s", place(s, &s->finding->at),
                               gbx_text_shown(s->texts, s->finding->what), in_block(s));
    }
}

const char *gbx_text_sanitize_finding(gbx_texts *texts, const gbx_replay_task *task,
                                      const gbx_sanitize_finding *finding) {
    const speaking s = {texts, task, finding};
    return gbx_text_format(texts, "%s, %s", title(&s), say(&s));
}

/* --- text --- */

const char *gbx_text_sanitize_reason(gbx_texts *texts, const gbx_sanitize_report *report,
                                     gbx_sanitizer sanitizer) {
    const char *why = report->asked[sanitizer].why_not;
    return why ? gbx_text_format(texts, "%s: not %s: %s", gbx_name_of(&gbx_sanitizers, sanitizer),
                                 report->asked[sanitizer].was_asked ? "completely asked" : "asked",
                                 gbx_text_shown(texts, why))
               : NULL;
}

/* "address, thread" */
static const char *asked_names(gbx_texts *t, const gbx_sanitize_report *report) {
    const char *names = "";
    for (uint32_t i = 0; i < GBX_SANITIZER_COUNT; ++i)
        if (report->asked[i].was_asked)
            names = gbx_text_format(t, "%s%s%s", names, names[0] ? ", " : "",
                                    gbx_name_of(&gbx_sanitizers, i));
    return names;
}

static void print_text(gbx_sink *sink, const gbx_replay_task *task,
                       const gbx_sanitize_report *report, bool is_verbose) {
    gbx_texts *t = &sink->texts;
    char text[GBX_REPLAY_TITLE_BYTES];
    const char *asked = asked_names(t, report);
    for (size_t i = 0; i < report->finding_count; ++i) {
        const gbx_sanitize_finding *finding = &report->findings[i];
        bool is_note = gbx_sanitize_is_note(finding);
        gbx_sink_print(sink, "%s%s\n",
                       is_note ? "note: " : gbx_sink_colour(sink, GBX_RED, "finding: "),
                       gbx_text_sanitize_finding(t, task, finding));
    }
    if (report->finding_count == report->note_count && asked[0])
        gbx_sink_print(sink, "%s: %s (asked: %s)\n",
                       gbx_text_shown(t, gbx_replay_task_title(task, text)),
                       gbx_sink_colour(sink, GBX_GREEN, "no findings"), asked);
    for (int i = 0; i < GBX_SANITIZER_COUNT; ++i)
        if (report->asked[i].why_not)
            gbx_sink_print(sink, "%s\n", gbx_text_sanitize_reason(t, report, (gbx_sanitizer)i));
    /* A line at a time: a text has a limit. */
    for (const char *line = report->raw; is_verbose && *line;) {
        size_t length = strcspn(line, "\n");
        gbx_sink_print(sink, "%s\n",
                       gbx_text_shown(t, gbx_text_format(t, "%.*s", (int)length, line)));
        line += length;
        line += *line == '\n';
    }
}

/* --- JSON --- */

static void put_line(gbx_json_writer *json, const char *key, const gbx_sanitize_line *line) {
    if (line->line == 0 && !line->function[0]) {
        gbx_json_put_null(json, key);
        return;
    }
    gbx_json_key(json, key);
    gbx_json_begin_object_inline(json);
    gbx_json_put_string(json, "file", line->file[0] ? line->file : NULL);
    if (line->line)
        gbx_json_put_u64(json, "line", line->line);
    else
        gbx_json_put_null(json, "line");
    if (line->column)
        gbx_json_put_u64(json, "column", line->column);
    else
        gbx_json_put_null(json, "column");
    gbx_json_put_string(json, "function", line->function[0] ? line->function : NULL);
    gbx_json_end_object(json);
}

static void put_argument(gbx_json_writer *json, const speaking *s) {
    const gbx_replay_argument *a = argument_of(s);
    int64_t index[GBX_MAX_DIMS];
    if (a)
        gbx_json_put_u64(json, "arg_index", a->slot);
    else
        gbx_json_put_null(json, "arg_index");
    gbx_json_put_string(json, "arg_name", a ? a->name : NULL);
    if (!a || s->finding->element == GBX_NO_ELEMENT) {
        gbx_json_put_null(json, "element");
    } else {
        gbx_compare_index(&a->tensor, s->finding->element, index);
        gbx_json_key(json, "element");
        gbx_json_begin_array_inline(json);
        for (uint32_t d = 0; d < a->tensor.ndims; ++d)
            gbx_json_i64(json, index[d]);
        gbx_json_end_array(json);
    }
    gbx_json_put_u64(json, "elements", s->finding->elements);
    if (a)
        gbx_json_put_i64(json, "distance", s->finding->distance);
    else
        gbx_json_put_null(json, "distance");
}

static void put_blocks(gbx_json_writer *json, const speaking *s) {
    gbx_json_key(json, "blocks");
    gbx_json_begin_array_inline(json);
    for (int i = 0; i < 2; ++i) {
        uint32_t dispatch = s->finding->parties[i];
        if (dispatch >= s->task->dispatch_count)
            continue;
        const gbx_replay_dispatch *of = &s->task->dispatches[dispatch];
        gbx_json_begin_object_inline(json);
        gbx_json_put_u64(json, "block_idx", of->block_idx);
        gbx_json_put_string(json, "subtask", gbx_name_of(&gbx_subtasks, of->subtask));
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

static void put_finding(gbx_sink *sink, const gbx_replay_task *task,
                        const gbx_sanitize_finding *f) {
    gbx_json_writer *json = &sink->json;
    const speaking s = {&sink->texts, task, f};
    const char *kernel = f->subtask < GBX_SUBTASK_COUNT ? task->kernel_names[f->subtask] : NULL;
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "kind", gbx_name_of(&gbx_sanitize_kinds, f->kind));
    gbx_json_put_string(json, "sanitizer", gbx_name_of(&gbx_sanitizers, f->sanitizer));
    gbx_json_put_u64(json, "task_seq", task->task);
    gbx_json_put_string(json, "kernel", kernel);
    gbx_json_put_string(json, "what", f->what[0] ? f->what : NULL);
    put_argument(json, &s);
    gbx_json_put_bool(json, "is_write", f->is_write);
    if (f->bytes)
        gbx_json_put_u64(json, "bytes", f->bytes);
    else
        gbx_json_put_null(json, "bytes");
    if (f->has_address)
        gbx_json_put_hex_text(json, "address", f->address);
    else
        gbx_json_put_null(json, "address");
    put_blocks(json, &s);
    put_line(json, "at", &f->at);
    put_line(json, "other", &f->other);
    gbx_json_put_u64(json, "count", f->count);
    gbx_json_put_string(json, "sentence", gbx_text_sanitize_finding(&sink->texts, task, f));
    gbx_json_end_object(json);
}

static void put_asked(gbx_json_writer *json, const gbx_sanitize_report *report) {
    gbx_json_key(json, "asked");
    gbx_json_begin_object(json);
    for (uint32_t i = 0; i < GBX_SANITIZER_COUNT; ++i) {
        const gbx_sanitize_asked *asked = &report->asked[i];
        if (!asked->was_asked && !asked->why_not)
            continue;
        gbx_json_key(json, gbx_name_of(&gbx_sanitizers, i));
        gbx_json_begin_object_inline(json);
        gbx_json_put_bool(json, "was_asked", asked->was_asked);
        gbx_json_put_string(json, "why_not", asked->why_not);
        gbx_json_put_u64(json, "build_ns", asked->build_ns);
        gbx_json_put_u64(json, "run_ns", asked->run_ns);
        gbx_json_end_object(json);
    }
    gbx_json_end_object(json);
}

void gbx_sanitize_put(gbx_sink *sink, const gbx_replay_task *task,
                      const gbx_sanitize_report *report) {
    put_asked(&sink->json, report);
    for (int are_notes = 0; are_notes < 2; ++are_notes) {
        gbx_json_key(&sink->json, are_notes ? "notes" : "findings");
        gbx_json_begin_array(&sink->json);
        for (size_t i = 0; i < report->finding_count; ++i)
            if (gbx_sanitize_is_note(&report->findings[i]) == (are_notes == 1))
                put_finding(sink, task, &report->findings[i]);
        gbx_json_end_array(&sink->json);
    }
}

/* --- the report --- */

int gbx_sanitize_exit_code(const gbx_sanitize_report *report) {
    bool was_asked = false;
    for (int i = 0; i < GBX_SANITIZER_COUNT; ++i)
        was_asked |= report->asked[i].was_asked;
    if (report->finding_count > report->note_count)
        return GBX_EXIT_DIFFERS;
    return was_asked ? GBX_EXIT_OK : GBX_EXIT_USAGE;
}

gbx_status gbx_sanitize_print(gbx_sink *sink, const gbx_replay_task *task,
                              const gbx_sanitize_report *report, bool is_verbose, bool as_json) {
    if (!as_json) {
        print_text(sink, task, report, is_verbose);
        return NULL;
    }
    gbx_sink_json_begin(sink);
    gbx_json_put_u64(&sink->json, "task_seq", task->task);
    gbx_json_put_hex_text(&sink->json, "task_id", task->task_id);
    gbx_sanitize_put(sink, task, report);
    gbx_json_put_string(&sink->json, "raw", report->raw);
    return gbx_sink_json_end(sink, NULL);
}
