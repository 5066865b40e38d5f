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
    uint32_t stage;
    uint32_t dtype;
    gbx_tensor tensor;
    uint64_t element;
    uint64_t bits;
    bool has_more;
    uint64_t more;
} row;

static const gbx_field inner_fields[] = {GBX_FIELD(gbx_tensor, ndims, NUMBER, "ndims", NULL),
                                         GBX_FIELD(gbx_tensor, dtype, DTYPE, "dtype", NULL)};

static const gbx_field every_field[] = {
    GBX_FIELD(row, count, COUNT, "count", "COUNT"),
    GBX_FIELD(row, slot, NUMBER, "slot", "SLOT"),
    GBX_FIELD(row, offset, I64, "offset", NULL),
    GBX_FIELD(row, wide, WIDE, "wide", NULL),
    GBX_FIELD(row, address, HEX, "address", NULL),
    GBX_FIELD(row, distance, F64, "distance", "DISTANCE"),
    GBX_FIELD(row, is_good, BOOL, "good", "GOOD"),
    GBX_FIELD(row, name, STRING, "name", "NAME"),
    GBX_FIELD(row, text, TEXT, "text", "TEXT"),
    GBX_FIELD(row, ns, NS, "ns", "TIME"),
    GBX_FIELD(row, stage, NAME, "stage", "STAGE", .names = &gbx_stages),
    GBX_FIELD(row, dtype, DTYPE, "dtype", "DTYPE"),
    GBX_FIELD(row, tensor, SHAPE, "shape", "SHAPE"),
    GBX_FIELD(row, element, INDEX, "index", "INDEX", .with = offsetof(row, tensor)),
    GBX_FIELD(row, bits, ELEMENT, "value", "VALUE", .with = offsetof(row, dtype)),
    GBX_FIELD_IF(row, has_more, more, COUNT, "more", "MORE", .hides_zero = true),
    GBX_FIELD_IF(row, name, tensor, OBJECT, "inner", NULL, GBX_MEMBERS(inner_fields))};

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
                                .stage = GBX_STAGE_AFTER,
                                .dtype = GBX_FLOAT32,
                                .tensor = {.ndims = 2, .dtype = GBX_FLOAT32, .shape = {2, 3}},
                                .element = 5,
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
                   "    COUNT SLOT DISTANCE GOOD NAME  TEXT     TIME STAGE "
                   " DTYPE   SHAPE  INDEX  VALUE\n"
                   "1,234,567  200  0.33333 yes  a\\x1b inline 1.5 us after "
                   " float32 [2, 3] [1, 2]   1.5\n"
                   "        0    0        0 no                  0 ns before "
                   "int64   []     []        -1\n");
    assert_printed(
        SIZE_MAX, put_every_kind,
        "{\n  \"rows\": [\n"
        "    {\"count\": 1234567, \"slot\": 200, \"offset\": -5, \"wide\": \"9007199254740992\", "
        "\"address\": \"0x000000000000001f\", \"distance\": 0.3333333333333333, \"good\": true, "
        "\"name\": \"a\\u001b\", \"text\": \"inline\", \"ns\": 1500, \"stage\": "
        "\"after_completion\", \"dtype\": \"float32\", \"shape\": [2, 3], \"index\": [1, 2], "
        "\"value\": 1.5, \"more\": 0, \"inner\": {\"ndims\": 2, \"dtype\": "
        "\"float32\"}},\n"
        "    {\"count\": 0, \"slot\": 0, \"offset\": 0, \"wide\": 7, \"address\": "
        "\"0x0000000000000000\", \"distance\": 0.0, \"good\": false, \"name\": null, \"text\": "
        "\"\", \"ns\": 0, \"stage\": \"before_dispatch\", \"dtype\": \"int64\", "
        "\"shape\": [], \"index\": [], \"value\": \"-1\", \"more\": null, \"inner\": "
        "null}\n"
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

static void put_square_objects(void) {
    square made;
    gbx_json_put_objects(gbx_sink_json_begin(&sink), "rows",
                         GBX_ROWS_MADE(square_fields, numbers, 1, make_square, &made));
    assert_null(gbx_sink_json_end(&sink, NULL));
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
    assert_printed(SIZE_MAX, put_square_objects,
                   "{\n  \"rows\": [\n    {\n      \"of\": 0,\n      \"value\": null\n    }\n"
                   "  ]\n}\n");
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

typedef struct one_of_many {
    uint64_t number;
    const char *note;
} one_of_many;

static uint64_t measured_rows;
static const gbx_field many_fields[] = {GBX_FIELD(one_of_many, number, NUMBER, NULL, "N"),
                                        GBX_FIELD(one_of_many, note, STRING, NULL, "NOTE")};

/* The only text of the second column is in a row that is not measured elsewhere than on a terminal;
 * `context` says whether there is one. */
static gbx_status make_many(const void *context, uint64_t number, void *out_row) {
    const bool *has_late = context;
    *(one_of_many *)out_row = (one_of_many){number, *has_late && number == MANY - 2 ? "late" : ""};
    return NULL;
}

static gbx_status measure_many(const void *context, uint64_t number, void *out_row) {
    ++measured_rows;
    return make_many(context, number, out_row);
}

static gbx_status fail_at_three(const void *context, uint64_t number, void *out_row) {
    GBX_TRY(make_many(context, number, out_row));
    return number == 3 ? gbx_fail(GBX_BAD_FORMAT, "row 3 is broken") : NULL;
}

static void print_many(void) {
    const bool has_late = false;
    one_of_many made;
    gbx_rows rows = *GBX_ROWS_MADE(many_fields, &has_late, MANY, make_many, &made);
    rows.measure = measure_many;
    rows.field_count = 1;
    measured_rows = 0;
    assert_null(gbx_rows_print(&sink, &rows, 1));
}

static void print_late(void) {
    const bool has_late = true;
    one_of_many made;
    assert_null(
        gbx_rows_print(&sink, GBX_ROWS_MADE(many_fields, &has_late, MANY, make_many, &made), 1));
}

static void print_until_broken(void) {
    const bool has_late = false;
    one_of_many made;
    gbx_rows rows = *GBX_ROWS_MADE(many_fields, &has_late, 5, fail_at_three, &made);
    rows.measure = measure_many;
    gbx_status status = gbx_rows_print(&sink, &rows, 1);
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
    assert_printed(80, print_until_broken, "N\n0\n1\n2\n");
}

static void print_too_many_fields(void) {
    gbx_rows rows = *GBX_ROWS(line_fields, lines, 2);
    rows.field_count = GBX_FIELDS_MAX + 1; /* refused before the list is read */
    gbx_status status = gbx_rows_print(&sink, &rows, 1);
    assert_string_equal(gbx_status_message(status),
                        "printing a table of 25 fields; at most 24 are possible");
    gbx_status_free(status);
}

static void test_too_many_fields(void **state) {
    (void)state;
    assert_printed(80, print_too_many_fields, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_too_many_fields),
                                       cmocka_unit_test(test_kinds), cmocka_unit_test(test_made),
                                       cmocka_unit_test(test_widths), cmocka_unit_test(test_rows)};
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
