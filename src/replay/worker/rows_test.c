#include "replay/worker/rows.h"

#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { BUFFER_BYTES = 1 << 20, MIDDLE = BUFFER_BYTES / 2, ROUNDS = 1000 };

static unsigned char from[BUFFER_BYTES], to[BUFFER_BYTES], expected[BUFFER_BYTES];
static unsigned char payload[BUFFER_BYTES], scratch[BUFFER_BYTES];

static int64_t below(int64_t limit) {
    return rand() % limit;
}

static void randomize(unsigned char *bytes) {
    for (size_t i = 0; i < BUFFER_BYTES; ++i)
        bytes[i] = (unsigned char)rand();
}

/* --- views --- */

static const uint32_t dtypes[] = {GBX_INT4,    GBX_UINT8,   GBX_FLOAT16,
                                  GBX_FLOAT32, GBX_FLOAT64, GBX_INT64};

/* Dimensions from the inner to the outer, each over the extent of those before it, with gaps or
 * without, forward or backward; then some of them swapped. Elements of an output do not overlap. */
static gbx_tensor random_view(bool may_repeat) {
    gbx_tensor view = {.dtype = dtypes[below(sizeof dtypes / sizeof dtypes[0])],
                       .ndims = (uint32_t)below(5)};
    int64_t extent = 1;
    for (uint32_t i = view.ndims; i-- > 0;) {
        view.shape[i] = below(12) == 0 ? below(2) : 1 + below(below(3) ? 6 : 40);
        view.strides[i] = extent + (below(2) ? below(5) : 0);
        if (extent * (view.shape[i] + 1) < 20000)
            extent = view.strides[i] * (view.shape[i] > 0 ? view.shape[i] : 1);
        else
            view.shape[i] = 1;
        if (below(5) == 0)
            view.strides[i] = -view.strides[i];
        else if (may_repeat && below(8) == 0)
            view.strides[i] = 0;
    }
    for (uint32_t i = 1; i < view.ndims && below(3) == 0; ++i) {
        int64_t shape = view.shape[i], stride = view.strides[i];
        view.shape[i] = view.shape[i - 1];
        view.strides[i] = view.strides[i - 1];
        view.shape[i - 1] = shape;
        view.strides[i - 1] = stride;
    }
    view.start_offset = below(40) - 20;
    return view;
}

/* --- a model: one element at a time --- */

