#include "replay/dependence.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "base/memory.h"
#include "replay/worker/pattern.h"
#include "tensor/view.h"

/* What is in the bytes that are asked about: after the patterns what the dump has there, and values
 * that flags, counts and indices have; last NaN, if there are floats: 0 times a pattern is 0. */
enum { DUMP_CALL = GBX_PATTERNS, ZERO_CALL, ONE_CALL, NAN_CALL, CALLS };

#define LEFT_MAX (UINT64_C(1) << 30) /* bytes that the calls leave */

static const char doing[] = "changing the inputs of a task";

typedef struct asking {
    gbx_replay_session *session;
    const gbx_memory_map *map; /* NULL: all of the argument in `slot` */
    uint64_t owners;
    uint64_t others;
    uint32_t slot;
    gbx_replay_task task;
    gbx_replay_job job;
    unsigned char *start[CALLS][GBX_REPLAY_MAX_ARGUMENTS]; /* NULL: as in the dump */
    unsigned char *left[CALLS][GBX_REPLAY_MAX_ARGUMENTS];
    int calls;       /* so far */
    bool is_end;     /* asks how a task ends that did not complete */
    bool has_floats; /* bytes that were changed are those of floats */
    gbx_dependence *answer;
} asking;

/* Packed elements are taken by bytes. */
static uint64_t width_of(const gbx_tensor *tensor) {
    return (gbx_dtype_bits(tensor->dtype) + 7) / 8;
}

static bool is_output(const gbx_replay_argument *argument) {
    return argument->is_tensor && argument->role != GBX_ROLE_INPUT;
}

/* --- views --- */

/* False if it has no elements, or cannot be followed. */
static bool begin(const gbx_tensor *view, gbx_byte_runs *out_runs) {
    gbx_byte_runs_begin(view, out_runs);
    return out_runs->left > 0 && out_runs->left <= GBX_FOLLOWED_PIECES;
}

/* Packed elements only where they lie without gaps, from the first half of a byte on. */
static bool can_follow(const gbx_tensor *view) {
    int64_t first, end;
    gbx_byte_runs runs;
    if (!gbx_tensor_is_valid(view, &first, &end))
        return false;
    if (gbx_tensor_numel(view) == 0)
        return true;
    bool is_whole = !gbx_dtype_is_packed(view->dtype) || view->ndims == 0 ||
                    (view->start_offset % 2 == 0 && view->shape[view->ndims - 1] % 2 == 0);
    return begin(view, &runs) && is_whole && (!gbx_dtype_is_packed(view->dtype) || runs.left == 1);
}

/* All outputs of all calls are compared in memory. */
static bool can_follow_all(const gbx_replay_task *task) {
    uint64_t left = LEFT_MAX / CALLS;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor)
            continue;
        if (!can_follow(&argument->tensor))
            return false;
        uint64_t bytes = is_output(argument) ? gbx_tensor_payload_bytes(&argument->tensor) : 0;
        if (bytes > left)
            return false;
        left -= bytes;
    }
    return true;
}

static gbx_status add_range(gbx_address_ranges *to, uint64_t from, uint64_t end) {
    if (to->count > 0 && to->items[to->count - 1].end == from) {
        to->items[to->count - 1].end = end;
        return NULL;
    }
    GBX_TRY(gbx_array_reserve(&to->items, &to->capacity, to->count + 1, doing));
    to->items[to->count++] = (gbx_address_range){from, end};
    return NULL;
}

/* --- inputs --- */

typedef struct filling {
    const unsigned char *asked; /* for bytes that are asked about */
    const unsigned char *others;
    unsigned char *payload;
    bool is_any; /* is changed: asked about, or not */
    bool is_asked;
} filling;

static void change_run(const asking *a, const gbx_byte_run *run, filling *to) {
    gbx_memory_range found;
    for (uint64_t at = run->begin;
         at < run->end && gbx_memory_map_find(a->map, at, &found) && found.begin < run->end;
         at = found.end) {
        uint64_t first = found.begin > at ? found.begin : at;
        uint64_t end = found.end < run->end ? found.end : run->end;
        uint64_t offset = run->offset + (first - run->begin);
        bool is_asked = found.owner & a->owners;
        if (!is_asked && !(found.owner & a->others))
            continue;
        memcpy(to->payload + offset, (is_asked ? to->asked : to->others) + offset, end - first);
        to->is_any = true;
        to->is_asked |= is_asked;
    }
}

