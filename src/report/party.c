#include "report/party.h"

#include <inttypes.h>

#define PARTY(member, kind, key, ...) GBX_FIELD(gbx_party, member, kind, key, NULL, __VA_ARGS__)
const gbx_field gbx_party_fields[GBX_PARTY_FIELDS] = {
    PARTY(task, NUMBER, "task_seq"),
    GBX_FIELD_IF(gbx_party, kernel, task_id, HEX, "task_id", NULL),
    PARTY(kernel, STRING, "kernel"),
    PARTY(index, NUMBER, "index"),
    PARTY(slot, NUMBER, "arg_index"),
    PARTY(name, STRING, "arg_name"),
    PARTY(stage, NAME, "stage", .names = &gbx_stages),
    PARTY(buffer, HEX, "buffer_addr"),
    PARTY(begin, I64, "begin"),
    PARTY(end, I64, "end")};

gbx_status gbx_party_find_task(const gbx_reporting *r, uint64_t task, gbx_party *out_party) {
    gbx_record_task record;
    bool is_found = false;
    GBX_TRY(gbx_reader_find_task(r->dump->reader, task, &record, &is_found));
    *out_party = (gbx_party){.task = task};
    if (is_found) {
        out_party->task_id = record.task_id;
        out_party->kernel = gbx_text_kernel(&r->sink->texts, r->dump->reader, &record);
    }
    return NULL;
}

gbx_status gbx_party_find_argument(const gbx_reporting *r, uint64_t index, gbx_party *party) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(r->dump->entries, index, &entry));
    party->index = index;
    party->slot = entry.head->arg_index;
    party->name = entry.arg_name ? gbx_text_format(&r->sink->texts, "%s", entry.arg_name) : NULL;
    party->stage = entry.head->stage;
    party->buffer = entry.tensor->buffer_addr;
    gbx_record_view(entry.tensor, &party->tensor);
    return NULL;
}

gbx_status gbx_party_find(const gbx_reporting *r, uint64_t task, uint64_t entry,
                          gbx_party *out_party) {
    GBX_TRY(gbx_party_find_task(r, task, out_party));
    return gbx_party_find_argument(r, entry, out_party);
}

const char *gbx_text_party_task(gbx_texts *texts, const gbx_party *party) {
    return gbx_text_format(texts, "task %" PRIu64 " (%s)", party->task,
                           gbx_text_shown(texts, party->kernel ? party->kernel : "unknown"));
}

const char *gbx_text_party_argument(gbx_texts *texts, const gbx_party *party) {
    return gbx_text_format(texts, "argument %s",
                           gbx_text_shown(texts, gbx_text_arg(texts, party->slot, party->name)));
}

const char *gbx_text_party(gbx_texts *texts, const gbx_party *party) {
    return gbx_text_format(texts, "%s of %s", gbx_text_party_argument(texts, party),
                           gbx_text_party_task(texts, party));
}

const char *gbx_text_party_replay(const gbx_reporting *r, uint64_t task) {
    gbx_texts *t = &r->sink->texts;
    return gbx_text_replay(t, r->dump, r->given, gbx_text_number(t, task));
}

/* --- suspects --- */

/* "    task 7 (softmax), whose argument 0 x lies there" */
static gbx_status print_suspect(const gbx_reporting *r, const gbx_audit_suspect *suspect) {
    gbx_texts *t = &r->sink->texts;
    gbx_party p;
    bool is_before = suspect->reason == GBX_SUSPECT_ENDS_BEFORE;
    GBX_TRY(gbx_party_find_task(r, suspect->task, &p));
    gbx_sink_print(r->sink, "    %s", gbx_text_party_task(t, &p));
    if (suspect->reason != GBX_SUSPECT_RAN) {
        GBX_TRY(gbx_party_find_argument(r, suspect->entry, &p));
        gbx_sink_print(r->sink, ", whose %s ", gbx_text_party_argument(t, &p));
        if (suspect->reason == GBX_SUSPECT_HAS_IT)
            gbx_sink_print(r->sink, "lies there");
        else if (suspect->distance == 0)
            gbx_sink_print(r->sink, is_before ? "ends right before" : "begins right after");
        else
            gbx_sink_print(r->sink, "%s %s %s", is_before ? "ends" : "begins",
                           gbx_text_counted(t, suspect->distance, "byte"),
                           is_before ? "before" : "after");
    }
    gbx_sink_print(r->sink, "\n");
    return NULL;
}

gbx_status gbx_suspects_print(const gbx_reporting *r, const gbx_audit_suspect *suspects,
                              uint64_t count, const char *when) {
    uint64_t shown = count < GBX_AUDIT_SUSPECTS ? count : GBX_AUDIT_SUSPECTS;
    if (count == 0) {
        gbx_sink_print(r->sink, "  no task ran %s: the orchestration may have written it\n", when);
        return NULL;
    }
    if (shown > 1)
        gbx_sink_print(r->sink, "  tasks that ran %s, the likeliest writer first:\n", when);
    else
        gbx_sink_print(r->sink, "  the only task that ran %s:\n", when);
    for (uint64_t i = 0; i < shown; ++i)
        GBX_TRY(print_suspect(r, &suspects[i]));
    gbx_sink_more(r->sink, "    ", count, shown, "\n");
    gbx_sink_print(r->sink, "  a replay shows what %s writes outside its outputs:\n    %s\n",
                   count > 1 ? "the first of them" : "it",
                   gbx_text_shown(&r->sink->texts, gbx_text_party_replay(r, suspects[0].task)));
    return NULL;
}

static gbx_status put_suspect(const gbx_reporting *r, const gbx_audit_suspect *suspect) {
    gbx_json_writer *json = &r->sink->json;
    gbx_party p;
    GBX_TRY(gbx_party_find_task(r, suspect->task, &p));
    gbx_json_begin_object_inline(json);
    gbx_json_put_row(json, &(const gbx_rows){gbx_party_fields, GBX_PARTY_TASK_FIELDS, .rows = &p});
    gbx_json_put_string(json, "reason", gbx_name_of(&gbx_audit_reasons, suspect->reason));
    if (suspect->reason != GBX_SUSPECT_RAN) {
        GBX_TRY(gbx_party_find_argument(r, suspect->entry, &p));
        gbx_json_put_u64(json, "arg_index", p.slot);
        gbx_json_put_string(json, "arg_name", p.name);
        gbx_json_put_u64(json, "distance", suspect->distance);
    }
    gbx_json_put_string(json, "replay", gbx_text_party_replay(r, suspect->task));
    gbx_json_end_object(json);
    return NULL;
}

gbx_status gbx_suspects_put(const gbx_reporting *r, const gbx_audit_suspect *suspects,
                            uint64_t count) {
    gbx_json_writer *json = &r->sink->json;
    gbx_json_key(json, "suspects");
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < count && i < GBX_AUDIT_SUSPECTS; ++i)
        GBX_TRY(put_suspect(r, &suspects[i]));
    gbx_json_end_array(json);
    return NULL;
}
