#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "text/json_writer.h"

enum { SINK_BYTES = 4 * 1024 * 1024 };

/* Collects the text; fails from call number `fail_at` on, unless that is 0. */
typedef struct memory_sink {
    char *text;
    size_t size;
    int call_count;
    int fail_at;
    size_t largest_call;
} memory_sink;

typedef struct fixture {
    gbx_json_writer json;
    memory_sink sink;
} fixture;

static gbx_status sink_write(void *context, const void *bytes, size_t size) {
    memory_sink *sink = context;
    ++sink->call_count;
    if (sink->fail_at && sink->call_count >= sink->fail_at)
        return gbx_fail(GBX_IO, "disk full at call %d", sink->call_count);
    assert_true(size > 0 && sink->size + size < SINK_BYTES);
    memcpy(sink->text + sink->size, bytes, size);
    sink->size += size;
    sink->text[sink->size] = '\0';
    if (size > sink->largest_call)
        sink->largest_call = size;
    return NULL;
}

static int setup(void **state) {
    fixture *test = calloc(1, sizeof *test);
    assert_non_null(test);
    test->sink.text = calloc(1, SINK_BYTES);
    assert_non_null(test->sink.text);
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_PRETTY);
    *state = test;
    return 0;
}

static int teardown(void **state) {
    fixture *test = *state;
    free(test->sink.text);
    free(test);
    return 0;
}

static void check_text(fixture *test, const char *expected) {
    gbx_status status = gbx_json_finish(&test->json);
    assert_string_equal(gbx_status_message(status), "");
    assert_string_equal(test->sink.text, expected);
}

static void check_failure(fixture *test, gbx_code code, const char *message) {
    assert_true(gbx_json_has_failed(&test->json));
    gbx_status status = gbx_json_finish(&test->json);
    assert_int_equal(gbx_status_code(status), code);
    assert_string_equal(gbx_status_message(status), message);
    gbx_status_free(status);
}

static void write_sample(gbx_json_writer *json) {
    gbx_json_begin_object(json);
    gbx_json_key(json, "name");
    gbx_json_string(json, "vector");
    gbx_json_key(json, "shape");
    gbx_json_begin_array_inline(json);
    gbx_json_u64(json, 16);
    gbx_json_begin_object(json);
    gbx_json_key(json, "x");
    gbx_json_i64(json, -1);
    gbx_json_key(json, "y");
    gbx_json_null(json);
    gbx_json_end_object(json);
    gbx_json_end_array(json);
    gbx_json_key(json, "none");
    gbx_json_begin_array(json);
    gbx_json_end_array(json);
    gbx_json_key(json, "list");
    gbx_json_begin_array(json);
    gbx_json_bool(json, true);
    gbx_json_begin_object(json);
    gbx_json_end_object(json);
    gbx_json_begin_object_inline(json);
    gbx_json_key(json, "a");
    gbx_json_begin_array(json);
    gbx_json_bool(json, false);
    gbx_json_end_array(json);
    gbx_json_end_object(json);
    gbx_json_end_array(json);
    gbx_json_end_object(json);
}

static void pretty_keeps_inline_levels_on_one_line(void **state) {
    fixture *test = *state;
    write_sample(&test->json);
    check_text(test, "{\n"
                     "  \"name\": \"vector\",\n"
                     "  \"shape\": [16, {\"x\": -1, \"y\": null}],\n"
                     "  \"none\": [],\n"
                     "  \"list\": [\n"
                     "    true,\n"
                     "    {},\n"
                     "    {\"a\": [false]}\n"
                     "  ]\n"
                     "}\n");
}

static void one_line_has_no_white_space(void **state) {
    fixture *test = *state;
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_ONE_LINE);
    write_sample(&test->json);
    check_text(test, "{\"name\":\"vector\",\"shape\":[16,{\"x\":-1,\"y\":null}],\"none\":[],"
                     "\"list\":[true,{},{\"a\":[false]}]}\n");
}

static void document_may_be_one_plain_value(void **state) {
    fixture *test = *state;
    gbx_json_u64(&test->json, 7);
    check_text(test, "7\n");
}

