#include "journal_test_builder.h"

#include "checks.h"

#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>

#include "diagnose/odd.h"

#define BASE UINT64_C(0x7e9000001000)
#define FAR_AWAY 100000 /* elements: where other arguments lie */

#define ONE UINT64_C(0x3f800000) /* bits of a float */
#define MINUS_ONE UINT64_C(0xbf800000)

enum { MAKE = 3, JOIN = 5, SCALED = 7, LENGTH = 64, ANY = GBX_ODD_LOOSE_SCALAR + 1 };

typedef struct fixture {
    dump dump;
    builder journal;
    gbx_reader *reader;
    gbx_entries *entries;
    gbx_task_graph *graph;
    gbx_odd odd;
    uint64_t task_count;
    unsigned slot; /* the next one of the last task */
} fixture;

static const char run_text[] =
    "{\"generator\":\"test\",\"run\":{},\"kernels\":["
    "{\"func_id\":3,\"name\":\"make\",\"core_type\":\"aiv\",\"signature\":[\"in\",\"out\"],"
    "\"arg_names\":[\"x\",\"a\"]},"
    "{\"func_id\":4,\"name\":\"also\",\"core_type\":\"aiv\",\"signature\":[\"in\",\"out\"],"
    "\"arg_names\":[\"x\",\"b\"]},"
    "{\"func_id\":5,\"name\":\"join\",\"core_type\":\"aiv\",\"signature\":[\"in\",\"in\",\"out\"],"
    "\"arg_names\":[\"a\",\"b\",\"c\"]},"
    "{\"func_id\":7,\"name\":\"scaled\",\"core_type\":\"aiv\","
    "\"signature\":[\"in\",\"out\",\"scalar\"],\"arg_names\":[\"x\",\"y\",\"alpha\"]}],"
    "\"run_args\":[{\"name\":\"beta\",\"role\":\"scalar\"},"
    "{\"name\":\"alpha\",\"role\":\"scalar\"}]}";

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_dump(&f->dump);
    begin_journal(&f->journal);
    add_run(&f->journal, run_text);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    gbx_odd_free(&f->odd);
    gbx_task_graph_destroy(f->graph);
    gbx_entries_destroy(f->entries);
    gbx_reader_close(f->reader);
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f);
    return 0;
}

/* --- making a dump --- */

static uint64_t at(int64_t element) {
    return BASE + (uint64_t)element * 4;
}

/* Arguments that follow belong to it. */
static void begin_task(fixture *f, uint32_t func_id) {
    const uint32_t func_ids[3] = {UINT32_MAX, func_id, UINT32_MAX};
    add_task(&f->journal, f->task_count, 0x100 + f->task_count, func_ids, 1);
    ++f->task_count;
    f->slot = 0;
}

static void put(fixture *f, unsigned role, int64_t first, int64_t length) {
    const head h = {.task = f->task_count - 1,
                    .arg_index = f->slot++,
                    .role = role,
                    .stage = role == GBX_ROLE_OUTPUT,
                    .dtype = GBX_FLOAT32,
                    .ndims = 1};
    add_tensor(&f->journal, h,
               (tensor_fields){.buffer_addr = BASE,
                               .start_offset = first,
                               .shape = &length,
                               .strides = (const int64_t[]){1}});
}

static void reads(fixture *f, int64_t first) {
    put(f, GBX_ROLE_INPUT, first, LENGTH);
}

static void writes(fixture *f, int64_t first) {
    put(f, GBX_ROLE_OUTPUT, first, LENGTH);
}

static void put_scalar(fixture *f, gbx_dtype dtype, uint64_t bits) {
    add_scalar(&f->journal,
               (head){.task = f->task_count - 1, .arg_index = f->slot++, .dtype = dtype}, bits);
}

/* Tasks in a row: x is far away, y[i] lies behind y[i - 1], and a scalar. */
static void put_scaled(fixture *f, gbx_dtype dtype, const uint64_t *values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        begin_task(f, SCALED);
        reads(f, FAR_AWAY + LENGTH * (int64_t)i);
        writes(f, LENGTH * (int64_t)i);
        put_scalar(f, dtype, values[i]);
    }
}

