#include "replay/worker/picture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "checks.h"

#include <glassbox/orchestration.h>

#include "replay/worker/pattern.h"

#define BASE UINT64_C(0x7e9000100000)
#define PAGE ((uint64_t)GBX_PICTURE_PAGE)
enum { MOST = 12, PAYLOAD_BYTES = 1 << 16, REGION_PAGES = 64 };

/* An order as it lies in a batch. */
typedef struct made_order {
    gbx_order order;
    gbx_order_argument arguments[MOST];
} made_order;
static_assert(offsetof(made_order, arguments) == sizeof(gbx_order), "arguments follow");

static made_order made;
static gbx_picture picture;
static unsigned char dump[PAYLOAD_BYTES], scratch[PAYLOAD_BYTES];
static const gbx_payloads payloads = {.dump = dump, .dump_bytes = sizeof dump};

static int prepare(void **state) {
    (void)state;
    memset(&made, 0, sizeof made);
    for (unsigned i = 0; i < PAYLOAD_BYTES; ++i)
        dump[i] = (unsigned char)(i * 7 + i / 256 * 3 + 1);
    return 0;
}

/* Payloads of arguments lie 4096 bytes apart. */
static gbx_tensor *add(uint32_t role, gbx_tensor tensor) {
    uint32_t number = made.order.argument_count++;
    assert_true(number < MOST);
    made.arguments[number] =
        (gbx_order_argument){.tensor = tensor,
                             .slot = number,
                             .kind = GBX_CALL_TENSOR,
                             .role = role,
                             .before = role == GBX_ROLE_OUTPUT ? GBX_NO_PAYLOAD : 4096 * number,
                             .after = GBX_NO_PAYLOAD,
                             .kept = GBX_NO_PAYLOAD};
    return &made.arguments[number].tensor;
}

static gbx_tensor bytes_at(uint64_t address, int64_t count) {
    return (gbx_tensor){
        .data = address, .dtype = GBX_UINT8, .ndims = 1, .shape = {count}, .strides = {1}};
}

static unsigned char *memory_at(uint64_t address) {
    return (unsigned char *)(uintptr_t)address;
}

static void open_picture(void) {
    char error[GBX_CALL_ERROR_BYTES];
    if (gbx_picture_open(&picture, &made.order, error))
        fail_msg("%s", error);
    assert_non_null(picture.mirror);
}

static void paint(int pattern) {
    gbx_picture_prepare(&picture, &made.order, &payloads, pattern, scratch);
}

/* --- windows --- */

static void assert_window(uint32_t number, uint64_t start, uint64_t end) {
    assert_true(number < picture.window_count);
    assert_int_equal(picture.windows[number].start, start);
    assert_int_equal(picture.windows[number].address, start);
    assert_int_equal(picture.windows[number].start + picture.windows[number].bytes, end);
}

static void a_page_lies_around_each_tensor(void **state) {
    (void)state;
    add(GBX_ROLE_INPUT, bytes_at(BASE, 1));
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 64 * PAGE - 1, 2)); /* in two pages */
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 32 * PAGE, (int64_t)PAGE));
    add(GBX_ROLE_INPUT, bytes_at(BASE + 5 * PAGE, 0));
    made.arguments[made.order.argument_count++] =
        (gbx_order_argument){.kind = GBX_CALL_SCALAR, .bits = BASE};
    gbx_tensor backward = {.data = BASE + 20 * PAGE,
                           .dtype = GBX_INT32,
                           .ndims = 1,
                           .shape = {3},
                           .strides = {-1024},
                           .start_offset = 1024};
    add(GBX_ROLE_INPUT, backward); /* from a page before to a page behind its buffer */
    gbx_picture_find_windows(&picture, &made.order);
    assert_int_equal(picture.window_count, 4);
    assert_window(0, BASE - PAGE, BASE + 2 * PAGE);
    assert_window(1, BASE + 18 * PAGE, BASE + 23 * PAGE);
    assert_window(2, BASE + 31 * PAGE, BASE + 34 * PAGE);
    assert_window(3, BASE + 62 * PAGE, BASE + 66 * PAGE);
    static const int32_t expected[] = {0, 3, 2, -1, -1, 1};
    for (uint32_t i = 0; i < 6; ++i)
        assert_int_equal(picture.window_of[i], expected[i]);
    assert_int_equal(picture.bytes, (3 + 5 + 3 + 4) * PAGE);
    for (uint32_t i = 1; i < 4; ++i)
        assert_int_equal(picture.windows[i].offset,
                         picture.windows[i - 1].offset + picture.windows[i - 1].bytes);
}

