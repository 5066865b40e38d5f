#include "store/verify/verify_text.h"

#include <math.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "base/hash.h"
#include "text/float_text.h"

/* Compares as it goes: text that is not there ends it. */
typedef struct text_check {
    const char *at;
    const char *end;
    bool is_same;
} text_check;

static void expect(text_check *check, const char *text, size_t size) {
    check->is_same = check->is_same && (size_t)(check->end - check->at) >= size &&
                     memcmp(check->at, text, size) == 0;
    check->at += check->is_same ? size : 0;
}

#define EXPECT(check, literal) expect((check), (literal), sizeof(literal) - 1)

static void expect_text(text_check *check, const char *text) {
    expect(check, text, strlen(text));
}

/* Names that JSON writes as they are; others are left to the parser. */
static void expect_quoted(text_check *check, const char *text) {
    for (const char *at = text; *at; ++at)
        check->is_same &= *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\';
    EXPECT(check, "\"");
    expect_text(check, text);
    EXPECT(check, "\"");
}

static void expect_number(text_check *check, int64_t value) {
    char digits[24];
    size_t first = sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--first] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0)
        digits[--first] = '-';
    expect(check, digits + first, sizeof digits - first);
}

static void expect_hex(text_check *check, uint64_t value) {
    char text[20] = "\"0x";
    for (size_t i = 18; i >= 3; --i, value >>= 4)
        text[i] = "0123456789abcdef"[value & 15];
    text[19] = '"';
    expect(check, text, sizeof text);
}

static void expect_bool(text_check *check, bool value) {
    expect_text(check, value ? "true" : "false");
}

static void expect_numbers(text_check *check, const int64_t *values, uint32_t count) {
    EXPECT(check, "[");
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0)
            EXPECT(check, ",");
        expect_number(check, values[i]);
    }
    EXPECT(check, "]");
}

static void expect_float(text_check *check, double value, bool is_f64) {
    char text[GBX_FLOAT_TEXT_BYTES];
    check->is_same &= isfinite(value) != 0;
    if (!check->is_same)
        return;
    expect(check, text, is_f64 ? gbx_f64_format(value, text) : gbx_f32_format((float)value, text));
}

/* --- parts --- */

typedef void (*expect_one)(text_check *check, const gbx_run_info *run, const gbx_record_task *task,
                           size_t subtask);

static void expect_func(text_check *check, const gbx_run_info *run, const gbx_record_task *task,
                        size_t subtask) {
    (void)run;
    expect_number(check, task->func_ids[subtask]);
}

static void expect_kernel(text_check *check, const gbx_run_info *run, const gbx_record_task *task,
                          size_t subtask) {
    const gbx_run_kernel *kernel = gbx_run_info_kernel(run, task->func_ids[subtask]);
    if (kernel)
        expect_quoted(check, kernel->name);
    else
        EXPECT(check, "null");
}

static void expect_subtask(text_check *check, const gbx_run_info *run, const gbx_record_task *task,
                           size_t subtask) {
    static const char *const names[] = {"\"aic\"", "\"aiv0\"", "\"aiv1\""};
    (void)run;
    (void)task;
    expect_text(check, names[subtask]);
}

/* An array with an element for each subtask that the task has. */
static void expect_subtasks(text_check *check, const gbx_expected *expected, expect_one one) {
    bool is_first = true;
    EXPECT(check, "[");
    for (size_t i = 0; i < 3; ++i) {
        if (expected->task.func_ids[i] == UINT32_MAX)
            continue;
        if (!is_first)
            EXPECT(check, ",");
        one(check, gbx_reader_run(expected->reader), &expected->task, i);
        is_first = false;
    }
    EXPECT(check, "]");
}

static void expect_front(text_check *check, const gbx_expected *expected,
                         const gbx_record *record) {
    static const char *const roles[] = {"input", "output", "inout"};
    const char *name = gbx_run_info_slot_name(gbx_reader_run(expected->reader),
                                              expected->task.func_ids, record->arg_index);
    EXPECT(check, "{\"index\":");
    expect_number(check, (int64_t)expected->index);
    EXPECT(check, ",\"task_id\":");
    expect_hex(check, expected->task.task_id);
    EXPECT(check, ",\"task_seq\":");
    expect_number(check, (int64_t)record->task);
    EXPECT(check, ",\"func_id\":");
    expect_subtasks(check, expected, expect_func);
    EXPECT(check, ",\"kernel\":");
    expect_subtasks(check, expected, expect_kernel);
    EXPECT(check, ",\"arg_index\":");
    expect_number(check, record->arg_index);
    if (name) {
        EXPECT(check, ",\"arg_name\":");
        expect_quoted(check, name);
    }
    EXPECT(check, ",\"role\":");
    expect_quoted(check, roles[record->role]);
    EXPECT(check, ",\"stage\":");
    expect_quoted(check,
                  record->stage == GBX_STAGE_BEFORE ? "before_dispatch" : "after_completion");
}

