#include "report/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"
#include "base/memory.h"
#include "base/status.h"
#include "tensor/compare/compare.h"

enum { MEASURED_MAX = 65536, LINE_BYTES = 4096 };

#define EXACT_END (UINT64_C(1) << 53)

/* --- widths; 0 for a column that is not shown --- */

typedef struct layout {
    const gbx_table *table;
    size_t widths[GBX_COLUMNS_MAX];
    bool is_left[GBX_COLUMNS_MAX]; /* there was no room for it */
    size_t total;                  /* of a line */
} layout;

static gbx_status measure_row(layout *l, uint64_t row) {
    const char *cells[GBX_COLUMNS_MAX] = {NULL};
    GBX_TRY(l->table->fill(l->table->context, row, true, cells));
    for (size_t c = 0; c < l->table->column_count; ++c) {
        size_t width = cells[c] ? gbx_text_width(cells[c]) : 0;
        l->widths[c] = width > l->widths[c] ? width : l->widths[c];
    }
    return NULL;
}

/* The last row is measured, too: in a list its numbers are the largest. */
static gbx_status measure(layout *l, bool is_terminal) {
    uint64_t count = l->table->row_count;
    uint64_t measured = !is_terminal && count > MEASURED_MAX ? MEASURED_MAX : count;
    for (size_t c = 0; c < l->table->column_count; ++c)
        l->widths[c] = l->table->columns[c].width;
    for (uint64_t i = 0; i < measured; ++i)
        GBX_TRY(measure_row(l, i));
    if (measured < count)
        GBX_TRY(measure_row(l, count - 1));
    for (size_t c = 0; c < l->table->column_count; ++c) {
        if (measured < count && l->widths[c] == 0)
            l->widths[c] = 1; /* a text may come yet */
        size_t heading = strlen(l->table->columns[c].heading);
        if (l->widths[c] > 0 && l->widths[c] < heading)
            l->widths[c] = heading;
    }
    return NULL;
}

/* What a column can give: its heading stays intact. */
static size_t spare(const layout *l, size_t c) {
    const gbx_column *column = &l->table->columns[c];
    size_t least = strlen(column->heading);
    least = column->narrowest > least ? column->narrowest : least;
    return column->narrowest > 0 && l->widths[c] > least ? l->widths[c] - least : 0;
}

static size_t total_width(const layout *l, size_t *out_spare) {
    size_t total = 0;
    *out_spare = 0;
    for (size_t c = 0; c < l->table->column_count; ++c) {
        total += l->widths[c] > 0 ? l->widths[c] + (total > 0 ? l->table->gap : 0) : 0;
        *out_spare += spare(l, c);
    }
    return total;
}

/* Columns leave until the rest fits with all its texts cut. Then the widest give a character at a
 * time until the line fits. */
static void fit(layout *l, size_t room) {
    size_t given;
    for (size_t turn = 1; turn <= GBX_COLUMNS_MAX; ++turn)
        for (size_t c = 0; c < l->table->column_count; ++c)
            if (l->table->columns[c].leaves == turn && l->widths[c] > 0 &&
                total_width(l, &given) - given > room) {
                l->widths[c] = 0;
                l->is_left[c] = true;
            }
    while ((l->total = total_width(l, &given)) > room && given > 0) {
        size_t widest = SIZE_MAX;
        for (size_t c = 0; c < l->table->column_count; ++c)
            if (spare(l, c) > 0 && (widest == SIZE_MAX || l->widths[c] > l->widths[widest]))
                widest = c;
        --l->widths[widest];
    }
}

/* --- printing --- */

/* Copies a text that is shown as it is and not wider than its column; false for others. */
static bool put_plain(char *at, const char *text, size_t width, bool is_right) {
    size_t length = strlen(text);
    bool is_plain = true;
    if (length > width)
        return false;
    at += is_right ? width - length : 0;
    for (size_t i = 0; is_plain && i < length; ++i) {
        at[i] = text[i];
        is_plain = text[i] >= ' ' && text[i] <= '~' && text[i] != '\\';
    }
    return is_plain;
}

