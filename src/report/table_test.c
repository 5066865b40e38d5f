#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/float_bits.h"
#include "base/status.h"
#include "report/table.h"

static gbx_sink sink;

/* What `print` writes to a sink of so many columns; freed by the caller. */
static char *printed(size_t width, void (*print)(void)) {
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    gbx_sink_open(&sink, stream);
    sink.width = width;
    print();
    fclose(stream);
    return text;
}

static void assert_printed(size_t width, void (*print)(void), const char *expected) {
    char *text = printed(width, print);
    assert_string_equal(text, expected);
    free(text);
}

/* --- fields of every kind --- */

typedef struct row {
    uint64_t count;
    uint8_t slot;
    int64_t offset;
    uint64_t wide;
    uint64_t address;
    double distance;
    bool is_good;
    const char *name;
    char text[8];
    uint64_t ns;
    uint64_t bytes;
    uint32_t stage;
    uint32_t dtype;
    gbx_tensor tensor;
    uint64_t element;
    int64_t numbers[2];
    uint32_t number_count;
    uint64_t bits;
    bool has_more;
    uint64_t more;
} row;

static const gbx_field every_field[] = {
    GBX_FIELD(row, count, COUNT, "count", "COUNT"),
    GBX_FIELD(row, slot, NUMBER, "slot", "SLOT"),
    GBX_FIELD(row, offset, I64, "offset", "OFFSET"),
    GBX_FIELD(row, wide, WIDE, "wide", NULL),
    GBX_FIELD(row, address, HEX, "address", "ADDRESS"),
    GBX_FIELD(row, distance, F64, "distance", "DISTANCE"),
    GBX_FIELD(row, is_good, BOOL, "good", "GOOD"),
    GBX_FIELD(row, name, STRING, "name", "NAME"),
    GBX_FIELD(row, text, TEXT, "text", "TEXT"),
    GBX_FIELD(row, ns, NS, "ns", "TIME"),
    GBX_FIELD(row, bytes, BYTES, "bytes", "BYTES"),
    GBX_FIELD(row, stage, NAME, "stage", "STAGE", .names = &gbx_stages),
    GBX_FIELD(row, dtype, DTYPE, "dtype", "DTYPE"),
    GBX_FIELD(row, tensor, SHAPE, "shape", "SHAPE"),
    GBX_FIELD(row, element, INDEX, "index", "INDEX", .with = offsetof(row, tensor)),
    GBX_FIELD(row, numbers, NUMBERS, "numbers", "NUMBERS", .with = offsetof(row, number_count)),
    GBX_FIELD(row, bits, ELEMENT, "value", "VALUE", .with = offsetof(row, dtype)),
    GBX_FIELD_IF(row, has_more, more, COUNT, "more", "MORE", .hides_zero = true)};

static const row two_rows[] = {{.count = 1234567,
                                .slot = 200,
                                .offset = -5,
                                .wide = UINT64_C(1) << 53,
                                .address = 0x1f,
                                .distance = 1.0 / 3.0,
                                .is_good = true,
                                .name = "a\x1b",
                                .text = "inline",
                                .ns = 1500,
                                .bytes = 2048,
                                .stage = GBX_STAGE_AFTER,
                                .dtype = GBX_FLOAT32,
                                .tensor = {.ndims = 2, .shape = {2, 3}},
                                .element = 5,
                                .numbers = {4, 5},
                                .number_count = 2,
                                .bits = 0x3fc00000,
                                .has_more = true,
                                .more = 0},
                               {.wide = 7, .dtype = GBX_INT64, .bits = UINT64_MAX, .more = 9}};

static void print_every_kind(void) {
    assert_null(gbx_rows_print(&sink, GBX_ROWS(every_field, two_rows, 2), 1));
}

static void put_every_kind(void) {
    gbx_json_put_rows(gbx_sink_json_begin(&sink), "rows", GBX_ROWS(every_field, two_rows, 2));
    assert_null(gbx_sink_json_end(&sink, NULL));
}