static void strings_are_escaped(void **state) {
    fixture *test = *state;
    gbx_json_begin_array(&test->json);
    gbx_json_string(&test->json, "");
    gbx_json_string(&test->json, "say \"hi\" \\ /");
    gbx_json_string(&test->json, "\b\t\n\f\r\x01\x1f\x7f");
    gbx_json_string_of(&test->json, "a\0b", 3);
    gbx_json_string(&test->json, NULL);
    gbx_json_end_array(&test->json);
    check_text(test, "[\n"
                     "  \"\",\n"
                     "  \"say \\\"hi\\\" \\\\ /\",\n"
                     "  \"\\b\\t\\n\\f\\r\\u0001\\u001f\x7f\",\n"
                     "  \"a\\u0000b\",\n"
                     "  null\n"
                     "]\n");
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static void invalid_utf8_is_replaced_byte_by_byte(void **state) {
    fixture *test = *state;
    static const struct {
        const char *given;
        const char *written;
    } cases[] = {
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},
        {"a\x80z", "a" BAD "z"},
        {"a\xff", "a" BAD},
        {"\xc3", BAD},                         /* cut short at the end */
        {"\xe2\x82", BAD BAD},                 /* likewise, after two bytes */
        {"\xe2\x82z", BAD BAD "z"},            /* cut short by a letter */
        {"\xc0\xaf", BAD BAD},                 /* overlong in two bytes */
        {"\xe0\x9f\xbf", BAD BAD BAD},         /* overlong in three */
        {"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD}, /* overlong in four */
        {"\xed\xa0\x80", BAD BAD BAD},         /* a surrogate */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* past U+10FFFF */
        {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
    };
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_ONE_LINE);
    char expected[1024] = "[";
    gbx_json_begin_array(&test->json);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_json_string(&test->json, cases[i].given);
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s\"%s\"", i ? "," : "",
                 cases[i].written);
    }
    gbx_json_end_array(&test->json);
    strcat(expected, "]\n");
    check_text(test, expected);
}

/* A sequence that only the bytes past the end would complete. */
static void utf8_is_not_read_past_its_size(void **state) {
    fixture *test = *state;
    gbx_json_begin_array_inline(&test->json);
    gbx_json_string_of(&test->json, "\xc3\xa9", 1);
    gbx_json_string_of(&test->json, "z\xf0\x9f\x98\x80", 4);
    gbx_json_end_array(&test->json);
    check_text(test, "[\"" BAD "\", \"z" BAD BAD BAD "\"]\n");
}

static void keys_are_escaped_too(void **state) {
    fixture *test = *state;
    gbx_json_begin_object_inline(&test->json);
    gbx_json_key(&test->json, "a\"\n\xff");
    gbx_json_bool(&test->json, true);
    gbx_json_end_object(&test->json);
    check_text(test, "{\"a\\\"\\n" BAD "\": true}\n");
}

static void members_are_a_key_and_a_value(void **state) {
    fixture *test = *state;
    gbx_json_writer *json = &test->json;
    gbx_json_begin_object_inline(json);
    gbx_json_put_string(json, "s", "a\"b");
    gbx_json_put_string(json, "no s", NULL);
    gbx_json_put_null(json, "n");
    gbx_json_put_bool(json, "b", true);
    gbx_json_put_bool(json, "c", false);
    gbx_json_put_i64(json, "i", -7);
    gbx_json_put_u64(json, "u", 9007199254740991);
    gbx_json_put_hex_text(json, "h", UINT64_MAX - 1);
    gbx_json_put_f64(json, "f", 0.1);
    gbx_json_end_object(json);
    check_text(test,
               "{\"s\": \"a\\\"b\", \"no s\": null, \"n\": null, \"b\": true, \"c\": false, "
               "\"i\": -7, \"u\": 9007199254740991, \"h\": \"0xfffffffffffffffe\", \"f\": 0.1}\n");
}