static void close_tensors_share_a_window(void **state) {
    (void)state;
    add(GBX_ROLE_INPUT, bytes_at(BASE, 1));
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 4 * PAGE, 1)); /* a page lies between their windows */
    gbx_picture_find_windows(&picture, &made.order);
    assert_int_equal(picture.window_count, 2);
    made.arguments[1].tensor.data -= 1; /* the windows touch */
    gbx_picture_find_windows(&picture, &made.order);
    assert_int_equal(picture.window_count, 1);
    assert_window(0, BASE - PAGE, BASE + 5 * PAGE);
    made.arguments[1].tensor.data += 3 * PAGE + 1;
    add(GBX_ROLE_INPUT, bytes_at(BASE + 3 * PAGE, 2 * (int64_t)PAGE)); /* joins both */
    gbx_picture_find_windows(&picture, &made.order);
    assert_int_equal(picture.window_count, 1);
    assert_window(0, BASE - PAGE, BASE + 9 * PAGE);
    for (uint32_t i = 0; i < 3; ++i)
        assert_int_equal(picture.window_of[i], 0);
}

static int64_t below(int64_t limit) {
    return rand() % limit;
}

/* A page is mapped if a tensor is in it or in a page beside it. */
static void windows_are_those_of_a_model(void **state) {
    srand(3);
    for (int round = 0; round < 2000; ++round) {
        bool is_mapped[REGION_PAGES + 2] = {false};
        prepare(state);
        int64_t count = below(MOST + 1);
        for (int64_t i = 0; i < count; ++i) {
            int64_t first = (int64_t)PAGE + below((REGION_PAGES - 6) * (int64_t)PAGE);
            int64_t bytes = below(3) ? below(3000) : below(3 * (int64_t)PAGE);
            add((uint32_t)below(3), bytes_at(BASE + (uint64_t)first, bytes));
            for (int64_t p = first / GBX_PICTURE_PAGE - 1;
                 bytes > 0 && p <= (first + bytes - 1) / GBX_PICTURE_PAGE + 1; ++p)
                is_mapped[p] = true;
        }
        gbx_picture_find_windows(&picture, &made.order);
        uint32_t seen = 0;
        for (uint64_t p = 0; p < REGION_PAGES;) {
            uint64_t end = p;
            while (is_mapped[end])
                ++end;
            if (end > p)
                assert_window(seen++, BASE + p * PAGE, BASE + end * PAGE);
            p = end + 1;
        }
        assert_int_equal(picture.window_count, seen);
        for (uint32_t i = 0; i < made.order.argument_count; ++i) {
            const gbx_tensor *tensor = &made.arguments[i].tensor;
            assert_int_equal(picture.window_of[i] >= 0, tensor->shape[0] > 0);
            if (picture.window_of[i] < 0)
                continue;
            const gbx_window *window = &picture.windows[picture.window_of[i]];
            assert_in_range(tensor->data, window->start + PAGE,
                            window->start + window->bytes - PAGE - (uint64_t)tensor->shape[0]);
        }
    }
}

static void windows_can_lie_elsewhere(void **state) {
    (void)state;
    add(GBX_ROLE_INPUT, bytes_at(BASE + 100, 8));
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 0x40010, 8));
    gbx_picture_find_windows(&picture, &made.order);
    picture.windows[0].address += 0x700000;
    picture.windows[1].address -= 0x1000;
    gbx_picture_place(&picture, &made.order);
    assert_int_equal(picture.tensors[0].data, BASE + 100 + 0x700000);
    assert_int_equal(picture.tensors[1].data, BASE + 0x40010 - 0x1000);
    assert_ptr_equal(gbx_picture_buffer(&picture, 0), memory_at(BASE + 100 + 0x700000));
    picture.mirror = scratch;
    assert_ptr_equal(gbx_picture_mirrored(&picture, 0), scratch + PAGE + 100);
    assert_ptr_equal(gbx_picture_mirrored(&picture, 1), scratch + 3 * PAGE + PAGE + 0x10);
    picture.mirror = NULL;
}

