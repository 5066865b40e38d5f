#include <string.h>

#include "base/checked.h"
#include "dump/device/probe_source.h"
#include "dump/device/writer.h"
#include "tensor/view.h"

/* --- which arguments --- */

/* A task as selection sees it. */
typedef struct selection {
    const gbx_dump_setup *setup;
    uint64_t marks;
    bool takes_all;
    uint32_t filters; /* a bit for each whose keys about tasks match */
} selection;

static selection select_task(const gbx_lane *lane, const gbx_sched_task *task) {
    const gbx_dump_setup *setup = &lane->writer->setup;
    selection s = {.setup = setup, .marks = task->arguments->dumped_words};
    s.takes_all = setup->filter_count == 0 &&
                  (setup->level == GBX_DUMP_FULL || setup->level == GBX_DUMP_STATS);
    for (uint32_t i = 0; i < setup->filter_count; ++i)
        if (gbx_dump_filter_matches_task(&setup->filters[i], task->id, task->func_ids))
            s.filters |= 1u << i;
    return s;
}

/* Whether to take an argument; `out_hits`: a bit for each filter that it matches. */
static bool is_selected(const selection *s, const gbx_dump_candidate *candidate,
                        uint32_t *out_hits) {
    *out_hits = 0;
    if (s->takes_all)
        return true;
    if (s->setup->filter_count == 0)
        return s->marks >> candidate->arg_index & 1;
    for (uint32_t left = s->filters; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        if (gbx_dump_filter_matches_argument(&s->setup->filters[i], candidate))
            *out_hits |= 1u << i;
    }
    return *out_hits != 0;
}

/* --- a task's arguments --- */

/* The signature of a task's kernel; NULL where it has none. */
static const gbx_dump_signature *signature_of(const gbx_lane *lane, const gbx_sched_task *task,
                                              uint32_t subtask) {
    uint32_t func_id = task->func_ids[subtask];
    return func_id < GBX_MAX_KERNELS ? &lane->writer->signatures[func_id] : NULL;
}

/* The dtype from the call, else from the first kernel whose signature has it. */
static uint8_t scalar_dtype(const gbx_lane *lane, const gbx_sched_task *task, uint32_t declared,
                            uint32_t scalar) {
    uint32_t dtype = declared;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT && dtype == GBX_DTYPE_NONE; ++s) {
        const gbx_dump_signature *signature = signature_of(lane, task, s);
        if (signature && scalar < GBX_MAX_SCALAR_ARGS)
            dtype = signature->scalar_dtypes[scalar];
    }
    return dtype < GBX_DTYPE_COUNT ? (uint8_t)dtype : GBX_DTYPE_NONE;
}

/* How many words the signatures of a task's kernels call tensors: the first ones. */
static uint32_t count_tensors(const gbx_lane *lane, const gbx_sched_task *task) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        const gbx_dump_signature *signature = signature_of(lane, task, s);
        if (signature && signature->tensor_count > count)
            count = signature->tensor_count;
    }
    return count < task->word_count ? count : task->word_count;
}

/* Whether a word of a described task is one of them, and nobody described it. */
static bool is_undescribed(uint32_t kind, uint32_t word, uint32_t tensor_count) {
    return kind == 0 && word < tensor_count;
}

/* In global memory. */
static bool is_inside(const gbx_probe_request *request, uint64_t address, uint64_t bytes) {
    return address >= request->gm_base &&
           gbx_range_is_inside(address - request->gm_base, bytes, request->gm_bytes);
}

static void skip(gbx_lane *lane, const gbx_sched_task *task, uint32_t arg_index, uint32_t reason) {
    gbx_dump_record head = {.task = task->id, .arg_index = (uint8_t)arg_index};
    gbx_dump_skipped *to = gbx_lane_begin(lane, GBX_DUMP_SKIPPED, 0, &head);
    if (!to)
        return;
    to->reason = reason;
    to->func_id = task->func_ids[task->first_subtask];
    memset(to->reserved, 0, sizeof to->reserved);
    gbx_lane_commit(lane);
}

