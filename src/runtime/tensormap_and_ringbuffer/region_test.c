/* Regions and their grids against the sets of bytes that views touch. */
#include "runtime/tensormap_and_ringbuffer/region.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "checks.h"

enum { SPACE = 4096 };
#define BASE UINT64_C(0x7e9000000000)

typedef struct byte_set {
    uint8_t has[SPACE];
} byte_set;

/* --- random --- */

static int64_t between(int64_t least, int64_t most) {
    return least + rand() % (most - least + 1);
}

static uint32_t rounds(uint32_t count) {
    return getenv("GLASSBOX_STRESS") ? count * 50 : count;
}

/* --- bytes of views and of regions, one by one --- */

static void mark_view(const gbx_tensor *view, uint32_t dim, int64_t element, byte_set *set) {
    if (dim < view->ndims) {
        for (int64_t i = 0; i < view->shape[dim]; ++i)
            mark_view(view, dim + 1, element + i * view->strides[dim], set);
        return;
    }
    int64_t bits = gbx_dtype_bits(view->dtype);
    for (int64_t bit = element * bits; bit < (element + 1) * bits; bit += 4)
        set->has[view->data - BASE + (uint64_t)(bit / 8)] = 1;
}

static void mark_form(const gbx_region_form *form, uint32_t dim, uint64_t at, byte_set *set) {
    if (dim < form->dim_count) {
        for (uint64_t i = 0; i < form->dims[dim].count; ++i)
            mark_form(form, dim + 1, at + i * form->dims[dim].stride, set);
        return;
    }
    for (uint64_t i = 0; i < form->run; ++i)
        set->has[form->halves ? (at + i) / 2 : at + i] = 1;
}

static byte_set bytes_of_view(const gbx_tensor *view) {
    byte_set set = {{0}};
    mark_view(view, 0, view->start_offset, &set);
    return set;
}

/* Forms of halves count in halves, from the half that they begin in. */
static byte_set bytes_of_region(const gbx_region *region) {
    byte_set set = {{0}};
    uint64_t first = region->first - BASE;
    uint32_t halves = region->form.halves;
    mark_form(&region->form, 0, halves ? 2 * first + halves - 1 : first, &set);
    return set;
}

static bool do_meet(const byte_set *a, const byte_set *b) {
    for (uint32_t i = 0; i < SPACE; ++i)
        if (a->has[i] && b->has[i])
            return true;
    return false;
}

/* --- random views inside the space --- */

static bool is_inside(const gbx_tensor *view) {
    int64_t first, end;
    gbx_tensor_extent(view, &first, &end);
    return first >= 0 && end <= SPACE;
}

static gbx_tensor random_view_of(uint32_t dtype) {
    static const int64_t strides[] = {0, 1, 1, 2, 3, 4, 8, 16, 24, 32, 64, 100, 128, 512};
    for (;;) {
        gbx_tensor view = {.data = BASE, .dtype = dtype, .ndims = (uint32_t)between(0, 4)};
        view.start_offset = between(0, 2000);
        for (uint32_t d = 0; d < view.ndims; ++d) {
            view.shape[d] = between(1, rand() % 4 ? 5 : 12);
            view.strides[d] = strides[rand() % 14] * (rand() % 5 ? 1 : -1);
        }
        if (is_inside(&view))
            return view;
    }
}

static gbx_tensor random_view(void) {
    static const gbx_dtype dtypes[] = {GBX_UINT8, GBX_INT16, GBX_FLOAT32, GBX_INT64, GBX_INT4};
    return random_view_of(dtypes[rand() % 5]);
}

/* A tile of a matrix of bytes, as tasks of common graphs use. */
static gbx_tensor random_tile(int64_t columns, int64_t height, int64_t width, bool is_aligned) {
    int64_t row = between(0, SPACE / columns - height), column = between(0, columns - width);
    if (is_aligned) {
        row -= row % height;
        column -= column % width;
    }
    gbx_tensor view = {.data = BASE, .dtype = GBX_UINT8, .ndims = 2};
    view.start_offset = row * columns + column;
    view.shape[0] = height;
    view.shape[1] = width;
    view.strides[0] = columns;
    view.strides[1] = 1;
    return view;
}

