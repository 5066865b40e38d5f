#include "store/verify/verify_expected.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "base/hash.h"
#include "store/verify/verify_text.h"
#include "text/float_text.h"

static const char *const roles[] = {"input", "output", "inout"};
static const char *const stages[] = {"before_dispatch", "after_completion"};
static const char *const subtasks[] = {"aic", "aiv0", "aiv1"};

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "comparing a manifest: the host is out of memory");
}

/* --- values --- */

static json_t *hex(uint64_t value) {
    char text[18] = "0x";
    for (size_t i = 17; i >= 2; --i, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    return json_stringn_nocheck(text, sizeof text);
}

static json_t *numbers(const int64_t *values, uint32_t count) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; ++i)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

/* What a reader gets from the shortest text of a float. */
static json_t *real(double value, bool is_f64) {
    char text[GBX_FLOAT_TEXT_BYTES];
    if (isnan(value))
        return json_string("nan");
    if (isinf(value))
        return json_string(value < 0 ? "-inf" : "inf");
    if (is_f64)
        gbx_f64_format(value, text);
    else
        gbx_f32_format((float)value, text);
    return json_real(strtod(text, NULL));
}

static json_t *decimal_text(uint32_t dtype, uint64_t bits) {
    char text[24];
    if (dtype == GBX_INT64)
        snprintf(text, sizeof text, "%" PRId64, (int64_t)bits);
    else
        snprintf(text, sizeof text, "%" PRIu64, bits);
    return json_string(text);
}

/* `value` of a scalar. */
static json_t *value_of(uint32_t dtype, uint64_t bits) {
    uint32_t width = gbx_dtype_bits(dtype);
    uint64_t low = width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
    if (gbx_dtype_is_float(dtype))
        return real(gbx_dtype_to_f64(dtype, low), dtype == GBX_FLOAT64);
    if (width == 64)
        return decimal_text(dtype, bits);
    if (dtype == GBX_BOOL)
        return json_boolean(low != 0);
    return json_integer((json_int_t)gbx_dtype_to_f64(dtype, low));
}

/* min and max of statistics. */
static json_t *extreme(uint32_t dtype, uint64_t bits) {
    if (gbx_dtype_is_float(dtype))
        return real(gbx_f64_of_bits(bits), dtype == GBX_FLOAT64);
    if (gbx_dtype_bits(dtype) == 64)
        return decimal_text(dtype, bits);
    return dtype == GBX_BOOL ? json_boolean(bits != 0) : json_integer((json_int_t)bits);
}

bool gbx_expected_equals(const json_t *wanted, const json_t *got) {
    if (json_is_number(wanted) && json_is_number(got)) {
        if (json_is_integer(wanted) && json_is_integer(got))
            return json_integer_value(wanted) == json_integer_value(got);
        double value = json_number_value(wanted);
        return value == json_number_value(got) && signbit(value) == signbit(json_number_value(got));
    }
    if (json_typeof(wanted) != json_typeof(got))
        return false;
    if (json_is_array(wanted)) {
        size_t count = json_array_size(wanted);
        if (json_array_size(got) != count)
            return false;
        for (size_t i = 0; i < count; ++i)
            if (!gbx_expected_equals(json_array_get(wanted, i), json_array_get(got, i)))
                return false;
        return true;
    }
    if (!json_is_object(wanted))
        return json_equal(wanted, got);
    void *at = json_object_iter((json_t *)(uintptr_t)wanted);
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)wanted, at)) {
        const json_t *found = json_object_get(got, json_object_iter_key(at));
        if (!found || !gbx_expected_equals(json_object_iter_value(at), found))
            return false;
    }
    return true;
}

/* --- the tops --- */

static json_t *expected_run(const gbx_run_info *run) {
    return json_pack("{s:s?,s:s?,s:s?,s:s?,s:s?,s:I,s:I,s:s?}", "run_id", run->run_id, "scene",
                     run->scene, "case", run->case_name, "platform", run->platform, "runtime",
                     run->runtime, "rank", (json_int_t)run->rank, "round", (json_int_t)run->round,
                     "started_at", run->started_at);
}