static void memory_in_use_is_refused(void **state) {
    (void)state;
    char error[GBX_CALL_ERROR_BYTES];
    gbx_picture second;
    add(GBX_ROLE_INPUT, bytes_at(BASE, 8));
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 0x40000, 8));
    made.order.argument_count = 2;
    open_picture();
    made.arguments[0].tensor.data -= 0x80000; /* only the second is in use */
    assert_int_equal(gbx_picture_open(&second, &made.order, error), -1);
    assert_non_null(strstr(error, "mapping 12288 bytes of global memory at 0x7e900013f000: "));
    gbx_picture_close(&picture);
    assert_int_equal(gbx_picture_open(&second, &made.order, error), 0); /* nothing was left */
    gbx_picture_close(&second);
}

/* --- content --- */

static void assert_is_pattern(int pattern, uint32_t window, uint64_t first, uint64_t end) {
    static unsigned char expected[PAYLOAD_BYTES];
    const gbx_window *w = &picture.windows[window];
    assert_true(first >= w->start && end <= w->start + w->bytes && w->bytes <= PAYLOAD_BYTES);
    gbx_pattern_fill(pattern, (gbx_pattern_flavour)w->flavour, (uint32_t)window, expected,
                     w->bytes);
    assert_memory_equal(memory_at(first), expected + (first - w->start), end - first);
}

/* An output over an input and an inout; two windows. */
static void inputs_win_where_outputs_overlap(void **state) {
    (void)state;
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 20, 100));
    add(GBX_ROLE_INPUT, bytes_at(BASE, 50));
    add(GBX_ROLE_INOUT, bytes_at(BASE + 80, 30));
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 0x40000, 7));
    open_picture();
    for (int round = 0; round < 4; ++round) {
        int pattern = round % 2;
        unsigned char start[100];
        paint(pattern);
        assert_is_pattern(pattern, 0, BASE - PAGE, BASE);
        assert_memory_equal(memory_at(BASE), dump + 4096, 50);
        assert_is_pattern(pattern, 0, BASE + 50, BASE + 80);
        assert_memory_equal(memory_at(BASE + 80), dump + 2 * 4096, 30);
        assert_is_pattern(pattern, 0, BASE + 110, BASE + 2 * PAGE);
        assert_is_pattern(pattern, 1, BASE + 0x40000 - PAGE, BASE + 0x40000 + 2 * PAGE);
        assert_memory_equal(picture.mirror, memory_at(BASE - PAGE), 3 * PAGE);
        gbx_picture_start(&picture, &made.order, pattern, 0, start);
        assert_memory_equal(start, memory_at(BASE + 20), 100);
        memset(memory_at(BASE - PAGE), 0, 3 * PAGE); /* all of it comes back */
        memset(memory_at(BASE + 0x40000 - PAGE), 0, 3 * PAGE);
    }
    gbx_picture_close(&picture);
}

/* Elements that are far apart: too much to look for strays. */
static void large_pictures_hold_patterns_only_in_outputs(void **state) {
    (void)state;
    char error[GBX_CALL_ERROR_BYTES];
    const gbx_tensor wide = {.data = BASE,
                             .dtype = GBX_UINT32,
                             .ndims = 2,
                             .shape = {2, 64},
                             .strides = {INT64_C(160) << 20, 1}};
    uint32_t starts[2][128];
    add(GBX_ROLE_OUTPUT, wide);
    add(GBX_ROLE_INPUT, bytes_at(BASE + 16, 32));
    assert_int_equal(gbx_picture_open(&picture, &made.order, error), 0);
    assert_null(picture.mirror);
    for (int pattern = 0; pattern < 2; ++pattern) {
        uint32_t now[128];
        paint(pattern);
        gbx_picture_start(&picture, &made.order, pattern, 0, starts[pattern]);
        gbx_tensor_gather(&wide, memory_at(BASE), now);
        assert_memory_equal(memory_at(BASE + 16), dump + 4096, 32);
        assert_memory_equal(now + 4 + 8, starts[pattern] + 4 + 8, sizeof now - 48);
        ++*memory_at(BASE + 400);
        gbx_strays strays = {0};
        gbx_picture_find_strays(&picture, &made.order, scratch, &strays);
        assert_int_equal(strays.bytes, 0);
    }
    for (int i = 0; i < 128; ++i)
        assert_true(starts[0][i] != starts[1][i]);
    gbx_picture_close(&picture);
}

