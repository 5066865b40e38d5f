#include <inttypes.h>
#include <string.h>

#include "report/party.h"
#include "report/reports.h"
#include "report/table.h"

enum { INDENTED_MAX = 10 };

/* --- names --- */

/* "[3,17]"; "" of a tensor without dimensions. */
static const char *compact_index(gbx_texts *t, const gbx_tensor *tensor, uint64_t number) {
    const char *text = tensor->ndims > 0 ? "]" : "";
    for (uint32_t i = tensor->ndims; i-- > 0;) {
        uint64_t length = (uint64_t)tensor->shape[i];
        text = gbx_text_format(t, "%s%" PRIu64 "%s", i > 0 ? "," : "[", number % length, text);
        number /= length;
    }
    return text;
}

/* "out[3,17]", as the command takes it. */
static const char *element_name(gbx_texts *t, const gbx_blame_element *element) {
    return gbx_text_join(t, element->name, "", compact_index(t, &element->tensor, element->number));
}

static const char *shown_name(gbx_texts *t, const gbx_blame_element *element) {
    return gbx_text_shown(t, element_name(t, element));
}

const char *gbx_text_blame(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                           const gbx_blame_element *element) {
    return gbx_text_command(texts, dump, given, "blame",
                            gbx_text_word(texts, element_name(texts, element)));
}

/* --- text: the answer --- */

/* "task 41 (gelu), argument 1 y[3,1]: 0.5" */
static gbx_status print_writer(const gbx_reporting *r, const gbx_blame_writer *writer) {
    gbx_texts *t = &r->sink->texts;
    gbx_party p;
    GBX_TRY(gbx_party_find(r, writer->task, writer->entry, &p));
    gbx_sink_print(r->sink, "%s, %s%s", gbx_text_party_task(t, &p), gbx_text_party_argument(t, &p),
                   compact_index(t, &p.tensor, writer->element));
    gbx_sink_print(r->sink, ": %s",
                   writer->has_value ? gbx_text_value(t, writer->dtype, writer->bits)
                                     : "what it left there is not in the dump");
    return NULL;
}

static const char *found_text(gbx_texts *t, const gbx_blame_report *report) {
    return gbx_text_value(t, report->element.tensor.dtype, report->answer.found);
}

/* What it holds, where that is known. */
static const char *holds_text(gbx_texts *t, const gbx_blame_report *report) {
    const gbx_blame_answer *answer = &report->answer;
    const gbx_blame_element *element = &report->element;
    const gbx_blame_writer *only = answer->writer_count == 1 ? &answer->writers[0] : NULL;
    if (!answer->has_found)
        return "";
    if (only && only->has_value && only->bits == answer->found)
        return element->is_of_task ? "" : ", unchanged at the end of the run";
    if (!element->is_of_task)
        return gbx_text_format(t, "; at the end of the run it is %s", found_text(t, report));
    return gbx_text_format(t, "; task %" PRIu64 " %s %s", element->task,
                           element->is_left ? "left" : "read", found_text(t, report));
}

/* Whether tasks may have written it that are not among the writers. */
static bool is_unsure(const gbx_blame_answer *answer) {
    return answer->missing_tasks > 0 || answer->in_flight > 0;
}