static void put_run_scalar(fixture *f, unsigned index, uint64_t bits) {
    const unsigned dtype = bits >= ONE ? GBX_FLOAT32 : GBX_INT32;
    begin_record(&f->journal, (head){.type = 2, .stage = 255, .arg_index = index, .dtype = dtype});
    put_u64(&f->journal, 0);
    put_u64(&f->journal, bits);
}

/* --- asking --- */

static void ask(fixture *f) {
    finish_journal(&f->journal, &f->dump);
    assert_ok(
        gbx_reader_open(f->dump.directory, GBX_INDEX_ARGUMENTS | GBX_INDEX_GRAPH, &f->reader));
    assert_ok(gbx_entries_create(f->reader, &f->entries));
    assert_ok(gbx_task_graph_create(f->reader, &f->graph));
    assert_ok(gbx_odd_find(f->entries, f->graph, &f->odd));
}

static size_t count_of(const fixture *f, unsigned kind) {
    size_t count = 0;
    for (size_t i = 0; i < f->odd.count; ++i)
        count += f->odd.items[i].kind == kind;
    return count;
}

/* The first one, which is of this kind and task. */
static const gbx_odd_argument *check_first(const fixture *f, gbx_odd_kind kind, uint64_t task) {
    assert_true(f->odd.count > 0);
    for (size_t i = 1; i < f->odd.count; ++i)
        assert_true(f->odd.items[i - 1].kind <= f->odd.items[i].kind);
    assert_int_equal(f->odd.items[0].kind, kind);
    assert_int_equal(f->odd.items[0].task, task);
    return &f->odd.items[0];
}

/* The only one of a kind. */
static const gbx_odd_argument *check_only(const fixture *f, gbx_odd_kind kind, uint64_t task) {
    const gbx_odd_argument *found = NULL;
    for (size_t i = 0; i < f->odd.count; ++i)
        found = f->odd.items[i].kind == kind ? &f->odd.items[i] : found;
    assert_int_equal(count_of(f, kind), 1);
    assert_int_equal(found->task, task);
    return found;
}

static void check_none(fixture *f, unsigned kind) {
    ask(f);
    assert_int_equal(kind == ANY ? f->odd.count : count_of(f, kind), 0);
}

/* An argument of a task. */
static void check_entry(const fixture *f, uint64_t index, uint64_t task, unsigned slot) {
    gbx_entry entry;
    assert_ok(gbx_entries_at(f->entries, index, &entry));
    assert_int_equal(entry.head->task, task);
    assert_int_equal(entry.head->arg_index, slot);
}

#define PUT_SCALED(f, dtype, ...)                                                                  \
    do {                                                                                           \
        static const uint64_t values[] = {__VA_ARGS__};                                            \
        put_scaled((f), (dtype), values, sizeof values / sizeof values[0]);                        \
    } while (0)

/* --- scalars --- */

static void test_named_scalar(void **state) {
    fixture *f = *state;
    put_run_scalar(f, 0, 9);
    put_run_scalar(f, 1, 7);
    PUT_SCALED(f, GBX_INT32, 7, 7, 9, 7, 7);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_NAMED_SCALAR, 2);
    assert_int_equal(odd->expected, 7);
    assert_int_equal(odd->found, 9);
    check_entry(f, odd->entry, 2, 2);
}

static void test_named_scalar_of_all(void **state) {
    fixture *f = *state;
    put_run_scalar(f, 1, 7);
    PUT_SCALED(f, GBX_FLOAT32, ONE + 8, ONE + 8, ONE + 8);
    ask(f);
    assert_int_equal(check_first(f, GBX_ODD_NAMED_SCALAR, 0)->expected, 7);
    assert_int_equal(f->odd.count, 1);
}

static void test_named_scalar_that_fits(void **state) {
    fixture *f = *state;
    put_run_scalar(f, 0, 9);
    put_run_scalar(f, 1, ONE);
    PUT_SCALED(f, GBX_FLOAT32, ONE, ONE, ONE, ONE, ONE);
    check_none(f, ANY);
}

/* Half of the tasks go the other way; one alone does not mean it. */
static void test_negated_scalar(void **state) {
    fixture *f = *state;
    put_run_scalar(f, 1, ONE);
    PUT_SCALED(f, GBX_FLOAT32, ONE, ONE, MINUS_ONE, MINUS_ONE);
    check_none(f, GBX_ODD_NAMED_SCALAR);
}