static json_t *expected_kernels(const gbx_run_info *run) {
    json_t *kernels = json_array();
    for (size_t i = 0; i < run->kernel_count; ++i) {
        const gbx_run_kernel *kernel = &run->kernels[i];
        json_t *signature = json_array();
        for (size_t k = 0; k < kernel->signature_count; ++k)
            json_array_append_new(signature, json_string(kernel->signature[k]));
        json_array_append_new(kernels,
                              json_pack("{s:I,s:s,s:s?,s:o}", "func_id",
                                        (json_int_t)kernel->func_id, "name", kernel->name,
                                        "core_type", kernel->core_type, "signature", signature));
    }
    return kernels;
}

static json_t *expected_totals(gbx_reader *reader) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    const gbx_record_end *end = gbx_reader_end(reader);
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:I,s:I,s:I,s:I}", "total_tensors",
        (json_int_t)totals->records, "before_dispatch", (json_int_t)totals->before_dispatch,
        "after_completion", (json_int_t)totals->after_completion, "input_tensors",
        (json_int_t)totals->inputs, "output_tensors", (json_int_t)totals->outputs, "inout_tensors",
        (json_int_t)totals->inouts, "in_flight_tensors", (json_int_t)totals->in_flight,
        "truncated_tensors", (json_int_t)totals->truncated, "dropped_records",
        (json_int_t)totals->dropped, "dropped_overwrite", 0, "deduplicated_tensors",
        (json_int_t)totals->deduplicated, "payload_bytes", (json_int_t)totals->payload_bytes,
        "stored_bytes", (json_int_t)totals->stored_bytes, "stall_ns",
        (json_int_t)(end ? end->stall_ns : 0));
}

json_t *gbx_expected_tensors_head(gbx_reader *reader) {
    const gbx_run_info *run = gbx_reader_run(reader);
    json_t *head = json_pack(
        "{s:i,s:s?,s:o,s:s,s:{s:s,s:s},s:s?,s:b,s:o}", "schema_version", 1, "generator",
        run->generator, "run", expected_run(run), "bin_file", "tensor_dump.bin", "bin_format",
        "type", "logical_contiguous", "byte_order", "little_endian", "dump_level", run->dump_level,
        "complete", (int)gbx_reader_is_complete(reader), "kernels", expected_kernels(run));
    json_t *totals = expected_totals(reader);
    if (gbx_reader_end(reader))
        json_object_set_new(head, "status", json_string(gbx_reader_end_text(reader)));
    json_object_update(head, totals);
    json_decref(totals);
    return head;
}

json_t *gbx_expected_arguments_head(gbx_reader *reader) {
    return json_pack("{s:i,s:o,s:I}", "schema_version", 1, "run",
                     expected_run(gbx_reader_run(reader)), "total_args",
                     (json_int_t)gbx_reader_get_totals(reader)->run_args);
}

json_t *gbx_expected_dispatches_head(gbx_reader *reader) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    return json_pack("{s:i,s:o,s:I,s:I}", "schema_version", 1, "run",
                     expected_run(gbx_reader_run(reader)), "total_dispatches",
                     (json_int_t)totals->dispatches, "total_args",
                     (json_int_t)totals->dispatch_args);
}

/* --- arguments --- */

/* What the TASK record says, in every entry of the task. */
static void add_task(json_t *entry, const gbx_run_info *run, const gbx_record_task *task) {
    json_t *funcs = json_array(), *kernels = json_array(), *active = json_array();
    for (size_t i = 0; i < 3; ++i) {
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        const gbx_run_kernel *kernel = gbx_run_info_kernel(run, task->func_ids[i]);
        json_array_append_new(funcs, json_integer(task->func_ids[i]));
        json_array_append_new(kernels, kernel ? json_string(kernel->name) : json_null());
        json_array_append_new(active, json_string(subtasks[i]));
    }
    json_object_set_new(entry, "task_id", hex(task->task_id));
    json_object_set_new(entry, "func_id", funcs);
    json_object_set_new(entry, "kernel", kernels);
    json_object_set_new(entry, "block_num", json_integer(task->block_num));
    json_object_set_new(entry, "subtasks", active);
}