static void member_needs_an_object(void **state) {
    fixture *test = *state;
    gbx_json_begin_array(&test->json);
    gbx_json_put_u64(&test->json, "u", 1);
    assert_true(gbx_json_has_failed(&test->json));
    gbx_status status = gbx_json_finish(&test->json);
    assert_int_equal(gbx_status_code(status), GBX_INTERNAL);
    gbx_status_free(status);
}

static void numbers_are_written_to_the_last_digit(void **state) {
    fixture *test = *state;
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_ONE_LINE);
    gbx_json_begin_array(&test->json);
    gbx_json_u64(&test->json, 0);
    gbx_json_u64(&test->json, 9007199254740991u);
    gbx_json_i64(&test->json, -9007199254740991);
    gbx_json_i64(&test->json, 10);
    gbx_json_hex_text(&test->json, 0);
    gbx_json_hex_text(&test->json, UINT64_C(0x0123456789abcdef));
    gbx_json_u64_text(&test->json, UINT64_MAX);
    gbx_json_u64_text(&test->json, 0);
    gbx_json_i64_text(&test->json, INT64_MIN);
    gbx_json_i64_text(&test->json, INT64_MAX);
    gbx_json_f64(&test->json, 0.1);
    gbx_json_f32(&test->json, 0.1f);
    gbx_json_f64(&test->json, 1e300);
    gbx_json_f64(&test->json, (double)NAN);
    gbx_json_f32(&test->json, INFINITY);
    gbx_json_f64(&test->json, -(double)INFINITY);
    gbx_json_end_array(&test->json);
    check_text(test, "[0,9007199254740991,-9007199254740991,10,\"0x0000000000000000\","
                     "\"0x0123456789abcdef\",\"18446744073709551615\",\"0\","
                     "\"-9223372036854775808\",\"9223372036854775807\",0.1,0.1,1e+300,"
                     "\"nan\",\"inf\",\"-inf\"]\n");
}

static void number_from_two_to_the_53_on_is_a_failure(void **state) {
    fixture *test = *state;
    gbx_json_begin_object(&test->json);
    gbx_json_key(&test->json, "bin_offset");
    gbx_json_u64(&test->json, UINT64_C(1) << 53);
    check_failure(test, GBX_OUT_OF_RANGE,
                  "writing JSON: 9007199254740992 is not below 2^53, last key \"bin_offset\"");
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_PRETTY);
    gbx_json_i64(&test->json, INT64_MIN);
    check_failure(test, GBX_OUT_OF_RANGE,
                  "writing JSON: -9223372036854775808 is not below 2^53, last key \"\"");
}

static void key_without_place(gbx_json_writer *json) {
    gbx_json_begin_array(json);
    gbx_json_key(json, "k");
}

static void key_after_key(gbx_json_writer *json) {
    gbx_json_begin_object(json);
    gbx_json_key(json, "k");
    gbx_json_key(json, "l");
}

static void value_without_key(gbx_json_writer *json) {
    gbx_json_begin_object(json);
    gbx_json_null(json);
}

static void end_after_key(gbx_json_writer *json) {
    gbx_json_begin_object(json);
    gbx_json_key(json, "k");
    gbx_json_end_object(json);
}

static void end_of_the_other_kind(gbx_json_writer *json) {
    gbx_json_begin_object(json);
    gbx_json_end_array(json);
}

static void end_of_nothing(gbx_json_writer *json) {
    gbx_json_end_object(json);
}

static void array_end_of_nothing(gbx_json_writer *json) {
    gbx_json_end_array(json);
}

static void second_value(gbx_json_writer *json) {
    gbx_json_null(json);
    gbx_json_null(json);
}

static void too_deep(gbx_json_writer *json) {
    for (int i = 0; i <= GBX_JSON_DEPTH_MAX; ++i)
        gbx_json_begin_array(json);
}

