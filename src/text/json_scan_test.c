#include "text/json_scan.h"

#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void write_file(const char *text, size_t size) {
    snprintf(path, sizeof path, "/tmp/json_scan_test_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void open_text(gbx_json_file *file, const char *text, size_t size) {
    bool is_there = false;
    write_file(text, size);
    assert_ok(gbx_json_file_open(file, path, "x.json", &is_there));
    assert_true(is_there);
    assert_int_equal(gbx_json_file_size(file), size);
}

static void close_text(gbx_json_file *file) {
    gbx_json_file_close(file);
    unlink(path);
}

/* --- text in memory --- */

static void values_are_json_or_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        gbx_scan_kind kind;
        bool is_json;
    } cases[] = {
        {"null", GBX_SCAN_NULL, true},
        {" true ", GBX_SCAN_TRUE, true},
        {"false", GBX_SCAN_FALSE, true},
        {"-0.5e+10", GBX_SCAN_NUMBER, true},
        {"0", GBX_SCAN_NUMBER, true},
        {"\"a\\u00e4\\n\"", GBX_SCAN_STRING, true},
        {"[]", GBX_SCAN_ARRAY, true},
        {"[1, [2, {}], \"]\"]", GBX_SCAN_ARRAY, true},
        {"{\"a\": [1], \"b\": {\"c\": null}}", GBX_SCAN_OBJECT, true},
        {"", 0, false},
        {"nul", 0, false},
        {"01", 0, false},
        {"1.", 0, false},
        {"-", 0, false},
        {"1e", 0, false},
        {"+1", 0, false},
        {"\"", 0, false},
        {"\"\\x\"", 0, false},
        {"\"\\u12g4\"", 0, false},
        {"\"\n\"", 0, false},
        {"\"\xff\"", 0, false},
        {"[1,]", 0, false},
        {"[,1]", 0, false},
        {"[1 2]", 0, false},
        {"{\"a\"}", 0, false},
        {"{\"a\": 1,}", 0, false},
        {"{a: 1}", 0, false},
        {"[1]]", 0, false},
        {"[[1]", 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_scan_value value;
        bool is_json = gbx_scan_whole(cases[i].text, strlen(cases[i].text), &value);
        if (is_json != cases[i].is_json)
            fail_msg("%s", cases[i].text);
        if (is_json)
            assert_int_equal(value.kind, cases[i].kind);
    }
}

