/* What findings mean for other tasks: whose memory a stray write hit, and who reads elements that
 * were never written. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/view_find.h"
#include "base/checked.h"
#include "base/memory.h"
#include "replay/replay_result.h"

enum { MAX_RANGES = 4096 }; /* of an output's memory that are followed to their readers */

/* Addresses of chips. */
#define FIRST_ADDRESS UINT64_C(0x7e9000000000)
#define END_ADDRESS (FIRST_ADDRESS + 13 * (UINT64_C(32) << 30))

typedef struct aftermath {
    const gbx_replay_job *job;
    const gbx_replay_outcome *outcome;
    gbx_replay_result *result;
    uint64_t capacity;
} aftermath;

/* --- the memory of all tasks --- */

static gbx_status read_all_tasks(gbx_replay_memory *memory) {
    if (memory->all)
        return NULL;
    if (!memory->reader)
        GBX_TRY(gbx_reader_open(memory->directory, GBX_INDEX_ARGUMENTS, &memory->reader));
    const gbx_reader_extent *extent = gbx_reader_get_extent(memory->reader);
    if (extent->stop != GBX_STOP_END)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading %s: at offset %" PRIu64 " of %" PRIu64 ", %s; run glassbox verify",
                        gbx_reader_get_origin(memory->reader)->records_path, extent->stop_offset,
                        extent->file_bytes, extent->stop_text);
    return gbx_entries_create(memory->reader, &memory->all);
}

static gbx_status need_accesses(const aftermath *a) {
    gbx_replay_memory *memory = a->job->memory;
    if (memory->accesses)
        return NULL;
    if (gbx_reader_has_all_tasks(gbx_entries_reader(memory->entries)))
        return gbx_accesses_create(memory->entries, &memory->accesses);
    GBX_TRY(read_all_tasks(memory));
    return gbx_accesses_create(memory->all, &memory->accesses);
}

void gbx_replay_memory_free(gbx_replay_memory *memory) {
    gbx_accesses_destroy(memory->accesses);
    gbx_entries_destroy(memory->all);
    gbx_reader_close(memory->reader);
    *memory = (gbx_replay_memory){0};
}

/* --- findings --- */

static gbx_status add(aftermath *a, const gbx_replay_finding *finding) {
    gbx_replay_result *result = a->result;
    GBX_TRY(gbx_array_reserve(&result->findings, &a->capacity, result->finding_count + 1,
                              "listing findings"));
    result->findings[result->finding_count++] = *finding;
    result->note_count += gbx_replay_is_note(finding);
    return NULL;
}

/* --- arguments --- */

static void set_argument(const aftermath *a, uint32_t argument, gbx_replay_finding *finding) {
    const gbx_replay_argument *from = &a->job->request.task->arguments[argument];
    finding->is.argument = argument;
    finding->slot = from->slot;
    finding->name = from->name;
    finding->tensor = from->tensor;
}

static gbx_replay_finding make(const aftermath *a, const gbx_task_finding *is) {
    const gbx_replay_task *task = a->job->request.task;
    gbx_replay_finding finding = {.is = *is, .slot = GBX_NO_ARGUMENT};
    if (is->argument < task->argument_count)
        set_argument(a, is->argument, &finding);
    else
        finding.is.argument = GBX_NO_ARGUMENT;
    if (finding.is.argument == GBX_NO_ARGUMENT || !task->arguments[is->argument].is_tensor ||
        is->element >= (uint64_t)gbx_tensor_numel(&finding.tensor))
        finding.is.element = GBX_NO_ELEMENT;
    for (int i = 0; i < 2; ++i) {
        if (is->parties[i] < task->dispatch_count)
            finding.parties[i] = task->dispatches[is->parties[i]];
        else
            finding.is.parties[i] = GBX_NO_PARTY;
    }
    return finding;
}

/* Bytes from a tensor's extent to an address: 0 inside, negative before it. */
static int64_t distance_to(const gbx_tensor *tensor, uint64_t address) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    uint64_t begin = tensor->data + (uint64_t)first, stop = tensor->data + (uint64_t)end;
    if (address < begin)
        return (int64_t)(address - begin);
    return address < stop ? 0 : (int64_t)(address - stop) + 1;
}

