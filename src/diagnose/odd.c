/* Scalars and views that break a pattern, or that nothing explains. */
#include "diagnose/odd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/memory.h"

static const char doing[] = "comparing the arguments of tasks";

/* One argument of one task, as a number. */
typedef enum feature {
    SCALAR_BITS,
    FIRST_BYTE,
    ELEMENTS, /* of the shape */
} feature;

typedef struct row {
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint32_t slot;
    uint32_t feature;
    uint32_t dtype;
    uint64_t task;
    uint64_t entry;
    uint64_t value;
} row;

/* Lengths of all tensors, and where views begin in them: open addressing, 0 is always in it. */
enum { LENGTH_SLOTS = 1 << 16 };
enum { DIMENSIONS_MAX = 1024 };
typedef struct lengths {
    uint64_t slots[LENGTH_SLOTS];
    size_t count;
    uint64_t dimensions[DIMENSIONS_MAX]; /* the lengths among them; those that do not fit are not
                                            compared */
    size_t dimension_count;
} lengths;

typedef struct table {
    gbx_entries *entries;
    lengths *known;
    row *rows;
    uint64_t count;
    uint64_t capacity;
    gbx_odd *odd;
} table;

gbx_status gbx_odd_add(gbx_odd *odd, const gbx_odd_argument *argument) {
    GBX_TRY(gbx_array_reserve(&odd->items, &odd->capacity, odd->count + 1, doing));
    odd->items[odd->count++] = *argument;
    return NULL;
}

/* --- what tasks were called with --- */

static gbx_status add_row(table *t, const gbx_entry *entry, feature what, uint64_t value) {
    GBX_TRY(gbx_array_reserve(&t->rows, &t->capacity, t->count + 1, doing));
    row *to = &t->rows[t->count++];
    *to = (row){.slot = entry->head->arg_index,
                .feature = what,
                .dtype = entry->dtype,
                .task = entry->head->task,
                .entry = entry->index,
                .value = value};
    memcpy(to->func_ids, entry->task->func_ids, sizeof to->func_ids);
    return NULL;
}