/* One line, without its end. */
static gbx_status print_claim(const gbx_reporting *r, const gbx_blame_report *report) {
    const gbx_blame_answer *answer = &report->answer;
    gbx_texts *t = &r->sink->texts;
    const char *name = shown_name(t, &report->element);
    if (answer->writer_count == 0 && !report->element.is_placed) {
        gbx_sink_print(r->sink, "no task wrote %s: it was not copied from the chip", name);
        return NULL;
    }
    if (answer->writer_count == 0) {
        gbx_sink_print(r->sink,
                       is_unsure(answer) ? "not known: who wrote %s; no output of a completed task "
                                           "in the dump covers it%s"
                                         : "no task wrote %s: no output covers it%s",
                       name, holds_text(t, report));
        return NULL;
    }
    if (answer->is_changed) {
        gbx_sink_print(r->sink, "%s was changed by a task that does not declare it: it is %s, but ",
                       name, found_text(t, report));
        gbx_sink_print(r->sink, "the last that declares to write it is ");
        return print_writer(r, &answer->writers[0]);
    }
    if (answer->writer_count == 1) {
        gbx_sink_print(r->sink, "%s was last written%s by ", name,
                       is_unsure(answer) ? ", as far as the dump shows," : "");
        GBX_TRY(print_writer(r, &answer->writers[0]));
        gbx_sink_print(r->sink, "%s", holds_text(t, report));
        return NULL;
    }
    gbx_sink_print(r->sink,
                   answer->is_order_unknown
                       ? "%s was last written by one of %s that nothing orders%s"
                       : "%s was last written by %s, each a part of it%s",
                   name, gbx_text_counted(t, answer->writer_count, "task"), holds_text(t, report));
    return NULL;
}

static gbx_status print_several(const gbx_reporting *r, const gbx_blame_answer *answer) {
    uint64_t shown =
        answer->writer_count < GBX_BLAME_WRITERS ? answer->writer_count : GBX_BLAME_WRITERS;
    for (uint64_t i = 0; answer->writer_count > 1 && i < shown; ++i) {
        gbx_sink_print(r->sink, "  ");
        GBX_TRY(print_writer(r, &answer->writers[i]));
        gbx_sink_print(r->sink, "\n");
    }
    gbx_sink_more(r->sink, "  ", answer->writer_count, shown, "\n");
    return NULL;
}

static gbx_status print_unknown(const gbx_reporting *r, const gbx_blame_answer *answer) {
    gbx_sink *sink = r->sink;
    gbx_texts *t = &sink->texts;
    gbx_party p;
    if (answer->missing_tasks == UINT64_MAX)
        gbx_sink_print(sink, "not known: whether tasks wrote it whose outputs the dump lacks; run "
                             "again with --dump-tensor=full and no filter\n");
    else
        gbx_sink_count(sink, "not known: whether ", answer->missing_tasks, "task",
                       " wrote it whose outputs the dump lacks");
    gbx_sink_count(sink, "not known: whether ", answer->undecided, "output",
                   " covers it, because the view lies in too many pieces");
    if (answer->in_flight == 0)
        return NULL;
    GBX_TRY(gbx_party_find(r, answer->in_flight_task, answer->in_flight_entry, &p));
    gbx_sink_print(sink, "not known: whether %s, which did not complete, wrote it in %s\n",
                   gbx_text_party_task(t, &p), gbx_text_party_argument(t, &p));
    gbx_sink_more(sink, "not known: the same for ", answer->in_flight, 1, " outputs\n");
    return NULL;
}

/* --- text: inputs --- */

static const char *special_text(gbx_texts *t, uint64_t nan_count, uint64_t inf_count) {
    const char *nan = nan_count ? gbx_text_format(t, "%s NaN", gbx_text_count(t, nan_count)) : "";
    const char *inf = inf_count ? gbx_text_format(t, "%s Inf", gbx_text_count(t, inf_count)) : "";
    return gbx_text_join(t, nan, nan_count && inf_count ? ", " : "", inf);
}

static gbx_status print_sources(const gbx_reporting *r, const gbx_blame_input *input) {
    gbx_sink *sink = r->sink;
    gbx_texts *t = &sink->texts;
    uint64_t shown =
        input->source_count < GBX_BLAME_SOURCES ? input->source_count : GBX_BLAME_SOURCES;
    if (input->is_unknown)
        gbx_sink_print(sink, " lies in too many pieces");
    else if (input->source_count == 0)
        gbx_sink_print(sink, ", which no task wrote");
    for (uint64_t i = 0; i < shown; ++i) {
        const gbx_blame_source *source = &input->sources[i];
        gbx_party p;
        GBX_TRY(gbx_party_find(r, source->task, source->entry, &p));
        gbx_sink_print(sink, "%s %s%s", i == 0 ? " from" : ",", gbx_text_party(t, &p),
                       source->is_concurrent ? " (at the same time)" : "");
    }
    if (input->source_count > shown)
        gbx_sink_print(sink, " and %s",
                       gbx_text_counted(t, input->source_count - shown, "more output"));
    if (input->source_count > 0 && input->unwritten > 0)
        gbx_sink_print(sink, "; no task wrote %s of it",
                       gbx_text_counted(t, input->unwritten, "byte"));
    return NULL;
}