/* A row of printable ASCII that fits its columns: nearly all rows, and ten times as fast. False,
 * with nothing printed, for others. */
static bool print_plain(gbx_sink *sink, const layout *l, const char *const *cells) {
    char line[LINE_BYTES];
    char *at = line, *end = line + l->total;
    if (l->total >= sizeof line)
        return false;
    memset(line, ' ', l->total);
    for (size_t c = 0; c < l->table->column_count; ++c) {
        if (l->widths[c] == 0)
            continue;
        if (cells[c] && !put_plain(at, cells[c], l->widths[c], l->table->columns[c].is_right))
            return false;
        at += l->widths[c] + l->table->gap;
    }
    while (end > line && end[-1] == ' ')
        --end;
    *end++ = '\n';
    fwrite(line, 1, (size_t)(end - line), sink->out);
    return true;
}

/* Blanks come before a text, not after it, so that no line ends with some. */
static void print_row(gbx_sink *sink, const layout *l, const char *const *cells) {
    size_t blanks = 0;
    if (print_plain(sink, l, cells))
        return;
    for (size_t c = 0; c < l->table->column_count; ++c) {
        if (l->widths[c] == 0)
            continue;
        const char *text = cells[c] ? cells[c] : "";
        if (sink->width != SIZE_MAX)
            text = gbx_text_cut(&sink->texts, text, l->widths[c]);
        size_t width = gbx_text_width(text);
        size_t rest = l->widths[c] > width ? l->widths[c] - width : 0;
        bool is_right = l->table->columns[c].is_right;
        if (*text) {
            gbx_sink_print(sink, "%*s%s", (int)(blanks + (is_right ? rest : 0)), "",
                           gbx_text_shown(&sink->texts, text));
            blanks = is_right ? 0 : rest;
        } else {
            blanks += rest;
        }
        blanks += l->table->gap;
    }
    gbx_sink_print(sink, "\n");
}

