#include "dump_expect.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

enum { ADDRESS_SLOTS = 1 << 16 };

/* Where a buffer of the model is on the chip. */
typedef struct buffer_place {
    uint64_t model;
    uint64_t chip;
} buffer_place;

struct dump_expectation {
    const dump_files *files;
    const dump_rules *rules;
    uint64_t expected;
    uint64_t in_flight;
    uint64_t skipped;
    buffer_place *places; /* by hash of `model`; 0 where there is none */
};

/* One argument at one stage, while it is compared. */
typedef struct wanted {
    dump_expectation *all;
    const sequential_task *task;
    const sequential_arg *arg;
    uint32_t slot;
    bool is_after;
    bool has_payload;
    bool has_stats;
    bool is_in_flight;
    const json_t *entry;
} wanted;

static void fail_wanted(const wanted *w, const char *field, const char *expected) {
    char *text = w->entry ? json_dumps(w->entry, JSON_COMPACT) : NULL;
    print_error("%s\n", text ? text : "(no entry)");
    free(text);
    fail_msg("%s: task %" PRIu64 ", argument %u, %s: field %s: expected %s",
             w->all->files->directory, w->task->number, w->slot, w->is_after ? "after" : "before",
             field, expected);
}

static void expect(const wanted *w, bool holds, const char *field, const char *expected) {
    if (!holds)
        fail_wanted(w, field, expected);
}

static void expect_text(const wanted *w, const char *field, const char *expected) {
    expect(w, strcmp(dump_text(w->entry, field), expected) == 0, field, expected);
}

static void expect_number(const wanted *w, const char *field, int64_t expected) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, expected);
    expect(w, dump_signed(w->entry, field) == expected, field, text);
}

/* --- what kernels declare --- */

/* Part `index` of a list separated by commas. */
static bool part_of(const char *list, size_t index, char out_part[DUMP_NAME_BYTES]) {
    for (; list && index > 0; --index) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    if (!list)
        return false;
    size_t length = strcspn(list, ",");
    snprintf(out_part, DUMP_NAME_BYTES, "%.*s", (int)length, list);
    return true;
}

/* Which part of a kernel's signature belongs to a slot of a task; tensors come first in args[]. */
static bool part_of_slot(const char *signature, const sequential_task *task, uint32_t slot,
                         size_t *out_part) {
    bool is_tensor = task->args[slot].is_tensor;
    uint32_t before = 0;
    char part[DUMP_NAME_BYTES];
    for (uint32_t i = 0; i < slot; ++i)
        before += task->args[i].is_tensor == is_tensor;
    for (size_t i = 0; part_of(signature, i, part); ++i)
        if ((strncmp(part, "scalar", 6) != 0) == is_tensor && before-- == 0) {
            *out_part = i;
            return true;
        }
    return false;
}

bool dump_slot_name(const dump_kernels *kernels, const sequential_task *task, uint32_t slot,
                    char out_name[DUMP_NAME_BYTES]) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t id = task->kernels.func_ids[s];
        size_t part;
        if (id != GBX_NO_KERNEL && kernels->facts[id].arg_names &&
            part_of_slot(kernels->facts[id].signature, task, slot, &part) &&
            part_of(kernels->facts[id].arg_names, part, out_name))
            return true;
    }
    return false;
}

uint32_t dump_scalar_dtype(const dump_kernels *kernels, const sequential_task *task,
                           uint32_t slot) {
    char text[DUMP_NAME_BYTES];
    if (task->args[slot].dtype != GBX_DTYPE_NONE)
        return task->args[slot].dtype;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t id = task->kernels.func_ids[s];
        size_t part;
        if (id == GBX_NO_KERNEL || !part_of_slot(kernels->facts[id].signature, task, slot, &part) ||
            !part_of(kernels->facts[id].signature, part, text) || !strchr(text, ':'))
            continue;
        for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
            if (strcmp(dump_dtype_name(dtype), strchr(text, ':') + 1) == 0)
                return dtype;
    }
    return GBX_DTYPE_NONE;
}

