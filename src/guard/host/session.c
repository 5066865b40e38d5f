#include "guard/host/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/log.h"
#include "base/memory.h"

enum { PAGE_BYTES = 4096, MAX_NAMED = 4096 };

/* Numbers that JSON keeps exactly. */
#define EXACT_LIMIT (UINT64_C(1) << 53)

/* A buffer that holds a tensor of the run. */
typedef struct named {
    uint64_t address; /* of any byte in it */
    uint32_t index;
} named;

struct gbx_guard_session {
    gbx_hal *hal;
    gbx_guard_action action;
    uint64_t unguarded; /* buffers of the host without a zone */
    uint64_t address;   /* of the setup */
    uint64_t list;      /* of the buffers; 0: none */
    gbx_tensor tensors[GBX_MAX_RUN_TENSORS];
    uint32_t tensor_count;
    named *names;
    uint64_t name_count;
    uint64_t name_capacity;
};

/* Memory that does not count against the chip's. */
static gbx_status take(gbx_guard_session *session, uint64_t bytes, uint64_t *out_address) {
    bytes = (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    gbx_hal_memory wanted = {
        .bytes = bytes, .uncounted_bytes = bytes, .alignment = PAGE_BYTES, .use = GBX_HAL_OWN};
    return gbx_status_annotate(session->hal->ops->alloc_with(session->hal, &wanted, out_address),
                               "reserving memory for a guard on the chip");
}

static gbx_status write_setup(gbx_guard_session *session, uint32_t buffer_count) {
    static const gbx_guard_setup empty;
    gbx_hal *hal = session->hal;
    gbx_guard_setup *setup = malloc(sizeof *setup);
    if (!setup)
        return gbx_fail_memory("guarding a run");
    memcpy(setup, &empty, sizeof *setup);
    setup->magic = GBX_GUARD_MAGIC;
    setup->action = (uint32_t)session->action;
    setup->buffer_count = buffer_count;
    setup->buffers = session->list;
    gbx_status status = hal->ops->copy_in(hal, session->address, setup, sizeof *setup);
    free(setup);
    return status;
}

gbx_status gbx_guard_session_begin(gbx_hal *hal, gbx_guard_action action,
                                   gbx_guard_session **out_session) {
    *out_session = NULL;
    gbx_guard_session *session = calloc(1, sizeof *session);
    if (!session)
        return gbx_fail_memory("guarding a run");
    session->hal = hal;
    session->action = action;
    gbx_status status = take(session, sizeof(gbx_guard_setup), &session->address);
    if (status) {
        free(session);
        return status;
    }
    *out_session = session;
    return NULL;
}

uint64_t gbx_guard_session_data_base(const gbx_guard_session *session) {
    return session->address;
}

/* --- names of buffers --- */

static void name_buffer(gbx_guard_session *session, uint64_t address, uint32_t index) {
    if (session->name_count < MAX_NAMED &&
        gbx_array_grow((void **)&session->names, &session->name_capacity, session->name_count + 1,
                       sizeof *session->names))
        session->names[session->name_count++] = (named){address, index};
}

void gbx_guard_session_receive(gbx_guard_session *session, const gbx_run_args *run) {
    session->tensor_count =
        run->tensor_count < GBX_MAX_RUN_TENSORS ? run->tensor_count : GBX_MAX_RUN_TENSORS;
    for (uint32_t i = 0; i < session->tensor_count; ++i) {
        session->tensors[i] = run->tensors[i];
        name_buffer(session, run->tensors[i].data, i);
    }
}

void gbx_guard_session_note_copy(gbx_guard_session *session, uint64_t device_address,
                                 const void *host_pointer) {
    uint64_t host = (uint64_t)(uintptr_t)host_pointer;
    for (uint32_t i = 0; i < session->tensor_count; ++i) {
        uint64_t bytes = gbx_tensor_payload_bytes(&session->tensors[i]);
        if (host >= session->tensors[i].data && host - session->tensors[i].data < bytes) {
            name_buffer(session, device_address, i);
            return;
        }
    }
}

static void apply_name(const gbx_guard_session *session, gbx_guard_buffer *buffer) {
    for (uint64_t i = 0; i < session->name_count; ++i) {
        const named *name = &session->names[i];
        if (name->address < buffer->address || name->address - buffer->address >= buffer->bytes)
            continue;
        buffer->place = GBX_PLACE_RUN_ARGUMENT;
        buffer->index = name->index;
        return;
    }
}

/* --- the list of buffers --- */

typedef struct buffer_list {
    gbx_guard_buffer *buffers;
    uint64_t *numbers; /* of their allocations */
    uint64_t count;
    uint64_t capacity;
    uint64_t numbers_capacity;
    uint64_t unguarded; /* buffers without a zone */
    bool has_failed;
} buffer_list;

static void add_buffer(void *context, const gbx_hal_live *live) {
    buffer_list *list = context;
    static const uint32_t places[] = {[GBX_HAL_OWN] = GBX_PLACE_OWN,
                                      [GBX_HAL_BUFFER] = GBX_PLACE_ALLOCATION,
                                      [GBX_HAL_REGION] = GBX_PLACE_OWN};
    uint64_t end = live->address + live->bytes + live->spare_bytes;
    uint64_t zone_first = (end + GBX_GUARD_ZONE_BYTES - 1) & ~(uint64_t)(GBX_GUARD_ZONE_BYTES - 1);
    if (live->zone_end < zone_first + GBX_GUARD_ZONE_BYTES ||
        list->count >= GBX_GUARD_MAX_BUFFERS) {
        list->unguarded += live->use == GBX_HAL_BUFFER;
        return;
    }
    if (list->has_failed ||
        !gbx_array_grow((void **)&list->buffers, &list->capacity, list->count + 1,
                        sizeof *list->buffers) ||
        !gbx_array_grow((void **)&list->numbers, &list->numbers_capacity, list->count + 1,
                        sizeof *list->numbers)) {
        list->has_failed = true;
        return;
    }
    list->numbers[list->count] = live->number;
    list->buffers[list->count++] = (gbx_guard_buffer){
        .address = live->address,
        .bytes = end - live->address,
        .zone_end = live->zone_end,
        .kept_first = live->kept_first,
        .kept_end = live->kept_end > live->kept_first ? live->kept_end : live->kept_first,
        .place = places[live->use],
        .is_region = live->use == GBX_HAL_REGION};
}

typedef struct ranked {
    uint64_t number;
    uint64_t at;
} ranked;

static int compare_ranked(const void *a, const void *b) {
    const ranked *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Buffers count from 0 in the order of their allocation, whatever else glassbox has allocated: the
 * same program gets the same signs in every run. */
static bool number_buffers(const gbx_guard_session *session, buffer_list *list) {
    ranked *order = malloc((list->count + 1) * sizeof *order);
    uint32_t next = 0;
    if (!order)
        return false;
    for (uint64_t i = 0; i < list->count; ++i)
        order[i] = (ranked){list->numbers[i], i};
    qsort(order, list->count, sizeof *order, compare_ranked);
    for (uint64_t i = 0; i < list->count; ++i) {
        gbx_guard_buffer *buffer = &list->buffers[order[i].at];
        if (buffer->place != GBX_PLACE_ALLOCATION)
            continue;
        buffer->index = buffer->number = next++;
        apply_name(session, buffer);
    }
    free(order);
    return true;
}

static gbx_status copy_list(gbx_guard_session *session, const buffer_list *list) {
    gbx_hal *hal = session->hal;
    uint64_t bytes = list->count * sizeof *list->buffers;
    if (bytes == 0)
        return NULL;
    GBX_TRY(take(session, bytes, &session->list));
    return hal->ops->copy_in(hal, session->list, list->buffers, bytes);
}

gbx_status gbx_guard_session_prepare(gbx_guard_session *session) {
    gbx_hal *hal = session->hal;
    buffer_list list = {0};
    bool has_zones = session->action != GBX_GUARD_ACTION_NONE;
    hal->ops->visit(hal, has_zones ? add_buffer : NULL, &list);
    gbx_status status = NULL;
    if (list.has_failed || !number_buffers(session, &list))
        status = gbx_fail_memory("guarding a run");
    if (!status)
        status = copy_list(session, &list);
    if (!status)
        status = write_setup(session, (uint32_t)list.count);
    session->unguarded = list.unguarded;
    free(list.buffers);
    free(list.numbers);
    return status;
}

/* --- findings: kernels may have written over them --- */

static bool is_task_sound(uint64_t task) {
    return task == GBX_FINDING_NO_TASK || task < EXACT_LIMIT;
}

static bool is_kernel_sound(uint32_t func_id) {
    return func_id == GBX_FINDING_NO_KERNEL || func_id < GBX_MAX_KERNELS;
}

static bool is_sound(const gbx_run_finding *f) {
    if (f->kind < GBX_RUN_FINDING_OVERRUN || f->kind > GBX_RUN_FINDING_ARGUMENTS ||
        f->place < GBX_PLACE_RUN_ARGUMENT || f->place > GBX_PLACE_OWN ||
        f->certainty > GBX_CERTAINTY_SURE || f->candidate_count > GBX_FINDING_CANDIDATES ||
        f->time_ns >= EXACT_LIMIT || f->bytes >= EXACT_LIMIT || f->span >= EXACT_LIMIT ||
        f->changed > f->span || f->candidate_total >= EXACT_LIMIT ||
        f->candidate_total < f->candidate_count || f->first <= -(int64_t)EXACT_LIMIT ||
        f->first >= (int64_t)EXACT_LIMIT || !is_task_sound(f->finder) ||
        !is_task_sound(f->owner_task) || !is_kernel_sound(f->owner_func))
        return false;
    for (uint32_t i = 0; i < f->candidate_count; ++i)
        if (f->candidates[i].task >= EXACT_LIMIT || !is_kernel_sound(f->candidates[i].func_id) ||
            (f->candidates[i].arg_index != GBX_FINDING_NO_ARGUMENT &&
             f->candidates[i].arg_index >= GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS))
            return false;
    return true;
}

/* `of_chip`: what the chip counted, which a kernel may have overwritten. */
static void warn_of_unguarded(const gbx_guard_session *session, uint64_t of_chip) {
    uint64_t count = session->unguarded + (of_chip < EXACT_LIMIT ? of_chip : 0);
    if (count)
        gbx_log_warning("guarding the run: %" PRIu64
                        " buffers have no zones, because there was no room for them; writes past "
                        "them were not looked for",
                        count);
}

gbx_status gbx_guard_session_read(gbx_guard_session *session, gbx_guard_result *out_result) {
    gbx_hal *hal = session->hal;
    *out_result = (gbx_guard_result){0};
    gbx_guard_findings *read = malloc(sizeof *read);
    if (!read)
        return gbx_fail_memory("reading the findings of a run");
    gbx_status status = hal->ops->copy_out(
        hal, read, session->address + offsetof(gbx_guard_setup, findings), sizeof *read);
    uint32_t unreadable = 0;
    uint64_t count = status ? 0 : read->count;
    for (uint32_t i = 0; !status && i < GBX_GUARD_FINDINGS; ++i) {
        if (read->records[i].kind && is_sound(&read->records[i]))
            out_result->findings[out_result->kept++] = read->records[i];
        else
            unreadable += read->records[i].kind || i < count;
    }
    if (count < out_result->kept || count >= EXACT_LIMIT)
        count = out_result->kept + unreadable;
    out_result->count = count;
    for (uint32_t i = 0; i < out_result->kept; ++i) {
        out_result->findings[i].run_total = count;
        memset(out_result->findings[i].reserved, 0, sizeof out_result->findings[i].reserved);
    }
    if (unreadable)
        gbx_log_warning("guarding the run: %" PRIu32
                        " findings cannot be read, because a kernel has overwritten them",
                        unreadable);
    if (!status)
        warn_of_unguarded(session, read->unguarded);
    free(read);
    return status;
}

gbx_status gbx_guard_session_end(gbx_guard_session *session) {
    gbx_hal *hal = session->hal;
    gbx_status status = hal->ops->free(hal, session->address);
    if (session->list)
        status = gbx_status_first(status, hal->ops->free(hal, session->list));
    free(session->names);
    free(session);
    return status;
}