/* The element of a tensor at an address; false if none is there. */
static bool find_element(const gbx_tensor *tensor, uint64_t address, uint64_t *out_element) {
    gbx_view_element found;
    int64_t offset = (int64_t)(address - tensor->data);
    if (gbx_tensor_numel(tensor) == 0 || offset > INT64_MAX / 16 || offset < INT64_MIN / 16 ||
        gbx_view_find(tensor, offset * 8, offset * 8 + 8, &found) != GBX_VIEW_HAS_IT)
        return false;
    *out_element = found.number;
    return true;
}

/* The byte of an element of a recorded tensor. */
static uint64_t address_of(const gbx_tensor *tensor, uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    int64_t offset = tensor->start_offset;
    gbx_compare_index(tensor, number, index);
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        offset += index[d] * tensor->strides[d];
    int64_t bits = offset * (int64_t)gbx_dtype_bits(tensor->dtype);
    return tensor->data + (uint64_t)(bits >> 3);
}

static uint64_t width_of(const gbx_tensor *tensor) {
    return (gbx_dtype_bits(tensor->dtype) + 7) / 8;
}

/* Whether addresses only rise from one element to the next, so that the first and the last of some
 * elements are also the lowest and the highest. */
static bool is_ascending(const gbx_tensor *tensor) {
    int64_t inner = 0; /* from the first to the last element of the dimensions inside */
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        if (tensor->shape[d] > 1 && tensor->strides[d] <= inner)
            return false;
        inner += (tensor->shape[d] - 1) * tensor->strides[d];
    }
    return true;
}

/* Where the elements of a finding lie, if the worker did not say: from the first to the last. */
static void set_extent(const aftermath *a, gbx_replay_finding *finding) {
    const gbx_tensor *tensor = &finding->tensor;
    bool is_known = finding->is.end > finding->is.address;
    uint64_t bits = gbx_dtype_bits(tensor->dtype);
    if (finding->is.element == GBX_NO_ELEMENT ||
        finding->is.last >= (uint64_t)gbx_tensor_numel(tensor))
        return;
    finding->is.bytes = (finding->is.elements * bits + 7) / 8;
    if (!is_known && (finding->is.element == finding->is.last || is_ascending(tensor))) {
        finding->is.address = address_of(tensor, finding->is.element);
        finding->is.end = address_of(tensor, finding->is.last) + width_of(tensor);
        is_known = true;
    }
    finding->has_address = is_known && !a->outcome->is_relocated;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* The argument whose memory is nearest to an address, and the element of an input that lies there:
 * then the task's own input is the owner. */
static bool find_nearest(const aftermath *a, uint64_t address, gbx_replay_finding *finding) {
    const gbx_replay_task *task = a->job->request.task;
    uint64_t nearest = UINT64_MAX;
    bool is_own = false;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor || gbx_tensor_numel(&argument->tensor) == 0)
            continue;
        int64_t distance = distance_to(&argument->tensor, address);
        uint64_t element = 0;
        bool is_input = argument->role == GBX_ROLE_INPUT && distance == 0 &&
                        find_element(&argument->tensor, address, &element);
        if (is_own || (!is_input && magnitude(distance) >= nearest))
            continue;
        nearest = magnitude(distance);
        set_argument(a, i, finding);
        finding->distance = distance;
        finding->is.element = is_input ? element : GBX_NO_ELEMENT;
        is_own = is_input;
    }
    return is_own;
}

static void set_own_owner(const aftermath *a, gbx_replay_finding *finding) {
    const gbx_replay_task *task = a->job->request.task;
    finding->has_owner = true;
    finding->owner = (gbx_tensor_access){.task = task->task,
                                         .task_id = task->task_id,
                                         .arg_index = finding->slot,
                                         .role = task->arguments[finding->is.argument].role,
                                         .name = finding->name,
                                         .tensor = finding->tensor,
                                         .element = finding->is.element};
    memcpy(finding->owner.func_ids, task->func_ids, sizeof finding->owner.func_ids);
}