static void misuse_is_an_internal_failure(void **state) {
    fixture *test = *state;
    static const struct {
        void (*misuse)(gbx_json_writer *json);
        const char *message;
    } cases[] = {
        {key_without_place, "writing JSON: a key outside an object, last key \"\""},
        {key_after_key, "writing JSON: a key after a key, last key \"k\""},
        {value_without_key, "writing JSON: a value without a key in an object, last key \"\""},
        {end_after_key,
         "writing JSON: the end of an object after a key without a value, last key \"k\""},
        {end_of_the_other_kind,
         "writing JSON: the end of an array that was not begun, last key \"\""},
        {end_of_nothing, "writing JSON: the end of an object that was not begun, last key \"\""},
        {array_end_of_nothing,
         "writing JSON: the end of an array that was not begun, last key \"\""},
        {second_value, "writing JSON: a second value at the top, last key \"\""},
        {too_deep, "writing JSON: nested too deeply, last key \"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_PRETTY);
        cases[i].misuse(&test->json);
        check_failure(test, GBX_INTERNAL, cases[i].message);
        assert_int_equal(test->sink.call_count, 0);
    }
}

static void check_finish_fails(fixture *test, const char *message) {
    gbx_status status = gbx_json_finish(&test->json);
    assert_int_equal(gbx_status_code(status), GBX_INTERNAL);
    assert_string_equal(gbx_status_message(status), message);
    gbx_status_free(status);
}

static void finish_requires_one_complete_value(void **state) {
    fixture *test = *state;
    check_finish_fails(test, "writing JSON: finished without a value, last key \"\"");
    check_finish_fails(test, "writing JSON: finished twice");
    gbx_json_null(&test->json);
    assert_false(gbx_json_has_failed(&test->json));
    gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_PRETTY);
    gbx_json_begin_array(&test->json);
    check_finish_fails(test, "writing JSON: finished inside an object or array, last key \"\"");
}

static void deepest_level_is_indented(void **state) {
    fixture *test = *state;
    for (int i = 0; i < GBX_JSON_DEPTH_MAX; ++i)
        gbx_json_begin_array(&test->json);
    gbx_json_u64(&test->json, 1);
    for (int i = 0; i < GBX_JSON_DEPTH_MAX; ++i)
        gbx_json_end_array(&test->json);
    gbx_status status = gbx_json_finish(&test->json);
    assert_null(status);
    char *one = strchr(test->sink.text, '1');
    assert_non_null(one);
    assert_memory_equal(one - 2 * GBX_JSON_DEPTH_MAX - 1, "\n  ", 3);
    assert_memory_equal(one - 2, "  1\n", 4);
}

/* Calls after a failure write nothing, and the first of two failures is the one returned. */
static void first_failure_sticks(void **state) {
    fixture *test = *state;
    test->sink.fail_at = 2;
    gbx_json_begin_array(&test->json);
    for (uint64_t i = 0; i < 100000; ++i)
        gbx_json_u64(&test->json, i);
    gbx_json_key(&test->json, "misuse");
    gbx_json_u64(&test->json, UINT64_MAX);
    assert_int_equal(test->sink.call_count, 2);
    check_failure(test, GBX_IO, "disk full at call 2");
    assert_int_equal(test->sink.call_count, 2);
    assert_int_equal(test->sink.size, GBX_JSON_BUFFER_BYTES);
}

static void failure_of_the_last_write_is_returned(void **state) {
    fixture *test = *state;
    test->sink.fail_at = 1;
    gbx_json_null(&test->json);
    assert_false(gbx_json_has_failed(&test->json));
    gbx_status status = gbx_json_finish(&test->json);
    assert_string_equal(gbx_status_message(status), "disk full at call 1");
    gbx_status_free(status);
}

/* One string larger than the buffer, at every phase of a few around the buffer's end. */
static void streams_are_written_and_their_failures_returned(void **state) {
    gbx_json_writer *json = &((fixture *)*state)->json;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    gbx_json_start(json, gbx_json_to_stream, stream, GBX_JSON_ONE_LINE);
    gbx_json_u64(json, 17);
    assert_null(gbx_json_finish(json));
    fclose(stream);
    assert_string_equal(text, "17\n");
    free(text);
    stream = fopen("/dev/full", "w");
    assert_non_null(stream);
    setbuf(stream, NULL);
    gbx_json_start(json, gbx_json_to_stream, stream, GBX_JSON_ONE_LINE);
    gbx_json_u64(json, 17);
    gbx_status status = gbx_json_finish(json);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    assert_non_null(strstr(gbx_status_message(status), "No space left"));
    gbx_status_free(status);
    fclose(stream);
}