/* --- tests --- */

static void test_region_is_the_bytes_of_the_view(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rounds(20000); ++i) {
        gbx_tensor view = random_view();
        gbx_region region;
        assert_true(gbx_region_of_tensor(&view, &region));
        byte_set expected = bytes_of_view(&view), set = bytes_of_region(&region);
        assert_memory_equal(&set, &expected, sizeof set);
        uint64_t first = 0, end = SPACE;
        while (!expected.has[first])
            ++first;
        while (!expected.has[end - 1])
            --end;
        assert_int_equal(region.first - BASE, first);
        assert_int_equal(region.form.span, end - first);
    }
}

static void test_empty_view_has_no_region(void **state) {
    (void)state;
    gbx_region region;
    for (uint32_t d = 0; d < 3; ++d) {
        gbx_tensor view = {.data = BASE, .dtype = GBX_FLOAT32, .ndims = 3};
        for (uint32_t k = 0; k < 3; ++k)
            view.shape[k] = k == d ? 0 : 4, view.strides[k] = 1;
        assert_false(gbx_region_of_tensor(&view, &region));
    }
}

/* The same bytes written in another way: dimensions in another order, reversed, split in two. */
static void test_one_form_for_the_same_bytes(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rounds(5000); ++i) {
        int64_t columns = 8 << rand() % 4, height = between(1, 8), width = between(1, columns);
        gbx_tensor view = random_tile(columns, height, width, false), other = view;
        gbx_region a, b;
        if (rand() % 2) { /* from the last row up */
            other.start_offset += (height - 1) * columns;
            other.strides[0] = -columns;
        }
        other.ndims = 4; /* rows by two dimensions, and one of a single element */
        other.shape[2] = other.shape[3] = 1;
        other.strides[2] = 77;
        if (width % 2 == 0) {
            other.shape[1] = 2;
            other.strides[1] = width / 2;
            other.shape[3] = width / 2;
            other.strides[3] = 1;
        }
        if (rand() % 2)
            other = gbx_view_transpose(&other, 0, (uint32_t)between(1, 3));
        assert_true(gbx_region_of_tensor(&view, &a));
        assert_true(gbx_region_of_tensor(&other, &b));
        assert_int_equal(a.first, b.first);
        assert_true(gbx_region_form_equals(&a.form, &b.form));
    }
}

/* Exact, except where the bounded search of gbx_tensor_overlaps gives up and says true. */
static void test_overlap_is_that_of_the_bytes(void **state) {
    (void)state;
    uint32_t wrong = 0, count = rounds(20000);
    for (uint32_t i = 0; i < count; ++i) {
        gbx_tensor a_view = random_view(), b_view = random_view();
        gbx_region a, b;
        assert_true(gbx_region_of_tensor(&a_view, &a));
        assert_true(gbx_region_of_tensor(&b_view, &b));
        byte_set a_set = bytes_of_region(&a), b_set = bytes_of_region(&b);
        bool is_overlapping = gbx_region_overlaps(a.first, &a.form, b.first, &b.form);
        bool is_meeting = do_meet(&a_set, &b_set);
        assert_true(is_overlapping || !is_meeting);
        assert_int_equal(is_overlapping, gbx_region_overlaps(b.first, &b.form, a.first, &a.form));
        wrong += is_overlapping != is_meeting;
    }
    assert_true(wrong <= count / 1000);
}

static void test_overlap_of_tiles_is_exact(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rounds(20000); ++i) {
        int64_t columns = 16 << rand() % 3;
        gbx_tensor a_view = random_tile(columns, between(1, 6), between(1, columns), false);
        gbx_tensor b_view = random_tile(columns, between(1, 6), between(1, columns), rand() % 2);
        gbx_region a, b;
        gbx_region_of_tensor(&a_view, &a);
        gbx_region_of_tensor(&b_view, &b);
        byte_set a_set = bytes_of_view(&a_view), b_set = bytes_of_view(&b_view);
        assert_int_equal(gbx_region_overlaps(a.first, &a.form, b.first, &b.form),
                         do_meet(&a_set, &b_set));
    }
}

