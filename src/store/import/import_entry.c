#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "store/import/internal.h"
#include "store/reader.h"
#include "text/json_reader.h"
#include "text/names.h"

enum { HASH_DIGITS = 32, DTYPE_NAME_BYTES = 32 };

/* --- the task --- */

static gbx_status get_task(const gbx_import_fields *fields, gbx_import_entry *entry) {
    const gbx_scan_value *id = &fields->values[GBX_FIELD_task_id];
    int64_t number = 0;
    entry->has_task_id = gbx_import_has(fields, GBX_FIELD_task_id);
    entry->has_task_seq = gbx_import_has(fields, GBX_FIELD_task_seq);
    if (!entry->has_task_id && !entry->has_task_seq)
        return gbx_import_require(fields, GBX_FIELD_task_id);
    if (entry->has_task_id && id->kind == GBX_SCAN_NUMBER) {
        bool is_negative = false;
        if (!gbx_scan_integer(id, &entry->task_id, &is_negative) || is_negative)
            return gbx_import_fail_expected(fields, GBX_FIELD_task_id, -1, id,
                                            "a 64-bit integer or a string \"0x...\"");
    } else {
        GBX_TRY(gbx_import_get_hex(fields, GBX_FIELD_task_id, &entry->task_id));
    }
    GBX_TRY(
        gbx_import_get_integer(fields, GBX_FIELD_task_seq, 0, GBX_RECORD_TASK_END - 1, &number));
    entry->task_seq = (uint64_t)number;
    number = 0;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_block_num, 0, UINT32_MAX, &number));
    entry->has_block_num = gbx_import_has(fields, GBX_FIELD_block_num);
    entry->block_num = (uint32_t)number;
    return NULL;
}

/* A number or an array of them; -1 for an unknown kernel. */
static gbx_status get_func_ids(const gbx_import_fields *fields,
                               int64_t out_ids[GBX_IMPORT_KERNELS_MAX], uint32_t *out_count) {
    int64_t values[GBX_MAX_DIMS];
    uint32_t count = 0;
    if (fields->values[GBX_FIELD_func_id].kind == GBX_SCAN_NUMBER) {
        count = gbx_import_has(fields, GBX_FIELD_func_id);
        GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_func_id, -1, UINT32_MAX - 1, values));
    } else {
        GBX_TRY(
            gbx_import_get_integers(fields, GBX_FIELD_func_id, -1, UINT32_MAX - 1, values, &count));
    }
    if (count > GBX_IMPORT_KERNELS_MAX)
        return gbx_import_fail(fields, GBX_FIELD_func_id, "has %u kernels; a task has at most %d",
                               count, GBX_IMPORT_KERNELS_MAX);
    for (uint32_t i = 0; i < count; ++i)
        out_ids[i] = values[i];
    *out_count = count;
    return NULL;
}

static gbx_status fail_kernel_count(const gbx_import_fields *fields, gbx_import_field field,
                                    uint32_t count, uint32_t func_count) {
    return gbx_import_fail(fields, field, "has %u elements, but \"func_id\" has %u", count,
                           func_count);
}

static gbx_status get_names(const gbx_import_fields *fields, uint32_t func_count,
                            gbx_scan_value out_names[GBX_IMPORT_KERNELS_MAX]) {
    const gbx_scan_value *value = &fields->values[GBX_FIELD_kernel];
    uint32_t count = 0;
    if (!gbx_import_has(fields, GBX_FIELD_kernel))
        return NULL;
    if (value->kind == GBX_SCAN_STRING)
        out_names[count++] = *value;
    else
        GBX_TRY(gbx_import_get_array(fields, GBX_FIELD_kernel, out_names, GBX_IMPORT_KERNELS_MAX,
                                     &count));
    if (count != func_count)
        return fail_kernel_count(fields, GBX_FIELD_kernel, count, func_count);
    for (uint32_t i = 0; i < count; ++i)
        if (out_names[i].kind != GBX_SCAN_STRING && out_names[i].kind != GBX_SCAN_NULL)
            return gbx_import_fail_expected(fields, GBX_FIELD_kernel, (int)i, &out_names[i],
                                            "a string or null");
    return NULL;
}