/* Where an access was, in addresses of the run. */
static gbx_status locate(const aftermath *a, gbx_replay_finding *finding) {
    const gbx_replay_task *task = a->job->request.task;
    if (a->outcome->is_relocated)
        return NULL; /* nothing else lies at these addresses */
    finding->has_address = true;
    if (find_nearest(a, finding->is.address, finding)) {
        set_own_owner(a, finding);
        return NULL;
    }
    GBX_TRY(need_accesses(a));
    return gbx_accesses_owner(a->job->memory->accesses, task->task, finding->is.address,
                              &finding->owner, &finding->has_owner);
}

/* --- faults --- */

static const gbx_task_finding nothing = {.argument = GBX_NO_ARGUMENT,
                                         .element = GBX_NO_ELEMENT,
                                         .parties = {GBX_NO_PARTY, GBX_NO_PARTY}};

/* Bytes that changed before the crash. */
static gbx_status take_fault_strays(aftermath *a, const gbx_replay_fault *fault) {
    gbx_task_finding is = nothing;
    is.kind = GBX_STRAY_WRITE;
    is.address = fault->stray_address;
    is.end = fault->stray_end;
    is.bytes = fault->stray_bytes;
    gbx_replay_finding finding = make(a, &is);
    finding.is_fault = true;
    GBX_TRY(locate(a, &finding));
    return add(a, &finding);
}

/* An access that is neither to an argument nor close to one. */
static gbx_status take_access(aftermath *a, const gbx_replay_fault *fault) {
    bool is_of_memory = fault->address >= FIRST_ADDRESS && fault->address < END_ADDRESS;
    if (fault->signal != SIGSEGV || !fault->has_address ||
        (fault->access != GBX_CALL_ACCESS_READ && fault->access != GBX_CALL_ACCESS_WRITE))
        return NULL;
    /* The write that crashed continues those before it: one finding for both. */
    if (fault->stray_bytes > 0 && fault->access == GBX_CALL_ACCESS_WRITE)
        return NULL;
    gbx_task_finding is = nothing;
    is.kind = fault->access == GBX_CALL_ACCESS_WRITE ? GBX_STRAY_WRITE : GBX_UNDECLARED_READ;
    is.address = fault->address;
    gbx_replay_finding finding = make(a, &is);
    finding.is_fault = true;
    finding.has_address = !is_of_memory || !a->outcome->is_relocated;
    if (is_of_memory)
        GBX_TRY(locate(a, &finding));
    return add(a, &finding);
}

/* A dispatch that waits forever, and the flag that it waits for. */
static gbx_status take_wait(aftermath *a, const gbx_replay_fault *fault) {
    const gbx_replay_task *task = a->job->request.task;
    gbx_task_finding is = nothing;
    is.kind = GBX_ENDLESS_WAIT;
    is.parties[0] = fault->wait_count > 0 ? fault->waits[0].dispatch : fault->dispatch;
    gbx_replay_finding finding = make(a, &is);
    finding.is_fault = true;
    if (fault->wait_count > 0 && fault->waits[0].has_address && !a->outcome->is_relocated) {
        finding.is.address = fault->waits[0].address;
        finding.has_address = true;
        for (uint32_t i = 0; i < task->argument_count; ++i) {
            uint64_t element;
            if (!task->arguments[i].is_tensor ||
                !find_element(&task->arguments[i].tensor, finding.is.address, &element))
                continue;
            set_argument(a, i, &finding);
            finding.is.element = element;
            break;
        }
    }
    return add(a, &finding);
}

/* --- elements that are not written --- */

/* Looks for a reader of elements [first, end), as ranges of memory without gaps. *ranges counts
 * down; at 0 the search ends. */
static gbx_status find_reader_of(const aftermath *a, const gbx_tensor *tensor, uint64_t first,
                                 uint64_t end, uint32_t *ranges, gbx_replay_finding *finding) {
    uint64_t width = width_of(tensor);
    for (uint64_t i = first; *ranges > 0 && !finding->has_owner && i < end; --*ranges) {
        uint64_t from = address_of(tensor, i), to = from + width;
        for (++i; i < end && address_of(tensor, i) == to; ++i)
            to += width;
        GBX_TRY(gbx_accesses_next_read(a->job->memory->accesses, a->job->request.task->task, from,
                                       to - from, &finding->owner, &finding->has_owner));
    }
    return NULL;
}