static void expect_back(text_check *check, const gbx_expected *expected, const gbx_record *record) {
    EXPECT(check, ",\"truncated\":");
    expect_bool(check, record->flags & GBX_FLAG_TRUNCATED);
    EXPECT(check, ",\"overwritten\":");
    expect_bool(check, record->flags & GBX_FLAG_OVERWRITTEN);
    EXPECT(check, ",\"in_flight\":");
    expect_bool(check, record->flags & GBX_FLAG_IN_FLIGHT);
    EXPECT(check, ",\"time_ns\":");
    expect_number(check, (int64_t)record->time_ns);
    EXPECT(check, ",\"thread\":");
    expect_number(check, record->thread);
    EXPECT(check, ",\"block_num\":");
    expect_number(check, expected->task.block_num);
    EXPECT(check, ",\"subtasks\":");
    expect_subtasks(check, expected, expect_subtask);
}

/* `value`: floats and what is up to 32 bits; the rest is left to the parser. */
static void expect_value(text_check *check, uint32_t dtype, uint64_t bits) {
    uint32_t width = gbx_dtype_bits(dtype);
    uint64_t low = width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
    if (gbx_dtype_is_float(dtype)) {
        expect_float(check, gbx_dtype_to_f64(dtype, low), dtype == GBX_FLOAT64);
        return;
    }
    check->is_same &= width < 64 && dtype != GBX_BOOL;
    if (check->is_same)
        expect_number(check, (int64_t)gbx_dtype_to_f64(dtype, low));
}

static void expect_scalar(text_check *check, const gbx_record_scalar *record) {
    uint8_t dtype = gbx_record_scalar_dtype(record->head.dtype);
    EXPECT(check, ",\"kind\":\"scalar\",\"dtype\":");
    expect_quoted(check, gbx_dtype_name(dtype));
    EXPECT(check, ",\"value\":");
    expect_value(check, dtype, record->bits);
    EXPECT(check, ",\"bits\":");
    expect_hex(check, record->bits);
    EXPECT(check, ",\"shape\":[],\"strides\":[],\"start_offset\":0,\"numel\":1,"
                  "\"is_contiguous\":true,\"bin_offset\":0,\"bin_size\":0");
}

static void expect_hash(text_check *check, const gbx_record_tensor *record) {
    char text[GBX_HASH_TEXT_BYTES];
    if (!(record->head.flags & GBX_FLAG_HAS_HASH))
        return;
    gbx_hash_format((gbx_hash128){.low = record->hash_low, .high = record->hash_high}, text);
    EXPECT(check, ",\"hash\":");
    expect_quoted(check, text);
}

static void expect_tensor(text_check *check, const gbx_record_tensor *record) {
    const gbx_record *head = &record->head;
    bool has_payload = head->flags & GBX_FLAG_HAS_PAYLOAD;
    gbx_tensor view;
    gbx_record_view(record, &view);
    EXPECT(check, ",\"kind\":\"tensor\",\"dtype\":");
    expect_quoted(check, gbx_dtype_name(head->dtype));
    EXPECT(check, ",\"shape\":");
    expect_numbers(check, view.shape, head->ndims);
    EXPECT(check, ",\"strides\":");
    expect_numbers(check, view.strides, head->ndims);
    EXPECT(check, ",\"start_offset\":");
    expect_number(check, record->start_offset);
    EXPECT(check, ",\"numel\":");
    expect_number(check, gbx_tensor_numel(&view));
    EXPECT(check, ",\"is_contiguous\":");
    expect_bool(check, head->flags & GBX_FLAG_CONTIGUOUS);
    EXPECT(check, ",\"buffer_addr\":");
    expect_hex(check, record->buffer_addr);
    EXPECT(check, ",\"bin_offset\":");
    expect_number(check, has_payload ? (int64_t)record->bin_offset : 0);
    EXPECT(check, ",\"bin_size\":");
    expect_number(check, has_payload ? (int64_t)record->bin_size : 0);
    expect_hash(check, record);
}

/* Statistics are left to the parser. */
bool gbx_verify_is_text(const gbx_expected *expected, const gbx_record *record, const char *text,
                        size_t size) {
    text_check check = {.at = text, .end = text + size, .is_same = true};
    bool is_known = expected->has_task && expected->task.head.task == record->task;
    if (!is_known || (record->type == GBX_RECORD_TENSOR && record->flags & GBX_FLAG_HAS_STATS))
        return false;
    expect_front(&check, expected, record);
    if (record->type == GBX_RECORD_TENSOR)
        expect_tensor(&check, (const gbx_record_tensor *)(const void *)record);
    else
        expect_scalar(&check, (const gbx_record_scalar *)(const void *)record);
    expect_back(&check, expected, record);
    EXPECT(&check, "}");
    return check.is_same && check.at == check.end;
}