/* Steps far back are not indented further. */
static int indent_of(const gbx_blame_input *input) {
    return 2 * (int)(input->depth < INDENTED_MAX ? input->depth : INDENTED_MAX);
}

static gbx_status print_inputs(const gbx_reporting *r, const gbx_blame_inputs *inputs) {
    gbx_texts *t = &r->sink->texts;
    for (size_t i = 0; i < inputs->count; ++i) {
        const gbx_blame_input *input = &inputs->inputs[i];
        bool is_first = i == 0 || inputs->inputs[i - 1].task != input->task;
        gbx_party p;
        GBX_TRY(gbx_party_find(r, input->task, input->entry, &p));
        if (is_first)
            gbx_sink_print(r->sink, "%*s%s read\n", indent_of(input), "",
                           gbx_text_party_task(t, &p));
        gbx_sink_print(r->sink, "%*s%s %s", indent_of(input) + 2, "",
                       gbx_text_party_argument(t, &p),
                       gbx_text_numbers(t, p.tensor.shape, p.tensor.ndims));
        GBX_TRY(print_sources(r, input));
        if (input->nan_count > 0 || input->inf_count > 0)
            gbx_sink_print(r->sink, "; has %s",
                           special_text(t, input->nan_count, input->inf_count));
        gbx_sink_print(r->sink, "\n");
    }
    if (inputs->has_more)
        gbx_sink_print(r->sink, "  and more than %d inputs in all\n", GBX_BLAME_INPUTS_MAX);
    return NULL;
}

static gbx_status print_text(const gbx_reporting *r, const gbx_blame_report *report) {
    const gbx_blame_answer *answer = &report->answer;
    gbx_texts *t = &r->sink->texts;
    GBX_TRY(print_claim(r, report));
    gbx_sink_print(r->sink, "\n");
    GBX_TRY(print_several(r, answer));
    if (answer->is_changed)
        GBX_TRY(gbx_suspects_print(r, answer->suspects, answer->suspect_count, "since"));
    GBX_TRY(print_inputs(r, &report->inputs));
    GBX_TRY(print_unknown(r, answer));
    if (answer->writer_count > 0 && !answer->writers[0].has_value)
        gbx_sink_print(r->sink, "next: run again with --dump-tensor=full, which keeps all bytes\n");
    else if (answer->writer_count > 0 && !answer->is_changed)
        gbx_sink_print(r->sink, "next: %s\n",
                       gbx_text_shown(t, gbx_text_party_replay(r, answer->writers[0].task)));
    return NULL;
}

/* --- JSON --- */

#define ELEMENT(member, kind, key, ...)                                                            \
    GBX_FIELD(gbx_blame_element, member, kind, key, NULL, __VA_ARGS__)
static const gbx_field element_fields[] = {
    ELEMENT(name, TEXT, "name"),
    ELEMENT(number, INDEX, "index", .with = offsetof(gbx_blame_element, tensor)),
    ELEMENT(tensor.dtype, DTYPE, "dtype"),
    GBX_FIELD_IF(gbx_blame_element, is_placed, address, HEX, "address", NULL),
    GBX_FIELD_IF(gbx_blame_element, is_of_task, task, NUMBER, "task_seq", NULL)};

typedef struct writer_row {
    gbx_party party;
    gbx_blame_writer of;
} writer_row;