static bool next_index(const gbx_tensor *view, int64_t *index) {
    for (uint32_t d = view->ndims; d-- > 0;) {
        if (++index[d] < view->shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static int64_t element_at(const gbx_tensor *view, const int64_t *index) {
    int64_t element = view->start_offset;
    for (uint32_t d = 0; d < view->ndims; ++d)
        element += index[d] * view->strides[d];
    return element;
}

static bool is_empty(const gbx_tensor *view) {
    for (uint32_t d = 0; d < view->ndims; ++d)
        if (view->shape[d] == 0)
            return true;
    return false;
}

static void copy_element(uint32_t bits, int64_t element, const unsigned char *source,
                         unsigned char *target) {
    if (bits >= 8) {
        memcpy(target + element * bits / 8, source + element * bits / 8, bits / 8);
        return;
    }
    int64_t byte = element >= 0 ? element / 2 : -((1 - element) / 2);
    unsigned char mask = element & 1 ? 0xf0 : 0x0f;
    target[byte] = (unsigned char)((target[byte] & ~mask) | (source[byte] & mask));
}

static void copy_elements(const gbx_tensor *view, const unsigned char *source,
                          unsigned char *target) {
    int64_t index[GBX_MAX_DIMS] = {0};
    if (is_empty(view))
        return;
    do
        copy_element(gbx_dtype_bits(view->dtype), element_at(view, index), source, target);
    while (next_index(view, index));
}

/* --- tests --- */

/* Nothing beside the elements changes. */
static void assert_copied(const gbx_tensor *view, int round) {
    memcpy(expected, to, BUFFER_BYTES);
    copy_elements(view, from + MIDDLE, expected + MIDDLE);
    gbx_rows_copy(view, from + MIDDLE, to + MIDDLE, scratch);
    if (memcmp(to, expected, BUFFER_BYTES) != 0)
        fail_msg("round %d: %s, %u dimensions", round, gbx_dtype_name(view->dtype),
                 (unsigned)view->ndims);
    memcpy(to, from, BUFFER_BYTES);
    for (size_t i = 0; i < BUFFER_BYTES; ++i)
        to[i] ^= 0xff;
}

static void copies_are_those_of_a_model(void **state) {
    (void)state;
    srand(11);
    randomize(from);
    randomize(to);
    for (int round = 0; round < ROUNDS; ++round) {
        gbx_tensor view = random_view(false);
        assert_copied(&view, round);
    }
}

static void flip_element(const gbx_tensor *view, int64_t number, unsigned char *buffer) {
    int64_t index[GBX_MAX_DIMS] = {0};
    uint32_t bits = gbx_dtype_bits(view->dtype);
    while (number-- > 0)
        next_index(view, index);
    int64_t element = element_at(view, index);
    if (bits >= 8)
        buffer[element * bits / 8 + below(bits / 8)] ^= (unsigned char)(1u << below(8));
    else
        buffer[element >= 0 ? element / 2 : -((1 - element) / 2)] ^=
            (unsigned char)((element & 1 ? 0x10u : 1u) << below(4));
}

/* Equal to what a gather gives, and not if any element differs; bytes beside them do not count. */
static void assert_compared(const gbx_tensor *view, int round) {
    int64_t count = gbx_tensor_numel(view);
    memset(payload, 0, gbx_tensor_payload_bytes(view));
    gbx_tensor_gather(view, from + MIDDLE, payload);
    if (!gbx_rows_equal(view, from + MIDDLE, payload, scratch) ||
        !gbx_rows_same(view, from + MIDDLE, from + MIDDLE))
        fail_msg("round %d: differs from itself", round);
    memcpy(to, from, BUFFER_BYTES);
    for (size_t i = 0; i < BUFFER_BYTES; ++i)
        to[i] ^= 0x55;
    copy_elements(view, from + MIDDLE, to + MIDDLE);
    if (!gbx_rows_equal(view, to + MIDDLE, payload, scratch) ||
        (!gbx_dtype_is_packed(view->dtype) && !gbx_rows_same(view, from + MIDDLE, to + MIDDLE)))
        fail_msg("round %d: bytes beside elements count", round);
    for (int i = 0; i < 3 && count > 0; ++i) {
        int64_t number = i == 0 ? 0 : i == 1 ? count - 1 : below(count);
        memcpy(to, from, BUFFER_BYTES);
        flip_element(view, number, to + MIDDLE);
        if (gbx_rows_equal(view, to + MIDDLE, payload, scratch) ||
            gbx_rows_same(view, from + MIDDLE, to + MIDDLE))
            fail_msg("round %d: element %d of %d differs unnoticed", round, (int)number,
                     (int)count);
    }
}

static void comparisons_see_every_element(void **state) {
    (void)state;
    srand(12);
    randomize(from);
    for (int round = 0; round < ROUNDS; ++round) {
        gbx_tensor view = random_view(true);
        assert_compared(&view, round);
    }
}

/* Each of these takes another path. */
static void certain_views(void **state) {
    static const gbx_tensor views[] = {
        {.dtype = GBX_FLOAT32},                  /* one element */
        {.dtype = GBX_INT4},                     /* half a byte */
        {.dtype = GBX_INT4, .start_offset = -3}, /* before the buffer */
        {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {0, 9}, .strides = {9, 1}}, /* empty */
        {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {9, 0}, .strides = {0, 1}},
        {.dtype = GBX_FLOAT32, .ndims = 1, .shape = {100}, .strides = {1}},
        {.dtype = GBX_FLOAT32, .ndims = 1, .shape = {100}, .strides = {-1}, .start_offset = 99},
        {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {7, 8}, .strides = {9, 1}}, /* 32 bytes */
        {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {7, 7}, .strides = {9, 1}}, /* 28 bytes */
        {.dtype = GBX_FLOAT32, .ndims = 2, .shape = {7, 9}, .strides = {1, 7}}, /* transposed */
        {.dtype = GBX_FLOAT32,
         .ndims = 2,
         .shape = {7, 16},
         .strides = {-20, 1},
         .start_offset = 120},
        {.dtype = GBX_FLOAT32, .ndims = 3, .shape = {3, 1, 16}, .strides = {16, 999, 1}},
        {.dtype = GBX_FLOAT32, .ndims = 3, .shape = {3, 2, 16}, .strides = {50, 16, 1}},
        {.dtype = GBX_UINT8, .ndims = 4, .shape = {2, 3, 2, 40}, .strides = {999, 300, 41, 1}},
        {.dtype = GBX_INT4, .ndims = 2, .shape = {3, 5}, .strides = {6, 1}, .start_offset = 1},
        {.dtype = GBX_INT4, .ndims = 2, .shape = {4, 128}, .strides = {128, 1}},
    };
    (void)state;
    srand(13);
    randomize(from);
    randomize(to);
    for (size_t i = 0; i < sizeof views / sizeof views[0]; ++i) {
        assert_copied(&views[i], (int)i);
        assert_compared(&views[i], (int)i);
    }
}

/* The same row several times: all of them must hold the payload. */
static void repeated_rows_are_compared_each(void **state) {
    const gbx_tensor view = {.dtype = GBX_UINT8, .ndims = 2, .shape = {3, 64}, .strides = {0, 1}};
    (void)state;
    for (int i = 0; i < 3 * 64; ++i)
        payload[i] = (unsigned char)(i % 64 + 1);
    memcpy(from + MIDDLE, payload, 64);
    assert_true(gbx_rows_equal(&view, from + MIDDLE, payload, scratch));
    payload[2 * 64 + 63] ^= 1;
    assert_false(gbx_rows_equal(&view, from + MIDDLE, payload, scratch));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_those_of_a_model),
        cmocka_unit_test(comparisons_see_every_element),
        cmocka_unit_test(certain_views),
        cmocka_unit_test(repeated_rows_are_compared_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
