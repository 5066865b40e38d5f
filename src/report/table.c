#include "report/table.h"

#include <string.h>

#include "base/float_bits.h"
#include "base/memory.h"
#include "base/status.h"
#include "tensor/compare/compare.h"

enum { MEASURED_MAX = 65536, LINE_BYTES = 4096 };

#define EXACT_END (UINT64_C(1) << 53)

/* --- rows and their members --- */

/* Rows are structs, so their members are aligned. */
#define READ(type, at) (*(const type *)(const void *)(at))

static gbx_status find_row(const gbx_rows *rows, uint64_t number, bool is_measured,
                           const char **out_row) {
    bool is_made = rows->make;
    *out_row = is_made ? rows->made : (const char *)rows->rows + number * rows->row_bytes;
    if (is_measured && rows->measure)
        return rows->measure(rows->rows, number, rows->made);
    return is_made ? rows->make(rows->rows, number, rows->made) : NULL;
}

/* An unsigned integer of any width; most have 4 or 8 bytes, which is faster. */
static inline uint64_t read_integer(const char *at, size_t bytes) {
    uint64_t value = 0;
    if (bytes >= sizeof(uint32_t))
        return bytes == sizeof value ? READ(uint64_t, at) : READ(uint32_t, at);
    memcpy(&value, at, bytes);
    return value;
}

static bool is_known(const gbx_field *field, const char *row) {
    return field->known_bytes == 0 || read_integer(row + field->known, field->known_bytes) != 0;
}

static const char *cell_text(gbx_texts *texts, const gbx_field *field, const char *row) {
    const char *at = row + field->offset;
    if (field->kind == GBX_FIELD_STRING && field->known_bytes == 0) /* most: nothing to make */
        return READ(char *, at);
    if (!is_known(field, row))
        return field->absent;
    if (field->hides_zero && read_integer(at, field->bytes) == 0)
        return "";
    switch (field->kind) {
    case GBX_FIELD_COUNT:
        return gbx_text_count(texts, read_integer(at, field->bytes));
    case GBX_FIELD_NUMBER:
        return gbx_text_number(texts, read_integer(at, field->bytes));
    case GBX_FIELD_F64:
        return gbx_text_real(texts, READ(double, at), 5);
    case GBX_FIELD_NS:
        return gbx_text_ns(texts, READ(uint64_t, at));
    case GBX_FIELD_ELEMENT:
        return gbx_text_value(texts, READ(uint32_t, row + field->with), READ(uint64_t, at));
    case GBX_FIELD_BOOL:
        return READ(bool, at) ? "yes" : "no";
    case GBX_FIELD_STRING:
        return READ(char *, at);
    case GBX_FIELD_TEXT:
        return at;
    case GBX_FIELD_NAME:
        return gbx_name_brief(field->names, (uint32_t)read_integer(at, field->bytes));
    case GBX_FIELD_DTYPE:
        return gbx_dtype_name(READ(uint32_t, at));
    case GBX_FIELD_SHAPE:
        return gbx_text_numbers(texts, READ(gbx_tensor, at).shape, READ(gbx_tensor, at).ndims);
    case GBX_FIELD_INDEX:
        return gbx_text_index(texts, &READ(gbx_tensor, row + field->with), READ(uint64_t, at));
    default: /* only in JSON */
        return NULL;
    }
}

/* --- widths; 0 for a field that is not shown --- */

typedef struct layout {
    gbx_sink *sink;
    const gbx_rows *rows;
    const gbx_field *fields;
    size_t count;
    size_t gap;
    size_t widths[GBX_FIELDS_MAX];
    bool is_left[GBX_FIELDS_MAX]; /* there was no room for it */
    size_t total;                 /* of a line */
} layout;

static gbx_status measure_row(layout *l, uint64_t number) {
    const char *row;
    GBX_TRY(find_row(l->rows, number, true, &row));
    for (size_t c = 0; c < l->count; ++c) {
        const char *cell =
            l->fields[c].heading ? cell_text(&l->sink->texts, &l->fields[c], row) : NULL;
        size_t width = cell ? gbx_text_width(cell) : 0;
        l->widths[c] = width > l->widths[c] ? width : l->widths[c];
    }
    return NULL;
}

