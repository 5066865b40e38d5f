/* Elements by their text: "out[3,17]", "task:7/x[0]". */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/blame/internal.h"
#include "base/memory.h"

enum { LIST_BYTES = 1024 };

/* A text as it was taken apart. */
typedef struct parsed {
    const char *text;
    bool is_of_task;
    const char *task; /* "7" of "task:7/x[0]" */
    size_t task_length;
    const char *name;
    size_t name_length;
    bool has_index;
    int64_t index[GBX_MAX_DIMS];
    uint32_t index_count;
} parsed;

static gbx_status fail_form(const char *text) {
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "\"%s\" does not name an element; expected an argument of the run, such as "
                    "out[3,17], or of a task, such as task:7/x[3,17]",
                    text);
}

static gbx_status parse_index(parsed *p, const char *at) {
    for (;;) {
        char *end;
        at += strspn(at, " ");
        if (!isdigit((unsigned char)*at) || p->index_count == GBX_MAX_DIMS)
            return fail_form(p->text);
        errno = 0;
        p->index[p->index_count++] = strtoll(at, &end, 10);
        if (errno)
            return fail_form(p->text);
        at = end + strspn(end, " ");
        if (*at == ']' && !at[1])
            return NULL;
        if (*at++ != ',')
            return fail_form(p->text);
    }
}

static gbx_status parse(const char *text, parsed *out) {
    *out = (parsed){.text = text, .name = text};
    if (strncmp(text, "task:", 5) == 0) {
        out->is_of_task = true;
        out->task = text + 5;
        out->task_length = strcspn(out->task, "/");
        if (out->task_length == 0 || !out->task[out->task_length])
            return fail_form(text);
        out->name = out->task + out->task_length + 1;
    }
    out->name_length = strcspn(out->name, "[");
    if (out->name_length == 0)
        return fail_form(text);
    const char *bracket = out->name + out->name_length;
    out->has_index = *bracket == '[';
    if (!out->has_index || strcmp(bracket, "[]") == 0)
        return NULL;
    return parse_index(out, bracket + 1);
}

/* "[4, 128]" */
static void print_shape(const gbx_tensor *tensor, char *out_text, size_t bytes) {
    size_t used = (size_t)snprintf(out_text, bytes, "[");
    for (uint32_t i = 0; i < tensor->ndims && used < bytes; ++i)
        used += (size_t)snprintf(out_text + used, bytes - used, "%s%" PRId64, i ? ", " : "",
                                 tensor->shape[i]);
    if (used < bytes)
        snprintf(out_text + used, bytes - used, "]");
}

static gbx_status number_element(const parsed *p, gbx_blame_element *element) {
    const gbx_tensor *tensor = &element->tensor;
    char shape[GBX_MAX_DIMS * 22];
    bool is_inside = p->index_count == tensor->ndims;
    print_shape(tensor, shape, sizeof shape);
    for (uint32_t i = 0; i < p->index_count && is_inside; ++i) {
        is_inside = p->index[i] < tensor->shape[i];
        element->number = element->number * (uint64_t)tensor->shape[i] + (uint64_t)p->index[i];
    }
    if (is_inside)
        return NULL;
    if (p->index_count != tensor->ndims)
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "\"%s\" names no element: the shape of %s is %s, which takes %" PRIu32 " %s", p->text,
            element->name, shape, tensor->ndims, tensor->ndims == 1 ? "index" : "indices");
    return gbx_fail(GBX_INVALID_ARGUMENT, "\"%s\" is out of range: the shape of %s is %s", p->text,
                    element->name, shape);
}

static bool is_name(const parsed *p, const char *name) {
    return name && strlen(name) == p->name_length && !memcmp(name, p->name, p->name_length);
}

/* --- arguments of the run --- */

/* The place of an element in a tensor's payload: its first bit. */
static uint64_t payload_bit(const gbx_tensor *tensor, uint64_t number) {
    uint64_t bits = gbx_dtype_bits(tensor->dtype);
    if (!gbx_dtype_is_packed(tensor->dtype) || tensor->ndims == 0)
        return number * bits;
    uint64_t length = (uint64_t)tensor->shape[tensor->ndims - 1];
    uint64_t row_bytes = (length * bits + 7) / 8;
    return number / length * row_bytes * 8 + number % length * bits;
}

/* Its address, if the argument lay at `base`. */
static void place_at(uint64_t base, uint64_t bit, gbx_blame_element *element) {
    element->is_placed = true;
    element->address = base + bit / 8;
    element->first_bit = (uint32_t)(bit % 8);
}

