#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/check_signature.h"

enum { KERNEL = 3, OTHER = 4, TASK = 17 };

static gbx_signature signatures[GBX_MAX_KERNELS];
static gbx_signature_warnings warnings;
static gbx_graph_limits limits = {.signatures = signatures};

#define VECTOR                                                                                     \
    {                                                                                              \
        .data = 4096, .dtype = GBX_FLOAT32, .ndims = 1, .shape = { 4 }                             \
    }
#define MATRIX                                                                                     \
    {                                                                                              \
        .data = 4096, .dtype = GBX_BFLOAT16, .ndims = 2, .shape = { 4, 4 }                         \
    }
static const gbx_tensor vector = VECTOR;
static const gbx_tensor matrix = MATRIX;

static void declare(const char *signature) {
    assert_true(gbx_signature_read(signature, &signatures[KERNEL]));
}

/*
 * Arguments from letters: i o b (both) of `vector`, I O B of `matrix`, and scalars: s undeclared, f
 * float32, n int32.
 */
static gbx_args args_of(const char *letters) {
    gbx_args args = gbx_args_begin();
    /* What lies beyond the arguments must not count. */
    memset(args.roles, 0xee, sizeof args.roles);
    memset(args.scalar_dtypes, 0xee, sizeof args.scalar_dtypes);
    for (; *letters; ++letters) {
        const char *role = strchr("iobIOB", *letters);
        if (role) {
            size_t at = (size_t)(role - "iobIOB");
            gbx_args_add_tensor(&args, at < 3 ? &vector : &matrix, (gbx_role)(at % 3));
        } else {
            gbx_args_add_scalar(&args,
                                *letters == 'f'   ? GBX_FLOAT32
                                : *letters == 'n' ? GBX_INT32
                                                  : GBX_DTYPE_NONE,
                                1);
        }
    }
    return args;
}

typedef struct expectation {
    const char *signature;
    const char *letters;
    gbx_mismatch_kind kind; /* GBX_MISMATCH_NONE: accepted */
    uint32_t slot;
    uint32_t given;
} expectation;

static const expectation expectations[] = {
    {"", "", GBX_MISMATCH_NONE, 0, 0},
    {"", "iobfn", GBX_MISMATCH_NONE, 0, 0},
    {"in,out", "io", GBX_MISMATCH_NONE, 0, 0},
    {"in,out", "iofns", GBX_MISMATCH_NONE, 0, 0}, /* it lists no scalar */
    {"in,out", "i", GBX_MISMATCH_TENSORS, 1, 1},
    {"in,out", "", GBX_MISMATCH_TENSORS, 0, 0},
    {"in,out", "ioi", GBX_MISMATCH_TENSORS, 2, 3},
    {"scalar", "is", GBX_MISMATCH_TENSORS, 0, 1},
    {"in,out", "oo", GBX_MISMATCH_ROLE, 0, GBX_ROLE_OUTPUT},
    {"in,out", "bo", GBX_MISMATCH_ROLE, 0, GBX_ROLE_INOUT},
    {"in,out", "ii", GBX_MISMATCH_ROLE, 1, GBX_ROLE_INPUT},
    {"in,inout", "ii", GBX_MISMATCH_ROLE, 1, GBX_ROLE_INPUT},
    {"in,inout", "io", GBX_MISMATCH_NONE, 0, 0},
    {"in,out", "ib", GBX_MISMATCH_NONE, 0, 0},
    {"in,scalar:float32", "if", GBX_MISMATCH_NONE, 0, 0},
    {"in,scalar:float32", "is", GBX_MISMATCH_NONE, 0, 0},
    {"in,scalar:float32", "in", GBX_MISMATCH_DTYPE, 1, GBX_INT32},
    {"in,scalar", "in", GBX_MISMATCH_NONE, 0, 0},
    {"scalar:float32,in", "in", GBX_MISMATCH_DTYPE, 1, GBX_INT32},
    {"in,scalar:float32", "i", GBX_MISMATCH_SCALARS, 1, 0},
    {"in,scalar:float32", "iff", GBX_MISMATCH_SCALARS, 2, 2},
    {"in,scalar,scalar:float32", "isn", GBX_MISMATCH_DTYPE, 2, GBX_INT32},
    {"in:float32", "i", GBX_MISMATCH_NONE, 0, 0},
    {"in:bfloat16", "i", GBX_MISMATCH_DTYPE, 0, GBX_FLOAT32},
    {"in:bfloat16[2]", "I", GBX_MISMATCH_NONE, 0, 0},
    {"in:float32[2]", "i", GBX_MISMATCH_NDIMS, 0, 1},
    {"in:[2]", "I", GBX_MISMATCH_NONE, 0, 0},
    {"in:[1]", "I", GBX_MISMATCH_NDIMS, 0, 2},
    {"in:[2],out:bfloat16", "Io", GBX_MISMATCH_DTYPE, 1, GBX_FLOAT32},
    /* More than eight, which takes another path. */
    {"in,in,in,in,in,in,in,in,out", "iiiiiiiio", GBX_MISMATCH_NONE, 0, 0},
    {"in,in,in,in,in,in,in,in,out", "iiiiiiiii", GBX_MISMATCH_ROLE, 8, GBX_ROLE_INPUT},
    {"in,in,in,in,in,in,in,out", "iiiiiiii", GBX_MISMATCH_ROLE, 7, GBX_ROLE_INPUT},
    {"in,in,in,in,in,in,in,out", "iiiiiiio", GBX_MISMATCH_NONE, 0, 0},
};