/* The last row is measured, too: in a list its numbers are the largest. */
static gbx_status measure(layout *l) {
    uint64_t count = l->rows->count;
    bool is_terminal = l->sink->width != SIZE_MAX;
    uint64_t measured = !is_terminal && count > MEASURED_MAX ? MEASURED_MAX : count;
    for (size_t c = 0; c < l->count; ++c)
        l->widths[c] = l->fields[c].width;
    for (uint64_t i = 0; i < measured; ++i)
        GBX_TRY(measure_row(l, i));
    if (measured < count)
        GBX_TRY(measure_row(l, count - 1));
    for (size_t c = 0; c < l->count; ++c) {
        size_t heading = l->fields[c].heading ? strlen(l->fields[c].heading) : 0;
        if (measured < count && l->widths[c] == 0)
            l->widths[c] = heading; /* a text may come yet */
        if (l->widths[c] > 0 && l->widths[c] < heading)
            l->widths[c] = heading;
    }
    return NULL;
}

/* What a column can give: its heading stays intact. */
static size_t spare(const layout *l, size_t c) {
    const gbx_field *field = &l->fields[c];
    if (field->narrowest == 0 || l->widths[c] == 0)
        return 0;
    size_t least = strlen(field->heading);
    least = field->narrowest > least ? field->narrowest : least;
    return l->widths[c] > least ? l->widths[c] - least : 0;
}

static size_t total_width(const layout *l, size_t *out_spare) {
    size_t total = 0;
    *out_spare = 0;
    for (size_t c = 0; c < l->count; ++c) {
        total += l->widths[c] > 0 ? l->widths[c] + (total > 0 ? l->gap : 0) : 0;
        *out_spare += spare(l, c);
    }
    return total;
}

/* Columns leave until the rest fits with all its texts cut. Then the widest give a character at a
 * time until the line fits. */
static void fit(layout *l, size_t room) {
    size_t given;
    for (size_t turn = 1; turn <= GBX_FIELDS_MAX; ++turn)
        for (size_t c = 0; c < l->count; ++c)
            if (l->fields[c].leaves == turn && l->widths[c] > 0 &&
                total_width(l, &given) - given > room) {
                l->widths[c] = 0;
                l->is_left[c] = true;
            }
    while ((l->total = total_width(l, &given)) > room && given > 0) {
        size_t widest = SIZE_MAX;
        for (size_t c = 0; c < l->count; ++c)
            if (spare(l, c) > 0 && (widest == SIZE_MAX || l->widths[c] > l->widths[widest]))
                widest = c;
        --l->widths[widest];
    }
}

/* --- printing --- */

static bool is_right(const gbx_field *field) {
    return field->is_right || field->kind <= GBX_FIELD_ELEMENT;
}

/* Copies a text that is shown as it is and not wider than its column; false for others. */
static bool put_plain(char *at, const char *text, size_t width, bool stands_right) {
    size_t length = stands_right ? strlen(text) : 0, i = 0;
    if (length > width)
        return false;
    at += stands_right ? width - length : 0;
    for (; i < width && text[i] >= ' ' && text[i] <= '~' && text[i] != '\\'; ++i)
        at[i] = text[i];
    return !text[i];
}

/* A row of printable ASCII that fits its columns: nearly all rows, and ten times as fast. False,
 * with nothing printed, for others. */
static bool print_plain(const layout *l, const char *const *cells) {
    char line[LINE_BYTES];
    char *at = line, *end = line + l->total;
    if (l->total >= sizeof line)
        return false;
    memset(line, ' ', l->total);
    for (size_t c = 0; c < l->count; ++c) {
        if (l->widths[c] == 0)
            continue;
        if (cells[c] && !put_plain(at, cells[c], l->widths[c], is_right(&l->fields[c])))
            return false;
        at += l->widths[c] + l->gap;
    }
    while (end > line && end[-1] == ' ')
        --end;
    *end++ = '\n';
    fwrite_unlocked(line, 1, (size_t)(end - line), l->sink->out);
    return true;
}