static void test_one_negated_scalar(void **state) {
    fixture *f = *state;
    put_run_scalar(f, 1, ONE);
    PUT_SCALED(f, GBX_FLOAT32, ONE, ONE, ONE, MINUS_ONE, ONE, ONE);
    ask(f);
    assert_int_equal(check_first(f, GBX_ODD_NAMED_SCALAR, 3)->expected, ONE);
}

static void test_float_as_integer(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT32, 0x3f000000, 0x3f000000, 0x3f000000);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_SCALAR_BITS, 0);
    assert_int_equal(odd->found, 0x3f000000);
    assert_int_equal(odd->expected_dtype, GBX_FLOAT32);
}

static void test_integer_as_float(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_FLOAT32, ONE, 20, ONE);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_SCALAR_BITS, 1);
    assert_int_equal(odd->found, 20);
    assert_int_equal(odd->expected_dtype, GBX_INT32);
}

static void test_scalar_of_loop(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_FLOAT32, ONE + 100, ONE + 116, ONE + 132, ONE + 149, ONE + 164, ONE + 180);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_SCALAR, 3);
    assert_int_equal(odd->expected, ONE + 148);
    assert_int_equal(odd->found, ONE + 149);
    assert_int_equal(odd->siblings, 5);
    assert_int_equal(odd->other, UINT64_MAX);
    check_entry(f, odd->entry, 3, 2);
}

/* An integer at the end that is a length of its task is a tail. */
static void test_scalar_of_tail(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT32, 32, 32, 32, 32, LENGTH);
    check_none(f, GBX_ODD_SCALAR);
}

static void test_near_scalar(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT32, LENGTH - 4, LENGTH - 4, LENGTH - 4);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_NEAR_SCALAR, 0);
    assert_int_equal(odd->expected, LENGTH);
    assert_int_equal(odd->found, LENGTH - 4);
    assert_int_equal(f->odd.count, 1);
}

static void test_length(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT32, LENGTH, LENGTH, LENGTH);
    check_none(f, ANY);
}

static void test_loose_scalar(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT64, 0, 2003, 3001);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_LOOSE_SCALAR, 1); /* 0 is explained */
    assert_int_equal(odd->found, 2003);
    assert_int_equal(f->odd.count, 1);
}

/* Where the output of each task begins. */
static void test_offset(void **state) {
    fixture *f = *state;
    PUT_SCALED(f, GBX_INT64, 0, LENGTH, 2 * LENGTH, 3 * LENGTH);
    check_none(f, ANY);
}

/* --- views --- */

static void put_views(fixture *f, const int64_t *firsts, const int64_t *lengths, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        begin_task(f, MAKE);
        put(f, GBX_ROLE_INPUT, firsts[i], lengths[i]);
        writes(f, FAR_AWAY + LENGTH * (int64_t)i);
    }
}

static void test_view_begin(void **state) {
    fixture *f = *state;
    put_views(f, (const int64_t[]){0, 64, 128, 200, 256, 320},
              (const int64_t[]){64, 64, 64, 64, 64, 64}, 6);
    ask(f);
    const gbx_odd_argument *odd = check_only(f, GBX_ODD_VIEW, 3);
    assert_false(odd->is_size);
    assert_int_equal(odd->expected, at(192));
    assert_int_equal(odd->found, at(200));
    check_entry(f, odd->entry, 3, 0);
}

static void test_view_size(void **state) {
    fixture *f = *state;
    put_views(f, (const int64_t[]){0, 64, 128, 192, 256, 320},
              (const int64_t[]){64, 64, 32, 64, 64, 64}, 6);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_VIEW, 2);
    assert_true(odd->is_size);
    assert_int_equal(odd->expected, 64);
    assert_int_equal(odd->found, 32);
}

static void test_view_of_tail(void **state) {
    fixture *f = *state;
    put_views(f, (const int64_t[]){0, 64, 128, 192, 256, 320},
              (const int64_t[]){64, 64, 64, 64, 64, 32}, 6);
    check_none(f, ANY);
}