static void check_error(const expectation *e, const gbx_graph_error *error) {
    assert_int_equal(error->kind, GBX_GRAPH_SIGNATURE);
    assert_int_equal(error->func_id, KERNEL);
    assert_int_equal(error->task, TASK);
    assert_int_equal(error->values[0], e->slot);
    assert_int_equal(error->values[1], e->kind);
    assert_int_equal(error->values[2], e->given);
}

static void arguments_match_or_are_refused(void **state) {
    (void)state;
    gbx_task_kernels kernels = gbx_aiv(KERNEL);
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; ++i) {
        const expectation *e = &expectations[i];
        gbx_graph_error error = {0};
        gbx_args args = args_of(e->letters);
        declare(e->signature);
        bool is_right = gbx_check_signatures(&limits, TASK, &kernels, &args, &error);
        if (is_right != (e->kind == GBX_MISMATCH_NONE))
            fail_msg("\"%s\" with \"%s\"", e->signature, e->letters);
        if (!is_right)
            check_error(e, &error);
    }
}

static void each_kernel_of_a_mix_is_compared(void **state) {
    (void)state;
    gbx_task_kernels kernels = gbx_mix(OTHER, KERNEL, KERNEL);
    gbx_graph_error error = {0};
    gbx_args args = args_of("ii");
    assert_true(gbx_signature_read("in,in", &signatures[OTHER]));
    declare("in,out");
    assert_false(gbx_check_signatures(&limits, TASK, &kernels, &args, &error));
    assert_int_equal(error.func_id, KERNEL);
    args = args_of("io");
    assert_false(gbx_check_signatures(&limits, TASK, &kernels, &args, &error));
    assert_int_equal(error.func_id, OTHER);
    declare("in,in");
    args = args_of("ii");
    assert_true(gbx_check_signatures(&limits, TASK, &kernels, &args, &error));
}

/* --- loose --- */

static void loosen(void) {
    memset(&warnings, 0, sizeof warnings);
    limits.warnings = &warnings;
}

