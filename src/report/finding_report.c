#include <inttypes.h>

#include "report/reports.h"
#include "text/names.h"

const char *const gbx_replay_finding_names[GBX_FINDING_KINDS] = {
    [GBX_STRAY_WRITE] = "stray_write",
    [GBX_UNDECLARED_READ] = "undeclared_read",
    [GBX_UNWRITTEN_READ] = "unwritten_read",
    [GBX_NOT_DETERMINISTIC] = "not_deterministic",
    [GBX_WRITE_RACE] = "write_race",
    [GBX_READ_RACE] = "read_race",
    [GBX_ENDLESS_WAIT] = "endless_wait",
    [GBX_STALE_FLAG] = "stale_flag",
    [GBX_UNWRITTEN] = "unwritten",
    [GBX_COUNTER] = "counter",
    [GBX_EARLIER_FLAG] = "flag_of_earlier_task"};

/* What a sentence is made of. */
typedef struct speaking {
    gbx_texts *texts;
    const gbx_reader *reader;
    const gbx_replay_finding *finding;
} speaking;

/* --- parts --- */

/* "argument 1 y", "argument 1 y[3, 0]" */
static const char *argument(const speaking *s, bool has_index) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    if (f->slot == GBX_NO_ARGUMENT)
        return "an argument";
    const char *name = gbx_text_shown(t, gbx_text_arg(t, f->slot, f->name));
    bool is_shown = has_index && f->is.element != GBX_NO_ELEMENT && f->tensor.ndims > 0;
    return gbx_text_format(t, "argument %s%s", name,
                           is_shown ? gbx_text_index(t, &f->tensor, f->is.element) : "");
}

static const char *owner_kernel(const speaking *s) {
    gbx_record_task task = {0};
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        task.func_ids[i] = s->finding->owner.func_ids[i];
    return gbx_text_kernel(s->texts, s->reader, &task);
}

/* "argument 0 x[3, 0] of task 7 (softmax)", "result out[0]" */
static const char *owner(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_tensor_access *o = &s->finding->owner;
    const char *index = o->tensor.ndims > 0 ? gbx_text_index(t, &o->tensor, o->element) : "";
    if (o->is_result)
        return gbx_text_format(t, "result %s%s",
                               gbx_text_shown(t, gbx_text_arg(t, o->arg_index, o->name)), index);
    return gbx_text_format(t, "argument %s%s of task %s (%s)",
                           gbx_text_shown(t, gbx_text_arg(t, o->arg_index, o->name)), index,
                           gbx_text_task(t, s->reader, o->task, o->task_id),
                           gbx_text_shown(t, owner_kernel(s)));
}

/* "block 0 (aiv0)" */
static const char *party(const speaking *s, int number) {
    const gbx_replay_finding *f = s->finding;
    if (f->is.parties[number] == GBX_NO_PARTY)
        return "other blocks";
    return gbx_text_format(s->texts, "block %" PRIu32 " (%s)", f->parties[number].block_idx,
                           gbx_name_of(&gbx_subtasks, f->parties[number].subtask));
}

/* ", and 3 more elements", "" */
static const char *more(const speaking *s) {
    uint64_t elements = s->finding->is.elements;
    if (elements < 2)
        return "";
    return gbx_text_format(s->texts, ", and %s",
                           gbx_text_counted(s->texts, elements - 1, "more element"));
}

/* --- sentences, after the name of the task --- */

static const char *say_place(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    if (f->slot == GBX_NO_ARGUMENT)
        return "";
    if (f->is.element != GBX_NO_ELEMENT)
        return gbx_text_format(t, ", in its own input, %s", argument(s, true));
    if (f->distance == 0)
        return gbx_text_format(t, ", in a gap of %s", argument(s, false));
    uint64_t distance = f->distance < 0 ? 0 - (uint64_t)f->distance : (uint64_t)f->distance - 1;
    if (distance == 0)
        return gbx_text_format(t, ", right after %s", argument(s, false));
    return gbx_text_format(t, ", %s %s %s", gbx_text_counted(t, distance, "byte"),
                           f->distance < 0 ? "before" : "after", argument(s, false));
}

static const char *say_owner(const speaking *s) {
    const gbx_replay_finding *f = s->finding;
    if (!f->has_owner || f->is.element != GBX_NO_ELEMENT)
        return "";
    return gbx_text_format(s->texts, "; %s lies there", owner(s));
}

static const char *say_stray_write(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    if (f->is_fault && f->is.bytes == 0)
        return gbx_text_format(t, "writes to 0x%" PRIx64 ", outside its outputs%s%s", f->is.address,
                               say_place(s), say_owner(s));
    const char *where = f->has_address ? gbx_text_format(t, " at 0x%" PRIx64, f->is.address) : "";
    return gbx_text_format(t, "changes %s outside its outputs%s, the first%s%s%s",
                           gbx_text_counted(t, f->is.bytes, "byte"),
                           f->is_fault ? " before it crashes" : "", where, say_place(s),
                           say_owner(s));
}