/* --- who reads and writes what --- */

/* `make` leaves a at 0, `also` leaves b at 64; `join` reads a and b. */
static void put_join(fixture *f, int64_t a, int64_t b) {
    begin_task(f, MAKE);
    reads(f, FAR_AWAY);
    writes(f, 0);
    begin_task(f, MAKE + 1);
    reads(f, FAR_AWAY);
    writes(f, LENGTH);
    begin_task(f, JOIN);
    reads(f, a);
    reads(f, b);
    writes(f, 2 * LENGTH);
}

static void test_swapped(void **state) {
    fixture *f = *state;
    put_join(f, LENGTH, 0);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_SWAPPED, 2);
    check_entry(f, odd->entry, 2, 0);
    assert_int_equal(odd->other, 1);
    check_entry(f, odd->other_entry, 1, 1);
    assert_int_equal(f->odd.count, 1);
}

static void test_not_swapped(void **state) {
    fixture *f = *state;
    put_join(f, 0, LENGTH);
    check_none(f, ANY);
}

/* Two writers, one over the other, and a third; all are read at last if `are_read`. */
static void put_writers(fixture *f, bool has_reader, bool are_read) {
    begin_task(f, MAKE);
    reads(f, FAR_AWAY);
    writes(f, 0);
    if (has_reader) {
        begin_task(f, MAKE + 1);
        reads(f, 0);
        writes(f, 2 * LENGTH);
    }
    begin_task(f, MAKE);
    reads(f, FAR_AWAY);
    writes(f, 10);
    begin_task(f, MAKE);
    reads(f, FAR_AWAY);
    writes(f, 4 * LENGTH);
    begin_task(f, JOIN);
    reads(f, are_read ? 10 : 8 * LENGTH);
    reads(f, are_read ? 4 * LENGTH : 8 * LENGTH);
    writes(f, 6 * LENGTH);
}

static void test_lost_write(void **state) {
    fixture *f = *state;
    put_writers(f, false, true);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_LOST_WRITE, 1);
    assert_int_equal(odd->other, 0);
    check_entry(f, odd->entry, 1, 1);
    check_entry(f, odd->other_entry, 0, 1);
    assert_int_equal(count_of(f, GBX_ODD_LOST_WRITE), 1);
}

static void test_read_before_next_write(void **state) {
    fixture *f = *state;
    put_writers(f, true, true);
    check_none(f, GBX_ODD_LOST_WRITE);
}

/* What no task ever reads is scratch memory. */
static void test_scratch(void **state) {
    fixture *f = *state;
    put_writers(f, false, false);
    check_none(f, GBX_ODD_LOST_WRITE);
}

/* A whole that is filled first, and then written part by part. */
static void test_filled_first(void **state) {
    fixture *f = *state;
    begin_task(f, MAKE);
    reads(f, FAR_AWAY);
    put(f, GBX_ROLE_OUTPUT, 0, 2 * LENGTH);
    for (int64_t i = 0; i < 2; ++i) {
        begin_task(f, MAKE);
        reads(f, FAR_AWAY);
        writes(f, LENGTH * i);
    }
    begin_task(f, JOIN);
    reads(f, 0);
    reads(f, LENGTH);
    writes(f, 6 * LENGTH);
    check_none(f, GBX_ODD_LOST_WRITE);
}

static void test_alias(void **state) {
    fixture *f = *state;
    begin_task(f, MAKE);
    reads(f, 0);
    writes(f, LENGTH - 1);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_ALIAS, 0);
    check_entry(f, odd->entry, 0, 1);
    check_entry(f, odd->other_entry, 0, 0);
    assert_int_equal(f->odd.count, 1);
}

static void test_neighbours(void **state) {
    fixture *f = *state;
    begin_task(f, MAKE);
    reads(f, 0);
    writes(f, LENGTH);
    check_none(f, ANY);
}

/* Four rows; of those who read them, one takes the row before its own. */
static void put_rows(fixture *f, const int64_t *read) {
    for (int64_t i = 0; i < 4; ++i) {
        begin_task(f, MAKE);
        reads(f, FAR_AWAY + LENGTH * i);
        writes(f, LENGTH * i);
    }
    for (int64_t i = 0; i < 4; ++i) {
        begin_task(f, MAKE + 1);
        reads(f, LENGTH * read[i]);
        writes(f, LENGTH * (4 + i));
    }
}