static void every_argument_is_a_warning_but_alike_ones_are_kept_once(void **state) {
    (void)state;
    gbx_task_kernels kernels = gbx_mix(GBX_NO_KERNEL, KERNEL, KERNEL);
    gbx_graph_error error = {0};
    gbx_args args = args_of("iin");
    loosen();
    declare("out,inout,scalar:float32");
    for (uint64_t task = 5; task < 105; ++task)
        assert_true(gbx_check_signatures(&limits, task, &kernels, &args, &error));
    assert_int_equal(error.kind, GBX_GRAPH_OK);
    assert_int_equal(warnings.total, 300);
    assert_int_equal(warnings.kept, 3);
    for (uint32_t i = 0; i < 3; ++i) {
        assert_int_equal(warnings.first[i].task, 5);
        assert_int_equal(warnings.first[i].slot, i);
    }
    limits.warnings = NULL;
}

static void warnings_are_bounded(void **state) {
    (void)state;
    gbx_task_kernels kernels = gbx_aiv(KERNEL);
    gbx_graph_error error = {0};
    gbx_args args = args_of("iiiiiiiiii");
    loosen();
    declare("out,out,out,out,out,out,out,out,out,out");
    assert_true(gbx_check_signatures(&limits, TASK, &kernels, &args, &error));
    assert_int_equal(warnings.total, 10);
    assert_int_equal(warnings.kept, GBX_MAX_SIGNATURE_SENTENCES);
    gbx_signature_warnings copy;
    memset(&copy, 0xee, sizeof copy);
    gbx_signature_warnings_copy(&warnings, &copy);
    assert_int_equal(copy.total, 10);
    assert_int_equal(copy.kept, GBX_MAX_SIGNATURE_SENTENCES);
    assert_memory_equal(copy.first, warnings.first, sizeof copy.first);
    limits.warnings = NULL;
}

/* --- words --- */

static void words_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *signature;
        uint32_t words;
        bool is_right;
    } cases[] = {{"", 7, true},
                 {"in,out", 2, true},
                 {"in,out", 3, true},
                 {"in,out", 1, false},
                 {"in,out,scalar", 3, true},
                 {"in,out,scalar", 2, false},
                 {"in,out,scalar", 4, false}};
    gbx_task_kernels kernels = gbx_aiv(KERNEL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_graph_error error = {0};
        declare(cases[i].signature);
        assert_int_equal(gbx_check_word_count(&limits, TASK, &kernels, cases[i].words, &error),
                         cases[i].is_right);
        assert_int_equal(error.values[2], cases[i].is_right ? 0 : cases[i].words);
    }
}

static void described_words_are_compared(void **state) {
    (void)state;
    static const struct {
        const char *signature;
        gbx_tensor_info info;
        gbx_mismatch_kind kind;
    } cases[] = {
        {"in,out", {0, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_NONE}, /* the other may be anything */
        {"in,out", {0, GBX_ROLE_OUTPUT, VECTOR}, GBX_MISMATCH_ROLE},
        {"in,out", {1, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_ROLE},
        {"in,inout", {1, GBX_ROLE_OUTPUT, VECTOR}, GBX_MISMATCH_NONE},
        {"in,out,scalar", {2, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_KIND},
        {"in,out", {2, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_KIND},
        {"in:bfloat16,out", {0, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_DTYPE},
        {"in:[2],out", {0, GBX_ROLE_INPUT, VECTOR}, GBX_MISMATCH_NDIMS},
        {"in:bfloat16[2],out", {0, GBX_ROLE_INPUT, MATRIX}, GBX_MISMATCH_NONE},
    };
    gbx_task_kernels kernels = gbx_aiv(KERNEL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_graph_error error = {0};
        declare(cases[i].signature);
        assert_int_equal(gbx_check_infos(&limits, TASK, &kernels, &cases[i].info, 1, &error),
                         cases[i].kind == GBX_MISMATCH_NONE);
        assert_int_equal(error.values[1], cases[i].kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_match_or_are_refused),
        cmocka_unit_test(each_kernel_of_a_mix_is_compared),
        cmocka_unit_test(every_argument_is_a_warning_but_alike_ones_are_kept_once),
        cmocka_unit_test(warnings_are_bounded),
        cmocka_unit_test(words_are_counted),
        cmocka_unit_test(described_words_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
