#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/json_reader.h"

/* A document parsed from text, and the root cursor of it. */
static gbx_cursor parse(const char *text, json_t **out_document) {
    gbx_status status = gbx_json_parse("scene.json", text, strlen(text), out_document);
    assert_string_equal(gbx_status_message(status), "");
    return gbx_cursor_root(*out_document, "scene.json");
}

static void check_status(gbx_status status, gbx_code code, const char *message) {
    assert_string_equal(gbx_status_message(status), message);
    assert_int_equal(gbx_status_code(status), code);
    gbx_status_free(status);
}

static void check_bad(gbx_status status, const char *message) {
    check_status(status, GBX_BAD_FORMAT, message);
}

static void check_ok(gbx_status status) {
    check_status(status, GBX_OK, "");
}

static void values_are_read(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root =
        parse("{\"name\": \"\u00e9\", \"n\": -3, \"x\": 0.5, \"on\": true, \"off\": false,"
              " \"id\": \"0xFFffffffffffffff\", \"list\": [1, 2]}",
              &document);
    gbx_cursor at;
    const char *text = NULL;
    int64_t integer = 0;
    double number = 0;
    bool flag = false;
    uint64_t bits = 0;
    size_t count = 0;
    check_ok(gbx_cursor_member(&root, "name", &at));
    check_ok(gbx_cursor_string(&at, &text));
    assert_string_equal(text, "\u00e9");
    check_ok(gbx_cursor_member(&root, "n", &at));
    check_ok(gbx_cursor_integer(&at, -3, -3, &integer));
    assert_int_equal(integer, -3);
    check_ok(gbx_cursor_number(&at, &number));
    assert_true(number == -3.0);
    check_ok(gbx_cursor_member(&root, "x", &at));
    check_ok(gbx_cursor_number(&at, &number));
    assert_true(number == 0.5);
    check_ok(gbx_cursor_member(&root, "on", &at));
    check_ok(gbx_cursor_bool(&at, &flag));
    assert_true(flag);
    check_ok(gbx_cursor_member(&root, "off", &at));
    check_ok(gbx_cursor_bool(&at, &flag));
    assert_false(flag);
    check_ok(gbx_cursor_member(&root, "id", &at));
    check_ok(gbx_cursor_hex(&at, &bits));
    assert_int_equal(bits, UINT64_MAX);
    check_ok(gbx_cursor_member(&root, "list", &at));
    check_ok(gbx_cursor_count(&at, &count));
    assert_int_equal(count, 2);
    gbx_cursor element;
    check_ok(gbx_cursor_element(&at, 1, &element));
    check_ok(gbx_cursor_integer(&element, 0, 10, &integer));
    assert_int_equal(integer, 2);
    json_decref(document);
}

static void choice_names_the_place_and_what_is_known(void **state) {
    (void)state;
    static const char *const roles[] = {"in", "out", "inout", "scalar"};
    json_t *document = NULL;
    gbx_cursor root =
        parse("{\"kernels\": [1, 2, {\"signature\": [\"inout\", \"inn\", 5]}]}", &document);
    gbx_cursor kernels, kernel, signature, role;
    size_t index = 99;
    check_ok(gbx_cursor_member(&root, "kernels", &kernels));
    check_ok(gbx_cursor_element(&kernels, 2, &kernel));
    check_ok(gbx_cursor_member(&kernel, "signature", &signature));
    check_ok(gbx_cursor_element(&signature, 0, &role));
    check_ok(gbx_cursor_choice(&role, roles, 4, &index));
    assert_int_equal(index, 2);
    check_ok(gbx_cursor_element(&signature, 1, &role));
    check_bad(gbx_cursor_choice(&role, roles, 4, &index),
              "scene.json: kernels[2].signature[1]: unknown value \"inn\"; expected in, out, "
              "inout or scalar");
    check_ok(gbx_cursor_element(&signature, 2, &role));
    check_bad(gbx_cursor_choice(&role, roles, 4, &index),
              "scene.json: kernels[2].signature[2]: expected a string, got 5");
    assert_int_equal(index, 2);
    check_bad(gbx_cursor_element(&signature, 3, &role),
              "scene.json: kernels[2].signature: has 3 elements; index 3 does not exist");
    check_bad(gbx_cursor_member(&kernel, "name", &role),
              "scene.json: kernels[2]: \"name\" is missing");
    check_bad(gbx_cursor_fail(&kernel, "func_id %d twice", 4),
              "scene.json: kernels[2]: func_id 4 twice");
    json_decref(document);
}