static void change(const asking *a, const gbx_tensor *tensor, filling *to) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    to->is_any = to->is_asked = !a->map;
    if (!a->map)
        memcpy(to->payload, to->asked, gbx_tensor_payload_bytes(tensor));
    else if (begin(tensor, &runs))
        while (gbx_byte_runs_next(&runs, &run))
            change_run(a, &run, to);
}

static bool is_asked_about(const asking *a, const gbx_replay_argument *argument) {
    return argument->is_tensor && argument->before != GBX_REPLAY_NO_ENTRY &&
           (a->map || argument->slot == a->slot);
}

static uint64_t one_of(uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT32:
        return 0x3f800000;
    case GBX_FLOAT16:
        return 0x3c00;
    case GBX_BFLOAT16:
        return 0x3f80;
    default:
        return dtype == GBX_FLOAT64 ? UINT64_C(0x3ff0000000000000) : 1;
    }
}

/* `bytes` holds what the dump has. */
static void fill(int number, const gbx_tensor *tensor, uint32_t salt, unsigned char *bytes,
                 uint64_t count) {
    uint64_t one = one_of(tensor->dtype), width = width_of(tensor);
    bool is_float = gbx_dtype_is_float(tensor->dtype);
    if (number < GBX_PATTERNS)
        gbx_pattern_fill(number, gbx_pattern_flavour_of(1u << width), salt, bytes, count);
    else if (number == ZERO_CALL)
        memset(bytes, 0, count);
    else if (number == NAN_CALL && is_float)
        memset(bytes, 0xff, count);
    for (uint64_t at = 0; number == ONE_CALL && at < count; at += width)
        memcpy(bytes + at, &one, width);
}

static gbx_status fill_start(asking *a, int number, uint32_t i, filling *to, unsigned char *asked,
                             unsigned char *others) {
    const gbx_replay_argument *argument = &a->task.arguments[i];
    uint64_t bytes = gbx_tensor_payload_bytes(&argument->tensor);
    GBX_TRY(
        gbx_reader_read_payload(a->session->reader, argument->before_offset, to->payload, bytes));
    memcpy(asked, to->payload, bytes);
    fill(number, &argument->tensor, i, asked, bytes);
    fill(ONE_CALL, &argument->tensor, i, others, bytes);
    change(a, &argument->tensor, to);
    a->has_floats |= to->is_asked && gbx_dtype_is_float(argument->tensor.dtype);
    return NULL;
}

/* What an argument begins with; nothing where that is what the dump has. */
static gbx_status make_start(asking *a, int number, uint32_t i) {
    uint64_t bytes = gbx_tensor_payload_bytes(&a->task.arguments[i].tensor);
    unsigned char *asked = malloc(bytes + 1), *others = malloc(bytes + 1);
    unsigned char *payload = malloc(bytes + 1);
    filling to = {.asked = asked, .others = others, .payload = payload};
    gbx_status status = asked && others && payload ? fill_start(a, number, i, &to, asked, others)
                                                   : gbx_fail_memory("%s", doing);
    free(asked);
    free(others);
    if (to.is_any && !status)
        a->start[number][i] = payload;
    else
        free(payload);
    return status;
}

/* --- calls --- */

/* What a call left in an output, or what the output held before. */
static gbx_status keep(const asking *a, uint32_t i, gbx_replay_kept which,
                       unsigned char **out_payload) {
    *out_payload = malloc(gbx_tensor_payload_bytes(&a->task.arguments[i].tensor) + 1);
    if (!*out_payload)
        return gbx_fail_memory("%s", doing);
    return gbx_replay_output(a->session->engine, i, which, *out_payload);
}

/* How a call ended. */
typedef enum end { RETURNED, FAILED, IS_LATE } end;

/* Dispatches that wait for each other would wait forever. */
static end end_of(const gbx_replay_outcome *outcome) {
    if (!outcome->fault)
        return RETURNED;
    return outcome->fault->is_hang && !outcome->fault->is_stuck ? IS_LATE : FAILED;
}