static void payloads_outside_of_the_dump_are_none(void **state) {
    (void)state;
    unsigned char kept[64] = {0};
    const gbx_payloads both = {
        .dump = dump, .dump_bytes = sizeof dump, .kept = kept, .kept_bytes = sizeof kept};
    add(GBX_ROLE_INOUT, bytes_at(BASE, 40));
    gbx_order_argument *argument = &made.arguments[0];
    argument->before = sizeof dump - 40;
    assert_ptr_equal(gbx_payload_before(&both, argument), dump + sizeof dump - 40);
    argument->before++;
    assert_null(gbx_payload_before(&both, argument));
    argument->before = UINT64_MAX - 8;
    assert_null(gbx_payload_before(&both, argument));
    assert_null(gbx_payload_after(&both, argument));
    argument->after = 24;
    assert_ptr_equal(gbx_payload_after(&both, argument), dump + 24);
    argument->is_after_kept = 1;
    assert_ptr_equal(gbx_payload_after(&both, argument), kept + 24);
    argument->after = 25;
    assert_null(gbx_payload_after(&both, argument));
}

/* --- stray writes --- */

static void assert_found(uint64_t bytes, uint64_t address, uint64_t end) {
    gbx_strays strays = {0};
    gbx_picture_find_strays(&picture, &made.order, scratch, &strays);
    free(picture.strayed); /* each call by itself */
    picture.strayed = NULL;
    assert_int_equal(strays.bytes, bytes);
    assert_int_equal(strays.address, address);
    assert_int_equal(strays.end, end);
}

static void changed_bytes_are_found(void **state) {
    (void)state;
    const uint64_t x = BASE, y = BASE + 0x40000, z = BASE + 0x80000;
    add(GBX_ROLE_INPUT, bytes_at(x, 100));
    gbx_tensor rows = {
        .data = y, .dtype = GBX_UINT16, .ndims = 2, .shape = {4, 10}, .strides = {12, 1}};
    add(GBX_ROLE_OUTPUT, rows);
    add(GBX_ROLE_INOUT, bytes_at(z, 50));
    open_picture();
    const uint64_t places[] = {x - PAGE,         x,      x + 99, x + 100,
                               x + 2 * PAGE - 1, y - 1,  y + 20, y + 23,
                               y + 68,           y + 92, z - 1,  z + 50};
    for (size_t i = 0; i < 2 * (sizeof places / sizeof places[0]); ++i) {
        uint64_t place = places[i / 2];
        paint((int)(i % 2));
        for (uint64_t row = 0; row < 4; ++row) /* all that may be written */
            for (uint64_t k = 0; k < 20; ++k)
                *memory_at(y + 24 * row + k) ^= 0xff;
        memset(memory_at(z), 0, 50);
        assert_found(0, 0, 0);
        paint((int)(i % 2));
        memset(memory_at(z), 0xff, 50);
        *memory_at(place) ^= 1;
        assert_found(1, place, place + 1);
    }
    paint(GBX_PATTERN_OTHER);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
        *memory_at(places[i]) ^= 0x80;
    assert_found(sizeof places / sizeof places[0], x - PAGE, z + 51);
    gbx_picture_close(&picture);
}