static void test_kinds(void **state) {
    (void)state;
    /* The last column is empty in both rows: one value is zero, one is unknown. */
    assert_printed(SIZE_MAX, print_every_kind,
                   "    COUNT SLOT OFFSET ADDRESS DISTANCE GOOD NAME  TEXT     TIME   BYTES STAGE "
                   " DTYPE   SHAPE  INDEX  NUMBERS VALUE\n"
                   "1,234,567  200     -5    0x1f  0.33333 yes  a\\x1b inline 1.5 us 2.0 KiB after "
                   " float32 [2, 3] [1, 2] [4, 5]    1.5\n"
                   "        0    0      0     0x0        0 no                  0 ns 0 bytes before "
                   "int64   []     []     []         -1\n");
    assert_printed(
        SIZE_MAX, put_every_kind,
        "{\n  \"rows\": [\n"
        "    {\"count\": 1234567, \"slot\": 200, \"offset\": -5, \"wide\": \"9007199254740992\", "
        "\"address\": \"0x000000000000001f\", \"distance\": 0.3333333333333333, \"good\": true, "
        "\"name\": \"a\\u001b\", \"text\": \"inline\", \"ns\": 1500, \"bytes\": 2048, \"stage\": "
        "\"after_completion\", \"dtype\": \"float32\", \"shape\": [2, 3], \"index\": [1, 2], "
        "\"numbers\": [4, 5], \"value\": 1.5, \"more\": 0},\n"
        "    {\"count\": 0, \"slot\": 0, \"offset\": 0, \"wide\": 7, \"address\": "
        "\"0x0000000000000000\", \"distance\": 0.0, \"good\": false, \"name\": null, \"text\": "
        "\"\", \"ns\": 0, \"bytes\": 0, \"stage\": \"before_dispatch\", \"dtype\": \"int64\", "
        "\"shape\": [], \"index\": [], \"numbers\": [], \"value\": \"-1\", \"more\": null}\n"
        "  ]\n}\n");
}

/* --- generated rows --- */

typedef struct square {
    uint64_t of;
    bool is_known;
    uint64_t value;
} square;

static const gbx_field square_fields[] = {
    GBX_FIELD(square, of, NUMBER, "of", "OF"),
    GBX_FIELD_IF(square, is_known, value, COUNT, "value", "VALUE", .absent = "-")};

static gbx_status make_square(const void *numbers, uint64_t number, void *out_row) {
    uint64_t of = ((const uint64_t *)numbers)[number];
    *(square *)out_row = (square){of, of > 0, of * of};
    return of < 100 ? NULL : gbx_fail(GBX_BAD_FORMAT, "a square of 100");
}

static const uint64_t numbers[] = {0, 7, 40, 100};

static void print_squares(void) {
    square made;
    assert_null(
        gbx_rows_print(&sink, GBX_ROWS_MADE(square_fields, numbers, 3, make_square, &made), 1));
}

static void put_squares(void) {
    square made;
    gbx_json_put_rows(gbx_sink_json_begin(&sink), "rows",
                      GBX_ROWS_MADE(square_fields, numbers, 2, make_square, &made));
    assert_null(gbx_sink_json_end(&sink, NULL));
}

static void assert_too_large(gbx_status status) {
    assert_string_equal(gbx_status_message(status), "a square of 100");
    gbx_status_free(status);
}

static void print_too_large(void) {
    square made;
    assert_too_large(
        gbx_rows_print(&sink, GBX_ROWS_MADE(square_fields, numbers, 4, make_square, &made), 1));
}

static void put_too_large(void) {
    square made;
    gbx_json_put_rows(gbx_sink_json_begin(&sink), "rows",
                      GBX_ROWS_MADE(square_fields, numbers, 4, make_square, &made));
    assert_too_large(gbx_sink_json_end(&sink, NULL));
}

static void test_made(void **state) {
    (void)state;
    assert_printed(SIZE_MAX, print_squares, "OF VALUE\n 0     -\n 7    49\n40 1,600\n");
    assert_printed(SIZE_MAX, put_squares,
                   "{\n  \"rows\": [\n    {\"of\": 0, \"value\": null},\n"
                   "    {\"of\": 7, \"value\": 49}\n  ]\n}\n");
    assert_printed(SIZE_MAX, print_too_large, ""); /* fails while it measures */
    free(printed(SIZE_MAX, put_too_large));
}

/* --- widths --- */

typedef struct line {
    uint64_t number;
    const char *name;
    const char *note;
    uint64_t size;
} line;

static const gbx_field line_fields[] = {
    GBX_FIELD(line, number, NUMBER, NULL, "NO"),
    GBX_FIELD(line, name, STRING, NULL, "NAME", .narrowest = 6),
    GBX_FIELD(line, note, STRING, NULL, "NOTE", .narrowest = 5, .leaves = 2),
    GBX_FIELD(line, size, COUNT, NULL, "SIZE", .leaves = 1)};

static const line lines[] = {{1, "multiply_accumulate", "first", 4096}, {22, "add", "", 1}};

