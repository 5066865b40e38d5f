#include <inttypes.h>

#include "report/party.h"
#include "report/reports.h"
#include "report/table.h"

/* "3 NaN, 1 Inf" */
static const char *counts_text(gbx_texts *t, uint64_t nan_count, uint64_t inf_count) {
    const char *nan = gbx_text_format(t, "%s NaN", gbx_text_count(t, nan_count));
    const char *inf = gbx_text_format(t, "%s Inf", gbx_text_count(t, inf_count));
    if (nan_count > 0 && inf_count > 0)
        return gbx_text_join(t, nan, ", ", inf);
    return nan_count > 0 ? nan : inf;
}

/* "argument 2 out of task 7 (softmax) has 3 NaN, the first at [0, 4]" */
static gbx_status print_output(const gbx_reporting *r, const gbx_nan_output *output) {
    gbx_texts *t = &r->sink->texts;
    gbx_party p;
    GBX_TRY(gbx_party_find(r, output->task, output->entry, &p));
    gbx_sink_print(r->sink, "%s has %s", gbx_text_party(t, &p),
                   counts_text(t, output->nan_count, output->inf_count));
    if (output->has_element)
        gbx_sink_print(r->sink, ", the first at %s: %s",
                       gbx_text_index(t, &p.tensor, output->element),
                       gbx_text_value(t, output->dtype, output->bits));
    return NULL;
}

/* What the task read. */
static gbx_status print_input(const gbx_reporting *r, const gbx_nan_output *output) {
    gbx_texts *t = &r->sink->texts;
    gbx_entry entry;
    if (output->inputs == GBX_NAN_INPUTS_CLEAN) {
        gbx_sink_print(r->sink, "; its inputs have none\n");
        return NULL;
    }
    GBX_TRY(gbx_entries_at(r->dump->entries, output->input, &entry));
    const char *argument =
        gbx_text_shown(t, gbx_text_arg(t, entry.head->arg_index, entry.arg_name));
    if (output->inputs == GBX_NAN_INPUTS_HAVE_SOME)
        gbx_sink_print(r->sink, "; it read them: its input %s has %s\n", argument,
                       counts_text(t, output->input_nan_count, output->input_inf_count));
    else
        gbx_sink_print(r->sink,
                       "; not known: whether its inputs have any, because the dump lacks values "
                       "of input %s\n",
                       argument);
    return NULL;
}

static gbx_status print_one(const gbx_reporting *r, const char *before,
                            const gbx_nan_output *output) {
    gbx_sink_print(r->sink, "%s", before);
    GBX_TRY(print_output(r, output));
    return print_input(r, output);
}

static void print_none(gbx_sink *sink, const gbx_first_nan *found) {
    gbx_texts *t = &sink->texts;
    uint64_t known = found->outputs - found->unknown;
    if (known == 0)
        gbx_sink_print(sink, "not known: the dump has no values of outputs that are floats\n");
    else
        gbx_sink_print(sink, "no NaN and no Inf in %s\n", gbx_text_counted(t, known, "output"));
}

static gbx_status print_text(const gbx_reporting *r, const gbx_first_nan *found) {
    gbx_texts *t = &r->sink->texts;
    const gbx_nan_output *answer = gbx_first_nan_answer(found);
    bool is_same = found->has_introduced && found->introduced.entry == found->first.entry;
    if (!answer) {
        print_none(r->sink, found);
    } else {
        if (found->has_introduced)
            GBX_TRY(print_one(r, "the first that made a NaN or Inf: ", &found->introduced));
        else
            gbx_sink_print(r->sink, "no task is known to have made them of inputs without any\n");
        if (!is_same)
            GBX_TRY(print_one(r, "the first that has any: ", &found->first));
        if (found->has_nan &&
            (!found->has_introduced || found->nan.entry != found->introduced.entry))
            GBX_TRY(print_one(r, "the first that made a NaN: ", &found->nan));
    }
    if (found->outputs > found->unknown)
        gbx_sink_count(r->sink, "not known: ", found->unknown, "output",
                       answer ? " of tasks that completed before, whose values the dump lacks"
                              : " whose values the dump lacks");
    gbx_sink_count(r->sink, "left out: ", found->in_flight, "output",
                   " of tasks that did not complete");
    if (answer)
        gbx_sink_print(r->sink, "next: %s\n",
                       gbx_text_shown(t, gbx_text_party_replay(r, answer->task)));
    return NULL;
}