/* An output of the run, of one row. */
static void put_result(fixture *f, int64_t first) {
    const int64_t length = LENGTH, stride = 1;
    const uint64_t piece[] = {0, at(first), LENGTH * 4};
    add_result(&f->journal, (head){.role = GBX_ROLE_OUTPUT, .dtype = GBX_FLOAT32, .ndims = 1},
               (tensor_fields){.shape = &length, .strides = &stride}, NULL, piece, 1);
}

static void test_read_twice(void **state) {
    fixture *f = *state;
    put_rows(f, (const int64_t[]){0, 1, 1, 3});
    put_result(f, LENGTH * 7);
    ask(f);
    const gbx_odd_argument *odd = check_only(f, GBX_ODD_READ_TWICE, 6);
    check_entry(f, odd->entry, 6, 0);
    assert_int_equal(odd->other, 1);
    check_entry(f, odd->other_entry, 1, 1);
    check_entry(f, odd->unread, 2, 1);
    assert_int_equal(count_of(f, GBX_ODD_READ_TWICE), 1);
}

/* Whoever started the run reads what is part of a result. */
static void test_unread_is_result(void **state) {
    fixture *f = *state;
    put_rows(f, (const int64_t[]){0, 1, 1, 3});
    put_result(f, LENGTH * 2);
    check_none(f, GBX_ODD_READ_TWICE);
}

/* Without results nobody knows who reads what is left at the end. */
static void test_unknown_results(void **state) {
    fixture *f = *state;
    put_rows(f, (const int64_t[]){0, 1, 1, 3});
    check_none(f, GBX_ODD_READ_TWICE);
}

static void test_read_once(void **state) {
    fixture *f = *state;
    put_rows(f, (const int64_t[]){0, 1, 2, 3});
    check_none(f, ANY);
}

/* Each row is read twice, and one four times: not once more than usual. */
static void test_all_read_twice(void **state) {
    fixture *f = *state;
    put_rows(f, (const int64_t[]){0, 1, 1, 3});
    for (int64_t i = 0; i < 4; ++i) {
        begin_task(f, MAKE + 2);
        reads(f, LENGTH * (int64_t[]){0, 1, 1, 3}[i]);
        writes(f, LENGTH * (8 + i));
    }
    put_result(f, LENGTH * 7);
    check_none(f, GBX_ODD_READ_TWICE);
}

/* --- how arguments belong together --- */

/* Tiles of 8 x 8 in matrices of 32 x 32, 64 elements apart from row to row of tiles. */
static void put_tile(fixture *f, unsigned role, int64_t buffer, int64_t row, int64_t column) {
    const head h = {.task = f->task_count - 1,
                    .arg_index = f->slot++,
                    .role = role,
                    .stage = role == GBX_ROLE_OUTPUT,
                    .dtype = GBX_FLOAT32,
                    .ndims = 2};
    add_tensor(&f->journal, h,
               (tensor_fields){.buffer_addr = at(FAR_AWAY * buffer),
                               .start_offset = row * 8 * 32 + column * 8,
                               .shape = (const int64_t[]){8, 8},
                               .strides = (const int64_t[]){32, 1}});
}

/* c[i, j] of a[i, 0] and b[0, j]; of one task, the tile of b lies elsewhere. */
static void put_products(fixture *f, int odd, int64_t column) {
    for (int i = 0; i < 12; ++i) {
        begin_task(f, JOIN);
        put_tile(f, GBX_ROLE_INPUT, 1, i / 4, 0);
        put_tile(f, GBX_ROLE_INPUT, 2, 0, i == odd ? column : i % 4);
        put_tile(f, GBX_ROLE_OUTPUT, 3, i / 4, i % 4);
    }
}