#define WRITER(member, kind, key, ...) GBX_FIELD(writer_row, member, kind, key, NULL, __VA_ARGS__)
static const gbx_field writer_fields[] = {
    WRITER(of.element, INDEX, "element", .with = offsetof(writer_row, party.tensor)),
    WRITER(of.dtype, DTYPE, "dtype"),
    GBX_FIELD_IF(writer_row, of.has_value, of.bits, ELEMENT, "value", NULL,
                 .with = offsetof(writer_row, of.dtype)),
    WRITER(of.is_whole, BOOL, "whole")};

static gbx_status put_party(const gbx_reporting *r, uint64_t task, uint64_t entry,
                            gbx_party *out_party) {
    GBX_TRY(gbx_party_find(r, task, entry, out_party));
    gbx_json_put_row(&r->sink->json, &(const gbx_rows){gbx_party_fields, GBX_PARTY_ARGUMENT_FIELDS,
                                                       .rows = out_party});
    return NULL;
}

static gbx_status put_writers(const gbx_reporting *r, const gbx_blame_answer *answer) {
    gbx_json_writer *json = &r->sink->json;
    gbx_json_key(json, "writers");
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < answer->writer_count && i < GBX_BLAME_WRITERS; ++i) {
        writer_row row = {.of = answer->writers[i]};
        gbx_json_begin_object_inline(json);
        GBX_TRY(put_party(r, row.of.task, row.of.entry, &row.party));
        gbx_json_put_row(json, GBX_ROWS(writer_fields, &row, 1));
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    return NULL;
}

#define ANSWER(member, kind, key, ...)                                                             \
    GBX_FIELD(gbx_blame_report, answer.member, kind, key, NULL, __VA_ARGS__)
static const gbx_field answer_fields[] = {
    GBX_FIELD_IF(gbx_blame_report, answer.has_found, answer.found, ELEMENT, "found", NULL,
                 .with = offsetof(gbx_blame_report, element.tensor.dtype)),
    ANSWER(is_changed, BOOL, "changed"),
    ANSWER(writer_count, COUNT, "writer_count"),
    ANSWER(is_order_unknown, BOOL, "order_unknown"),
    ANSWER(earlier, COUNT, "earlier_writes"),
    ANSWER(undecided, COUNT, "undecided"),
    ANSWER(in_flight, COUNT, "in_flight")};

static void put_missing(gbx_json_writer *json, uint64_t missing_tasks) {
    if (missing_tasks == UINT64_MAX) /* it may be any */
        gbx_json_put_null(json, "tasks_missing_outputs");
    else
        gbx_json_put_u64(json, "tasks_missing_outputs", missing_tasks);
}

#define INPUT(member, kind, key) GBX_FIELD(gbx_blame_input, member, kind, key, NULL)
static const gbx_field input_fields[] = {
    INPUT(depth, NUMBER, "depth"),
    INPUT(bytes, COUNT, "bytes"),
    INPUT(unwritten, COUNT, "unwritten_bytes"),
    INPUT(is_unknown, BOOL, "unknown"),
    GBX_FIELD_IF(gbx_blame_input, has_counts, nan_count, COUNT, "nan", NULL),
    GBX_FIELD_IF(gbx_blame_input, has_counts, inf_count, COUNT, "inf", NULL),
    INPUT(source_count, COUNT, "source_count")};
#define SOURCE(member, kind, key) GBX_FIELD(gbx_blame_source, member, kind, key, NULL)
static const gbx_field source_fields[] = {SOURCE(bytes, COUNT, "bytes"),
                                          SOURCE(is_concurrent, BOOL, "concurrent")};