static gbx_status call(asking *a, int number, end *out_end) {
    gbx_replay_outcome outcome;
    *out_end = FAILED;
    gbx_replay_request request = a->job.request;
    for (uint32_t i = 0; i < a->task.argument_count; ++i)
        if (is_asked_about(a, &a->task.arguments[i]))
            GBX_TRY(make_start(a, number, i));
    request.start = (const void *const *)a->start[number];
    gbx_status status = gbx_replay_run(a->session->engine, &request, &outcome);
    if (!status)
        *out_end = end_of(&outcome);
    for (uint32_t i = 0;
         i < a->task.argument_count && !status && *out_end == RETURNED && !a->is_end; ++i)
        if (is_output(&a->task.arguments[i]))
            status = keep(a, i, GBX_KEPT_FIRST, &a->left[number][i]);
    gbx_replay_outcome_free(&outcome);
    ++a->calls;
    for (uint32_t i = 0; i < a->task.argument_count; ++i)
        if (!is_output(&a->task.arguments[i])) { /* an inout is compared with it */
            free(a->start[number][i]);
            a->start[number][i] = NULL;
        }
    return status;
}

/* False if it fails: then the answer says so. What the dump has comes first: a task that fails with
 * that says nothing about other values. */
static gbx_status call_all(asking *a, bool *out_did) {
    *out_did = false;
    for (int i = 0; i < CALLS; ++i) {
        int number = i == 0 ? DUMP_CALL : i <= DUMP_CALL ? i - 1 : i;
        end how;
        if (number == NAN_CALL && !a->has_floats)
            break;
        GBX_TRY(call(a, number, &how));
        if (how == RETURNED)
            continue;
        a->answer->answer = how == IS_LATE        ? GBX_DEPENDENCE_LATE
                            : number == DUMP_CALL ? GBX_DEPENDENCE_BROKEN
                                                  : GBX_DEPENDENCE_FAILS;
        return NULL;
    }
    *out_did = true;
    return NULL;
}

/* --- comparing --- */

static bool is_kept(const asking *a, uint32_t i, uint64_t offset, uint64_t width) {
    const unsigned char *first = a->start[0][i], *other = a->start[1][i];
    bool is_same = first && other && memcmp(first + offset, other + offset, width) != 0;
    for (int k = 0; k < a->calls && is_same; ++k)
        is_same = memcmp(a->start[k][i] + offset, a->left[k][i] + offset, width) == 0;
    return is_same;
}

static bool depends(const asking *a, uint32_t i, uint64_t offset, uint64_t width) {
    bool is_same = true;
    for (int k = 1; k < a->calls && is_same; ++k)
        is_same = memcmp(a->left[0][i] + offset, a->left[k][i] + offset, width) == 0;
    return !is_same;
}

static gbx_status compare(const asking *a, uint32_t i) {
    const gbx_tensor *tensor = &a->task.arguments[i].tensor;
    gbx_dependence *answer = a->answer;
    uint64_t width = width_of(tensor);
    gbx_byte_runs runs;
    gbx_byte_run run;
    if (!begin(tensor, &runs))
        return NULL;
    while (gbx_byte_runs_next(&runs, &run))
        for (uint64_t at = run.begin; at < run.end; at += width) {
            uint64_t offset = run.offset + (at - run.begin);
            if (is_kept(a, i, offset, width))
                GBX_TRY(add_range(&answer->kept, at, at + width));
            else if (depends(a, i, offset, width))
                GBX_TRY(add_range(&answer->depends, at, at + width));
        }
    return NULL;
}

/* --- questions --- */

static gbx_status find_dependent(asking *a) {
    bool did;
    GBX_TRY(call_all(a, &did));
    for (uint32_t i = 0; i < a->task.argument_count && did; ++i)
        if (is_output(&a->task.arguments[i]))
            GBX_TRY(compare(a, i));
    if (did)
        a->answer->answer =
            a->answer->depends.count > 0 ? GBX_DEPENDENCE_SOME : GBX_DEPENDENCE_NONE;
    return NULL;
}

static gbx_status find_end(asking *a) {
    end how;
    GBX_TRY(call(a, DUMP_CALL, &how));
    if (how == RETURNED)
        return NULL;
    for (int number = ZERO_CALL; number <= ONE_CALL; ++number) {
        GBX_TRY(call(a, number, &how));
        a->answer->answer = how == RETURNED ? GBX_DEPENDENCE_FAILS : GBX_DEPENDENCE_NONE;
        if (how == RETURNED)
            break;
    }
    return NULL;
}