static void test_relation(void **state) {
    fixture *f = *state;
    put_products(f, 6, 1);
    ask(f);
    const gbx_odd_argument *odd = check_first(f, GBX_ODD_RELATION, 6);
    check_entry(f, odd->entry, 6, 1);
    check_entry(f, odd->other_entry, 6, 2);
    assert_int_equal(odd->dimension, 1);
    assert_int_equal(odd->other_dimension, 1);
    assert_int_equal(odd->found, 8);
    assert_int_equal(odd->expected, 16);
    assert_int_equal(odd->difference, 0);
    assert_int_equal(odd->siblings, 11);
    assert_int_equal(count_of(f, GBX_ODD_RELATION), 1);
}

static void test_related(void **state) {
    fixture *f = *state;
    put_products(f, -1, 0);
    check_none(f, ANY);
}

/* The left neighbour of the first is the first itself: that is a border. */
static void test_border(void **state) {
    fixture *f = *state;
    for (int64_t i = 0; i < 6; ++i) {
        begin_task(f, JOIN);
        reads(f, FAR_AWAY + LENGTH * (i > 0 ? i - 1 : 0));
        reads(f, FAR_AWAY + LENGTH * i);
        writes(f, LENGTH * i);
    }
    check_none(f, GBX_ODD_RELATION);
}

static void test_layout(void **state) {
    fixture *f = *state;
    for (int64_t i = 0; i < 5; ++i) {
        const int64_t shape[] = {8, 8}, strides[] = {i == 2 ? 1 : 8, i == 2 ? 8 : 1};
        begin_task(f, MAKE);
        reads(f, FAR_AWAY + LENGTH * i);
        add_tensor(&f->journal,
                   (head){.task = f->task_count - 1,
                          .arg_index = f->slot++,
                          .role = GBX_ROLE_OUTPUT,
                          .stage = 1,
                          .dtype = GBX_FLOAT32,
                          .ndims = 2},
                   (tensor_fields){.buffer_addr = BASE,
                                   .start_offset = LENGTH * i,
                                   .shape = shape,
                                   .strides = strides});
    }
    ask(f);
    const gbx_odd_argument *odd = check_only(f, GBX_ODD_LAYOUT, 2);
    check_entry(f, odd->entry, 2, 1);
    check_entry(f, odd->other_entry, 0, 1);
    assert_int_equal(odd->siblings, 4);
}

static void put_repeated(fixture *f, const int64_t *rows, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        begin_task(f, MAKE);
        reads(f, FAR_AWAY);
        put(f, GBX_ROLE_INOUT, LENGTH * rows[i], LENGTH);
    }
}

static void test_repeated(void **state) {
    fixture *f = *state;
    put_repeated(f, (const int64_t[]){0, 3, 1, 1, 7}, 5);
    ask(f);
    const gbx_odd_argument *odd = check_only(f, GBX_ODD_REPEATED, 3);
    assert_int_equal(odd->other, 2);
}

static void test_often_repeated(void **state) {
    fixture *f = *state;
    put_repeated(f, (const int64_t[]){0, 3, 1, 0, 3, 1}, 6);
    check_none(f, GBX_ODD_REPEATED);
}

/* `join` takes what `also` made of each row, but once the row itself. */
static void test_source(void **state) {
    fixture *f = *state;
    for (int64_t i = 0; i < 6; ++i) {
        begin_task(f, MAKE);
        reads(f, FAR_AWAY);
        writes(f, LENGTH * i);
        if (i != 3) {
            begin_task(f, MAKE + 1);
            reads(f, LENGTH * i);
            writes(f, LENGTH * i);
        }
        begin_task(f, JOIN);
        reads(f, LENGTH * i);
        reads(f, FAR_AWAY);
        writes(f, LENGTH * (i + 10));
    }
    ask(f);
    const gbx_odd_argument *odd = check_only(f, GBX_ODD_SOURCE, 10);
    check_entry(f, odd->entry, 10, 0);
    check_entry(f, odd->other_entry, 9, 1);
    check_entry(f, odd->reader, 1, 1);
    assert_int_equal(odd->siblings, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_named_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_named_scalar_of_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_named_scalar_that_fits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_negated_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_negated_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_float_as_integer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_integer_as_float, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scratch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filled_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_read_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_relation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_related, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_border, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_layout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_often_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scalar_of_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scalar_of_tail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_near_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loose_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_offset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_view_begin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_view_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_view_of_tail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_swapped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_swapped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_before_next_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alias, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_neighbours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unread_is_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_results, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_once, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