/* Whether it is there; adds it if not, unless the set is half full. */
static bool find_length(lengths *known, uint64_t length, bool adds) {
    size_t at = (size_t)((length * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
    while (known->slots[at] != 0 && known->slots[at] != length)
        at = (at + 1) % LENGTH_SLOTS;
    bool is_there = length == 0 || known->slots[at] == length;
    if (!is_there && adds && known->count < LENGTH_SLOTS / 2) {
        known->slots[at] = length;
        ++known->count;
    }
    return is_there;
}

static bool has_dimension(const lengths *known, uint64_t length) {
    for (size_t i = 0; i < known->dimension_count; ++i)
        if (known->dimensions[i] == length)
            return true;
    return false;
}

static void add_dimension(lengths *known, uint64_t length) {
    if (known->dimension_count < DIMENSIONS_MAX && !has_dimension(known, length))
        known->dimensions[known->dimension_count++] = length;
}

static void add_lengths(lengths *known, const gbx_tensor *view) {
    int64_t rest = view->start_offset;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        add_dimension(known, (uint64_t)view->shape[d]);
        find_length(known, (uint64_t)view->shape[d], true);
        if (view->strides[d] <= 0)
            continue;
        find_length(known, (uint64_t)(rest / view->strides[d]), true);
        rest %= view->strides[d];
    }
}

static gbx_status add_entry(table *t, const gbx_entry *entry) {
    gbx_tensor view;
    bool is_before = entry->head->stage == GBX_STAGE_BEFORE;
    if (!entry->task)
        return NULL;
    if (entry->scalar)
        return add_row(t, entry, SCALAR_BITS, entry->scalar->bits);
    if (!is_before && entry->head->role == GBX_ROLE_INOUT)
        return NULL;
    gbx_record_view(entry->tensor, &view);
    add_lengths(t->known, &view);
    uint64_t offset =
        (uint64_t)((int64_t)((uint64_t)view.start_offset * gbx_dtype_bits(view.dtype)) / 8);
    GBX_TRY(add_row(t, entry, FIRST_BYTE, view.data + offset));
    return add_row(t, entry, ELEMENTS, gbx_entry_numel(entry));
}

/* The run's own tensors, of which tasks may have only parts. */
static gbx_status gather_results(table *t) {
    gbx_reader *reader = gbx_entries_reader(t->entries);
    for (uint64_t i = 0; i < gbx_reader_result_count(reader); ++i) {
        gbx_result result;
        gbx_tensor view;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        gbx_record_view(result.record, &view);
        add_lengths(t->known, &view);
    }
    return NULL;
}

static gbx_status gather(table *t) {
    gbx_entry entry;
    GBX_TRY(gather_results(t));
    for (uint64_t i = 0; i < gbx_entries_count(t->entries); ++i) {
        GBX_TRY(gbx_entries_at(t->entries, i, &entry));
        if (!(entry.head->flags & GBX_FLAG_IN_FLIGHT))
            GBX_TRY(add_entry(t, &entry));
    }
    return NULL;
}

static int compare_sequences(const row *a, const row *b) {
    int order = memcmp(a->func_ids, b->func_ids, sizeof a->func_ids);
    if (order == 0)
        order = (a->slot > b->slot) - (a->slot < b->slot);
    return order != 0 ? order : (a->feature > b->feature) - (a->feature < b->feature);
}

static int compare_rows(const void *a, const void *b) {
    const row *x = a, *y = b;
    int order = compare_sequences(x, y);
    return order != 0 ? order : (x->task > y->task) - (x->task < y->task);
}

static gbx_odd_argument about(const row *at, gbx_odd_kind kind) {
    return (gbx_odd_argument){.kind = kind,
                              .task = at->task,
                              .entry = at->entry,
                              .other = UINT64_MAX,
                              .other_entry = UINT64_MAX,
                              .unread = UINT64_MAX,
                              .found = at->value};
}

/* --- what explains an integer --- */

static bool is_integer(uint32_t dtype) {
    return dtype == GBX_INT32 || dtype == GBX_UINT32 || dtype == GBX_INT64 || dtype == GBX_UINT64;
}

/* How far an integer is from what its task's tensors say of themselves. */
typedef struct likeness {
    bool is_explained; /* it is a length, a number of elements, or where a view begins */
    bool is_near;      /* to such a length; of a scalar that all tasks share, to any in the graph */
    bool is_length;    /* of any tensor of the graph, or where a view of it begins */
    uint64_t length;   /* the nearest */
} likeness;

static void compare_length(uint64_t value, uint64_t length, likeness *to) {
    uint64_t distance = value > length ? value - length : length - value;
    to->is_explained |= distance == 0;
    if (distance * 4 <= length && length >= 8 &&
        (!to->is_near ||
         distance < (value > to->length ? value - to->length : to->length - value))) {
        to->is_near = true;
        to->length = length;
    }
}

static void compare_dimensions(const lengths *known, uint64_t value, likeness *to) {
    for (size_t i = 0; i < known->dimension_count; ++i)
        compare_length(value, known->dimensions[i], to);
}

static gbx_status explain(const table *t, const row *at, likeness *out_likeness) {
    *out_likeness = (likeness){.is_explained = at->value == 0};
    out_likeness->is_length =
        t->known->count >= LENGTH_SLOTS / 2 || find_length(t->known, at->value, false);
    for (uint64_t i = gbx_entries_find(t->entries, at->task); i < gbx_entries_count(t->entries);
         ++i) {
        gbx_entry entry;
        gbx_tensor view;
        GBX_TRY(gbx_entries_at(t->entries, i, &entry));
        if (entry.head->task != at->task)
            break;
        if (!entry.tensor)
            continue;
        gbx_record_view(entry.tensor, &view);
        compare_length(at->value, gbx_entry_numel(&entry), out_likeness);
        for (uint32_t d = 0; d < view.ndims; ++d) {
            compare_length(at->value, (uint64_t)view.shape[d], out_likeness);
            int64_t step = view.strides[d];
            out_likeness->is_explained |=
                step > 0 && (uint64_t)(view.start_offset / step) == at->value;
        }
    }
    return NULL;
}

/* --- sequences --- */

static gbx_status judge_pattern(table *t, const row *rows, size_t count) {
    size_t position;
    likeness like = {0};
    uint64_t expected, *values = malloc(count * sizeof *values);
    if (!values)
        return gbx_fail_memory("%s", doing);
    for (size_t i = 0; i < count; ++i)
        values[i] = rows[i].value;
    bool is_odd = gbx_odd_one(values, count, &position, &expected);
    free(values);
    if (!is_odd)
        return NULL;
    const row *at = &rows[position];
    bool is_scalar = at->feature == SCALAR_BITS;
    /* Tails are at the ends. */
    if (!is_scalar && (position == 0 || position + 1 == count))
        return NULL;
    if (is_scalar && is_integer(at->dtype))
        GBX_TRY(explain(t, at, &like));
    if (like.is_explained && (position == 0 || position + 1 == count))
        return NULL;
    gbx_odd_argument odd = about(at, is_scalar ? GBX_ODD_SCALAR : GBX_ODD_VIEW);
    odd.is_size = at->feature == ELEMENTS;
    odd.expected = expected;
    odd.siblings = count - 1;
    return gbx_odd_add(t->odd, &odd);
}

static bool is_constant(const row *rows, size_t count) {
    for (size_t i = 1; i < count; ++i)
        if (rows[i].value != rows[0].value)
            return false;
    return true;
}

/* 0 for no, 1 for yes. */
static bool is_flag(const row *rows, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (rows[i].value > 1)
            return false;
    return true;
}

/* Whether the bits of an integer are those of a float that people write down: 0.5, 1e-06. */
static bool is_plain_float(uint64_t bits) {
    char text[32];
    if (bits < 0x30000000 || bits > 0xd0000000 || (bits & 0x7f800000) > 0x50000000)
        return false;
    snprintf(text, sizeof text, "%.4g", gbx_dtype_to_f64(GBX_FLOAT32, bits));
    return gbx_dtype_from_f64(GBX_FLOAT32, strtod(text, NULL)) == bits;
}

/* The bits went through a call for another type. Only the first such task is listed. */
static gbx_status judge_bits(table *t, const row *rows, size_t count) {
    for (size_t i = 0; i < count && rows[0].feature == SCALAR_BITS; ++i) {
        const uint64_t value = rows[i].value;
        likeness like = {0};
        bool is_integer_bits = rows[i].dtype == GBX_FLOAT32 && value > 0 && value < 1 << 20;
        bool is_typed = is_integer(rows[i].dtype) && rows[i].dtype != GBX_UINT64; /* no raw word */
        if (is_typed)
            GBX_TRY(explain(t, &rows[i], &like));
        if (!is_integer_bits &&
            !(is_typed && is_plain_float(value) && !like.is_explained && !like.is_length))
            continue;
        gbx_odd_argument odd = about(&rows[i], GBX_ODD_SCALAR_BITS);
        odd.expected_dtype = is_integer_bits ? GBX_INT32 : GBX_FLOAT32;
        return gbx_odd_add(t->odd, &odd);
    }
    return NULL;
}

/* Only the first such task is listed. */
static gbx_status judge_integers(table *t, const row *rows, size_t count) {
    bool varies = !is_constant(rows, count);
    if (rows[0].feature != SCALAR_BITS || !is_integer(rows[0].dtype) ||
        (varies && is_flag(rows, count)))
        return NULL;
    for (size_t i = 0; i < count; ++i) {
        likeness like;
        GBX_TRY(explain(t, &rows[i], &like));
        if (!varies && !like.is_explained)
            compare_dimensions(t->known, rows[i].value, &like);
        if (like.is_explained || (varies ? like.is_length : !like.is_near))
            continue;
        gbx_odd_argument odd =
            about(&rows[i], like.is_near ? GBX_ODD_NEAR_SCALAR : GBX_ODD_LOOSE_SCALAR);
        odd.expected = like.length;
        return gbx_odd_add(t->odd, &odd);
    }
    return NULL;
}

/* --- names --- */

/* The scalar of the run with a name, from --dump-args. */
static gbx_status find_named(const table *t, const char *name, uint64_t *out_bits,
                             uint32_t *out_dtype, bool *out_is_there) {
    gbx_reader *reader = gbx_entries_reader(t->entries);
    const gbx_run_info *run = gbx_reader_run(reader);
    *out_is_there = false;
    for (uint64_t i = 0; i < gbx_reader_list_count(reader, GBX_LIST_RUN_ARGS); ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, i, &record));
        const gbx_record_run_arg *argument = (const void *)record;
        uint32_t index = argument->head.arg_index;
        if (argument->is_tensor || index >= run->argument_count || !run->arguments[index].name ||
            strcmp(run->arguments[index].name, name) != 0)
            continue;
        *out_bits = argument->bits;
        *out_dtype = argument->head.dtype;
        *out_is_there = true;
        return NULL;
    }
    return NULL;
}