static gbx_status put_input(const gbx_reporting *r, const gbx_blame_input *input) {
    gbx_json_writer *json = &r->sink->json;
    gbx_party p;
    gbx_json_begin_object(json);
    GBX_TRY(put_party(r, input->task, input->entry, &p));
    gbx_json_put_row(json, GBX_ROWS(input_fields, input, 1));
    gbx_json_key(json, "sources");
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < input->source_count && i < GBX_BLAME_SOURCES; ++i) {
        const gbx_blame_source *source = &input->sources[i];
        gbx_json_begin_object_inline(json);
        GBX_TRY(put_party(r, source->task, source->entry, &p));
        gbx_json_put_row(json, GBX_ROWS(source_fields, source, 1));
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    gbx_json_end_object(json);
    return NULL;
}

gbx_status gbx_blame_put(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                         const gbx_blame_report *report) {
    const gbx_reporting r = {sink, dump, given};
    gbx_json_writer *json = &sink->json;
    const gbx_blame_answer *answer = &report->answer;
    gbx_json_key(json, "element");
    gbx_json_begin_object_inline(json);
    gbx_json_put_row(json, GBX_ROWS(element_fields, &report->element, 1));
    gbx_json_end_object(json);
    gbx_json_put_row(json, GBX_ROWS(answer_fields, report, 1));
    put_missing(json, answer->missing_tasks);
    GBX_TRY(put_writers(&r, answer));
    GBX_TRY(gbx_suspects_put(&r, answer->suspects, answer->suspect_count));
    gbx_json_key(json, "inputs");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < report->inputs.count; ++i)
        GBX_TRY(put_input(&r, &report->inputs.inputs[i]));
    gbx_json_end_array(json);
    gbx_json_put_bool(json, "more_inputs", report->inputs.has_more);
    return NULL;
}

/* --- asking --- */

static void on_progress(void *context, uint64_t done, uint64_t all) {
    gbx_progress_count(context, done, all, "task");
}

static gbx_status ask(const gbx_opened_dump *dump, const gbx_task_graph *graph, const char *element,
                      uint32_t depth, gbx_progress *progress, gbx_blame_report *report) {
    gbx_blame *blame = NULL;
    uint64_t tasks[GBX_BLAME_WRITERS];
    size_t count = 0;
    GBX_TRY(gbx_blame_create(dump->entries, graph, &blame));
    gbx_status status = gbx_blame_find(blame, element, &report->element);
    if (!status)
        status = gbx_blame_ask(blame, &report->element, &report->answer);
    for (; count < report->answer.writer_count && count < GBX_BLAME_WRITERS; ++count)
        tasks[count] = report->answer.writers[count].task;
    gbx_progress_phase(progress, NULL, "looking for the writers of inputs");
    if (!status && depth > 0)
        status = gbx_blame_trace(blame, tasks, count, depth, progress ? on_progress : NULL,
                                 progress, &report->inputs);
    gbx_blame_destroy(blame);
    return status;
}

gbx_status gbx_blame_report_make(const gbx_opened_dump *dump, const char *element, uint32_t depth,
                                 gbx_progress *progress, gbx_blame_report *out_report) {
    gbx_task_graph *graph = NULL;
    *out_report = (gbx_blame_report){0};
    gbx_status status = gbx_task_graph_create(dump->reader, &graph);
    if (!status)
        status = ask(dump, graph, element, depth, progress, out_report);
    gbx_task_graph_destroy(graph);
    return status;
}

/* --- all of it --- */

gbx_status gbx_blame_print(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                           const gbx_blame_report *report, bool as_json) {
    const gbx_reporting r = {sink, dump, given};
    if (!as_json)
        return print_text(&r, report);
    gbx_json_put_string(gbx_sink_json_begin(sink), "dump", dump->directory);
    return gbx_sink_json_end(sink, gbx_blame_put(sink, dump, given, report));
}

gbx_status gbx_blame_print_line(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                                const gbx_blame_report *report) {
    const gbx_reporting r = {sink, dump, given};
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "  ");
    GBX_TRY(print_claim(&r, report));
    gbx_sink_print(sink, "; next: %s\n",
                   gbx_text_shown(t, gbx_text_blame(t, dump, given, &report->element)));
    return NULL;
}