/* Blanks come before a text, not after it, so that no line ends with some. */
static void print_cells(const layout *l, const char *const *cells) {
    gbx_sink *sink = l->sink;
    size_t blanks = 0;
    if (print_plain(l, cells))
        return;
    for (size_t c = 0; c < l->count; ++c) {
        if (l->widths[c] == 0)
            continue;
        const char *text = cells[c] ? cells[c] : "";
        if (sink->width != SIZE_MAX)
            text = gbx_text_cut(&sink->texts, text, l->widths[c]);
        size_t width = gbx_text_width(text);
        size_t rest = l->widths[c] > width ? l->widths[c] - width : 0;
        if (*text) {
            gbx_sink_print(sink, "%*s%s", (int)(blanks + (is_right(&l->fields[c]) ? rest : 0)), "",
                           gbx_text_shown(&sink->texts, text));
            blanks = is_right(&l->fields[c]) ? 0 : rest;
        } else {
            blanks += rest;
        }
        blanks += l->gap;
    }
    gbx_sink_print(sink, "\n");
}

/* "no room for: HASH, ROLE", on several lines where the terminal is narrow. */
static void print_left(gbx_sink *sink, const layout *l) {
    size_t used = 0;
    const char *comma = "";
    for (size_t c = 0; c < l->count; ++c) {
        const char *heading = l->fields[c].heading;
        if (!l->is_left[c])
            continue;
        gbx_sink_print(sink, "%s", used > 0 ? comma : "no room for:");
        used += used > 0 ? strlen(comma) : strlen("no room for:");
        bool has_room = used + strlen(heading) + 2 <= sink->width; /* with a blank and a comma */
        gbx_sink_print(sink, "%s%s", has_room ? " " : "\n", heading);
        used = (has_room ? used + 1 : 0) + strlen(heading);
        comma = ",";
    }
    if (used > 0)
        gbx_sink_print(sink, "\n");
}

gbx_status gbx_rows_print(gbx_sink *sink, const gbx_rows *rows, size_t gap) {
    layout l = {
        .sink = sink, .rows = rows, .fields = rows->fields, .count = rows->field_count, .gap = gap};
    const char *cells[GBX_FIELDS_MAX] = {NULL}, *row;
    if (rows->count == 0)
        return NULL;
    if (rows->field_count > GBX_FIELDS_MAX)
        return gbx_fail(GBX_INTERNAL, "printing a table of %zu fields; at most %d are possible",
                        rows->field_count, GBX_FIELDS_MAX);
    GBX_TRY(measure(&l));
    fit(&l, sink->width);
    for (size_t c = 0; c < l.count; ++c)
        cells[c] = l.fields[c].heading;
    print_cells(&l, cells);
    for (uint64_t i = 0; i < rows->count && !ferror_unlocked(sink->out); ++i) {
        GBX_TRY(find_row(rows, i, false, &row));
        for (size_t c = 0; c < l.count; ++c)
            cells[c] = l.widths[c] > 0 ? cell_text(&sink->texts, &l.fields[c], row) : NULL;
        print_cells(&l, cells);
    }
    print_left(sink, &l);
    return NULL;
}

/* --- JSON --- */

/* Raw bits of `dtype`, as manifests have values of scalars: integers of 64 bits are strings. */
static void put_value(gbx_json_writer *json, uint32_t dtype, uint64_t bits) {
    unsigned above = 64 - gbx_dtype_bits(dtype);
    if (dtype == GBX_BOOL)
        gbx_json_bool(json, (bits & 0xff) != 0);
    else if (dtype == GBX_FLOAT64)
        gbx_json_f64(json, gbx_f64_of_bits(bits));
    else if (gbx_dtype_is_float(dtype))
        gbx_json_f32(json, (float)gbx_dtype_to_f64(dtype, bits));
    else if (above > 0)
        gbx_json_i64(json, gbx_dtype_is_signed(dtype) ? (int64_t)(bits << above) >> above
                                                      : (int64_t)(bits << above >> above));
    else if (gbx_dtype_is_signed(dtype))
        gbx_json_i64_text(json, (int64_t)bits);
    else
        gbx_json_u64_text(json, bits);
}