/* A byte counts once, whichever calls change it. */
static void strays_of_several_calls_add_up(void **state) {
    (void)state;
    gbx_strays strays = {0};
    add(GBX_ROLE_OUTPUT, bytes_at(BASE, 16));
    open_picture();
    const uint64_t places[][2] = {
        {BASE + 30, BASE + 31}, {BASE + 31, BASE + 32}, {BASE - 5, BASE + 30}};
    const uint64_t expected[][3] = {
        {2, BASE + 30, BASE + 32}, {3, BASE + 30, BASE + 33}, {4, BASE - 5, BASE + 33}};
    for (int i = 0; i < 3; ++i) {
        paint(i % 2);
        for (int k = 0; k < 2; ++k)
            *memory_at(places[i][k]) ^= 1;
        gbx_picture_find_strays(&picture, &made.order, scratch, &strays);
        assert_int_equal(strays.bytes, expected[i][0]);
        assert_int_equal(strays.address, expected[i][1]);
        assert_int_equal(strays.end, expected[i][2]);
    }
    gbx_picture_close(&picture);
}

/* At the addresses of the order, wherever the picture lies. */
static void strays_have_addresses_of_the_order(void **state) {
    (void)state;
    char error[GBX_CALL_ERROR_BYTES];
    add(GBX_ROLE_OUTPUT, bytes_at(BASE + 0x800, 16));
    gbx_picture_find_windows(&picture, &made.order);
    picture.windows[0].address += 0x100000;
    gbx_picture_place(&picture, &made.order);
    assert_int_equal(gbx_window_map(&picture.windows[0], error), 0);
    picture.mirror = malloc(picture.bytes);
    assert_non_null(picture.mirror);
    paint(GBX_PATTERN_FIRST);
    memset(memory_at(BASE + 0x100800 - 2), 0, 20); /* two bytes before it and two behind it */
    assert_found(4, BASE + 0x800 - 2, BASE + 0x800 + 18);
    gbx_picture_close(&picture);
}

/* A kernel writes complete bytes: the unused half at the end of a row belongs to the output. */
static void unused_halves_are_no_strays(void **state) {
    (void)state;
    gbx_tensor rows = {
        .data = BASE, .dtype = GBX_INT4, .ndims = 2, .shape = {2, 3}, .strides = {4, 1}};
    gbx_tensor *tensor = add(GBX_ROLE_OUTPUT, rows);
    open_picture();
    paint(GBX_PATTERN_FIRST);
    for (int i = 0; i < 4; ++i)
        *memory_at(BASE + (uint64_t)i) ^= 0xff;
    assert_found(0, 0, 0);
    paint(GBX_PATTERN_FIRST);
    *memory_at(BASE + 4) ^= 0x10;
    assert_found(1, BASE + 4, BASE + 5);
    /* Another tensor may have the half behind a row that ends earlier. */
    tensor->strides[0] = 6;
    paint(GBX_PATTERN_FIRST);
    *memory_at(BASE + 1) ^= 0x10;
    assert_found(1, BASE + 1, BASE + 2);
    /* So may the half before the first element. */
    *tensor = (gbx_tensor){.data = BASE,
                           .dtype = GBX_INT4,
                           .ndims = 1,
                           .shape = {3},
                           .strides = {1},
                           .start_offset = 1};
    paint(GBX_PATTERN_OTHER);
    *memory_at(BASE) ^= 0xf0;
    *memory_at(BASE + 1) ^= 0xff;
    assert_found(0, 0, 0);
    paint(GBX_PATTERN_OTHER);
    *memory_at(BASE) ^= 0x01;
    assert_found(1, BASE, BASE + 1);
    gbx_picture_close(&picture);
}

/* A kernel that takes whole bytes of an input reads them, too; but not what another argument has.
 */
static void unused_halves_of_inputs_are_zero(void **state) {
    (void)state;
    static const unsigned char rows[] = {0x21, 0x03, 0x54, 0x06}, column[] = {0x0a, 0x0b};
    gbx_tensor tensor = {
        .data = BASE, .dtype = GBX_INT4, .ndims = 2, .shape = {2, 3}, .strides = {4, 1}};
    add(GBX_ROLE_INPUT, tensor);
    memcpy(dump, rows, sizeof rows);
    open_picture();
    for (int pattern = 0; pattern < 2; ++pattern) {
        paint(pattern);
        assert_memory_equal(memory_at(BASE), rows, sizeof rows);
    }
    gbx_picture_close(&picture);
    tensor.shape[1] = 1;
    tensor.start_offset = 3;
    made.order.argument_count = 0;
    add(GBX_ROLE_INPUT, tensor);
    tensor.shape[1] = 3;
    tensor.start_offset = 0;
    add(GBX_ROLE_INPUT, tensor);
    memcpy(dump, column, sizeof column);
    memcpy(dump + 4096, rows, sizeof rows);
    open_picture();
    paint(GBX_PATTERN_FIRST);
    assert_memory_equal(memory_at(BASE), ((const unsigned char[]){0x21, 0xa3, 0x54, 0xb6}), 4);
    gbx_picture_close(&picture);
}