static void place_in_pieces(const gbx_result *result, gbx_blame_element *element) {
    uint64_t bit = payload_bit(&element->tensor, element->number);
    for (uint64_t i = 0; i < result->piece_count; ++i) {
        const gbx_record_piece *piece = &result->pieces[i];
        if (bit / 8 >= piece->offset && bit / 8 - piece->offset < piece->bytes)
            place_at(piece->address, bit - piece->offset * 8, element);
    }
}

/* Among the results, which say where each byte lay. */
static gbx_status find_result(gbx_blame *blame, const parsed *p, gbx_blame_element *element,
                              bool *out_is_found) {
    gbx_reader *reader = gbx_entries_reader(blame->state.entries);
    uint64_t count = gbx_reader_result_count(reader);
    for (uint64_t i = 0; i < count; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        if (!is_name(p, result.name))
            continue;
        *out_is_found = true;
        gbx_record_view(result.record, &element->tensor);
        element->has_result = true;
        element->result = i;
        GBX_TRY(number_element(p, element));
        place_in_pieces(&result, element);
        if (!element->is_placed && result.piece_count == 0)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "the dump does not say where %s lay in the chip's memory",
                            element->name);
        return NULL;
    }
    return NULL;
}

/* Among the arguments that --dump-args recorded; on host_build_graph they lie on the host. */
static gbx_status find_run_arg(gbx_blame *blame, const parsed *p, gbx_blame_element *element,
                               bool *out_is_found) {
    gbx_reader *reader = gbx_entries_reader(blame->state.entries);
    const gbx_run_info *run = gbx_reader_run(reader);
    uint64_t count = gbx_reader_list_count(reader, GBX_LIST_RUN_ARGS);
    bool is_on_host = run->runtime && !strcmp(run->runtime, "host_build_graph");
    for (uint64_t i = 0; i < count && !is_on_host; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, i, &record));
        const gbx_record_run_arg *arg = (const gbx_record_run_arg *)record;
        if (!arg->is_tensor || record->arg_index >= run->argument_count ||
            !is_name(p, run->arguments[record->arg_index].name))
            continue;
        *out_is_found = true;
        GBX_TRY(gbx_tensor_contiguous(arg->bits, record->dtype, record->ndims,
                                      gbx_record_run_arg_shape(arg), &element->tensor));
        uint64_t base = arg->bits;
        GBX_TRY(number_element(p, element));
        place_at(base, payload_bit(&element->tensor, element->number), element);
        return NULL;
    }
    return NULL;
}

static void list_names(const gbx_run_info *run, char *out_list) {
    size_t used = 0;
    out_list[0] = '\0';
    for (size_t i = 0; i < run->argument_count && used < LIST_BYTES - 1; ++i) {
        const gbx_run_argument *argument = &run->arguments[i];
        if (!argument->name || !strcmp(argument->role, "scalar"))
            continue;
        used += (size_t)snprintf(out_list + used, LIST_BYTES - used, "%s%s", used ? ", " : "",
                                 argument->name);
    }
}

/* The run has no tensor of this name, or the dump does not say where it lay. */
static gbx_status fail_unknown(const gbx_run_info *run, const parsed *p,
                               const gbx_blame_element *element) {
    char names[LIST_BYTES];
    const gbx_run_argument *argument = NULL;
    list_names(run, names);
    for (size_t i = 0; i < run->argument_count; ++i)
        if (is_name(p, run->arguments[i].name))
            argument = &run->arguments[i];
    if (!argument && !names[0])
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "unknown argument \"%s\": the dump has no names of the run's arguments; "
                        "name an argument of a task, such as task:7/x[3,17]",
                        element->name);
    if (!argument)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "unknown argument \"%s\": the run's tensors are %s; arguments of tasks are "
                        "named like task:7/x[3,17]",
                        element->name, names);
    if (!strcmp(argument->role, "scalar"))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "%s is a scalar of the run, and no task writes it; its tensors are %s",
                        element->name, names);
    if (!strcmp(argument->role, "input"))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "%s is an input of the run, and the dump does not say where it lay in the "
                        "chip's memory; name an argument of a task that reads it, such as "
                        "task:7/x[3,17]",
                        element->name);
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "the dump does not say where %s lay in the chip's memory; run again with "
                    "--dump-tensor and no filter",
                    element->name);
}