/* --- fields of every record --- */

static const char *const subtask_names[] = {"aic", "aiv0", "aiv1"};
static const char *const role_names[] = {"input", "output", "inout"};

static void check_kernels(const wanted *w) {
    const dump_kernels *kernels = w->all->rules->kernels;
    int64_t ids[GBX_SUBTASK_COUNT];
    const char *names[GBX_SUBTASK_COUNT], *subtasks[GBX_SUBTASK_COUNT];
    size_t count = 0;
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t id = w->task->kernels.func_ids[s];
        if (id == GBX_NO_KERNEL)
            continue;
        ids[count] = id;
        names[count] = kernels->facts[id].name;
        subtasks[count++] = subtask_names[s];
    }
    expect(w, dump_array_is(w->entry, "func_id", ids, count), "func_id", "those of the task");
    expect(w, dump_texts_are(w->entry, "kernel", names, count), "kernel", "those of the task");
    expect(w, dump_texts_are(w->entry, "subtasks", subtasks, count), "subtasks",
           "those of the task");
}

static void check_common(const wanted *w) {
    char id[32], name[DUMP_NAME_BYTES];
    snprintf(id, sizeof id, "0x%016" PRIx64, w->task->number);
    expect_text(w, "task_id", id);
    check_kernels(w);
    expect_text(w, "role", role_names[w->arg->role]);
    expect_text(w, "kind", w->arg->is_tensor ? "tensor" : "scalar");
    expect_number(w, "block_num", w->task->kernels.block_num);
    expect(w, dump_bool(w->entry, "in_flight") == w->is_in_flight, "in_flight", "another");
    expect(w, !dump_bool(w->entry, "overwritten"), "overwritten", "false");
    dump_number(w->entry, "time_ns");
    dump_number(w->entry, "thread");
    const json_t *has_name = json_object_get(w->entry, "arg_name");
    if (dump_slot_name(w->all->rules->kernels, w->task, w->slot, name))
        expect_text(w, "arg_name", name);
    else
        expect(w, !has_name || json_is_null(has_name), "arg_name", "none");
}

static void check_scalar(const wanted *w) {
    uint32_t dtype = dump_scalar_dtype(w->all->rules->kernels, w->task, w->slot);
    expect_text(w, "dtype", dump_dtype_name(dtype));
    expect(w, dump_hex(w->entry, "bits") == w->arg->word, "bits", "the word of the slot");
    if (dtype == GBX_DTYPE_NONE)
        expect(w, !json_object_get(w->entry, "value"), "value", "none");
    else
        expect(w, dump_value_is(dump_field(w->entry, "value"), dtype, w->arg->word), "value",
               "the value of the bits by its dtype");
    const json_t *bytes = json_object_get(w->entry, "bin_size");
    expect(w, !bytes || json_integer_value(bytes) == 0, "bin_size", "0");
}

/* --- tensors --- */

/* One buffer of the model is one buffer of the chip. */
static void check_address(const wanted *w) {
    uint64_t model = w->arg->tensor.data, chip = dump_hex(w->entry, "buffer_addr");
    size_t at = (size_t)(model * UINT64_C(0x9e3779b97f4a7c15) >> 48) % ADDRESS_SLOTS;
    buffer_place *places = w->all->places;
    while (places[at].model != 0 && places[at].model != model)
        at = (at + 1) % ADDRESS_SLOTS;
    if (places[at].model == 0)
        places[at] = (buffer_place){model, chip};
    expect(w, places[at].chip == chip, "buffer_addr", "the address that its buffer had before");
}

/* A stride that is never used and does not fit into a double is kept as 0. */
static void kept_strides(const gbx_tensor *tensor, int64_t *out_strides) {
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        int64_t stride = tensor->strides[d];
        bool is_used = gbx_tensor_numel(tensor) > 0 && tensor->shape[d] > 1;
        bool is_exact = stride < INT64_C(1) << 53 && stride > -(INT64_C(1) << 53);
        out_strides[d] = is_used || is_exact ? stride : 0;
    }
}