/* --- grids --- */

static bool is_among(const gbx_region_tiles *tiles, uint64_t home) {
    uint64_t counts[GBX_MAX_DIMS + 1] = {0};
    for (;;) {
        uint64_t at = 0;
        uint32_t level = 0;
        for (uint32_t k = 0; k < tiles->level_count; ++k)
            at += (tiles->low[k] + counts[k]) * tiles->bytes[k];
        if (at == home)
            return true;
        while (level < tiles->level_count &&
               tiles->low[level] + counts[level] == tiles->high[level])
            counts[level++] = 0;
        if (level == tiles->level_count)
            return false;
        ++counts[level];
    }
}

/* A region that overlaps another of a grid finds the tile in which that one begins. */
static void check_found(const gbx_region *placed, const gbx_region *other) {
    uint64_t home;
    gbx_region_tiles tiles;
    byte_set a = bytes_of_region(placed), b = bytes_of_region(other);
    if (!gbx_region_place(&placed->form, placed->first - BASE, &home) || !do_meet(&a, &b))
        return;
    bool is_aligned = home == placed->first - BASE;
    assert_true(home <= placed->first - BASE);
    if (gbx_region_find_tiles(&placed->form, is_aligned, other->first - BASE, &other->form, 4096,
                              &tiles))
        assert_true(is_among(&tiles, home));
    if (is_aligned && gbx_region_find_tiles(&placed->form, false, other->first - BASE, &other->form,
                                            4096, &tiles))
        assert_true(is_among(&tiles, home));
}

static void test_tiles_that_meet_are_found(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rounds(20000); ++i) {
        int64_t columns = rand() % 3 ? 16 << rand() % 3 : between(5, 60);
        gbx_tensor a_view = random_tile(columns, between(1, 6), between(1, columns), rand() % 2);
        gbx_tensor b_view = rand() % 2 ? random_view() : random_tile(columns, 3, 5, rand() % 2);
        gbx_region a, b;
        gbx_region_of_tensor(&a_view, &a);
        gbx_region_of_tensor(&b_view, &b);
        check_found(&a, &b);
        check_found(&b, &a);
    }
}

/* Two regions of one form that both begin where a tile begins are the same or apart. */
static void test_aligned_tiles_are_apart(void **state) {
    (void)state;
    uint32_t checked = 0;
    for (uint32_t i = 0; i < rounds(20000); ++i) {
        int64_t columns = 16 << rand() % 3, height = between(1, 6), width = between(1, columns);
        gbx_tensor a_view = random_tile(columns, height, width, true);
        gbx_tensor b_view = random_tile(columns, height, width, true);
        gbx_region a, b;
        uint64_t a_home, b_home;
        gbx_region_of_tensor(&a_view, &a);
        gbx_region_of_tensor(&b_view, &b);
        if (!gbx_region_place(&a.form, a.first - BASE, &a_home) ||
            !gbx_region_place(&b.form, b.first - BASE, &b_home) || a_home != a.first - BASE ||
            b_home != b.first - BASE)
            continue;
        byte_set a_set = bytes_of_region(&a), b_set = bytes_of_region(&b);
        assert_int_equal(do_meet(&a_set, &b_set), a.first == b.first);
        ++checked;
    }
    assert_true(checked > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_region_is_the_bytes_of_the_view),
        cmocka_unit_test(test_empty_view_has_no_region),
        cmocka_unit_test(test_one_form_for_the_same_bytes),
        cmocka_unit_test(test_overlap_is_that_of_the_bytes),
        cmocka_unit_test(test_overlap_of_tiles_is_exact),
        cmocka_unit_test(test_tiles_that_meet_are_found),
        cmocka_unit_test(test_aligned_tiles_are_apart),
    };
    return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