/* --- JSON --- */

typedef struct output_row {
    gbx_party party;
    gbx_nan_output of;
    bool has_input;
} output_row;

#define OUTPUT(member, kind, key, ...) GBX_FIELD(output_row, member, kind, key, NULL, __VA_ARGS__)
static const gbx_field input_fields[] = {OUTPUT(of.input, NUMBER, "index"),
                                         OUTPUT(of.input_nan_count, COUNT, "nan"),
                                         OUTPUT(of.input_inf_count, COUNT, "inf")};
static const gbx_field output_fields[] = {
    OUTPUT(of.nan_count, COUNT, "nan"),
    OUTPUT(of.inf_count, COUNT, "inf"),
    GBX_FIELD_IF(output_row, of.has_element, of.element, INDEX, "element", NULL,
                 .with = offsetof(output_row, party.tensor)),
    GBX_FIELD_IF(output_row, of.has_element, of.bits, ELEMENT, "value", NULL,
                 .with = offsetof(output_row, of.dtype)),
    OUTPUT(of.inputs, NAME, "inputs", .names = &gbx_nan_inputs_names),
    GBX_OBJECT("input", input_fields, GBX_KNOWN_IF(output_row, has_input))};

static gbx_status put_output(const gbx_reporting *r, const char *key, bool is_there,
                             const gbx_nan_output *output) {
    gbx_json_writer *json = &r->sink->json;
    if (!is_there) {
        gbx_json_put_null(json, key);
        return NULL;
    }
    output_row row = {.of = *output, .has_input = output->inputs != GBX_NAN_INPUTS_CLEAN};
    GBX_TRY(gbx_party_find(r, output->task, output->entry, &row.party));
    gbx_json_key(json, key);
    gbx_json_begin_object(json);
    gbx_json_put_row(
        json, &(const gbx_rows){gbx_party_fields, GBX_PARTY_ARGUMENT_FIELDS, .rows = &row.party});
    gbx_json_put_row(json, GBX_ROWS(output_fields, &row, 1));
    gbx_json_put_string(json, "replay", gbx_text_party_replay(r, output->task));
    gbx_json_end_object(json);
    return NULL;
}

static const gbx_field count_fields[] = {
    GBX_FIELD(gbx_first_nan, outputs, COUNT, "outputs", NULL),
    GBX_FIELD(gbx_first_nan, unknown, COUNT, "unknown", NULL),
    GBX_FIELD(gbx_first_nan, in_flight, COUNT, "in_flight", NULL)};

static gbx_status print_json(const gbx_reporting *r, const gbx_first_nan *found) {
    gbx_json_writer *json = gbx_sink_json_begin(r->sink);
    gbx_json_put_string(json, "dump", r->dump->directory);
    gbx_json_put_row(json, GBX_ROWS(count_fields, found, 1));
    gbx_status status = put_output(r, "introduced", found->has_introduced, &found->introduced);
    if (!status)
        status = put_output(r, "first", found->has_first, &found->first);
    if (!status)
        status = put_output(r, "first_nan", found->has_nan, &found->nan);
    return gbx_sink_json_end(r->sink, status);
}

gbx_status gbx_first_nan_search(const gbx_opened_dump *dump, const gbx_selected *only,
                                gbx_first_nan *out_first) {
    gbx_task_graph *graph = NULL;
    gbx_progress *progress = gbx_progress_start("looking for NaN");
    const gbx_first_nan_request request = {
        .only = only, .progress = gbx_progress_entries, .context = progress};
    gbx_status status = gbx_task_graph_create(dump->reader, &graph);
    if (!status)
        status = gbx_first_nan_find(dump->entries, graph, &request, out_first);
    gbx_progress_stop(progress);
    gbx_task_graph_destroy(graph);
    return status;
}

gbx_status gbx_first_nan_print(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                               const gbx_first_nan *found, bool as_json) {
    const gbx_reporting r = {sink, dump, given};
    return as_json ? print_json(&r, found) : print_text(&r, found);
}