static void optional_member_may_be_absent_or_null(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root = parse("{\"a\": null, \"b\": 1}", &document);
    gbx_cursor at;
    check_ok(gbx_cursor_optional(&root, "a", &at));
    assert_null(at.value);
    check_ok(gbx_cursor_optional(&root, "c", &at));
    assert_null(at.value);
    int64_t integer = 7;
    check_bad(gbx_cursor_integer(&at, 0, 9, &integer),
              "scene.json: c: expected an integer, got nothing");
    assert_int_equal(integer, 7);
    check_ok(gbx_cursor_optional(&root, "b", &at));
    check_ok(gbx_cursor_integer(&at, 0, 9, &integer));
    assert_int_equal(integer, 1);
    check_ok(gbx_cursor_member(&root, "a", &at));
    check_bad(gbx_cursor_integer(&at, 0, 9, &integer),
              "scene.json: a: expected an integer, got null");
    json_decref(document);
}

static void wrong_types_are_named(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root = parse("[[], {}, \"a\\nb\", 1.5, 3, true]", &document);
    gbx_cursor at[6];
    for (size_t i = 0; i < 6; ++i)
        check_ok(gbx_cursor_element(&root, i, &at[i]));
    const char *text = NULL;
    int64_t integer = 0;
    double number = 0;
    bool flag = false;
    size_t count = 0;
    gbx_cursor member;
    check_bad(gbx_cursor_string(&at[0], &text), "scene.json: [0]: expected a string, got an array");
    check_bad(gbx_cursor_count(&at[1], &count),
              "scene.json: [1]: expected an array, got an object");
    check_bad(gbx_cursor_element(&at[4], 0, &member), "scene.json: [4]: expected an array, got 3");
    check_bad(gbx_cursor_integer(&at[2], 0, 1, &integer),
              "scene.json: [2]: expected an integer, got \"a\\nb\"");
    check_bad(gbx_cursor_integer(&at[3], 0, 9, &integer),
              "scene.json: [3]: expected an integer, got 1.5");
    check_bad(gbx_cursor_number(&at[5], &number), "scene.json: [5]: expected a number, got true");
    check_bad(gbx_cursor_bool(&at[4], &flag), "scene.json: [4]: expected true or false, got 3");
    check_bad(gbx_cursor_member(&root, "x", &member),
              "scene.json: expected an object, got an array");
    check_bad(gbx_cursor_optional(&at[0], "x", &member),
              "scene.json: [0]: expected an object, got an array");
    json_decref(document);
}

static void integer_is_held_to_its_range(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root = parse("{\"blocks\": 25, \"big\": 9223372036854775807}", &document);
    gbx_cursor at;
    int64_t integer = 0;
    check_ok(gbx_cursor_member(&root, "blocks", &at));
    check_bad(gbx_cursor_integer(&at, 1, 24, &integer),
              "scene.json: blocks: 25 is outside 1 to 24");
    check_bad(gbx_cursor_integer(&at, 26, 30, &integer),
              "scene.json: blocks: 25 is outside 26 to 30");
    check_ok(gbx_cursor_integer(&at, 25, 25, &integer));
    check_ok(gbx_cursor_member(&root, "big", &at));
    check_ok(gbx_cursor_integer(&at, INT64_MIN, INT64_MAX, &integer));
    assert_int_equal(integer, INT64_MAX);
    json_decref(document);
}

static void number_may_be_a_name_of_the_writer(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root = parse("[\"nan\", \"inf\", \"-inf\", \"infinity\"]", &document);
    gbx_cursor at;
    double number = 0;
    check_ok(gbx_cursor_element(&root, 0, &at));
    check_ok(gbx_cursor_number(&at, &number));
    assert_true(isnan(number));
    check_ok(gbx_cursor_element(&root, 1, &at));
    check_ok(gbx_cursor_number(&at, &number));
    assert_true(isinf(number) && number > 0);
    check_ok(gbx_cursor_element(&root, 2, &at));
    check_ok(gbx_cursor_number(&at, &number));
    assert_true(isinf(number) && number < 0);
    check_ok(gbx_cursor_element(&root, 3, &at));
    check_bad(gbx_cursor_number(&at, &number),
              "scene.json: [3]: expected a number, got \"infinity\"");
    json_decref(document);
}