/* Every call puts patterns into outputs. */
static gbx_status find_kept_of_output(asking *a, uint32_t i) {
    gbx_replay_outcome outcome;
    gbx_status status = gbx_replay_run(a->session->engine, &a->job.request, &outcome);
    end how = status ? FAILED : end_of(&outcome);
    gbx_replay_outcome_free(&outcome);
    if (how != RETURNED)
        a->answer->answer = how == IS_LATE ? GBX_DEPENDENCE_LATE : GBX_DEPENDENCE_BROKEN;
    if (how != RETURNED)
        return status;
    GBX_TRY(keep(a, i, GBX_KEPT_FIRST, &a->left[0][i]));
    GBX_TRY(keep(a, i, GBX_KEPT_OTHER, &a->left[1][i]));
    GBX_TRY(keep(a, i, GBX_KEPT_START, &a->start[0][i]));
    GBX_TRY(keep(a, i, GBX_KEPT_OTHER_START, &a->start[1][i]));
    a->calls = 2;
    return compare(a, i);
}

static gbx_status find_kept_of_inout(asking *a, uint32_t i) {
    bool did;
    GBX_TRY(call_all(a, &did));
    return did ? compare(a, i) : NULL;
}

static gbx_status find_kept(asking *a) {
    for (uint32_t i = 0; i < a->task.argument_count; ++i) {
        const gbx_replay_argument *argument = &a->task.arguments[i];
        if (!is_output(argument) || argument->slot != a->slot)
            continue;
        GBX_TRY(argument->role == GBX_ROLE_OUTPUT ? find_kept_of_output(a, i)
                                                  : find_kept_of_inout(a, i));
        if (a->answer->answer == GBX_DEPENDENCE_UNKNOWN)
            a->answer->answer =
                a->answer->kept.count > 0 ? GBX_DEPENDENCE_SOME : GBX_DEPENDENCE_NONE;
    }
    return NULL;
}

static bool is_of_task(gbx_status status) {
    return gbx_replay_is_of_task(status) || gbx_status_code(status) == GBX_NOT_FOUND ||
           gbx_status_code(status) == GBX_UNSUPPORTED;
}

/* Reads the task, and asks; a task that cannot be called is no failure. */
static gbx_status ask(asking *a, uint64_t number, gbx_status (*question)(asking *a)) {
    *a->answer = (gbx_dependence){0};
    gbx_status status = gbx_replay_task_read(a->session->config.entries, number, &a->task);
    if (!status)
        status = gbx_replay_session_job(a->session, &a->task, &a->job);
    if (!status && a->task.did_complete == a->is_end)
        a->answer->answer = GBX_DEPENDENCE_BROKEN;
    else if (!status && a->task.has_addresses && can_follow_all(&a->task))
        status = question(a);
    for (int k = 0; k < CALLS; ++k)
        for (uint32_t i = 0; i < GBX_REPLAY_MAX_ARGUMENTS; ++i) {
            free(a->start[k][i]);
            free(a->left[k][i]);
        }
    gbx_replay_task_free(&a->task);
    if (!status || !is_of_task(status))
        return status;
    a->answer->answer = GBX_DEPENDENCE_UNKNOWN;
    gbx_status_free(status);
    return NULL;
}

gbx_status gbx_dependence_ask(gbx_replay_session *session, uint64_t task, const gbx_memory_map *map,
                              uint64_t owners, uint64_t others, gbx_dependence *out_dependence) {
    asking a = {.session = session,
                .map = map,
                .owners = owners,
                .others = others,
                .answer = out_dependence};
    return ask(&a, task, find_dependent);
}

gbx_status gbx_dependence_ask_end(gbx_replay_session *session, uint64_t task,
                                  const gbx_memory_map *map, uint64_t owners,
                                  gbx_dependence *out_dependence) {
    asking a = {
        .session = session, .map = map, .owners = owners, .is_end = true, .answer = out_dependence};
    return ask(&a, task, find_end);
}

gbx_status gbx_dependence_find_kept(gbx_replay_session *session, uint64_t task, uint32_t slot,
                                    gbx_dependence *out_dependence) {
    asking a = {.session = session, .slot = slot, .answer = out_dependence};
    return ask(&a, task, find_kept);
}

void gbx_dependence_free(gbx_dependence *dependence) {
    free(dependence->depends.items);
    free(dependence->kept.items);
    *dependence = (gbx_dependence){0};
}