static const char *say_undeclared_read(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    if (f->is_fault)
        return gbx_text_format(t, "reads 0x%" PRIx64 ", outside its arguments%s%s", f->is.address,
                               say_place(s), say_owner(s));
    return gbx_text_format(
        t,
        "computes %s%s from bytes that it was not given: it reads outside its "
        "inputs, an output before all of it is written, or an argument that it does not "
        "have",
        argument(s, true), more(s));
}

static const char *say_unwritten(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    const char *first =
        f->is.element != GBX_NO_ELEMENT && f->tensor.ndims > 0
            ? gbx_text_format(t, ", the first at %s", gbx_text_index(t, &f->tensor, f->is.element))
            : "";
    const char *what =
        gbx_text_format(t, "does not write %s of %s%s",
                        gbx_text_counted(t, f->is.elements, "element"), argument(s, false), first);
    const char *them = gbx_text_verb(f->is.elements, "it", "them");
    if (f->is.kind == GBX_UNWRITTEN && f->has_owner)
        return gbx_text_format(t,
                               "%s; %s has what was there before, but the run failed before all "
                               "tasks had run",
                               what, owner(s));
    if (f->is.kind == GBX_UNWRITTEN && !f->is_followed)
        return gbx_text_format(
            t, "%s; whether a later task or a result reads %s was not searched completely", what,
            them);
    if (f->is.kind == GBX_UNWRITTEN)
        return gbx_text_format(t, "%s; no later task and no result reads %s", what, them);
    return gbx_text_format(t, "%s; %s", what,
                           f->owner.is_result
                               ? gbx_text_format(t, "%s has what was there before", owner(s))
                               : gbx_text_format(t, "%s gets what was there before", owner(s)));
}

static const char *say_stale_flag(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    if (f->is.kind == GBX_STALE_FLAG)
        return gbx_text_format(
            t,
            "does not wait: %s waits for %s, which %s sets, but it already holds "
            "%" PRIu64 " from before this task",
            party(s, 0), argument(s, true), party(s, 1), f->is.value);
    return gbx_text_format(t,
                           "waits in %s for %s, which holds %" PRIu64
                           " from before this task and which no block of this task sets",
                           party(s, 0), argument(s, true), f->is.value);
}

/* "has not" */
static const char *say_failing(const speaking *s) {
    bool is_one = s->finding->is.parties[1] != GBX_NO_PARTY;
    if (s->finding->is.value == GBX_FAILS_AFTER)
        return is_one ? "has" : "have";
    return is_one ? "has not" : "have not";
}

static const char *say(const speaking *s) {
    gbx_texts *t = s->texts;
    const gbx_replay_finding *f = s->finding;
    switch (f->is.kind) {
    case GBX_STRAY_WRITE:
        return say_stray_write(s);
    case GBX_UNDECLARED_READ:
        return say_undeclared_read(s);
    case GBX_UNWRITTEN_READ:
    case GBX_UNWRITTEN:
        return say_unwritten(s);
    case GBX_NOT_DETERMINISTIC:
        return gbx_text_format(t,
                               "is not deterministic: %s%s %s between two calls on the same memory "
                               "(chance, static variables, a race)",
                               argument(s, true), more(s),
                               gbx_text_verb(f->is.elements, "differs", "differ"));
    case GBX_WRITE_RACE:
        return gbx_text_format(t, "has a race: %s and %s both write %s%s", party(s, 0), party(s, 1),
                               argument(s, true), more(s));
    case GBX_READ_RACE:
        if (f->slot == GBX_NO_ARGUMENT)
            return gbx_text_format(t, "has a race: %s fails if %s %s run before it", party(s, 0),
                                   party(s, 1), say_failing(s));
        return gbx_text_format(t, "has a race: %s reads what %s write%s; %s%s %s on their order",
                               party(s, 0), party(s, 1),
                               f->is.parties[1] == GBX_NO_PARTY ? "" : "s", argument(s, true),
                               more(s), gbx_text_verb(f->is.elements, "depends", "depend"));
    case GBX_ENDLESS_WAIT:
        return gbx_text_format(
            t, "waits forever: %s waits for %s, which never gets the value that it waits for",
            party(s, 0),
            f->slot == GBX_NO_ARGUMENT ? "a flag that is not an element of its arguments"
                                       : argument(s, true));
    case GBX_COUNTER:
        return gbx_text_format(t,
                               "adds to %s%s in several blocks, such as %s and %s: right if the "
                               "additions are atomic, which a replay cannot see",
                               argument(s, true), more(s), party(s, 0), party(s, 1));
    default:
        return say_stale_flag(s);
    }
}

/* "task 12, kernel add, writes ..." */
const char *gbx_text_finding(gbx_texts *texts, const gbx_reader *reader,
                             const gbx_replay_result *result, const gbx_replay_finding *finding) {
    const speaking s = {texts, reader, finding};
    return gbx_text_format(texts, "%s, %s", gbx_text_shown(texts, result->title), say(&s));
}

/* --- JSON --- */