static void check_geometry(const wanted *w) {
    const gbx_tensor *tensor = &w->arg->tensor;
    int64_t strides[GBX_MAX_DIMS];
    kept_strides(tensor, strides);
    expect_text(w, "dtype", dump_dtype_name(tensor->dtype));
    expect(w, dump_array_is(w->entry, "shape", tensor->shape, tensor->ndims), "shape", "another");
    expect(w, dump_array_is(w->entry, "strides", strides, tensor->ndims), "strides", "another");
    expect_number(w, "start_offset", tensor->start_offset);
    expect_number(w, "numel", gbx_tensor_numel(tensor));
    expect(w, dump_bool(w->entry, "is_contiguous") == dump_is_contiguous(tensor), "is_contiguous",
           "the other");
    expect(w, !json_object_get(w->entry, "value"), "value", "none");
    check_address(w);
}

static void check_bytes(const wanted *w, const uint8_t *bytes, size_t size) {
    size_t most = w->all->rules->max_tensor_bytes;
    size_t kept = most && size > most ? most : size;
    char text[DUMP_HASH_BYTES];
    expect(w, dump_bool(w->entry, "truncated") == (kept < size), "truncated", "the other");
    expect_number(w, "bin_size", (int64_t)kept);
    dump_hash(bytes, kept, text);
    expect_text(w, "hash", text);
    if (memcmp(dump_payload(w->all->files, w->entry), bytes, kept) == 0)
        return;
    const uint8_t *got = dump_payload(w->all->files, w->entry);
    size_t at = 0;
    while (got[at] == bytes[at])
        ++at;
    print_error("byte %zu of %zu: expected %02x, got %02x\n", at, kept, bytes[at], got[at]);
    fail_wanted(w, "payload", "what the tensor held");
}

/* A hash without bytes must be right if there is one, and must be there beside statistics. */
static void check_no_bytes(const wanted *w, const uint8_t *bytes, size_t size) {
    const json_t *hash = json_object_get(w->entry, "hash");
    char text[DUMP_HASH_BYTES];
    expect_number(w, "bin_size", 0);
    expect(w, !dump_bool(w->entry, "truncated"), "truncated", "false");
    dump_hash(bytes, size, text);
    if (w->has_stats || (hash && json_is_string(hash)))
        expect_text(w, "hash", text);
}

/* --- statistics --- */

typedef struct facts {
    double sum, sum_of_sizes;
    uint64_t min_bits, max_bits; /* of elements */
    uint64_t counted, nan, inf, zero, subnormal, finite;
} facts;

static bool is_less(uint32_t dtype, uint64_t a, uint64_t b) {
    if (dtype == GBX_UINT64)
        return a < b;
    if (dtype == GBX_INT64)
        return (int64_t)a < (int64_t)b;
    return dump_value_of(dtype, a) < dump_value_of(dtype, b);
}

static double smallest_normal(uint32_t dtype) {
    switch (dtype) {
    case GBX_FLOAT16:
    case GBX_FLOAT8_E5M2:
        return 0x1p-14;
    case GBX_FLOAT8_E4M3:
        return 0x1p-6;
    case GBX_FLOAT4_E2M1:
        return 1;
    case GBX_FLOAT8_E8M0:
        return 0;
    case GBX_FLOAT64:
        return 0x1p-1022;
    default:
        return 0x1p-126;
    }
}

