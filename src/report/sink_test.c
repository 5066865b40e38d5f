#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/float_bits.h"
#include "report/sink.h"

static gbx_texts texts;
static gbx_sink sink;

static void test_counts(void **state) {
    (void)state;
    assert_string_equal(gbx_text_count(&texts, 0), "0");
    assert_string_equal(gbx_text_count(&texts, 999), "999");
    assert_string_equal(gbx_text_count(&texts, 1000), "1,000");
    assert_string_equal(gbx_text_count(&texts, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(gbx_text_counted(&texts, 1, "record"), "1 record");
    assert_string_equal(gbx_text_counted(&texts, 1024, "record"), "1,024 records");
    assert_string_equal(gbx_text_counted(&texts, 0, "entry"), "0 entries");
    assert_string_equal(gbx_text_counted(&texts, 1, "entry"), "1 entry");
    assert_string_equal(gbx_text_counted(&texts, 2, "dispatch"), "2 dispatches");
    assert_string_equal(gbx_text_counted(&texts, 2, "day"), "2 days");
    assert_string_equal(gbx_text_verb(1, "is", "are"), "is");
    assert_string_equal(gbx_text_verb(0, "is", "are"), "are");
}

static void test_sizes_and_times(void **state) {
    (void)state;
    assert_string_equal(gbx_text_bytes(&texts, 1), "1 byte");
    assert_string_equal(gbx_text_bytes(&texts, 1023), "1,023 bytes");
    assert_string_equal(gbx_text_bytes(&texts, 1024), "1.0 KiB");
    assert_string_equal(gbx_text_bytes(&texts, (1 << 20) - 1), "1.0 MiB");
    assert_string_equal(gbx_text_bytes(&texts, UINT64_C(3) << 30), "3.0 GiB");
    assert_string_equal(gbx_text_ns(&texts, 412), "412 ns");
    assert_string_equal(gbx_text_ns(&texts, 999499), "999 us");
    assert_string_equal(gbx_text_ns(&texts, 999500), "1 ms");
    assert_string_equal(gbx_text_ns(&texts, UINT64_C(83200000000)), "83.20 s");
}

static void test_values(void **state) {
    const int64_t numbers[] = {3, -17, INT64_MIN};
    (void)state;
    assert_string_equal(gbx_text_numbers(&texts, numbers, 3), "[3, -17, -9223372036854775808]");
    assert_string_equal(gbx_text_numbers(&texts, NULL, 0), "[]");
    assert_string_equal(gbx_text_number(&texts, UINT64_MAX), "18446744073709551615");
    assert_string_equal(gbx_text_join(&texts, "2", " ", "scores"), "2 scores");
    assert_string_equal(gbx_text_real(&texts, 1.0 / 3.0, 3), "0.333");
    assert_string_equal(gbx_text_short(&texts, 123456.75), "123457");
    assert_string_equal(gbx_text_short(&texts, -1.23456789e+300), "-1.2346e+300");
    assert_string_equal(gbx_text_exact(&texts, 1e-3), "0.001");
    assert_string_equal(gbx_text_value(&texts, GBX_FLOAT32, gbx_f32_bits(0.125f)), "0.125");
    assert_string_equal(gbx_text_value(&texts, GBX_FLOAT32, 0x7fc00001), "nan (0x7fc00001)");
    assert_string_equal(gbx_text_value(&texts, GBX_BOOL, 3), "True (0x03)");
    assert_string_equal(gbx_text_value(&texts, GBX_INT8, 0xff), "-1");
}

/* Text from a file cannot reach a terminal as a control character, nor look like another text. */
static void test_shown(void **state) {
    (void)state;
    const char *plain = "softmax";
    assert_ptr_equal(gbx_text_shown(&texts, plain), plain);
    assert_string_equal(gbx_text_shown(&texts, "a\x1b[31m\n"), "a\\x1b[31m\\x0a");
    assert_string_equal(gbx_text_shown(&texts, "\\x41"), "\\x5cx41");
    assert_string_equal(gbx_text_shown(&texts, "a\xe2\x80\xae"
                                               "b"),
                        "a\\xe2\\x80\\xaeb");
    assert_string_equal(gbx_text_shown(&texts, "\xff"), "\\xff");
    assert_string_equal(gbx_text_shown(&texts, "gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(gbx_text_width("gr\xc3\xbc\xc3\x9f"), 4);
    assert_int_equal(gbx_text_width("\xff"), 4);
    assert_string_equal(gbx_text_cut(&texts, "abcdef", 6), "abcdef");
    assert_string_equal(gbx_text_cut(&texts, "abcdefg", 6), "abcde\u2026");
    assert_string_equal(gbx_text_cut(&texts,
                                     "ab\xff"
                                     "cdefg",
                                     6),
                        "ab\u2026"); /* \xff takes 4 */
}

/* A text that is too long says so. */
static void test_long(void **state) {
    (void)state;
    char *text = malloc(2 * GBX_TEXT_BYTES_MAX);
    assert_non_null(text);
    memset(text, '\x01', 2 * GBX_TEXT_BYTES_MAX - 1);
    text[2 * GBX_TEXT_BYTES_MAX - 1] = '\0';
    const char *shown = gbx_text_shown(&texts, text);
    assert_true(strlen(shown) < GBX_TEXT_BYTES_MAX);
    assert_string_equal(shown + strlen(shown) - 7, "\\x01...");
    assert_int_equal(strlen(gbx_text_join(&texts, text, "+", text)), GBX_TEXT_BYTES_MAX - 1);
    memset(text, 'a', 2 * GBX_TEXT_BYTES_MAX - 1);
    shown = gbx_text_shown(&texts, text);
    assert_string_equal(shown + strlen(shown) - 4, "a...");
    /* What comes after it is not cut off: a colour ends. */
    sink.has_colour = true;
    shown = gbx_sink_colour(&sink, GBX_RED, shown);
    assert_string_equal(shown + strlen(shown) - 7, "...\x1b[0m");
    free(text);
}

/* Accents have no width: a name with thousands of them takes a few columns, but must be short, so
 * that several have room in one line. */
static void test_accents(void **state) {
    char text[2 * 8000 + 2] = "e";
    (void)state;
    for (size_t i = 0; i < 8000; ++i)
        memcpy(text + 1 + 2 * i, "\u0301", 3);
    assert_int_equal(gbx_text_width(text), 1);
    const char *cut = gbx_text_cut(&texts, text, 63);
    assert_in_range(strlen(cut), 1024, 4 * 63 + 1024);
    assert_string_equal(cut + strlen(cut) - 5, "\u0301\u2026");
    text[1 + 2 * 20] = '\0';
    assert_ptr_equal(gbx_text_cut(&texts, text, 1), text);
}

/* Texts of one line stay valid while it is put together. */
static void test_texts_stay(void **state) {
    const char *made[64];
    (void)state;
    for (unsigned round = 0; round < 100; ++round) {
        for (unsigned i = 0; i < 64; ++i)
            made[i] = gbx_text_format(&texts, "%u-%u", round, i);
        for (unsigned i = 0; i < 64; ++i) {
            char expected[32];
            snprintf(expected, sizeof expected, "%u-%u", round, i);
            assert_string_equal(made[i], expected);
        }
    }
}

static void test_quotes(void **state) {
    const char *const cases[][3] = {{"plain/path-1.txt", "plain/path-1.txt", "plain/path-1.txt"},
                                    {"", "''", "''"},
                                    {"two words", "'two words'", "'two words'"},
                                    {"it's", "'it'\\''s'", "'it'\\''s'"},
                                    {"a\tb'", "$'a\\011b\\047'", "'a\tb'\\'''"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int is_shown = 1; is_shown >= 0; --is_shown) {
            char *quoted = gbx_shell_quote(cases[i][0], is_shown);
            assert_string_equal(quoted, cases[i][is_shown ? 1 : 2]);
            free(quoted);
        }
}

/* A string is a sink: no colour, any width, text and JSON. */
static void test_string_sink(void **state) {
    char *text = NULL;
    size_t bytes;
    (void)state;
    FILE *stream = open_memstream(&text, &bytes);
    gbx_sink_open(&sink, stream);
    assert_false(sink.has_colour);
    assert_true(sink.width == SIZE_MAX);
    gbx_sink_print(&sink, "%s %d\n", gbx_sink_colour(&sink, GBX_RED, "lost"), 3);
    gbx_json_put_u64(gbx_sink_json_begin(&sink), "n", 7);
    assert_null(gbx_sink_json_end(&sink, NULL));
    fclose(stream);
    assert_string_equal(text, "lost 3\n{\n  \"n\": 7\n}\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_sizes_and_times),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_shown),
        cmocka_unit_test(test_long),        cmocka_unit_test(test_accents),
        cmocka_unit_test(test_texts_stay),  cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_string_sink),
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