/* The subtask of each kernel; in the given order when subtasks are missing. */
static gbx_status get_places(const gbx_import_fields *fields, uint32_t func_count,
                             uint32_t out_places[GBX_IMPORT_KERNELS_MAX]) {
    gbx_scan_value values[GBX_IMPORT_KERNELS_MAX];
    uint32_t count = 0;
    unsigned taken = 0;
    for (uint32_t i = 0; i < GBX_IMPORT_KERNELS_MAX; ++i)
        out_places[i] = i;
    if (!gbx_import_has(fields, GBX_FIELD_subtasks))
        return NULL;
    GBX_TRY(
        gbx_import_get_array(fields, GBX_FIELD_subtasks, values, GBX_IMPORT_KERNELS_MAX, &count));
    if (count != func_count)
        return fail_kernel_count(fields, GBX_FIELD_subtasks, count, func_count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t place = gbx_import_find_name(&values[i], &gbx_subtasks);
        if (place == GBX_IMPORT_KERNELS_MAX || taken >> place & 1)
            return gbx_import_fail_expected(fields, GBX_FIELD_subtasks, (int)i, &values[i],
                                            "\"aic\", \"aiv0\" or \"aiv1\", each once");
        taken |= 1u << place;
        out_places[i] = place;
    }
    return NULL;
}

static gbx_status get_kernels(const gbx_import_fields *fields, gbx_import_entry *entry) {
    int64_t ids[GBX_IMPORT_KERNELS_MAX] = {0};
    uint32_t places[GBX_IMPORT_KERNELS_MAX];
    gbx_scan_value names[GBX_IMPORT_KERNELS_MAX] = {0};
    uint32_t count = 0;
    GBX_TRY(get_func_ids(fields, ids, &count));
    GBX_TRY(get_names(fields, count, names));
    GBX_TRY(get_places(fields, count, places));
    entry->has_subtasks = gbx_import_has(fields, GBX_FIELD_subtasks);
    for (uint32_t i = 0; i < count; ++i) {
        if (ids[i] < 0)
            continue;
        if (!entry->has_task_id)
            return gbx_import_fail(fields, GBX_FIELD_func_id,
                                   "is given for a task without task_id");
        entry->func_ids[places[i]] = (uint32_t)ids[i];
        entry->kernels[places[i]] = names[i];
    }
    bool has_blocks = entry->has_block_num || !entry->has_task_id;
    entry->known |= entry->has_subtasks && has_blocks ? GBX_KNOWN_SUBTASKS : 0;
    entry->known |= entry->has_task_seq ? GBX_KNOWN_TASK_SEQ : 0;
    return NULL;
}

/* --- the argument --- */

static gbx_status get_dtype(const gbx_import_fields *fields, uint8_t *out_dtype) {
    const gbx_scan_value *value = &fields->values[GBX_FIELD_dtype];
    char name[DTYPE_NAME_BYTES] = "";
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_dtype));
    if (value->kind == GBX_SCAN_STRING && !value->has_escape && value->size < sizeof name)
        memcpy(name, value->text, value->size);
    gbx_dtype dtype = gbx_dtype_parse(name);
    if (dtype == GBX_DTYPE_NONE)
        return gbx_import_fail_expected(fields, GBX_FIELD_dtype, -1, value,
                                        "the name of a dtype, such as \"float32\"");
    *out_dtype = (uint8_t)dtype;
    return NULL;
}

static gbx_status get_argument(const gbx_import_fields *fields, gbx_import_entry *entry) {
    gbx_record *head = &entry->record.head;
    int64_t number = 0;
    int64_t ignored;
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_arg_index));
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_role));
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_stage));
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_index, 0, INT64_MAX, &ignored));
    GBX_TRY(
        gbx_import_get_integer(fields, GBX_FIELD_arg_index, 0, GBX_ARG_LOCAL_CONTEXT - 1, &number));
    head->arg_index = (uint8_t)number;
    GBX_TRY(gbx_import_get_bool(fields, GBX_FIELD_arg_index_ambiguous, &entry->is_ambiguous));
    GBX_TRY(gbx_import_get_name(fields, GBX_FIELD_role, &gbx_roles, &head->role));
    GBX_TRY(gbx_import_get_name(fields, GBX_FIELD_stage, &gbx_stages, &head->stage));
    GBX_TRY(get_dtype(fields, &head->dtype));
    if (gbx_import_has(fields, GBX_FIELD_arg_name)) {
        entry->arg_name = fields->values[GBX_FIELD_arg_name];
        if (entry->arg_name.kind != GBX_SCAN_STRING)
            return gbx_import_fail_expected(fields, GBX_FIELD_arg_name, -1, &entry->arg_name,
                                            "a string");
    }
    return NULL;
}