/* A kernel may have written to the answer. */
static bool is_gap_of(const gbx_written_gap *gap, uint32_t argument, const gbx_tensor *tensor) {
    uint64_t elements = (uint64_t)gbx_tensor_numel(tensor), last;
    return gap->argument == argument && gap->times > 0 && gap->count <= elements &&
           gbx_checked_mul_u64(gap->step, gap->times - 1, &last) && last <= elements &&
           gap->first <= elements - last && gap->count <= elements - last - gap->first;
}

/* Follows all unwritten elements of an output to the next reader of any. */
static gbx_status find_reader(const aftermath *a, uint32_t argument, gbx_replay_finding *finding) {
    const gbx_answer *answer = a->outcome->answer;
    const gbx_tensor *tensor = &a->job->request.task->arguments[argument].tensor;
    uint32_t ranges = MAX_RANGES;
    if (a->outcome->is_relocated)
        return NULL;
    GBX_TRY(need_accesses(a));
    for (uint32_t i = 0; i < answer->gap_count; ++i) {
        const gbx_written_gap *gap = &answer->gaps[i];
        if (!is_gap_of(gap, argument, tensor))
            continue;
        for (uint64_t k = 0; k < gap->times && ranges > 0 && !finding->has_owner; ++k) {
            uint64_t first = gap->first + k * gap->step;
            GBX_TRY(find_reader_of(a, tensor, first, first + gap->count, &ranges, finding));
        }
    }
    /* Without results in the dump, one may have these elements. */
    bool has_results = gbx_reader_result_count(gbx_entries_reader(a->job->entries)) > 0;
    finding->is_followed = has_results && ranges > 0 && !(answer->unlisted >> argument & 1);
    return NULL;
}

/* One finding or note for each output with such elements. */
static gbx_status take_unwritten(aftermath *a, uint32_t argument) {
    gbx_task_finding is = a->outcome->answer->outputs[argument].unwritten;
    is.kind = GBX_UNWRITTEN;
    is.argument = argument;
    is.parties[0] = is.parties[1] = GBX_NO_PARTY;
    gbx_replay_finding finding = make(a, &is);
    GBX_TRY(find_reader(a, argument, &finding));
    set_extent(a, &finding);
    /* Tasks that a failed run did not reach could have written the rest of a result. */
    bool is_early = finding.has_owner && finding.owner.is_result && a->job->run_end[0];
    if (finding.has_owner && !is_early)
        finding.is.kind = GBX_UNWRITTEN_READ;
    return add(a, &finding);
}

/* --- all of it --- */

static gbx_status take_finding(aftermath *a, const gbx_task_finding *is) {
    gbx_replay_finding finding = make(a, is);
    if (is->kind >= GBX_FINDING_KINDS)
        return NULL;
    if (is->kind == GBX_STRAY_WRITE) {
        GBX_TRY(locate(a, &finding));
        if (finding.slot != GBX_NO_ARGUMENT && finding.distance == 0)
            a->result->stray_argument = finding.slot;
    } else {
        set_extent(a, &finding);
    }
    return add(a, &finding);
}

gbx_status gbx_replay_find_aftermath(const gbx_replay_job *job, const gbx_replay_outcome *outcome,
                                     gbx_replay_result *result) {
    aftermath a = {.job = job, .outcome = outcome, .result = result};
    const gbx_replay_task *task = job->request.task;
    const gbx_replay_fault *fault = outcome->fault;
    const gbx_answer *answer = outcome->answer;
    if (fault && task->did_complete && fault->stray_bytes > 0)
        GBX_TRY(take_fault_strays(&a, fault));
    if (fault && task->did_complete)
        GBX_TRY(take_access(&a, fault));
    if (fault && fault->is_stuck)
        GBX_TRY(take_wait(&a, fault));
    if (!answer || job->request.dispatch >= 0 || !task->did_complete)
        return NULL;
    for (uint32_t i = 0; i < answer->finding_count; ++i)
        GBX_TRY(take_finding(&a, &answer->findings[i]));
    for (uint32_t i = 0; i < task->argument_count; ++i)
        if (task->arguments[i].is_tensor && task->arguments[i].role != GBX_ROLE_INPUT &&
            answer->outputs[i].bits.not_written > 0)
            GBX_TRY(take_unwritten(&a, i));
    return NULL;
}