/* Lists the tensors of a described task that nobody described. */
static void skip_undescribed(gbx_lane *lane, const gbx_sched_task *task) {
    uint32_t tensor_count = count_tensors(lane, task);
    for (uint32_t i = 0; i < tensor_count; ++i)
        if (is_undescribed(task->arguments->kinds[i], i, tensor_count))
            skip(lane, task, i, GBX_SKIP_NOT_DESCRIBED);
}

static uint32_t count_undescribed(const gbx_lane *lane, const gbx_sched_task *task) {
    uint32_t tensor_count = count_tensors(lane, task);
    uint32_t count = 0;
    for (uint32_t i = 0; i < tensor_count; ++i)
        count += is_undescribed(task->arguments->kinds[i], i, tensor_count);
    return count;
}

/* A record with only `bits`: SCALAR, or DONE with 0. */
static void record_bits(gbx_lane *lane, gbx_dump_kind kind, const gbx_dump_record *head,
                        uint64_t bits) {
    gbx_dump_scalar *to = gbx_lane_begin(lane, kind, 0, head);
    if (!to)
        return;
    to->bits = bits;
    memset(to->reserved, 0, sizeof to->reserved);
    gbx_lane_commit(lane);
}

/* What becomes of an argument at a stage. */
typedef enum fate {
    FATE_NOTHING, /* belongs to the other stage, is not selected, or was never described */
    FATE_RECORD,
    FATE_SKIP
} fate;

/* One argument of a task at a stage. */
typedef struct argument {
    fate fate;
    gbx_dump_record head;
    const gbx_tensor *tensor; /* NULL: a scalar */
    bool is_wanted;           /* with its payload, not only its description */
    uint32_t hits;            /* filters */
} argument;

/* The arguments of a task, one after the other. */
typedef struct walk {
    const gbx_lane *lane;
    const gbx_sched_task *task;
    selection selected;
    bool has_all_metadata;
    uint32_t tensor_count; /* by the signatures */
    uint32_t index;
    uint32_t scalar;
    const gbx_tensor *tensor;
} walk;

/* From private memory only: a kernel can overwrite the arguments in global memory. */
static walk walk_of(const gbx_lane *lane, const gbx_sched_task *task) {
    uint32_t level = lane->writer->setup.level;
    return (walk){.lane = lane,
                  .task = task,
                  .selected = select_task(lane, task),
                  .has_all_metadata = level == GBX_DUMP_HYBRID || level == GBX_DUMP_STATS,
                  .tensor_count = count_tensors(lane, task),
                  .tensor = gbx_task_arguments_tensors(task->arguments)};
}

/* An inout that cannot be captured is skipped once. */
static fate fate_of(const walk *w, const argument *a) {
    bool is_of_stage =
        a->head.role != (a->head.stage == GBX_STAGE_BEFORE ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT);
    if (!is_of_stage || (!a->is_wanted && !w->has_all_metadata))
        return FATE_NOTHING;
    if (!(w->task->arguments->misdescribed_words >> a->head.arg_index & 1))
        return FATE_RECORD;
    bool is_second = a->head.role == GBX_ROLE_INOUT && a->head.stage == GBX_STAGE_AFTER;
    return is_second ? FATE_NOTHING : FATE_SKIP;
}

/* The next argument at a stage; false when there is none. */
static bool next_argument(walk *w, uint32_t stage, argument *out) {
    uint32_t i = w->index++;
    if (i >= w->task->word_count)
        return false;
    uint32_t kind = w->task->arguments->kinds[i];
    bool is_tensor = kind & GBX_WORD_TENSOR;
    *out = (argument){.head = {.stage = (uint8_t)stage,
                               .role = is_tensor ? kind & GBX_WORD_ROLE : GBX_ROLE_INPUT,
                               .arg_index = (uint8_t)i,
                               .task = w->task->id},
                      .tensor = is_tensor ? w->tensor++ : NULL};
    if (is_undescribed(kind, i, w->tensor_count))
        return true; /* skip_undescribed lists it */
    if (!is_tensor)
        out->head.dtype = scalar_dtype(w->lane, w->task, kind & GBX_WORD_DTYPE, w->scalar++);
    gbx_dump_candidate candidate = {.arg_index = (uint8_t)i,
                                    .kind = is_tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR,
                                    .role = out->head.role,
                                    .stage = (uint8_t)stage,
                                    .dtype =
                                        is_tensor ? (uint8_t)out->tensor->dtype : out->head.dtype};
    out->is_wanted = is_selected(&w->selected, &candidate, &out->hits);
    out->fate = fate_of(w, out);
    return true;
}