static gbx_status get_times(const gbx_import_fields *fields, gbx_import_entry *entry) {
    int64_t time = 0;
    int64_t thread = 0;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_time_ns, 0, INT64_MAX, &time));
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_thread, 0, UINT16_MAX, &thread));
    entry->record.head.time_ns = (uint64_t)time;
    entry->record.head.thread = (uint16_t)thread;
    if (gbx_import_has(fields, GBX_FIELD_time_ns) && gbx_import_has(fields, GBX_FIELD_thread))
        entry->known |= GBX_KNOWN_TIMES;
    return NULL;
}

/* Present, even if null. */
static bool is_present(const gbx_import_fields *fields, gbx_import_field field) {
    return fields->seen >> field & 1;
}

/* All three are null for a task that did not run or whose times are unknown. */
static gbx_status get_span(const gbx_import_fields *fields, gbx_import_entry *entry) {
    gbx_scan_value values[GBX_IMPORT_CORES_MAX];
    gbx_import_span *span = &entry->span;
    int64_t start = 0, end = 0, core = 0;
    uint32_t count = 0;
    const int64_t last = (INT64_C(1) << 53) - 1;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_start_ns, 0, last, &start));
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_end_ns, 0, last, &end));
    span->has_start = gbx_import_has(fields, GBX_FIELD_start_ns);
    span->start_ns = (uint64_t)start;
    span->end_ns = gbx_import_has(fields, GBX_FIELD_end_ns) ? (uint64_t)end : GBX_NO_END_NS;
    if (span->end_ns < span->start_ns)
        return gbx_import_fail(fields, GBX_FIELD_end_ns, "is before start_ns");
    if (gbx_import_has(fields, GBX_FIELD_cores))
        GBX_TRY(
            gbx_import_get_array(fields, GBX_FIELD_cores, values, GBX_IMPORT_CORES_MAX, &count));
    for (uint32_t i = 0; i < count; ++i) {
        if (!gbx_import_is_integer(&values[i], 0, GBX_RECORD_CORE_END - 1, &core))
            return gbx_import_fail_expected(fields, GBX_FIELD_cores, (int)i, &values[i],
                                            "the number of a core");
        span->cores[core / 64] |= UINT64_C(1) << core % 64;
    }
    if (span->has_start != (count > 0))
        return gbx_import_fail(fields, GBX_FIELD_cores, "%s",
                               count ? "are given without start_ns"
                                     : "are missing, but start_ns is given");
    if (is_present(fields, GBX_FIELD_start_ns) && is_present(fields, GBX_FIELD_end_ns) &&
        is_present(fields, GBX_FIELD_cores))
        entry->known |= GBX_KNOWN_SPANS;
    return NULL;
}

static gbx_status get_flag(const gbx_import_fields *fields, gbx_import_field field, uint16_t flag,
                           gbx_record *head) {
    bool is_set = false;
    GBX_TRY(gbx_import_get_bool(fields, field, &is_set));
    head->flags = (uint16_t)(head->flags | (is_set ? flag : 0));
    return NULL;
}

static gbx_status get_flags(const gbx_import_fields *fields, gbx_record *head) {
    GBX_TRY(get_flag(fields, GBX_FIELD_truncated, GBX_FLAG_TRUNCATED, head));
    GBX_TRY(get_flag(fields, GBX_FIELD_overwritten, GBX_FLAG_OVERWRITTEN, head));
    return get_flag(fields, GBX_FIELD_in_flight, GBX_FLAG_IN_FLIGHT, head);
}

/* --- tensors --- */

static gbx_status get_hash(const gbx_import_fields *fields, gbx_record_tensor *record) {
    const gbx_scan_value *value = &fields->values[GBX_FIELD_hash];
    if (!gbx_import_has(fields, GBX_FIELD_hash))
        return NULL;
    char text[2][2 + HASH_DIGITS / 2] = {"0x", "0x"};
    uint64_t halves[2];
    for (size_t i = 0; i < 2; ++i) {
        gbx_scan_value half = {GBX_SCAN_STRING, false, text[i], sizeof text[i]};
        if (value->kind == GBX_SCAN_STRING && value->size == HASH_DIGITS)
            memcpy(text[i] + 2, value->text + i * (HASH_DIGITS / 2), HASH_DIGITS / 2);
        if (!gbx_scan_hex(&half, &halves[i]))
            return gbx_import_fail_expected(fields, GBX_FIELD_hash, -1, value,
                                            "a string of 32 hexadecimal digits");
    }
    record->hash_high = halves[0];
    record->hash_low = halves[1];
    record->head.flags |= GBX_FLAG_HAS_HASH;
    return NULL;
}