static void add_element(uint32_t dtype, uint64_t bits, facts *out) {
    double value = dump_value_of(dtype, bits);
    if (isnan(value)) {
        ++out->nan;
        return;
    }
    bool is_float = gbx_dtype_is_float(dtype);
    if (out->counted == 0 || is_less(dtype, bits, out->min_bits))
        out->min_bits = bits;
    if (out->counted == 0 || is_less(dtype, out->max_bits, bits))
        out->max_bits = bits;
    ++out->counted;
    out->zero += value == 0;
    out->subnormal += is_float && value != 0 && fabs(value) < smallest_normal(dtype);
    if (isinf(value)) {
        ++out->inf;
        return;
    }
    ++out->finite;
    out->sum += value;
    out->sum_of_sizes += fabs(value);
}

static facts facts_of(const gbx_tensor *tensor, const uint8_t *payload) {
    uint32_t bits = dump_element_bits(tensor->dtype);
    int64_t count = gbx_tensor_numel(tensor);
    int64_t length = tensor->ndims ? tensor->shape[tensor->ndims - 1] : 1;
    facts out = {0};
    for (int64_t i = 0; i < count; ++i) {
        uint64_t element = 0;
        if (bits == 4) {
            int64_t at = i / length * ((length + 1) / 2) * 2 + i % length;
            element = (uint64_t)payload[at / 2] >> at % 2 * 4 & 15u;
        } else {
            memcpy(&element, payload + i * (int64_t)(bits / 8), bits / 8);
        }
        add_element(tensor->dtype, element, &out);
    }
    return out;
}

static void check_extreme(const wanted *w, const json_t *stats, const char *field, uint64_t bits,
                          uint64_t counted) {
    const json_t *value = dump_field(stats, field);
    uint32_t dtype = w->arg->tensor.dtype;
    /* -0.0 and 0.0 are equal: either may be the extreme. */
    bool is_zero = counted && gbx_dtype_is_float(dtype) && dump_value_of(dtype, bits) == 0;
    if (is_zero)
        expect(w, json_is_number(value) && json_number_value(value) == 0, field, "0");
    else if (counted)
        expect(w, dump_value_is(value, dtype, dtype == GBX_BOOL ? bits != 0 : bits), field,
               "that of the elements");
    else if (gbx_dtype_is_float(dtype))
        expect(w, json_is_string(value) && strcmp(json_string_value(value), "nan") == 0, field,
               "nan where nothing counts");
}

static void check_statistics(const wanted *w, const uint8_t *payload) {
    const json_t *stats = dump_field(w->entry, "stats");
    facts own = facts_of(&w->arg->tensor, payload);
    check_extreme(w, stats, "min", own.min_bits, own.counted);
    check_extreme(w, stats, "max", own.max_bits, own.counted);
    if (own.finite) {
        double mean = json_number_value(dump_field(stats, "mean"));
        double expected = own.sum / (double)own.finite;
        double most = 1e-12 * own.sum_of_sizes / (double)own.finite + 1e-300;
        expect(w, isinf(expected) || fabs(mean - expected) <= most, "mean", "that of the elements");
    }
    expect(w, dump_number(stats, "nan") == own.nan, "nan", "another count");
    expect(w, dump_number(stats, "inf") == own.inf, "inf", "another count");
    expect(w, dump_number(stats, "zero") == own.zero, "zero", "another count");
    if (json_object_get(stats, "subnormal"))
        expect(w, dump_number(stats, "subnormal") == own.subnormal, "subnormal", "another count");
}

static void check_tensor(const wanted *w) {
    size_t size;
    uint8_t *bytes = dump_gather(&w->arg->tensor, &size);
    check_geometry(w);
    if (w->has_payload)
        check_bytes(w, bytes, size);
    else
        check_no_bytes(w, bytes, size);
    if (w->has_stats)
        check_statistics(w, bytes);
    else
        expect(w, !json_object_get(w->entry, "stats"), "stats", "none");
    free(bytes);
}

/* --- which records there are --- */

static bool is_chosen(const wanted *w) {
    if (w->all->rules->matches)
        return w->all->rules->matches(w->task, w->slot, w->is_after);
    gbx_dump_level level = w->all->rules->level;
    return level == GBX_DUMP_FULL || level == GBX_DUMP_STATS || w->arg->is_marked;
}