static void record_argument(gbx_lane *lane, const gbx_sched_task *task, const argument *a) {
    const gbx_dump_setup *setup = &lane->writer->setup;
    if (!a->tensor) {
        record_bits(lane, GBX_DUMP_SCALAR, &a->head, task->words[a->head.arg_index]);
        return;
    }
    gbx_capture_wish wish = {
        .payload = a->is_wanted && setup->level != GBX_DUMP_STATS,
        .statistics =
            (a->is_wanted && setup->level == GBX_DUMP_STATS) || (setup->flags & GBX_DUMP_HAS_STATS),
    };
    gbx_capture_tensor(lane, &a->head, a->tensor, wish);
}

/* Records all selected arguments of a task at a stage. */
static void record_arguments(gbx_lane *lane, const gbx_sched_task *task, uint32_t stage,
                             uint32_t flags) {
    walk w = walk_of(lane, task);
    argument a;
    while (next_argument(&w, stage, &a)) {
        if (a.fate == FATE_NOTHING)
            continue;
        for (uint32_t left = a.hits; left; left &= left - 1)
            ++lane->counts.filter_hits[__builtin_ctz(left)];
        a.head.flags = (uint8_t)flags;
        if (a.fate == FATE_SKIP)
            skip(lane, task, a.head.arg_index, GBX_SKIP_MISMATCH);
        else
            record_argument(lane, task, &a);
    }
}

/* How many arguments it will record or skip at a stage. */
static uint32_t count_arguments(const gbx_lane *lane, const gbx_sched_task *task, uint32_t stage) {
    walk w = walk_of(lane, task);
    argument a;
    uint32_t count = 0;
    while (next_argument(&w, stage, &a))
        count += a.fate != FATE_NOTHING;
    return count;
}

/* Whether to capture its arguments: only when they are described. */
static bool captures_arguments(const gbx_lane *lane, const gbx_sched_task *task) {
    return lane->writer->setup.flags & GBX_DUMP_HAS_TENSORS && task->arguments->is_described;
}

/* --- the task itself --- */

static void record_edges(gbx_lane *lane, const gbx_sched_task *task) {
    const gbx_sched_edge *edge = task->inputs;
    while (edge) {
        gbx_dump_record head = {.task = task->id, .arg_index = GBX_ARG_NONE};
        gbx_dump_edges *to = gbx_lane_begin(lane, GBX_DUMP_EDGES, 0, &head);
        if (!to)
            return;
        memset(to->predecessors, 0, sizeof to->predecessors);
        uint32_t count = 0;
        for (; edge && count < GBX_DUMP_EDGES_MAX; edge = edge->next_input)
            to->predecessors[count++] = edge->predecessor;
        to->head.arg_index = (uint8_t)count;
        gbx_lane_commit(lane);
    }
}

static void record_task(gbx_lane *lane, const gbx_sched_task *task) {
    gbx_dump_record head = {.task = task->id, .arg_index = GBX_ARG_NONE};
    gbx_dump_task *to = gbx_lane_begin(lane, GBX_DUMP_TASK, 0, &head);
    if (!to)
        return;
    memcpy(to->func_ids, task->func_ids, sizeof to->func_ids);
    to->block_num = task->block_num;
    to->predecessor_count = 0;
    for (const gbx_sched_edge *edge = task->inputs; edge; edge = edge->next_input)
        ++to->predecessor_count;
    bool captures = captures_arguments(lane, task);
    to->announced_before = captures ? count_arguments(lane, task, GBX_STAGE_BEFORE) : 0;
    if (task->arguments->is_described)
        to->announced_before += count_undescribed(lane, task);
    to->announced_after = captures ? count_arguments(lane, task, GBX_STAGE_AFTER) : 0;
    to->reserved = 0;
    gbx_lane_commit(lane);
    record_edges(lane, task);
}