/* "no room for: HASH, ROLE", on several lines where the terminal is narrow. */
static void print_left(gbx_sink *sink, const layout *l) {
    size_t used = 0;
    const char *comma = "";
    for (size_t c = 0; c < l->table->column_count; ++c) {
        const char *heading = l->table->columns[c].heading;
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

gbx_status gbx_table_print(gbx_sink *sink, const gbx_table *table) {
    layout l = {.table = table};
    const char *cells[GBX_COLUMNS_MAX];
    if (table->row_count == 0)
        return NULL;
    GBX_TRY(measure(&l, sink->width != SIZE_MAX));
    fit(&l, sink->width);
    for (size_t c = 0; c < table->column_count; ++c)
        cells[c] = table->columns[c].heading;
    print_row(sink, &l, cells);
    for (uint64_t i = 0; i < table->row_count && !gbx_sink_has_failed(sink); ++i) {
        memset(cells, 0, sizeof cells);
        GBX_TRY(table->fill(table->context, i, false, cells));
        print_row(sink, &l, cells);
    }
    print_left(sink, &l);
    return NULL;
}

/* --- fields as cells --- */

static bool is_known(const gbx_field *field, const char *row) {
    return field->known == GBX_FIELD_ALWAYS || *(const bool *)(const void *)(row + field->known);
}

/* Rows are structs, so their members are aligned. */
#define READ(type, at) (*(const type *)(const void *)(at))

/* An unsigned integer of any width. */
static uint64_t read_integer(const gbx_field *field, const char *row) {
    uint64_t value = 0;
    memcpy(&value, row + field->offset, field->bytes);
    return value;
}

static const char *cell_text(gbx_texts *texts, const gbx_field *field, const char *row) {
    const char *at = row + field->offset;
    if (!is_known(field, row))
        return field->absent;
    if (field->hides_zero && read_integer(field, row) == 0)
        return "";
    switch (field->kind) {
    case GBX_FIELD_COUNT:
    case GBX_FIELD_WIDE:
        return gbx_text_count(texts, read_integer(field, row));
    case GBX_FIELD_NUMBER:
        return gbx_text_number(texts, read_integer(field, row));
    case GBX_FIELD_I64:
        return gbx_text_format(texts, "%" PRId64, READ(int64_t, at));
    case GBX_FIELD_HEX:
        return gbx_text_format(texts, "0x%" PRIx64, READ(uint64_t, at));
    case GBX_FIELD_F64:
        return gbx_text_real(texts, READ(double, at), 5);
    case GBX_FIELD_BOOL:
        return READ(bool, at) ? "yes" : "no";
    case GBX_FIELD_STRING:
        return READ(char *, at);
    case GBX_FIELD_TEXT:
        return at;
    case GBX_FIELD_NS:
        return gbx_text_ns(texts, READ(uint64_t, at));
    case GBX_FIELD_BYTES:
        return gbx_text_bytes(texts, READ(uint64_t, at));
    case GBX_FIELD_NAME:
        return gbx_name_brief(field->names, (uint32_t)read_integer(field, row));
    case GBX_FIELD_DTYPE:
        return gbx_dtype_name(READ(uint32_t, at));
    case GBX_FIELD_SHAPE:
        return gbx_text_numbers(texts, READ(gbx_tensor, at).shape, READ(gbx_tensor, at).ndims);
    case GBX_FIELD_INDEX:
        return gbx_text_index(texts, &READ(gbx_tensor, row + field->with), READ(uint64_t, at));
    case GBX_FIELD_NUMBERS:
        return gbx_text_numbers(texts, &READ(int64_t, at), READ(uint32_t, row + field->with));
    case GBX_FIELD_ELEMENT:
        return gbx_text_value(texts, READ(uint32_t, row + field->with), READ(uint64_t, at));
    }
    return "";
}

static bool is_text(gbx_field_kind kind) {
    switch (kind) {
    case GBX_FIELD_BOOL:
    case GBX_FIELD_STRING:
    case GBX_FIELD_TEXT:
    case GBX_FIELD_NAME:
    case GBX_FIELD_DTYPE:
    case GBX_FIELD_SHAPE:
    case GBX_FIELD_INDEX:
    case GBX_FIELD_NUMBERS:
        return true;
    default:
        return false;
    }
}

static gbx_status find_row(const gbx_rows *rows, uint64_t number, const char **out_row) {
    *out_row = rows->make ? rows->made : (const char *)rows->rows + number * rows->row_bytes;
    return rows->make ? rows->make(rows->rows, number, rows->made) : NULL;
}

typedef struct rows_context {
    gbx_sink *sink;
    const gbx_rows *rows;
} rows_context;

static gbx_status fill_row(void *context, uint64_t number, bool is_measured, const char **cells) {
    const rows_context *c = context;
    const gbx_rows *rows = c->rows;
    const char *row;
    size_t column = 0;
    (void)is_measured;
    GBX_TRY(find_row(rows, number, &row));
    for (size_t i = 0; i < rows->field_count; ++i)
        if (rows->fields[i].heading)
            cells[column++] = cell_text(&c->sink->texts, &rows->fields[i], row);
    return NULL;
}

gbx_status gbx_rows_print(gbx_sink *sink, const gbx_rows *rows, size_t gap) {
    gbx_column columns[GBX_COLUMNS_MAX] = {{0}};
    rows_context context = {sink, rows};
    size_t count = 0;
    for (size_t i = 0; i < rows->field_count && count < GBX_COLUMNS_MAX; ++i) {
        const gbx_field *field = &rows->fields[i];
        if (field->heading)
            columns[count++] = (gbx_column){.heading = field->heading,
                                            .is_right = field->is_right || !is_text(field->kind),
                                            .narrowest = field->narrowest,
                                            .leaves = field->leaves};
    }
    return gbx_table_print(sink, &(const gbx_table){.columns = columns,
                                                    .column_count = count,
                                                    .gap = gap,
                                                    .row_count = rows->count,
                                                    .context = &context,
                                                    .fill = fill_row});
}

/* --- fields as JSON --- */

static void put_field(gbx_json_writer *json, const gbx_field *field, const char *row) {
    const char *at = row + field->offset;
    const char *key = field->key;
    if (!is_known(field, row)) {
        gbx_json_put_null(json, key);
        return;
    }
    switch (field->kind) {
    case GBX_FIELD_COUNT:
    case GBX_FIELD_NUMBER:
    case GBX_FIELD_NS:
    case GBX_FIELD_BYTES:
        gbx_json_put_u64(json, key, read_integer(field, row));
        break;
    case GBX_FIELD_WIDE:
        gbx_json_key(json, key);
        if (READ(uint64_t, at) < EXACT_END)
            gbx_json_u64(json, READ(uint64_t, at));
        else
            gbx_json_u64_text(json, READ(uint64_t, at));
        break;
    case GBX_FIELD_I64:
        gbx_json_put_i64(json, key, READ(int64_t, at));
        break;
    case GBX_FIELD_HEX:
        gbx_json_put_hex_text(json, key, READ(uint64_t, at));
        break;
    case GBX_FIELD_F64:
        gbx_json_put_f64(json, key, READ(double, at));
        break;
    case GBX_FIELD_BOOL:
        gbx_json_put_bool(json, key, READ(bool, at));
        break;
    case GBX_FIELD_STRING:
        gbx_json_put_string(json, key, READ(char *, at));
        break;
    case GBX_FIELD_TEXT:
        gbx_json_put_string(json, key, at);
        break;
    case GBX_FIELD_NAME:
        gbx_json_put_string(json, key,
                            gbx_name_of(field->names, (uint32_t)read_integer(field, row)));
        break;
    case GBX_FIELD_DTYPE:
        gbx_json_put_string(json, key, gbx_dtype_name(READ(uint32_t, at)));
        break;
    case GBX_FIELD_SHAPE:
        gbx_json_put_numbers(json, key, READ(gbx_tensor, at).shape, READ(gbx_tensor, at).ndims);
        break;
    case GBX_FIELD_INDEX:
        gbx_json_put_index(json, key, &READ(gbx_tensor, row + field->with), READ(uint64_t, at));
        break;
    case GBX_FIELD_NUMBERS:
        gbx_json_put_numbers(json, key, &READ(int64_t, at), READ(uint32_t, row + field->with));
        break;
    case GBX_FIELD_ELEMENT:
        gbx_json_put_value(json, key, READ(uint32_t, row + field->with), READ(uint64_t, at));
        break;
    }
}

void gbx_json_put_row(gbx_json_writer *json, const gbx_rows *rows) {
    for (size_t i = 0; i < rows->field_count; ++i)
        if (rows->fields[i].key)
            put_field(json, &rows->fields[i], rows->rows);
}

void gbx_json_put_object(gbx_json_writer *json, const char *key, const gbx_rows *rows) {
    gbx_json_key(json, key);
    gbx_json_begin_object_inline(json);
    gbx_json_put_row(json, rows);
    gbx_json_end_object(json);
}

void gbx_json_put_rows(gbx_json_writer *json, const char *key, const gbx_rows *rows) {
    gbx_rows row = *rows;
    const char *at;
    gbx_json_key(json, key);
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < rows->count && !gbx_json_has_failed(json); ++i) {
        gbx_json_fail(json, find_row(rows, i, &at));
        row.rows = at;
        gbx_json_begin_object_inline(json);
        gbx_json_put_row(json, &row);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

/* --- single members --- */

void gbx_json_put_value(gbx_json_writer *json, const char *key, uint32_t dtype, uint64_t bits) {
    unsigned above = 64 - gbx_dtype_bits(dtype);
    gbx_json_key(json, key);
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

void gbx_json_put_numbers(gbx_json_writer *json, const char *key, const int64_t *numbers,
                          uint32_t count) {
    gbx_json_key(json, key);
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < count; ++i)
        gbx_json_i64(json, numbers[i]);
    gbx_json_end_array(json);
}

void gbx_json_put_index(gbx_json_writer *json, const char *key, const gbx_tensor *tensor,
                        uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    gbx_compare_index(tensor, number, index);
    gbx_json_put_numbers(json, key, index, tensor->ndims);
}