static void add_payload(json_t *entry, const gbx_record_tensor *record) {
    char text[GBX_HASH_TEXT_BYTES];
    bool has_payload = record->head.flags & GBX_FLAG_HAS_PAYLOAD;
    json_object_set_new(entry, "bin_offset",
                        json_integer(has_payload ? (json_int_t)record->bin_offset : 0));
    json_object_set_new(entry, "bin_size",
                        json_integer(has_payload ? (json_int_t)record->bin_size : 0));
    if (!(record->head.flags & GBX_FLAG_HAS_HASH))
        return;
    gbx_hash_format((gbx_hash128){.low = record->hash_low, .high = record->hash_high}, text);
    json_object_set_new(entry, "hash", json_string(text));
}

static void add_statistics(json_t *entry, const gbx_record_tensor *record) {
    const gbx_record_stats *stats = gbx_record_statistics(record);
    if (!stats)
        return;
    bool is_empty = false;
    for (uint8_t d = 0; d < record->head.ndims; ++d)
        is_empty |= gbx_record_shape(record)[d] == 0;
    json_t *object = json_pack("{s:I,s:I,s:I,s:I}", "nan", (json_int_t)stats->nan_count, "inf",
                               (json_int_t)stats->inf_count, "zero", (json_int_t)stats->zero_count,
                               "subnormal", (json_int_t)stats->subnormal_count);
    if (!is_empty) {
        json_object_set_new(object, "min", extreme(record->head.dtype, stats->min_bits));
        json_object_set_new(object, "max", extreme(record->head.dtype, stats->max_bits));
        json_object_set_new(object, "mean", real(stats->mean, true));
    }
    json_object_set_new(entry, "stats", object);
}

static void add_tensor(json_t *entry, const gbx_record_tensor *record) {
    gbx_tensor view;
    const gbx_record *head = &record->head;
    gbx_record_view(record, &view);
    json_object_set_new(entry, "kind", json_string("tensor"));
    json_object_set_new(entry, "dtype", json_string(gbx_dtype_name(head->dtype)));
    json_object_set_new(entry, "shape", numbers(view.shape, head->ndims));
    json_object_set_new(entry, "strides", numbers(view.strides, head->ndims));
    json_object_set_new(entry, "start_offset", json_integer(record->start_offset));
    json_object_set_new(entry, "numel", json_integer(gbx_tensor_numel(&view)));
    json_object_set_new(entry, "is_contiguous", json_boolean(head->flags & GBX_FLAG_CONTIGUOUS));
    json_object_set_new(entry, "buffer_addr", hex(record->buffer_addr));
    add_payload(entry, record);
    add_statistics(entry, record);
}

static void add_scalar(json_t *entry, const gbx_record_scalar *record) {
    uint8_t dtype = gbx_record_scalar_dtype(record->head.dtype);
    json_object_set_new(entry, "kind", json_string("scalar"));
    json_object_set_new(entry, "dtype", json_string(gbx_dtype_name(dtype)));
    json_object_set_new(entry, "bits", hex(record->bits));
    json_object_set_new(entry, "value", value_of(dtype, record->bits));
    json_object_set_new(entry, "shape", json_array());
    json_object_set_new(entry, "strides", json_array());
    json_object_set_new(entry, "start_offset", json_integer(0));
    json_object_set_new(entry, "numel", json_integer(1));
    json_object_set_new(entry, "is_contiguous", json_true());
    json_object_set_new(entry, "bin_offset", json_integer(0));
    json_object_set_new(entry, "bin_size", json_integer(0));
}