/* The only row, or a single element. */
static void unused_halves_of_one_row_are_no_strays(void **state) {
    (void)state;
    add(GBX_ROLE_OUTPUT,
        (gbx_tensor){.data = BASE, .dtype = GBX_INT4, .ndims = 1, .shape = {5}, .strides = {1}});
    open_picture();
    for (int pattern = 0; pattern < 2; ++pattern) {
        paint(pattern);
        for (uint64_t i = 0; i < 3; ++i)
            *memory_at(BASE + i) ^= 0xff;
        assert_found(0, 0, 0);
    }
    gbx_picture_close(&picture);
}

/* Random outputs and inputs that overlap, and random changes, against a map of all bytes. */
static void strays_are_those_of_a_model(void **state) {
    enum { SPACE = 2048 };
    srand(4);
    for (int round = 0; round < 300; ++round) {
        bool may_change[SPACE] = {false};
        prepare(state);
        add(GBX_ROLE_INPUT, bytes_at(BASE, SPACE));
        for (int64_t i = 1 + below(4); i > 0; --i) {
            int64_t rows = 1 + below(6), columns = 1 + below(40), gap = below(3) ? below(20) : 0;
            int64_t first = below(SPACE - rows * (columns + gap) * 2);
            gbx_tensor view = {.data = BASE + (uint64_t)first,
                               .dtype = GBX_UINT16,
                               .ndims = 2,
                               .shape = {rows, columns},
                               .strides = {columns + gap, 1}};
            add(below(3) ? GBX_ROLE_OUTPUT : GBX_ROLE_INOUT, view);
            for (int64_t k = 0; k < rows * columns * 2; ++k)
                may_change[first + k / (2 * columns) * 2 * (columns + gap) + k % (2 * columns)] =
                    true;
        }
        open_picture();
        paint(round % 2);
        gbx_strays expected = {0};
        for (uint64_t i = 0; i < SPACE; ++i) {
            bool is_changed = below(round % 3 == 0 ? 500 : 4) == 0;
            if (!is_changed && !may_change[i])
                continue;
            *memory_at(BASE + i) ^= (unsigned char)(1 + below(255));
            if (may_change[i])
                continue;
            expected.address = expected.bytes++ == 0 ? BASE + i : expected.address;
            expected.end = BASE + i + 1;
        }
        assert_found(expected.bytes, expected.address, expected.end);
        gbx_picture_close(&picture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_page_lies_around_each_tensor, prepare),
        cmocka_unit_test_setup(close_tensors_share_a_window, prepare),
        cmocka_unit_test_setup(windows_are_those_of_a_model, prepare),
        cmocka_unit_test_setup(windows_can_lie_elsewhere, prepare),
        cmocka_unit_test_setup(memory_in_use_is_refused, prepare),
        cmocka_unit_test_setup(inputs_win_where_outputs_overlap, prepare),
        cmocka_unit_test_setup(large_pictures_hold_patterns_only_in_outputs, prepare),
        cmocka_unit_test_setup(payloads_outside_of_the_dump_are_none, prepare),
        cmocka_unit_test_setup(changed_bytes_are_found, prepare),
        cmocka_unit_test_setup(strays_of_several_calls_add_up, prepare),
        cmocka_unit_test_setup(strays_have_addresses_of_the_order, prepare),
        cmocka_unit_test_setup(unused_halves_are_no_strays, prepare),
        cmocka_unit_test_setup(unused_halves_of_inputs_are_zero, prepare),
        cmocka_unit_test_setup(unused_halves_of_one_row_are_no_strays, prepare),
        cmocka_unit_test_setup(strays_are_those_of_a_model, prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