static gbx_status check_size(const gbx_import_fields *fields, const gbx_record_tensor *record,
                             uint64_t whole) {
    bool is_truncated = record->head.flags & GBX_FLAG_TRUNCATED;
    if (record->bin_size == 0 || record->bin_size == whole ||
        (is_truncated && record->bin_size < whole))
        return NULL;
    return gbx_import_fail(fields, GBX_FIELD_bin_size,
                           "%" PRIu64 " is %s the %" PRIu64 " bytes of its shape and dtype",
                           record->bin_size, is_truncated ? "more than" : "not", whole);
}

/* An entry without bytes that should have some has no payload. */
static gbx_status get_payload(const gbx_import_fields *fields, const gbx_tensor *view,
                              gbx_record_tensor *record) {
    int64_t offset = 0;
    int64_t size = 0;
    uint64_t whole = gbx_tensor_payload_bytes(view);
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_bin_offset, 0, INT64_MAX, &offset));
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_bin_size, 0, INT64_MAX, &size));
    if (size > 0)
        GBX_TRY(gbx_import_require(fields, GBX_FIELD_bin_offset));
    if (offset > INT64_MAX - size)
        return gbx_import_fail(fields, GBX_FIELD_bin_offset,
                               "%" PRId64 " and a bin_size of %" PRId64 " overflow 64 bits", offset,
                               size);
    record->bin_size = (uint64_t)size;
    GBX_TRY(check_size(fields, record, whole));
    bool is_truncated = record->head.flags & GBX_FLAG_TRUNCATED;
    if (size > 0 || whole == 0 || is_truncated) {
        record->head.flags |= GBX_FLAG_HAS_PAYLOAD;
        record->bin_offset = (uint64_t)offset;
    }
    return get_hash(fields, record);
}

static gbx_status read_tensor(const gbx_import_fields *fields, gbx_import_entry *entry) {
    gbx_record_tensor *record = &entry->record.tensor;
    gbx_tensor view;
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_shape));
    GBX_TRY(gbx_import_get_geometry(fields, record->head.dtype, &view));
    record->head.type = GBX_RECORD_TENSOR;
    record->head.ndims = (uint8_t)view.ndims;
    record->head.flags |= gbx_tensor_is_contiguous(&view) ? GBX_FLAG_CONTIGUOUS : 0;
    record->start_offset = view.start_offset;
    GBX_TRY(gbx_import_get_hex(fields, GBX_FIELD_buffer_addr, &record->buffer_addr));
    entry->known |= gbx_import_has(fields, GBX_FIELD_buffer_addr) ? GBX_KNOWN_ADDRESSES : 0;
    GBX_TRY(get_payload(fields, &view, record));
    uint64_t *words = entry->record.words + sizeof *record / 8;
    memcpy(words, view.shape, view.ndims * sizeof *words);
    memcpy(words + view.ndims, view.strides, view.ndims * sizeof *words);
    words += (size_t)2 * view.ndims;
    if (gbx_import_has(fields, GBX_FIELD_stats)) {
        gbx_record_stats stats;
        GBX_TRY(gbx_import_get_stats(fields, record->head.dtype, &stats));
        memcpy(words, &stats, sizeof stats);
        words += sizeof stats / 8;
        record->head.flags |= GBX_FLAG_HAS_STATS;
    }
    record->head.words = (uint32_t)(words - entry->record.words);
    return NULL;
}

/* --- scalars --- */

static gbx_status read_scalar(const gbx_import_fields *fields, gbx_import_entry *entry) {
    gbx_record_scalar *record = &entry->record.scalar;
    gbx_tensor view;
    int64_t size = 0;
    GBX_TRY(gbx_import_get_geometry(fields, record->head.dtype, &view));
    for (uint32_t d = 0; d < view.ndims; ++d)
        if (view.shape[d] != 1)
            return gbx_import_fail(fields, GBX_FIELD_shape, "a scalar has one element");
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_bin_size, 0, INT64_MAX, &size));
    if (size != 0)
        return gbx_import_fail(fields, GBX_FIELD_bin_size, "a scalar has no payload");
    record->head.type = GBX_RECORD_SCALAR;
    record->head.words = sizeof *record / 8;
    entry->known |= GBX_KNOWN_ADDRESSES; /* a scalar has none */
    return gbx_import_get_scalar(fields, record->head.dtype, &record->bits);
}