static void put_numbers(gbx_json_writer *json, const int64_t *numbers, uint32_t count) {
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < count; ++i)
        gbx_json_i64(json, numbers[i]);
    gbx_json_end_array(json);
}

static void put_index(gbx_json_writer *json, const gbx_tensor *tensor, uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    gbx_compare_index(tensor, number, index);
    put_numbers(json, index, tensor->ndims);
}

static void put_field(gbx_json_writer *json, const gbx_field *field, const char *row) {
    const char *at = row + field->offset;
    gbx_json_key(json, field->key);
    if (!is_known(field, row)) {
        gbx_json_null(json);
        return;
    }
    switch (field->kind) {
    case GBX_FIELD_COUNT:
    case GBX_FIELD_NUMBER:
    case GBX_FIELD_NS:
        gbx_json_u64(json, read_integer(at, field->bytes));
        break;
    case GBX_FIELD_WIDE:
        if (READ(uint64_t, at) < EXACT_END)
            gbx_json_u64(json, READ(uint64_t, at));
        else
            gbx_json_u64_text(json, READ(uint64_t, at));
        break;
    case GBX_FIELD_I64:
        gbx_json_i64(json, READ(int64_t, at));
        break;
    case GBX_FIELD_HEX:
        gbx_json_hex_text(json, READ(uint64_t, at));
        break;
    case GBX_FIELD_F64:
        gbx_json_f64(json, READ(double, at));
        break;
    case GBX_FIELD_ELEMENT:
        put_value(json, READ(uint32_t, row + field->with), READ(uint64_t, at));
        break;
    case GBX_FIELD_BOOL:
        gbx_json_bool(json, READ(bool, at));
        break;
    case GBX_FIELD_STRING:
        gbx_json_string(json, READ(char *, at));
        break;
    case GBX_FIELD_TEXT:
        gbx_json_string(json, at);
        break;
    case GBX_FIELD_NAME:
        gbx_json_string(json, gbx_name_of(field->names, (uint32_t)read_integer(at, field->bytes)));
        break;
    case GBX_FIELD_DTYPE:
        gbx_json_string(json, gbx_dtype_name(READ(uint32_t, at)));
        break;
    case GBX_FIELD_SHAPE:
        put_numbers(json, READ(gbx_tensor, at).shape, READ(gbx_tensor, at).ndims);
        break;
    case GBX_FIELD_INDEX:
        put_index(json, &READ(gbx_tensor, row + field->with), READ(uint64_t, at));
        break;
    case GBX_FIELD_OBJECT:
        gbx_json_begin_object_inline(json);
        for (size_t i = 0; i < field->member_count; ++i)
            put_field(json, &field->members[i], at);
        gbx_json_end_object(json);
        break;
    }
}

void gbx_json_put_row(gbx_json_writer *json, const gbx_rows *rows) {
    for (size_t i = 0; i < rows->field_count; ++i)
        if (rows->fields[i].key)
            put_field(json, &rows->fields[i], rows->rows);
}

static void put_array(gbx_json_writer *json, const char *key, const gbx_rows *rows,
                      void (*begin_object)(gbx_json_writer *json)) {
    gbx_rows row = *rows;
    const char *at;
    gbx_json_key(json, key);
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < rows->count && !gbx_json_has_failed(json); ++i) {
        gbx_json_fail(json, find_row(rows, i, false, &at));
        row.rows = at;
        begin_object(json);
        gbx_json_put_row(json, &row);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

void gbx_json_put_rows(gbx_json_writer *json, const char *key, const gbx_rows *rows) {
    put_array(json, key, rows, gbx_json_begin_object_inline);
}

void gbx_json_put_objects(gbx_json_writer *json, const char *key, const gbx_rows *rows) {
    put_array(json, key, rows, gbx_json_begin_object);
}