static void hex_is_a_prefix_and_up_to_16_digits(void **state) {
    (void)state;
    json_t *document = NULL;
    gbx_cursor root = parse("[\"0x0\", \"0x00000000deadBEEF\", \"0x\", \"12\", \"0X1\", \"0x-1\","
                            " \"0x1g\", \"0x00000000000000001\", \"\", 7, \"0x 1\"]",
                            &document);
    gbx_cursor at;
    uint64_t bits = 1;
    check_ok(gbx_cursor_element(&root, 0, &at));
    check_ok(gbx_cursor_hex(&at, &bits));
    assert_int_equal(bits, 0);
    check_ok(gbx_cursor_element(&root, 1, &at));
    check_ok(gbx_cursor_hex(&at, &bits));
    assert_int_equal(bits, 0xdeadbeef);
    for (size_t i = 2; i < json_array_size(document); ++i) {
        check_ok(gbx_cursor_element(&root, i, &at));
        gbx_status status = gbx_cursor_hex(&at, &bits);
        assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
        gbx_status_free(status);
        assert_int_equal(bits, 0xdeadbeef);
    }
    check_ok(gbx_cursor_element(&root, 3, &at));
    check_bad(gbx_cursor_hex(&at, &bits), "scene.json: [3]: expected a string \"0x...\" of up to 16"
                                          " hexadecimal digits, got \"12\"");
    json_decref(document);
}

static void long_values_and_paths_are_cut(void **state) {
    (void)state;
    char name[2001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    json_t *document = json_pack("{s:s}", name, name);
    gbx_cursor root = gbx_cursor_root(document, "scene.json");
    gbx_cursor at;
    bool flag = false;
    check_ok(gbx_cursor_member(&root, name, &at));
    gbx_status status = gbx_cursor_bool(&at, &flag);
    const char *message = gbx_status_message(status);
    assert_non_null(strstr(message, "nnn: expected true or false, got \"nnn"));
    assert_string_equal(message + strlen(message) - 5, "nn...");
    assert_in_range(strlen(message), 512, 640);
    gbx_status_free(status);
    json_decref(document);
}

static void bad_text_is_placed_by_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{\n  \"a\": 1,\n  \"b\": oops\n}",
         "scene.json: line 3, column 11: invalid token near 'oops'"},
        {"{\"a\": 1,\n \"a\": 2}",
         "scene.json: line 2, column 4: duplicate object key near '\"a\"'"},
        {"", "scene.json: line 1, column 0: '[' or '{' expected near end of file"},
        {"{} x", "scene.json: line 1, column 4: end of file expected near 'x'"},
        {"[99999999999999999999]",
         "scene.json: line 1, column 21: too big integer near '99999999999999999999'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        json_t *document = NULL;
        check_bad(gbx_json_parse("scene.json", cases[i].text, strlen(cases[i].text), &document),
                  cases[i].message);
        assert_null(document);
    }
}

typedef struct directory {
    char path[64];
    char file[96];
    char message[256];
} directory;

static int make_directory(void **state) {
    static directory made;
    strcpy(made.path, "/tmp/json_reader_test.XXXXXX");
    assert_non_null(mkdtemp(made.path));
    snprintf(made.file, sizeof made.file, "%s/f.json", made.path);
    *state = &made;
    return 0;
}

static int remove_directory(void **state) {
    directory *made = *state;
    unlink(made->file);
    return rmdir(made->path);
}