/* --- a dispatch --- */

/* A slot, and the tensor that the kernel finds at its address. */
typedef struct slot_seen {
    gbx_dump_slot slot;
    gbx_tensor tensor;
} slot_seen;

/* Copies the description that a word leads to: what is checked is what is recorded. False when the
 * kernel finds none there. */
static bool see_tensor(const gbx_lane *lane, uint64_t word, gbx_tensor *out_tensor) {
    int64_t first, end;
    if (word % _Alignof(gbx_tensor) || !is_inside(&lane->writer->request, word, sizeof(gbx_tensor)))
        return false;
    memcpy(out_tensor, (const void *)(uintptr_t)word, sizeof *out_tensor);
    return gbx_tensor_is_valid(out_tensor, &first, &end);
}

/* The contents of a slot, as the kernel finds them. */
static void see_slot(const gbx_lane *lane, const gbx_sched_dispatch *dispatch, uint32_t i,
                     uint32_t tensor_count, uint32_t *scalar, slot_seen *out) {
    const gbx_task_arguments *arguments = dispatch->task->arguments;
    uint32_t kind = arguments->kinds[i];
    gbx_dump_slot *slot = &out->slot;
    *slot = (gbx_dump_slot){.bits = dispatch->args[i], .role = GBX_ROLE_INPUT};
    bool is_tensor = kind & GBX_WORD_TENSOR;
    /* One that is described as a tensor is a word, too, if the kernel finds none there. */
    if (!arguments->is_described || is_undescribed(kind, i, tensor_count) ||
        (is_tensor && !see_tensor(lane, slot->bits, &out->tensor))) {
        slot->is_word = true;
    } else if (is_tensor) {
        slot->is_tensor = true;
        slot->role = kind & GBX_WORD_ROLE;
        slot->dtype = (uint8_t)out->tensor.dtype;
        slot->ndims = (uint8_t)out->tensor.ndims;
    } else {
        slot->dtype = scalar_dtype(lane, dispatch->task, kind & GBX_WORD_DTYPE, (*scalar)++);
    }
}

static uint32_t put_slot(uint64_t *words, const slot_seen *seen) {
    const gbx_dump_slot *slot = &seen->slot;
    memcpy(words, slot, sizeof *slot);
    words += GBX_DUMP_SLOT_WORDS;
    if (slot->is_tensor) {
        *words++ = seen->tensor.data;
        *words++ = (uint64_t)seen->tensor.start_offset;
        memcpy(words, seen->tensor.shape, slot->ndims * sizeof *words);
        memcpy(words + slot->ndims, seen->tensor.strides, slot->ndims * sizeof *words);
    }
    return gbx_dump_slot_words(slot->is_tensor, slot->ndims);
}

/* Records the arguments of a kernel call. */
static void record_dispatch(gbx_lane *lane, const gbx_sched_dispatch *dispatch) {
    const gbx_sched_task *task = dispatch->task;
    slot_seen slots[GBX_MAX_WORDS];
    uint32_t words = 0;
    uint32_t tensor_count = count_tensors(lane, task);
    uint32_t scalar = 0;
    for (uint32_t i = 0; i < task->word_count; ++i) {
        see_slot(lane, dispatch, i, tensor_count, &scalar, &slots[i]);
        words += gbx_dump_slot_words(slots[i].slot.is_tensor, slots[i].slot.ndims);
    }
    gbx_dump_record head = {.task = task->id, .arg_index = GBX_ARG_NONE};
    gbx_dump_dispatch *to = gbx_lane_begin(lane, GBX_DUMP_DISPATCH, words, &head);
    if (!to)
        return;
    to->head.arg_index = task->word_count;
    to->func_id = dispatch->func_id;
    to->core_id = dispatch->core_id;
    to->block_idx = dispatch->block_idx;
    to->block_num = task->block_num;
    to->subtask = dispatch->subtask;
    to->word_count = words;
    to->local_context = dispatch->args[GBX_ARG_LOCAL_CONTEXT];
    to->global_context = dispatch->args[GBX_ARG_GLOBAL_CONTEXT];
    uint64_t *at = to->words;
    for (uint32_t i = 0; i < task->word_count; ++i)
        at += put_slot(at, &slots[i]);
    gbx_lane_commit(lane);
}