/* Whether a scalar of the run has this value and a longer name: "out_step" for "step". */
static gbx_status is_meant(const table *t, const char *name, uint64_t bits, bool *out_is_meant) {
    gbx_reader *reader = gbx_entries_reader(t->entries);
    const gbx_run_info *run = gbx_reader_run(reader);
    *out_is_meant = false;
    for (uint64_t i = 0; i < gbx_reader_list_count(reader, GBX_LIST_RUN_ARGS); ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, i, &record));
        const gbx_record_run_arg *argument = (const void *)record;
        uint32_t index = argument->head.arg_index;
        const char *other = index < run->argument_count ? run->arguments[index].name : NULL;
        *out_is_meant |= !argument->is_tensor && argument->bits == bits && other &&
                         strcmp(other, name) != 0 && strstr(other, name);
    }
    return NULL;
}

static bool is_negated(uint32_t dtype, uint64_t value, uint64_t bits) {
    return gbx_dtype_is_float(dtype) ? (value ^ bits) == UINT64_C(1) << (gbx_dtype_bits(dtype) - 1)
                                     : value == 0 - bits || (uint32_t)value == 0 - (uint32_t)bits;
}

static gbx_status judge_name(table *t, const row *rows, size_t count) {
    gbx_entry entry;
    uint64_t bits = 0;
    uint32_t dtype = rows[0].dtype;
    bool is_there = false;
    if (rows[0].feature != SCALAR_BITS)
        return NULL;
    GBX_TRY(gbx_entries_at(t->entries, rows[0].entry, &entry));
    if (entry.arg_name)
        GBX_TRY(find_named(t, entry.arg_name, &bits, &dtype, &is_there));
    const row *odd_one = NULL;
    uint64_t right = 0, meant = 0;
    for (size_t i = 0; is_there && i < count; ++i) {
        right += rows[i].value == bits;
        meant +=
            rows[i].value != bits && (rows[i].value == 0 || is_negated(dtype, rows[i].value, bits));
        if (rows[i].value != bits && !odd_one)
            odd_one = &rows[i];
    }
    if (odd_one && right == 0)
        GBX_TRY(is_meant(t, entry.arg_name, odd_one->value, &is_there));
    /* Where many have 0 in its place, it is switched off; or negated: it goes the other way. */
    bool is_meant_otherwise = right > 0 && meant * 4 >= count && right + meant == count;
    if (!odd_one || (right == 0 && is_there) || is_meant_otherwise)
        return NULL;
    gbx_odd_argument odd = about(odd_one, GBX_ODD_NAMED_SCALAR);
    odd.expected = bits;
    odd.expected_dtype = dtype;
    odd.siblings = right; /* most of all if others of the kernel are right */
    return gbx_odd_add(t->odd, &odd);
}