static void write_file(const directory *made, const char *text) {
    FILE *file = fopen(made->file, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static void file_is_loaded_up_to_its_limit(void **state) {
    directory *made = *state;
    json_t *document = NULL;
    write_file(made, "{\"a\": 5}");
    check_ok(gbx_json_load(made->file, 8, &document));
    assert_int_equal(json_integer_value(json_object_get(document, "a")), 5);
    json_decref(document);
    document = NULL;
    snprintf(made->message, sizeof made->message, "%s has 8 bytes; at most 7 are allowed",
             made->file);
    check_status(gbx_json_load(made->file, 7, &document), GBX_OUT_OF_RANGE, made->message);
    assert_null(document);
    write_file(made, "[1,\n2");
    snprintf(made->message, sizeof made->message,
             "%s: line 2, column 1: ']' expected near end of file", made->file);
    check_bad(gbx_json_load(made->file, 1000, &document), made->message);
}

static void paths_that_are_not_files_are_refused(void **state) {
    directory *made = *state;
    json_t *document = NULL;
    snprintf(made->message, sizeof made->message, "cannot open %s: No such file or directory",
             made->file);
    check_status(gbx_json_load(made->file, 1000, &document), GBX_NOT_FOUND, made->message);
    snprintf(made->message, sizeof made->message, "cannot read %s: it is a directory", made->path);
    check_status(gbx_json_load(made->path, 1000, &document), GBX_IO, made->message);
    assert_int_equal(mkfifo(made->file, 0600), 0);
    snprintf(made->message, sizeof made->message, "cannot read %s: it is not a regular file",
             made->file);
    check_status(gbx_json_load(made->file, 1000, &document), GBX_IO, made->message);
    assert_null(document);
}

static void unknown_members_are_named(void **state) {
    (void)state;
    static const char *const names[] = {"name", "source"};
    json_t *document = NULL;
    gbx_cursor root = parse("{\"name\": 1, \"golden\": {\"sorce\": 2}, \"list\": []}", &document);
    gbx_cursor at;
    check_ok(gbx_cursor_member(&root, "golden", &at));
    check_bad(gbx_cursor_only(&at, names, 2),
              "scene.json: golden: unknown member \"sorce\"; expected name or source");
    check_bad(gbx_cursor_only(&root, names, 2),
              "scene.json: unknown member \"golden\"; expected name or source");
    check_ok(gbx_cursor_member(&root, "list", &at));
    check_bad(gbx_cursor_only(&at, names, 2), "scene.json: list: expected an object, got an array");
    json_decref(document);
    root = parse("{\"source\": null}", &document);
    check_ok(gbx_cursor_only(&root, names, 2));
    json_decref(document);
}

/* The contents of a file do not reach a terminal unchanged: no line ends, no escapes, and no half
 * of a character at a cut. */
static void messages_are_one_plain_line(void **state) {
    (void)state;
    static const char *const names[] = {"name"};
    json_t *document = NULL;
    gbx_cursor root = parse("{\"a\\n\\u001b[31m\": 1}", &document);
    check_bad(gbx_cursor_only(&root, names, 1),
              "scene.json: unknown member \"a??[31m\"; expected name");
    json_decref(document);
    root = parse("{\"aa\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603"
                 "\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\u2603\": 1}",
                 &document);
    gbx_status status = gbx_cursor_only(&root, names, 1);
    assert_non_null(strstr(gbx_status_message(status), "\u2603??\"; expected "));
    gbx_status_free(status);
    json_decref(document);
    document = NULL;
    static const char text[] = "{\"name\": nul\x7f}";
    status = gbx_json_parse("scene.json", text, sizeof text - 1, &document);
    assert_null(document);
    assert_non_null(strstr(gbx_status_message(status), "scene.json: line 1, column 12: "));
    for (const char *c = gbx_status_message(status); *c; ++c)
        assert_in_range((unsigned char)*c, ' ', '~');
    gbx_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(choice_names_the_place_and_what_is_known),
        cmocka_unit_test(optional_member_may_be_absent_or_null),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(unknown_members_are_named),
        cmocka_unit_test(messages_are_one_plain_line),
        cmocka_unit_test(integer_is_held_to_its_range),
        cmocka_unit_test(number_may_be_a_name_of_the_writer),
        cmocka_unit_test(hex_is_a_prefix_and_up_to_16_digits),
        cmocka_unit_test(long_values_and_paths_are_cut),
        cmocka_unit_test(bad_text_is_placed_by_line_and_column),
        cmocka_unit_test_setup_teardown(file_is_loaded_up_to_its_limit, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(paths_that_are_not_files_are_refused, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