static gbx_status find_of_run(gbx_blame *blame, const parsed *p, gbx_blame_element *element) {
    bool is_found = false;
    GBX_TRY(find_result(blame, p, element, &is_found));
    if (!is_found)
        GBX_TRY(find_run_arg(blame, p, element, &is_found));
    const gbx_run_info *run = gbx_reader_run(gbx_entries_reader(blame->state.entries));
    return is_found ? NULL : fail_unknown(run, p, element);
}

/* --- arguments of tasks --- */

/* By number, or by id where it begins with 0x. */
static gbx_status find_task(gbx_blame *blame, const parsed *p, uint64_t *out_task) {
    const gbx_audit_state *state = &blame->state;
    char text[32], *end = text;
    if (p->task_length < sizeof text && isdigit((unsigned char)p->task[0])) {
        memcpy(text, p->task, p->task_length);
        text[p->task_length] = '\0';
        errno = 0;
        *out_task = strtoull(text, &end, 0);
    }
    if (end == text || *end || errno)
        return fail_form(p->text);
    bool is_id = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    for (uint64_t i = 0; is_id && i < state->task_count; ++i) {
        gbx_record_task record;
        bool is_found = false;
        GBX_TRY(gbx_reader_find_task(gbx_entries_reader(state->entries), state->tasks[i].number,
                                     &record, &is_found));
        if (is_found && record.task_id == *out_task) {
            *out_task = record.head.task;
            return NULL;
        }
    }
    if (is_id || gbx_task_graph_place(state->graph, *out_task) == UINT64_MAX)
        return gbx_fail(GBX_INVALID_ARGUMENT, "\"%s\": the dump has no task %s", p->text, text);
    return NULL;
}

static bool is_argument(const parsed *p, const gbx_entry *entry) {
    char slot[8];
    snprintf(slot, sizeof slot, "%u", entry->head->arg_index);
    return is_name(p, slot) || is_name(p, entry->arg_name);
}

static void add_to_list(const gbx_entry *entry, char *list) {
    char word[64];
    size_t used = strlen(list);
    snprintf(word, sizeof word, entry->arg_name ? "%u %.40s" : "%u", entry->head->arg_index,
             entry->arg_name);
    if (!strstr(list, word) && used < LIST_BYTES - 1)
        snprintf(list + used, LIST_BYTES - used, "%s%s", used ? ", " : "", word);
}

/* What the task left counts, of an in-out, too. */
static gbx_status find_of_task(gbx_blame *blame, const parsed *p, gbx_blame_element *element) {
    gbx_entries *entries = blame->state.entries;
    uint64_t count = gbx_entries_count(entries);
    bool is_found = false;
    char names[LIST_BYTES] = "";
    gbx_tensor view = {0};
    GBX_TRY(find_task(blame, p, &element->task));
    element->is_of_task = true;
    for (uint64_t i = gbx_entries_find(entries, element->task); i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != element->task)
            break;
        if (!entry.tensor || (entry.head->flags & GBX_FLAG_IN_FLIGHT))
            continue;
        add_to_list(&entry, names);
        if (!is_argument(p, &entry))
            continue;
        is_found = true;
        element->entry = i;
        element->is_left = entry.head->stage == GBX_STAGE_AFTER;
        gbx_record_view(entry.tensor, &view);
    }
    if (!is_found)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "\"%s\": the dump has no tensor %.*s of task %" PRIu64 "%s%s", p->text,
                        (int)p->name_length, p->name, element->task,
                        names[0] ? "; it has " : "; it has none", names);
    element->tensor = view;
    GBX_TRY(number_element(p, element));
    int64_t position = view.start_offset;
    for (uint32_t i = 0; i < view.ndims; ++i)
        position += p->index[i] * view.strides[i];
    int64_t bit = position * (int64_t)gbx_dtype_bits(view.dtype);
    element->is_placed = true;
    element->address = view.data + (uint64_t)(bit >> 3);
    element->first_bit = (uint32_t)(bit & 7);
    return NULL;
}

gbx_status gbx_blame_find(gbx_blame *blame, const char *text, gbx_blame_element *out_element) {
    parsed p;
    *out_element = (gbx_blame_element){0};
    GBX_TRY(parse(text, &p));
    size_t length = (size_t)(p.name - text) + p.name_length;
    if (length >= sizeof out_element->name)
        return fail_form(text);
    memcpy(out_element->name, text, length);
    return p.is_of_task ? find_of_task(blame, &p, out_element)
                        : find_of_run(blame, &p, out_element);
}