static void put_index(gbx_json_writer *json, const char *key, const gbx_tensor *tensor,
                      uint64_t element) {
    int64_t index[GBX_MAX_DIMS];
    gbx_json_key(json, key);
    gbx_compare_index(tensor, element, index);
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < tensor->ndims; ++i)
        gbx_json_i64(json, index[i]);
    gbx_json_end_array(json);
}

static void put_extent(gbx_json_writer *json, const gbx_replay_finding *f) {
    if (!f->has_address && f->is.bytes == 0) {
        gbx_json_put_null(json, "extent");
        return;
    }
    gbx_json_key(json, "extent");
    gbx_json_begin_object_inline(json);
    if (f->has_address)
        gbx_json_put_hex_text(json, "address", f->is.address);
    else
        gbx_json_put_null(json, "address");
    if (f->is.bytes > 0)
        gbx_json_put_u64(json, "bytes", f->is.bytes);
    else
        gbx_json_put_null(json, "bytes");
    if (f->is.end > f->is.address)
        gbx_json_put_u64(json, "span", f->is.end - f->is.address);
    else
        gbx_json_put_null(json, "span");
    gbx_json_end_object(json);
}

static void put_owner(gbx_json_writer *json, const speaking *s) {
    const gbx_tensor_access *o = &s->finding->owner;
    if (!s->finding->has_owner) {
        gbx_json_put_null(json, "owner");
        return;
    }
    gbx_json_key(json, "owner");
    gbx_json_begin_object_inline(json);
    if (o->is_result) {
        gbx_json_put_null(json, "task_seq");
        gbx_json_put_null(json, "kernel");
    } else {
        gbx_json_put_u64(json, "task_seq", o->task);
        gbx_json_put_string(json, "kernel", owner_kernel(s));
    }
    gbx_json_put_u64(json, "arg_index", o->arg_index);
    gbx_json_put_string(json, "arg_name", o->name);
    put_index(json, "element", &o->tensor, o->element);
    gbx_json_end_object(json);
}

static void put_blocks(gbx_json_writer *json, const gbx_replay_finding *f) {
    gbx_json_key(json, "blocks");
    gbx_json_begin_array_inline(json);
    for (int i = 0; i < 2; ++i) {
        if (f->is.parties[i] == GBX_NO_PARTY)
            continue;
        gbx_json_begin_object_inline(json);
        gbx_json_put_u64(json, "block_idx", f->parties[i].block_idx);
        gbx_json_put_string(json, "subtask", gbx_name_of(&gbx_subtasks, f->parties[i].subtask));
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

static void put_finding(gbx_sink *sink, const gbx_reader *reader, const gbx_replay_result *result,
                        const gbx_replay_finding *f) {
    gbx_json_writer *json = &sink->json;
    const speaking s = {&sink->texts, reader, f};
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "kind", gbx_replay_finding_names[f->is.kind]);
    gbx_json_put_u64(json, "task_seq", result->task);
    gbx_json_put_hex_text(json, "task_id", result->task_id);
    gbx_json_put_string(json, "kernel", result->kernel);
    if (f->slot == GBX_NO_ARGUMENT)
        gbx_json_put_null(json, "arg_index");
    else
        gbx_json_put_u64(json, "arg_index", f->slot);
    gbx_json_put_string(json, "arg_name", f->slot == GBX_NO_ARGUMENT ? NULL : f->name);
    if (f->is.element == GBX_NO_ELEMENT)
        gbx_json_put_null(json, "element");
    else
        put_index(json, "element", &f->tensor, f->is.element);
    gbx_json_put_u64(json, "elements", f->is.elements);
    put_extent(json, f);
    put_owner(json, &s);
    if (f->is.kind == GBX_UNWRITTEN || f->is.kind == GBX_UNWRITTEN_READ)
        gbx_json_put_bool(json, "followed", f->is_followed || f->has_owner);
    else
        gbx_json_put_null(json, "followed");
    put_blocks(json, f);
    gbx_json_put_string(json, "sentence", gbx_text_finding(&sink->texts, reader, result, f));
    gbx_json_end_object(json);
}

/* Those of one task, into an array that is begun. */
void gbx_findings_put_items(gbx_sink *sink, const gbx_reader *reader,
                            const gbx_replay_result *result, bool are_notes) {
    for (uint32_t i = 0; i < result->finding_count; ++i)
        if (gbx_replay_is_note(&result->findings[i]) == are_notes)
            put_finding(sink, reader, result, &result->findings[i]);
}

void gbx_findings_put(gbx_sink *sink, const gbx_reader *reader, const gbx_replay_result *results,
                      uint64_t count) {
    for (int are_notes = 0; are_notes < 2; ++are_notes) {
        gbx_json_key(&sink->json, are_notes ? "notes" : "findings");
        gbx_json_begin_array(&sink->json);
        for (uint64_t i = 0; i < count; ++i)
            gbx_findings_put_items(sink, reader, &results[i], are_notes);
        gbx_json_end_array(&sink->json);
    }
}