static json_t *expected_argument(const gbx_expected *expected, const gbx_record *record) {
    const gbx_run_info *run = gbx_reader_run(expected->reader);
    json_t *entry =
        json_pack("{s:I,s:I,s:i,s:s,s:s,s:b,s:b,s:b,s:I,s:i}", "index", (json_int_t)expected->index,
                  "task_seq", (json_int_t)record->task, "arg_index", (int)record->arg_index, "role",
                  roles[record->role], "stage", stages[record->stage], "truncated",
                  (record->flags & GBX_FLAG_TRUNCATED) != 0, "overwritten",
                  (record->flags & GBX_FLAG_OVERWRITTEN) != 0, "in_flight",
                  (record->flags & GBX_FLAG_IN_FLIGHT) != 0, "time_ns", (json_int_t)record->time_ns,
                  "thread", (int)record->thread);
    if (!entry)
        return NULL;
    bool has_task = expected->has_task && expected->task.head.task == record->task;
    if (has_task) {
        const char *name = gbx_run_info_slot_name(run, expected->task.func_ids, record->arg_index);
        add_task(entry, run, &expected->task);
        if (name)
            json_object_set_new(entry, "arg_name", json_string(name));
    }
    if (record->type == GBX_RECORD_TENSOR)
        add_tensor(entry, (const gbx_record_tensor *)(const void *)record);
    else
        add_scalar(entry, (const gbx_record_scalar *)(const void *)record);
    return entry;
}

/* The next record of one of two types; TASK records are remembered on the way. */
static gbx_status next_record(gbx_expected *expected, uint8_t type, uint8_t other,
                              const gbx_record **out_record) {
    *out_record = NULL;
    while (expected->position < gbx_reader_count(expected->reader)) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_at(expected->reader, expected->position++, &record));
        if (record->type == type || record->type == other) {
            *out_record = record;
            return NULL;
        }
        bool is_known = expected->has_task && expected->task.head.task == record->task;
        if (record->type != GBX_RECORD_TASK || is_known)
            continue; /* the first record of a task is the one that counts */
        memcpy(&expected->task, record, sizeof expected->task);
        expected->has_task = true;
    }
    return NULL;
}

gbx_status gbx_expected_next_argument(gbx_expected *expected, json_t **out_entry) {
    const gbx_record *record;
    *out_entry = NULL;
    GBX_TRY(next_record(expected, GBX_RECORD_TENSOR, GBX_RECORD_SCALAR, &record));
    if (!record)
        return NULL;
    expected->is_same =
        expected->text && gbx_verify_is_text(expected, record, expected->text, expected->text_size);
    *out_entry = expected->is_same ? json_true() : expected_argument(expected, record);
    if (!*out_entry)
        return fail_memory();
    expected->has_place = true;
    expected->place = (gbx_finding_place){.index = expected->index,
                                          .task = record->task,
                                          .arg_index = record->arg_index,
                                          .stage = record->stage};
    ++expected->index;
    return NULL;
}

/* --- what is missing --- */

/* The next record of a list, copied to `out_record`; *out_has_one false at the end. */
static gbx_status next_listed(gbx_expected *expected, gbx_reader_list list, void *out_record,
                              size_t size, bool *out_has_one) {
    const gbx_record *record;
    *out_has_one = expected->position < gbx_reader_list_count(expected->reader, list);
    if (!*out_has_one)
        return NULL;
    GBX_TRY(gbx_reader_list_at(expected->reader, list, expected->position++, &record));
    memcpy(out_record, record, size);
    return NULL;
}

/* The id of a task; null where its record is missing. */
static gbx_status add_task_id(gbx_expected *expected, uint64_t number, json_t *entry) {
    gbx_record_task task;
    bool is_found;
    GBX_TRY(gbx_reader_find_task(expected->reader, number, &task, &is_found));
    json_object_set_new(entry, "task_id", is_found ? hex(task.task_id) : json_null());
    return NULL;
}