/* Without `kind`: an entry with a value and no bytes is a scalar. */
static gbx_status get_kind(const gbx_import_fields *fields, bool *out_is_tensor) {
    int64_t size = 0;
    GBX_TRY(gbx_import_get_integer(fields, GBX_FIELD_bin_size, 0, INT64_MAX, &size));
    bool is_present = gbx_import_has(fields, GBX_FIELD_value) ||
                      gbx_import_has(fields, GBX_FIELD_scalar_value) ||
                      gbx_import_has(fields, GBX_FIELD_bits);
    uint8_t kind = !is_present || size > 0 ? GBX_KIND_TENSOR : GBX_KIND_SCALAR;
    GBX_TRY(gbx_import_get_name(fields, GBX_FIELD_kind, &gbx_kinds, &kind));
    *out_is_tensor = kind == GBX_KIND_TENSOR;
    return NULL;
}

gbx_status gbx_import_entry_read(const gbx_import_fields *fields, gbx_import_entry *out_entry) {
    bool is_tensor = true;
    memset(out_entry, 0, sizeof *out_entry);
    memset(out_entry->func_ids, 0xff, sizeof out_entry->func_ids);
    GBX_TRY(get_task(fields, out_entry));
    GBX_TRY(get_kernels(fields, out_entry));
    GBX_TRY(get_argument(fields, out_entry));
    GBX_TRY(get_times(fields, out_entry));
    GBX_TRY(get_span(fields, out_entry));
    GBX_TRY(get_flags(fields, &out_entry->record.head));
    GBX_TRY(get_kind(fields, &is_tensor));
    return is_tensor ? read_tensor(fields, out_entry) : read_scalar(fields, out_entry);
}

/* --- results of the run --- */

#define PIECE_ROW(name, ...) PIECE_##name,
enum { GBX_PIECE_FIELDS(PIECE_ROW) PIECE_COUNT };
#define PIECE_NAME(name) (PIECE_##name < PIECE_COUNT ? #name : NULL)

static gbx_status read_piece(const gbx_cursor *object, gbx_record_piece *out_piece) {
    gbx_cursor member;
    int64_t offset = 0;
    int64_t bytes = 0;
    const char *address = "";
    GBX_TRY(gbx_cursor_member(object, PIECE_NAME(offset), &member));
    GBX_TRY(gbx_cursor_integer(&member, 0, INT64_MAX, &offset));
    GBX_TRY(gbx_cursor_member(object, PIECE_NAME(bytes), &member));
    GBX_TRY(gbx_cursor_integer(&member, 1, INT64_MAX, &bytes));
    GBX_TRY(gbx_cursor_member(object, PIECE_NAME(address), &member));
    GBX_TRY(gbx_cursor_string(&member, &address));
    gbx_scan_value text = {GBX_SCAN_STRING, false, address, strlen(address)};
    if (!gbx_scan_hex(&text, &out_piece->address))
        return gbx_cursor_fail(&member, "expected a string \"0x...\", got \"%.32s\"", address);
    out_piece->offset = (uint64_t)offset;
    out_piece->bytes = (uint64_t)bytes;
    return NULL;
}

static gbx_status read_pieces(const gbx_import_fields *fields, const gbx_cursor *array,
                              gbx_record_piece *pieces, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor element;
        GBX_TRY(gbx_cursor_element(array, i, &element));
        GBX_TRY(read_piece(&element, &pieces[i]));
        uint64_t end = i ? pieces[i - 1].offset + pieces[i - 1].bytes : 0;
        if (pieces[i].offset < end || pieces[i].bytes > UINT64_MAX - pieces[i].address ||
            pieces[i].bytes > INT64_MAX - pieces[i].offset)
            return gbx_import_fail(fields, GBX_FIELD_pieces,
                                   "are not ascending and disjoint, or overflow 64 bits");
    }
    return NULL;
}