static void members_come_one_by_one(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1, {\"b\": 2}], \"\\u0062\": \"0x1F\", \"c\": -7}";
    gbx_scan scan = gbx_scan_start(text, sizeof text - 1);
    gbx_scan_value key, value, element;
    bool has_one, is_negative;
    uint64_t number;
    assert_true(gbx_scan_begin(&scan, '{'));
    assert_true(gbx_scan_next_member(&scan, &key, &value, &has_one) && has_one);
    assert_true(gbx_scan_is(&key, "a", 1));
    gbx_scan inner = gbx_scan_start(value.text, value.size);
    assert_true(gbx_scan_begin(&inner, '['));
    assert_true(gbx_scan_next_element(&inner, &element, &has_one) && has_one);
    assert_true(gbx_scan_integer(&element, &number, &is_negative));
    assert_int_equal(number, 1);
    assert_true(gbx_scan_next_element(&inner, &element, &has_one) && has_one);
    assert_int_equal(element.kind, GBX_SCAN_OBJECT);
    assert_true(gbx_scan_next_element(&inner, &element, &has_one) && !has_one);
    assert_true(gbx_scan_next_member(&scan, &key, &value, &has_one) && has_one);
    assert_true(gbx_scan_is(&key, "b", 1));
    assert_true(gbx_scan_hex(&value, &number));
    assert_int_equal(number, 0x1f);
    assert_true(gbx_scan_next_member(&scan, &key, &value, &has_one) && has_one);
    assert_true(gbx_scan_integer(&value, &number, &is_negative) && is_negative);
    assert_int_equal(number, 7);
    assert_true(gbx_scan_next_member(&scan, &key, &value, &has_one) && !has_one);
}

/* --- files --- */

/* Entries of every length, so that every part of an entry meets the end of the buffer. */
static void a_file_is_read_over_the_ends_of_its_buffer(void **state) {
    (void)state;
    enum { ENTRIES = 3000, LONGEST = 400 };
    char *text = malloc(ENTRIES * (LONGEST + 80));
    size_t size = (size_t)sprintf(text, "{\"entries\": [");
    for (int i = 0; i < ENTRIES; ++i)
        size += (size_t)sprintf(
            text + size,
            "%s\n {\"n\": %d.5e1, \"w\": [true,false,null], \"%*s\": \"\\u00e4\xc3\xa4\"}",
            i ? "," : "", i, 1 + i * 7 % LONGEST, "x");
    size += (size_t)sprintf(text + size, "], \"last\": 12345}");
    gbx_json_file file;
    char key[GBX_JSON_KEY_BYTES];
    bool has_one;
    open_text(&file, text, size);
    assert_ok(gbx_json_file_begin(&file, '{'));
    assert_ok(gbx_json_file_next_key(&file, key, &has_one));
    assert_string_equal(key, "entries");
    assert_ok(gbx_json_file_begin(&file, '['));
    for (int i = 0; i < ENTRIES; ++i) {
        assert_ok(gbx_json_file_next_element(&file, &has_one));
        assert_true(has_one);
        if (i % 3 == 0) {
            char same[LONGEST + 80];
            bool is_same;
            int length = sprintf(
                same, "{\"n\": %d.5e1, \"w\": [true,false,null], \"%*s\": \"\\u00e4\xc3\xa4\"}", i,
                1 + i * 7 % LONGEST, "x");
            same[length - 2] ^= 1;
            assert_ok(gbx_json_file_take_same(&file, same, (size_t)length, &is_same));
            assert_false(is_same);
            same[length - 2] ^= 1;
            assert_ok(gbx_json_file_take_same(&file, same, (size_t)length, &is_same));
            assert_true(is_same);
        } else if (i % 3 == 1) {
            json_t *document = NULL;
            assert_ok(gbx_json_file_document(&file, &document));
            assert_true(json_real_value(json_object_get(document, "n")) == i * 10 + 5);
            json_decref(document);
        } else {
            gbx_scan_value value;
            assert_ok(gbx_json_file_take(&file, &value));
            assert_int_equal(value.kind, GBX_SCAN_OBJECT);
        }
    }
    assert_ok(gbx_json_file_next_element(&file, &has_one));
    assert_false(has_one);
    assert_ok(gbx_json_file_next_key(&file, key, &has_one));
    gbx_scan_value value;
    assert_ok(gbx_json_file_take(&file, &value));
    assert_int_equal(value.size, 5);
    assert_ok(gbx_json_file_next_key(&file, key, &has_one));
    assert_false(has_one);
    assert_ok(gbx_json_file_end(&file));
    assert_int_equal(gbx_json_file_offset(&file), size);
    close_text(&file);
    free(text);
}

/* A number may be split where the buffer ends, at any digit. */
static void a_number_is_not_cut(void **state) {
    (void)state;
    for (size_t before = (1 << 18) - 12; before < (1 << 18) + 4; ++before) {
        char *text = malloc(before + 32);
        memset(text, ' ', before);
        size_t size = before + (size_t)sprintf(text + before, "[1234567890]");
        gbx_json_file file;
        gbx_scan_value value;
        uint64_t number = 0;
        bool has_one, is_negative;
        open_text(&file, text, size);
        assert_ok(gbx_json_file_begin(&file, '['));
        assert_ok(gbx_json_file_next_element(&file, &has_one));
        assert_ok(gbx_json_file_take(&file, &value));
        assert_true(gbx_scan_integer(&value, &number, &is_negative));
        assert_int_equal(number, 1234567890);
        close_text(&file);
        free(text);
    }
}

static void a_value_may_be_larger_than_the_buffer(void **state) {
    (void)state;
    enum { BYTES = 3 << 20 };
    char *text = malloc(BYTES);
    memset(text, 'x', BYTES);
    text[0] = text[BYTES - 1] = '"';
    gbx_json_file file;
    gbx_scan_value value;
    open_text(&file, text, BYTES);
    assert_ok(gbx_json_file_take(&file, &value));
    assert_int_equal(value.size, BYTES - 2);
    assert_ok(gbx_json_file_end(&file));
    close_text(&file);
    free(text);
}

static void errors_name_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"[1,\n 2,\n tru]", "x.json: line 3, byte 9: expected a value"},
        {"[\"a\n\"]", "x.json: line 1, byte 3: expected a UTF-8 character"},
        {"[1 2]", "x.json: line 1, byte 3: expected \",\" or \"]\""},
        {"{\"a\" 1}", "x.json: line 1, byte 5: expected \":\""},
        {"[[1, 2", "x.json: line 1, byte 6: expected \",\" or \"]\""},
        {"", "x.json: line 1, byte 0: expected a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_json_file file;
        gbx_scan_value value;
        open_text(&file, cases[i].text, strlen(cases[i].text));
        gbx_status status = gbx_json_file_take(&file, &value);
        assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
        assert_string_equal(gbx_status_message(status), cases[i].message);
        gbx_status_free(status);
        close_text(&file);
    }
}

static void a_member_twice_is_refused_in_documents(void **state) {
    (void)state;
    gbx_json_file file;
    json_t *document = NULL;
    open_text(&file, "\n{\"a\": 1, \"a\": 2}", 17);
    gbx_status status = gbx_json_file_document(&file, &document);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    assert_non_null(strstr(gbx_status_message(status), "x.json: line 2: duplicate"));
    gbx_status_free(status);
    close_text(&file);
}

static void missing_and_irregular_files_are_reported(void **state) {
    (void)state;
    gbx_json_file file = {0};
    bool is_there = true;
    assert_ok(gbx_json_file_open(&file, "/tmp/no such file.json", "x.json", &is_there));
    assert_false(is_there);
    gbx_json_file_close(&file);
    gbx_status status = gbx_json_file_open(&file, "/tmp", "x.json", &is_there);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    gbx_status_free(status);
    gbx_json_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_json_or_refused),
        cmocka_unit_test(members_come_one_by_one),
        cmocka_unit_test(a_file_is_read_over_the_ends_of_its_buffer),
        cmocka_unit_test(a_number_is_not_cut),
        cmocka_unit_test(a_value_may_be_larger_than_the_buffer),
        cmocka_unit_test(errors_name_their_place),
        cmocka_unit_test(a_member_twice_is_refused_in_documents),
        cmocka_unit_test(missing_and_irregular_files_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