static json_t *arg_index_of(const gbx_record *head) {
    return head->arg_index == GBX_ARG_NONE ? json_null() : json_integer(head->arg_index);
}

gbx_status gbx_expected_next_loss(gbx_expected *expected, json_t **out_entry) {
    static const char *const causes[GBX_LOSS_CAUSE_COUNT] = {"stall", "disk", "corrupt", "device",
                                                             "not told"};
    gbx_record_loss loss;
    bool has_one;
    *out_entry = NULL;
    GBX_TRY(next_listed(expected, GBX_LIST_LOSSES, &loss, sizeof loss, &has_one));
    if (!has_one)
        return NULL;
    const char *stage = loss.head.stage <= GBX_STAGE_AFTER ? stages[loss.head.stage] : NULL;
    bool is_known = stage || loss.head.arg_index != GBX_ARG_NONE;
    *out_entry = json_pack("{s:o,s:o,s:o,s:s?,s:s,s:I}", "task_id", json_null(), "task_seq",
                           is_known ? json_integer((json_int_t)loss.head.task) : json_null(),
                           "arg_index", arg_index_of(&loss.head), "stage", stage, "cause",
                           causes[loss.cause], "count", (json_int_t)loss.count);
    if (*out_entry && !is_known)
        return NULL;
    return *out_entry ? add_task_id(expected, loss.head.task, *out_entry) : fail_memory();
}

gbx_status gbx_expected_next_skipped(gbx_expected *expected, json_t **out_entry) {
    gbx_record_skipped skipped;
    bool has_one;
    *out_entry = NULL;
    GBX_TRY(next_listed(expected, GBX_LIST_SKIPPED, &skipped, sizeof skipped, &has_one));
    if (!has_one)
        return NULL;
    const gbx_run_kernel *kernel =
        gbx_run_info_kernel(gbx_reader_run(expected->reader), skipped.func_id);
    *out_entry = json_pack("{s:I,s:o,s:s?}", "task_seq", (json_int_t)skipped.head.task, "arg_index",
                           arg_index_of(&skipped.head), "kernel", kernel ? kernel->name : NULL);
    return *out_entry ? add_task_id(expected, skipped.head.task, *out_entry) : fail_memory();
}

/* --- arguments of the orchestration --- */

gbx_status gbx_expected_next_run_arg(gbx_expected *expected, json_t **out_entry) {
    union {
        gbx_record_run_arg fixed;
        uint64_t words[sizeof(gbx_record_run_arg) / 8 + GBX_MAX_DIMS];
    } arg = {0};
    const gbx_record *record;
    *out_entry = NULL;
    if (expected->position >= gbx_reader_list_count(expected->reader, GBX_LIST_RUN_ARGS))
        return NULL;
    GBX_TRY(gbx_reader_list_at(expected->reader, GBX_LIST_RUN_ARGS, expected->position++, &record));
    size_t bytes = (size_t)record->words * 8;
    memcpy(&arg, record, bytes < sizeof arg ? bytes : sizeof arg);
    const gbx_record *head = &arg.fixed.head;
    uint8_t dtype = arg.fixed.is_tensor ? head->dtype : gbx_record_scalar_dtype(head->dtype);
    const gbx_run_info *run = gbx_reader_run(expected->reader);
    uint32_t ndims = arg.fixed.is_tensor ? head->ndims : 0;
    *out_entry = json_pack(
        "{s:i,s:s?,s:s,s:s,s:I,s:o}", "arg_index", (int)head->arg_index, "name",
        head->arg_index < run->argument_count ? run->arguments[head->arg_index].name : NULL, "type",
        arg.fixed.is_tensor ? "tensor" : "scalar", "dtype", gbx_dtype_name(dtype), "ndims",
        (json_int_t)ndims, "shape", numbers(gbx_record_run_arg_shape(&arg.fixed), ndims));
    if (!*out_entry)
        return fail_memory();
    if (arg.fixed.is_tensor) {
        json_object_set_new(*out_entry, "data_ptr", hex(arg.fixed.bits));
        return NULL;
    }
    json_object_set_new(*out_entry, "bits", hex(arg.fixed.bits));
    json_object_set_new(*out_entry, "scalar_value", decimal_text(GBX_UINT64, arg.fixed.bits));
    json_object_set_new(*out_entry, "value", value_of(dtype, arg.fixed.bits));
    return NULL;
}