static void print_lines(void) {
    assert_null(gbx_rows_print(&sink, GBX_ROWS(line_fields, lines, 2), 2));
}

static void print_nothing(void) {
    assert_null(gbx_rows_print(&sink, GBX_ROWS(line_fields, lines, 0), 2));
}

static void test_widths(void **state) {
    (void)state;
    assert_printed(SIZE_MAX, print_lines,
                   "NO  NAME                 NOTE    SIZE\n"
                   " 1  multiply_accumulate  first  4,096\n"
                   "22  add                             1\n");
    assert_printed(37, print_lines,
                   "NO  NAME                 NOTE    SIZE\n"
                   " 1  multiply_accumulate  first  4,096\n"
                   "22  add                             1\n");
    /* The name is cut, then SIZE leaves, then NOTE. */
    assert_printed(30, print_lines,
                   "NO  NAME          NOTE    SIZE\n"
                   " 1  multiply_ac\u2026  first  4,096\n"
                   "22  add                      1\n");
    assert_printed(20, print_lines,
                   "NO  NAME       NOTE\n"
                   " 1  multiply\u2026  first\n"
                   "22  add\n"
                   "no room for: SIZE\n");
    assert_printed(12, print_lines,
                   "NO  NAME\n"
                   " 1  multipl\u2026\n"
                   "22  add\n"
                   "no room for:\nNOTE, SIZE\n");
    assert_printed(80, print_nothing, "");
}

/* --- rows that come one by one --- */

enum { MANY = 70000 };

static gbx_status fill_many(void *context, uint64_t number, bool is_measured, const char **cells) {
    static char text[32];
    uint64_t *measured = context;
    *measured += is_measured;
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    cells[0] = text;
    return NULL;
}

static gbx_status fail_at_three(void *context, uint64_t number, bool is_measured,
                                const char **cells) {
    (void)context;
    cells[0] = "x";
    return number == 3 && !is_measured ? gbx_fail(GBX_BAD_FORMAT, "row 3 is broken") : NULL;
}

static uint64_t measured_rows;
static const gbx_column number_column[] = {{.heading = "N", .is_right = true}};

static void print_many(void) {
    const gbx_table table = {.columns = number_column,
                             .column_count = 1,
                             .gap = 1,
                             .row_count = MANY,
                             .context = &measured_rows,
                             .fill = fill_many};
    measured_rows = 0;
    assert_null(gbx_table_print(&sink, &table));
}

static gbx_status fill_late(void *context, uint64_t number, bool is_measured, const char **cells) {
    GBX_TRY(fill_many(context, number, is_measured, cells));
    cells[1] = number == MANY - 2 ? "late" : "";
    return NULL;
}

/* The only text of a column is in a row that is not measured. */
static void print_late(void) {
    const gbx_column columns[] = {{.heading = "N", .is_right = true}, {.heading = "NOTE"}};
    const gbx_table table = {.columns = columns,
                             .column_count = 2,
                             .gap = 1,
                             .row_count = MANY,
                             .context = &measured_rows,
                             .fill = fill_late};
    assert_null(gbx_table_print(&sink, &table));
}

static void print_until_broken(void) {
    const gbx_table table = {.columns = number_column,
                             .column_count = 1,
                             .gap = 1,
                             .row_count = 5,
                             .fill = fail_at_three};
    gbx_status status = gbx_table_print(&sink, &table);
    assert_string_equal(gbx_status_message(status), "row 3 is broken");
    gbx_status_free(status);
}

/* A pipe does not wait until all rows are measured; a terminal needs all widths. */
static void test_rows(void **state) {
    (void)state;
    char *text = printed(SIZE_MAX, print_many);
    assert_int_equal(measured_rows, 65536 + 1);
    assert_memory_equal(text, "    N\n    0\n    1\n", 18);
    assert_string_equal(text + strlen(text) - 6, "69999\n");
    assert_int_equal(strlen(text), 6 * (MANY + 1));
    free(text);
    free(printed(80, print_many));
    assert_int_equal(measured_rows, MANY);
    text = printed(SIZE_MAX, print_late);
    assert_memory_equal(text, "    N NOTE\n    0\n", 17);
    assert_string_equal(text + strlen(text) - 17, "69998 late\n69999\n");
    free(text);
    assert_printed(80, print_until_broken, "N\nx\nx\nx\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_made),
                                       cmocka_unit_test(test_widths), cmocka_unit_test(test_rows)};
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