/* --- hooks --- */

static gbx_lane *lane_of(void *context, uint32_t thread) {
    return &((gbx_writer *)context)->lanes[thread];
}

static void before_dispatch(void *context, uint32_t thread, const gbx_sched_task *task) {
    gbx_lane *lane = lane_of(context, thread);
    if (!gbx_lane_enter(lane))
        return;
    record_task(lane, task);
    if (!task->arguments->is_described)
        skip(lane, task, GBX_ARG_NONE, GBX_SKIP_NOT_DESCRIBED);
    else
        skip_undescribed(lane, task);
    if (captures_arguments(lane, task))
        record_arguments(lane, task, GBX_STAGE_BEFORE, 0);
    gbx_lane_leave(lane);
}

static void at_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    gbx_lane *lane = lane_of(context, thread);
    if (!(lane->writer->setup.flags & GBX_DUMP_HAS_ARGS) || !gbx_lane_enter(lane))
        return;
    record_dispatch(lane, dispatch);
    gbx_lane_leave(lane);
}

static void after_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch,
                           gbx_sched_span span) {
    gbx_lane *lane = lane_of(context, thread);
    bool has_end = span.end_ticks != 0;
    if (!gbx_lane_enter_at(lane, span.start_ticks,
                           has_end ? span.end_ticks : lane->writer->probe.ticks()))
        return;
    gbx_dump_record head = {
        .stage = GBX_STAGE_AFTER, .task = dispatch->task->id, .arg_index = GBX_ARG_NONE};
    gbx_dump_execution *to = gbx_lane_begin(lane, GBX_DUMP_EXECUTION, 0, &head);
    if (to) {
        uint64_t end_ns = (uint64_t)(lane->hook_ns - lane->writer->start_ns);
        /* A thread that moved to a processor with a different counter has not gone back in time. */
        to->end_ns = !has_end ? GBX_DUMP_NO_END : end_ns > lane->time_ns ? end_ns : lane->time_ns;
        to->core_id = dispatch->core_id;
        to->block_idx = dispatch->block_idx;
        to->subtask = dispatch->subtask;
        to->func_id = dispatch->func_id;
        memset(to->reserved, 0, sizeof to->reserved);
        gbx_lane_commit(lane);
    }
    gbx_lane_leave(lane);
}

static void after_completion(void *context, uint32_t thread, const gbx_sched_task *task) {
    gbx_lane *lane = lane_of(context, thread);
    if (!gbx_lane_enter(lane))
        return;
    if (captures_arguments(lane, task))
        record_arguments(lane, task, GBX_STAGE_AFTER, 0);
    gbx_dump_record head = {.stage = GBX_STAGE_AFTER, .task = task->id, .arg_index = GBX_ARG_NONE};
    record_bits(lane, GBX_DUMP_DONE, &head, 0);
    gbx_lane_leave(lane);
}

static void end_of_thread(void *context, uint32_t thread) {
    gbx_lane *lane = lane_of(context, thread);
    if (!gbx_lane_enter(lane))
        return;
    gbx_lane_end(lane);
    gbx_lane_leave(lane);
}

static void on_fault(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    gbx_lane *lane = lane_of(context, thread);
    const gbx_sched_task *task = dispatch->task;
    if (!task || !captures_arguments(lane, task) || !gbx_lane_enter(lane))
        return;
    record_arguments(lane, task, GBX_STAGE_AFTER, GBX_DUMP_IN_FLIGHT);
    gbx_lane_leave(lane);
}