/* --- dispatches --- */

static json_t *expected_slot(const gbx_slot_view *view) {
    const gbx_record_slot *slot = view->slot;
    uint32_t ndims = slot->is_tensor ? slot->ndims : 0;
    uint8_t dtype = slot->is_tensor ? slot->dtype : gbx_record_scalar_dtype(slot->dtype);
    json_t *entry =
        json_pack("{s:i,s:s,s:s,s:s,s:I,s:o,s:o,s:I,s:o}", "arg_index", (int)slot->arg_index,
                  "kind", slot->is_tensor ? "tensor" : "scalar", "role", roles[slot->role], "dtype",
                  gbx_dtype_name(dtype), "ndims", (json_int_t)ndims, "shape",
                  numbers(view->shape, ndims), "strides", numbers(view->strides, ndims),
                  "start_offset", (json_int_t)view->start_offset, "bits", hex(slot->bits));
    if (slot->is_tensor)
        json_object_set_new(entry, "data_ptr", hex(view->data));
    else
        json_object_set_new(entry, "value", value_of(dtype, slot->bits));
    return entry;
}

static json_t *expected_slots(const gbx_record_dispatch *record) {
    json_t *slots = json_array();
    const void *at = record + 1;
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        gbx_slot_view view;
        at = gbx_record_next_slot(at, &view);
        json_array_append_new(slots, expected_slot(&view));
    }
    return slots;
}

static json_t *expected_contexts(const gbx_record_dispatch *record) {
    return json_pack("[{s:i,s:s,s:o},{s:i,s:s,s:o}]", "arg_index", GBX_ARG_LOCAL_CONTEXT, "name",
                     "local_context", "bits", hex(record->local_context), "arg_index",
                     GBX_ARG_GLOBAL_CONTEXT, "name", "global_context", "bits",
                     hex(record->global_context));
}

gbx_status gbx_expected_next_dispatch(gbx_expected *expected, json_t **out_entry) {
    const gbx_record *head;
    *out_entry = NULL;
    GBX_TRY(next_record(expected, GBX_RECORD_DISPATCH, GBX_RECORD_DISPATCH, &head));
    if (!head)
        return NULL;
    const gbx_record_dispatch *record = (const gbx_record_dispatch *)(const void *)head;
    const gbx_run_kernel *kernel =
        gbx_run_info_kernel(gbx_reader_run(expected->reader), record->func_id);
    *out_entry = json_pack(
        "{s:I,s:o,s:I,s:I,s:s?,s:i,s:s,s:I,s:I,s:I,s:s,s:I,s:o,s:o}", "dispatch_id",
        (json_int_t)expected->index++, "task_id", hex(record->task_id), "task_seq",
        (json_int_t)head->task, "func_id", (json_int_t)record->func_id, "kernel",
        kernel ? kernel->name : NULL, "subtask_id", (int)record->subtask, "core_type",
        record->subtask == GBX_SUBTASK_AIC ? "aic" : "aiv", "core_id", (json_int_t)record->core_id,
        "block_idx", (json_int_t)record->block_idx, "block_num", (json_int_t)record->block_num,
        "stage", "before_dispatch", "time_ns", (json_int_t)head->time_ns, "args",
        expected_slots(record), "contexts", expected_contexts(record));
    return *out_entry ? NULL : fail_memory();
}
