#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <glassbox/orchestration.h>

#include "tensor/signature.h"

static gbx_parameter_trouble read_text(const char *word, gbx_parameter *out) {
    return gbx_parameter_read(word, strlen(word), out);
}

static void words_are_read_and_written(void **state) {
    (void)state;
    static const struct {
        const char *word;
        gbx_parameter is;
        const char *written; /* NULL: the word */
    } words[] = {
        {"in", {GBX_ROLE_INPUT, GBX_DTYPE_NONE, GBX_ANY_NDIMS}, NULL},
        {"out", {GBX_ROLE_OUTPUT, GBX_DTYPE_NONE, GBX_ANY_NDIMS}, NULL},
        {"inout", {GBX_ROLE_INOUT, GBX_DTYPE_NONE, GBX_ANY_NDIMS}, NULL},
        {"scalar", {GBX_PARAMETER_SCALAR, GBX_DTYPE_NONE, GBX_ANY_NDIMS}, NULL},
        {"scalar:float32", {GBX_PARAMETER_SCALAR, GBX_FLOAT32, GBX_ANY_NDIMS}, NULL},
        {"scalar:half", {GBX_PARAMETER_SCALAR, GBX_FLOAT16, GBX_ANY_NDIMS}, "scalar:float16"},
        {"in:bfloat16", {GBX_ROLE_INPUT, GBX_BFLOAT16, GBX_ANY_NDIMS}, NULL},
        {"in:bfloat16[2]", {GBX_ROLE_INPUT, GBX_BFLOAT16, 2}, NULL},
        {"inout:[0]", {GBX_ROLE_INOUT, GBX_DTYPE_NONE, 0}, NULL},
        {"out:FP8E4M3FN[8]", {GBX_ROLE_OUTPUT, GBX_FLOAT8_E4M3, 8}, "out:float8_e4m3[8]"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        gbx_parameter got;
        char text[GBX_PARAMETER_TEXT_BYTES];
        assert_int_equal(read_text(words[i].word, &got), GBX_PARAMETER_OK);
        assert_memory_equal(&got, &words[i].is, sizeof got);
        gbx_parameter_write(&got, text);
        assert_string_equal(text, words[i].written ? words[i].written : words[i].word);
        assert_int_equal(gbx_parameter_kind(words[i].word), words[i].is.kind);
    }
}

static void other_words_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *word;
        gbx_parameter_trouble trouble;
    } words[] = {
        {"", GBX_PARAMETER_UNKNOWN},
        {"input", GBX_PARAMETER_UNKNOWN},
        {"inn:float32", GBX_PARAMETER_UNKNOWN},
        {"in[2]", GBX_PARAMETER_UNKNOWN},
        {"IN", GBX_PARAMETER_UNKNOWN},
        {"in:", GBX_PARAMETER_DTYPE},
        {"scalar:", GBX_PARAMETER_DTYPE},
        {"in:f33", GBX_PARAMETER_DTYPE},
        {"in:f33[2]", GBX_PARAMETER_DTYPE},
        {"in:float32[9]", GBX_PARAMETER_RANK},
        {"in:float32[]", GBX_PARAMETER_RANK},
        {"in:float32[2", GBX_PARAMETER_RANK},
        {"in:float32[2]x", GBX_PARAMETER_RANK},
        {"in:[-1]", GBX_PARAMETER_RANK},
        {"in:[02]", GBX_PARAMETER_RANK},
        {"scalar:float32[0]", GBX_PARAMETER_RANK},
        {"scalar:[0]", GBX_PARAMETER_RANK},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        gbx_parameter got;
        assert_int_equal(read_text(words[i].word, &got), words[i].trouble);
        assert_int_equal(gbx_parameter_kind(words[i].word), GBX_PARAMETER_COUNT);
    }
}

static void a_word_ends_where_its_length_says(void **state) {
    (void)state;
    gbx_parameter got;
    assert_int_equal(gbx_parameter_read("in:float32[2],out", 10, &got), GBX_PARAMETER_OK);
    assert_int_equal(got.ndims, GBX_ANY_NDIMS);
    assert_int_equal(gbx_parameter_read("in:float32[2],out", 2, &got), GBX_PARAMETER_OK);
    assert_int_equal(got.dtype, GBX_DTYPE_NONE);
}

static void slots_have_tensors_first(void **state) {
    (void)state;
    static const char text[] = "in,scalar:float32,out:[2],scalar,inout";
    static const uint32_t kinds[] = {GBX_ROLE_INPUT, GBX_ROLE_OUTPUT, GBX_ROLE_INOUT,
                                     GBX_PARAMETER_SCALAR, GBX_PARAMETER_SCALAR};
    gbx_signature signature;
    assert_true(gbx_signature_read(text, &signature));
    assert_int_equal(signature.tensor_count, 3);
    assert_int_equal(signature.scalar_count, 2);
    for (uint32_t i = 0; i < 5; ++i)
        assert_int_equal(signature.slots[i].kind, kinds[i]);
    assert_int_equal(signature.slots[1].ndims, 2);
    assert_int_equal(signature.slots[3].dtype, GBX_FLOAT32);
}

static void names_follow_the_slots(void **state) {
    (void)state;
    static const char text[] = "in,scalar:float32,out:[2],scalar,inout";
    static const char *const expected[] = {"a", "c", "e", "b", "dd"};
    size_t length;
    for (uint32_t i = 0; i < 5; ++i) {
        const char *name = gbx_signature_name(text, "a,b,c,dd,e", i, &length);
        assert_int_equal(length, strlen(expected[i]));
        assert_memory_equal(name, expected[i], length);
    }
    assert_null(gbx_signature_name(text, "a,b,c,dd,e", 5, &length));
    assert_null(gbx_signature_name(text, NULL, 0, &length));
    assert_null(gbx_signature_name(NULL, NULL, 0, &length));
    assert_null(gbx_signature_name("", "", 0, &length));
}

static void an_empty_signature_has_no_slots(void **state) {
    (void)state;
    static const char *const texts[] = {NULL, ""};
    for (size_t i = 0; i < 2; ++i) {
        gbx_signature signature;
        assert_true(gbx_signature_read(texts[i], &signature));
        assert_int_equal(signature.tensor_count + signature.scalar_count, 0);
    }
}

static void thirty_two_of_each_fit(void **state) {
    (void)state;
    char text[33 * 3 + 32 * 7 + 1] = "";
    gbx_signature signature;
    for (int i = 0; i < 32; ++i)
        strcat(text, i ? ",in,scalar" : "in,scalar");
    assert_true(gbx_signature_read(text, &signature));
    assert_int_equal(signature.tensor_count, 32);
    assert_int_equal(signature.scalar_count, 32);
    assert_true(signature.counts != 0 && signature.count_mask == 0);
    strcat(text, ",in");
    assert_false(gbx_signature_read(text, &signature));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_written),
        cmocka_unit_test(other_words_are_refused),
        cmocka_unit_test(a_word_ends_where_its_length_says),
        cmocka_unit_test(slots_have_tensors_first),
        cmocka_unit_test(names_follow_the_slots),
        cmocka_unit_test(an_empty_signature_has_no_slots),
        cmocka_unit_test(thirty_two_of_each_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