static uint64_t progress(void *context) {
    gbx_writer *writer = context;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < writer->setup.lane_count; ++i)
        sum += atomic_load_explicit(&writer->lanes[i].heartbeat, memory_order_relaxed);
    return sum;
}

/* --- the start --- */

static bool is_setup_sound(const gbx_probe_request *request, const gbx_dump_setup *setup) {
    uint64_t buffer_bytes = (uint64_t)setup->buffer_count * GBX_DUMP_BUFFER_LINES *
                            GBX_DUMP_LINE_BYTES * setup->lane_count;
    return setup->magic == GBX_DUMP_MAGIC && setup->flags == request->flags &&
           setup->lane_count == request->thread_count &&
           setup->lane_count <= GBX_WRITER_MAX_LANES &&
           setup->buffer_count >= GBX_MIN_DUMP_BUFFERS &&
           setup->buffer_count <= GBX_MAX_DUMP_BUFFERS &&
           (setup->buffer_count & (setup->buffer_count - 1)) == 0 &&
           setup->filter_count <= GBX_MAX_DUMP_FILTERS &&
           setup->arena_bytes >= GBX_MIN_DUMP_ARENA_BYTES &&
           setup->arena_bytes <= GBX_MAX_DUMP_ARENA_BYTES &&
           setup->arena_bytes % GBX_DUMP_PAGE_BYTES == 0 &&
           setup->arenas % GBX_DUMP_PAGE_BYTES == 0 &&
           is_inside(request, setup->lanes, setup->lane_count * sizeof(gbx_dump_lane)) &&
           is_inside(request, setup->buffers, buffer_bytes) &&
           is_inside(request, setup->arenas, setup->arena_bytes * setup->lane_count) &&
           is_inside(request, setup->signatures, sizeof(gbx_dump_signature) * GBX_MAX_KERNELS);
}

static const gbx_probe *attach_writer(void *state, gbx_probe_request *request) {
    gbx_writer *writer = state;
    if (!is_inside(request, request->data_base, sizeof(gbx_dump_setup)) ||
        request->data_base % _Alignof(gbx_dump_setup))
        return NULL;
    writer->request = *request;
    writer->shared = (gbx_dump_setup *)(uintptr_t)request->data_base;
    memcpy(&writer->setup, writer->shared, sizeof writer->setup);
    if (!is_setup_sound(request, &writer->setup))
        return NULL;
    memcpy(writer->signatures, (const void *)(uintptr_t)writer->setup.signatures,
           sizeof writer->signatures);
    writer->probe = (gbx_probe){.context = writer,
                                .ticks = gbx_ticks_source(),
                                .before_dispatch = before_dispatch,
                                .at_dispatch = at_dispatch,
                                .after_dispatch = after_dispatch,
                                .after_completion = after_completion,
                                .end_of_thread = end_of_thread,
                                .on_fault = on_fault,
                                .progress = progress};
    writer->start = gbx_ticks_pair_read(writer->probe.ticks);
    writer->start_ns = writer->start.ns;
    const gbx_dump_setup *setup = &writer->setup;
    uint64_t buffers_bytes =
        (uint64_t)setup->buffer_count * GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES;
    for (uint32_t i = 0; i < setup->lane_count; ++i) {
        gbx_lane *lane = &writer->lanes[i];
        lane->writer = writer;
        lane->shared = (gbx_dump_lane *)(uintptr_t)setup->lanes + i;
        lane->buffers = (unsigned char *)(uintptr_t)(setup->buffers + i * buffers_bytes);
        lane->arena = (unsigned char *)(uintptr_t)(setup->arenas + i * setup->arena_bytes);
        lane->mine = writer->lines[i];
        lane->scratch = writer->scratch[i];
        lane->published_ns = writer->start_ns;
        lane->anchor = writer->start;
    }
    return &writer->probe;
}

static uint64_t state_bytes(const gbx_probe_request *request) {
    (void)request;
    return sizeof(gbx_writer);
}

const gbx_probe_source gbx_dump_probe_source = {.state_bytes = state_bytes,
                                                .attach = attach_writer};