static gbx_status judge_all(table *t) {
    for (uint64_t first = 0, end; first < t->count; first = end) {
        for (end = first + 1;
             end < t->count && compare_sequences(&t->rows[first], &t->rows[end]) == 0; ++end)
            ;
        GBX_TRY(judge_name(t, &t->rows[first], end - first));
        GBX_TRY(judge_bits(t, &t->rows[first], end - first));
        GBX_TRY(judge_pattern(t, &t->rows[first], end - first));
        GBX_TRY(judge_integers(t, &t->rows[first], end - first));
    }
    return NULL;
}

/* --- all of it --- */

static int compare_odd(const void *a, const void *b) {
    const gbx_odd_argument *x = a, *y = b;
    int order = (x->kind > y->kind) - (x->kind < y->kind);
    if (order == 0)
        order = (y->siblings > x->siblings) - (y->siblings < x->siblings);
    if (order == 0)
        order = (x->task > y->task) - (x->task < y->task);
    return order != 0 ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

gbx_status gbx_odd_find(gbx_entries *entries, const gbx_task_graph *graph, gbx_odd *out_odd) {
    table t = {.entries = entries, .odd = out_odd, .known = calloc(1, sizeof(lengths))};
    *out_odd = (gbx_odd){0};
    gbx_status status = t.known ? gather(&t) : gbx_fail_memory("%s", doing);
    if (!status && t.count > 0) {
        qsort(t.rows, t.count, sizeof *t.rows, compare_rows);
        status = judge_all(&t);
    }
    free(t.rows);
    free(t.known);
    if (!status)
        status = gbx_odd_find_flow(entries, graph, out_odd);
    if (!status)
        status = gbx_odd_find_relations(entries, graph, out_odd);
    if (!status && out_odd->count > 0)
        qsort(out_odd->items, out_odd->count, sizeof *out_odd->items, compare_odd);
    return status;
}

void gbx_odd_free(gbx_odd *odd) {
    free(odd->items);
    *odd = (gbx_odd){0};
}