/* The table of DESIGN.md 7.2; `full` with a filter acts as `partial`. */
static bool is_recorded(wanted *w) {
    gbx_dump_level level = w->all->rules->level;
    bool chosen = is_chosen(w);
    w->has_payload = chosen && level != GBX_DUMP_STATS;
    w->has_stats = w->all->rules->has_stats || (chosen && level == GBX_DUMP_STATS);
    return chosen || level == GBX_DUMP_HYBRID || level == GBX_DUMP_STATS;
}

static bool is_of_stage(const sequential_arg *arg, bool is_after) {
    if (!arg->is_tensor)
        return !is_after;
    return arg->role == GBX_ROLE_INOUT || (arg->role == GBX_ROLE_OUTPUT) == is_after;
}

static void check_argument(wanted *w) {
    const dump_rules *rules = w->all->rules;
    if (!is_of_stage(w->arg, w->is_after) || !is_recorded(w))
        return;
    if (rules->is_mismatched && rules->is_mismatched(w->task, w->slot))
        return;
    w->entry = dump_find(w->all->files, w->task->number, w->slot, w->is_after);
    expect(w, w->entry != NULL, "of an entry", "a record");
    ++*(w->is_in_flight ? &w->all->in_flight : &w->all->expected);
    check_common(w);
    if (w->arg->is_tensor)
        check_tensor(w);
    else
        check_scalar(w);
}

static void check_stage(dump_expectation *all, const sequential_task *task, bool is_after) {
    const dump_rules *rules = all->rules;
    if (rules->has_fault && task->number > rules->fault_task)
        return;
    bool is_in_flight = is_after && rules->has_fault && task->number == rules->fault_task;
    if (is_in_flight && rules->is_device_lost)
        return;
    all->skipped += !task->is_described && !is_after;
    for (uint32_t slot = 0; task->is_described && slot < task->arg_count; ++slot) {
        wanted w = {.all = all,
                    .task = task,
                    .arg = &task->args[slot],
                    .slot = slot,
                    .is_after = is_after,
                    .is_in_flight = is_in_flight};
        check_argument(&w);
    }
}

static void observe_before(void *context, const sequential_task *task) {
    check_stage(context, task, false);
}

static void observe_after(void *context, const sequential_task *task) {
    check_stage(context, task, true);
}

/* --- the complete dump --- */

dump_expectation *dump_expect_begin(const dump_files *files, const dump_rules *rules) {
    dump_expectation *expected = calloc(1, sizeof *expected);
    assert_non_null(expected);
    expected->files = files;
    expected->rules = rules;
    expected->places = calloc(ADDRESS_SLOTS, sizeof *expected->places);
    assert_non_null(expected->places);
    dump_check_itself(files);
    return expected;
}

sequential_observer dump_expect_observer(dump_expectation *expected) {
    return (sequential_observer){observe_before, observe_after, expected};
}

uint64_t dump_expect_count(const dump_expectation *expected) {
    return expected->expected;
}

/* Records are lost only if the chip ended: outputs that were not captured are recorded as lost. */
static void check_losses(const dump_expectation *expected) {
    const json_t *losses = dump_array(expected->files->tensors, "losses");
    assert_int_equal(json_array_size(losses) > 0, expected->rules->is_device_lost);
    for (size_t i = 0; i < json_array_size(losses); ++i)
        assert_string_equal(dump_text(json_array_get(losses, i), "cause"), "device");
}

void dump_expect_end(dump_expectation *expected) {
    const dump_files *files = expected->files;
    check_losses(expected);
    assert_int_equal(dump_entry_count(files), expected->expected + expected->in_flight);
    assert_int_equal(dump_number(files->tensors, "total_tensors"), expected->expected);
    if (!expected->rules->is_mismatched)
        assert_int_equal(json_array_size(dump_array(files->tensors, "skipped")), expected->skipped);
    free(expected->places);
    free(expected);
}