static void string_larger_than_the_buffer_is_complete(void **state) {
    fixture *test = *state;
    const size_t size = 3 * GBX_JSON_BUFFER_BYTES;
    char *text = malloc(size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < size; ++i)
        text[i] = "abc\"\n\\xyz"[i % 9];
    text[size] = '\0';
    for (size_t start = 0; start < 20; ++start) {
        test->sink.size = 0;
        gbx_json_start(&test->json, sink_write, &test->sink, GBX_JSON_ONE_LINE);
        gbx_json_begin_array(&test->json);
        gbx_json_string(&test->json, text + start);
        gbx_json_end_array(&test->json);
        gbx_status status = gbx_json_finish(&test->json);
        assert_null(status);
        json_t *read = json_loads(test->sink.text, 0, NULL);
        assert_string_equal(json_string_value(json_array_get(read, 0)), text + start);
        json_decref(read);
    }
    assert_int_equal(test->sink.largest_call, GBX_JSON_BUFFER_BYTES);
    free(text);
}

static void write_record(gbx_json_writer *json, uint64_t index) {
    gbx_json_begin_object_inline(json);
    gbx_json_key(json, "index");
    gbx_json_u64(json, index);
    gbx_json_key(json, "task_id");
    gbx_json_hex_text(json, index * UINT64_C(0x9e3779b97f4a7c15));
    gbx_json_key(json, "value");
    gbx_json_f64(json, (double)index / 7.0);
    gbx_json_end_object(json);
}

/* Another reader agrees on every value, across many fillings of the buffer. */
static void jansson_reads_what_was_written(void **state) {
    fixture *test = *state;
    const size_t count = 20000;
    gbx_json_begin_array(&test->json);
    for (uint64_t i = 0; i < count; ++i)
        write_record(&test->json, i);
    gbx_json_end_array(&test->json);
    gbx_status status = gbx_json_finish(&test->json);
    assert_null(status);
    json_error_t error;
    json_t *read = json_loadb(test->sink.text, test->sink.size, JSON_REJECT_DUPLICATES, &error);
    assert_int_equal(json_array_size(read), count);
    for (size_t i = 0; i < count; ++i) {
        json_t *record = json_array_get(read, i);
        char id[32];
        snprintf(id, sizeof id, "0x%016llx",
                 (unsigned long long)(i * UINT64_C(0x9e3779b97f4a7c15)));
        assert_int_equal(json_integer_value(json_object_get(record, "index")), i);
        assert_string_equal(json_string_value(json_object_get(record, "task_id")), id);
        assert_true(json_real_value(json_object_get(record, "value")) == (double)i / 7.0);
    }
    json_decref(read);
}

#define WRITER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WRITER_TEST(pretty_keeps_inline_levels_on_one_line),
        WRITER_TEST(one_line_has_no_white_space),
        WRITER_TEST(document_may_be_one_plain_value),
        WRITER_TEST(strings_are_escaped),
        WRITER_TEST(streams_are_written_and_their_failures_returned),
        WRITER_TEST(invalid_utf8_is_replaced_byte_by_byte),
        WRITER_TEST(utf8_is_not_read_past_its_size),
        WRITER_TEST(keys_are_escaped_too),
        WRITER_TEST(members_are_a_key_and_a_value),
        WRITER_TEST(member_needs_an_object),
        WRITER_TEST(numbers_are_written_to_the_last_digit),
        WRITER_TEST(number_from_two_to_the_53_on_is_a_failure),
        WRITER_TEST(misuse_is_an_internal_failure),
        WRITER_TEST(finish_requires_one_complete_value),
        WRITER_TEST(deepest_level_is_indented),
        WRITER_TEST(first_failure_sticks),
        WRITER_TEST(failure_of_the_last_write_is_returned),
        WRITER_TEST(string_larger_than_the_buffer_is_complete),
        WRITER_TEST(jansson_reads_what_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