/* `pieces` is a document: NULL for none. */
static gbx_status make_result(const gbx_import_fields *fields, const gbx_import_entry *entry,
                              json_t *pieces, gbx_record_tensor **out_record) {
    gbx_cursor array = gbx_cursor_root(pieces, fields->path);
    size_t count = 0;
    if (pieces)
        GBX_TRY(gbx_cursor_count(&array, &count));
    if (count > GBX_RECORD_MAX_PIECES)
        return gbx_import_fail(fields, GBX_FIELD_pieces, "has more than %u elements",
                               GBX_RECORD_MAX_PIECES);
    size_t words = entry->record.head.words + 1 + count * (sizeof(gbx_record_piece) / 8);
    uint64_t *result = calloc(words, sizeof *result);
    if (!result)
        return gbx_fail_memory("reading %s", fields->path);
    memcpy(result, entry->record.words, entry->record.head.words * sizeof *result);
    uint64_t *at = result + entry->record.head.words;
    *at = count;
    gbx_status status = read_pieces(fields, &array, (gbx_record_piece *)(void *)(at + 1), count);
    if (status) {
        free(result);
        return status;
    }
    *out_record = (gbx_record_tensor *)(void *)result;
    (*out_record)->head.words = (uint32_t)words;
    return NULL;
}

static gbx_status get_result(const gbx_import_fields *fields, gbx_import_entry *entry) {
    gbx_record *head = &entry->record.head;
    int64_t number = 0;
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_arg_index));
    GBX_TRY(gbx_import_require(fields, GBX_FIELD_role));
    GBX_TRY(
        gbx_import_get_integer(fields, GBX_FIELD_arg_index, 0, GBX_MAX_RUN_TENSORS - 1, &number));
    head->arg_index = (uint8_t)number;
    GBX_TRY(gbx_import_get_name(fields, GBX_FIELD_role, &gbx_roles, &head->role));
    if (head->role == GBX_ROLE_INPUT)
        return gbx_import_fail(fields, GBX_FIELD_role, "expected \"output\" or \"inout\"");
    GBX_TRY(get_dtype(fields, &head->dtype));
    GBX_TRY(get_flags(fields, head));
    GBX_TRY(read_tensor(fields, entry));
    /* Always like its payload, so the manifest has no strides. */
    gbx_tensor view;
    uint64_t *words = entry->record.words + sizeof(gbx_record_tensor) / 8;
    GBX_TRY(gbx_tensor_contiguous(0, head->dtype, head->ndims, (const int64_t *)words, &view));
    memcpy(words + head->ndims, view.strides, head->ndims * sizeof *words);
    entry->record.tensor.start_offset = 0;
    head->flags |= GBX_FLAG_CONTIGUOUS;
    head->type = GBX_RECORD_RESULT;
    head->stage = GBX_STAGE_NONE;
    return NULL;
}

gbx_status gbx_import_result_read(const gbx_import_fields *fields, gbx_record_tensor **out_record,
                                  json_t **out_name) {
    gbx_import_entry entry;
    json_t *pieces = NULL;
    const gbx_scan_value *name = &fields->values[GBX_FIELD_name];
    const gbx_scan_value *listed = &fields->values[GBX_FIELD_pieces];
    memset(&entry, 0, sizeof entry);
    GBX_TRY(get_result(fields, &entry));
    bool is_named = gbx_import_has(fields, GBX_FIELD_name);
    if (is_named && name->kind != GBX_SCAN_STRING)
        return gbx_import_fail_expected(fields, GBX_FIELD_name, -1, name, "a string");
    if (gbx_import_has(fields, GBX_FIELD_pieces)) {
        if (listed->kind != GBX_SCAN_ARRAY)
            return gbx_import_fail_expected(fields, GBX_FIELD_pieces, -1, listed, "an array");
        GBX_TRY(gbx_json_parse(fields->path, listed->text, listed->size, &pieces));
    }
    gbx_status status = make_result(fields, &entry, pieces, out_record);
    json_decref(pieces);
    GBX_TRY(status);
    /* The text of a string is between its quotes. */
    *out_name =
        is_named ? json_loadb(name->text - 1, name->size + 2, JSON_DECODE_ANY, NULL) : json_null();
    if (*out_name)
        return NULL;
    free(*out_record);
    *out_record = NULL;
    return gbx_import_fail_expected(fields, GBX_FIELD_name, -1, name, "a name");
}
