#include "journal_test_builder.h"

#include "checks.h"

#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>

#include "analysis/byte_runs.h"
#include "analysis/downstream.h"

enum {
    DUMPS = 300,
    TASKS_MAX = 14,
    ARGS_MAX = 4,
    ARGUMENTS_MAX = TASKS_MAX * ARGS_MAX,
    WINDOW = 512
};

#define BASE UINT64_C(0x7e9000001000)

/* An argument of float32, of one or two dimensions; an in-out is recorded before and after. */
typedef struct argument {
    uint64_t task;
    unsigned role;
    uint64_t data;
    int64_t start_offset, shape[2], strides[2];
} argument;

typedef struct fixture {
    dump dump;
    builder journal;
    gbx_reader *reader;
    gbx_entries *entries;
    gbx_task_graph *graph;
    argument arguments[ARGUMENTS_MAX];
    size_t argument_count;
    uint64_t task_count;
    uint64_t *found;
    size_t found_count;
    bool is_complete;
} fixture;

static const char run_text[] = "{\"generator\":\"test\",\"run\":{},\"kernels\":["
                               "{\"func_id\":3,\"name\":\"k\",\"core_type\":\"aiv\"}]}";

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
    free(f->found);
    gbx_task_graph_destroy(f->graph);
    gbx_entries_destroy(f->entries);
    gbx_reader_close(f->reader);
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f);
    return 0;
}

/* --- making a dump --- */

static void put(fixture *f, argument a) {
    static const uint32_t func_ids[3] = {UINT32_MAX, 3, UINT32_MAX};
    for (; f->task_count <= a.task; ++f->task_count)
        add_task(&f->journal, f->task_count, 0x100 + f->task_count, func_ids, 1);
    assert_true(f->argument_count < ARGUMENTS_MAX);
    unsigned slot = 0;
    for (size_t i = 0; i < f->argument_count; ++i)
        slot += f->arguments[i].task == a.task;
    for (unsigned stage = 0; stage < 2; ++stage) {
        if (stage == (a.role == GBX_ROLE_OUTPUT ? 0 : 1) && a.role != GBX_ROLE_INOUT)
            continue;
        head h = {.task = a.task,
                  .arg_index = slot,
                  .role = a.role,
                  .stage = stage,
                  .dtype = GBX_FLOAT32,
                  .ndims = 2};
        add_tensor(&f->journal, h,
                   (tensor_fields){.buffer_addr = a.data,
                                   .start_offset = a.start_offset,
                                   .shape = a.shape,
                                   .strides = a.strides});
    }
    f->arguments[f->argument_count++] = a;
}

/* `length` elements that lie one after the other, from element `first` on. */
static void row(fixture *f, uint64_t task, unsigned role, int64_t first, int64_t length) {
    put(f, (argument){task, role, BASE, first, {1, length}, {length, 1}});
}

static void reads(fixture *f, uint64_t task, int64_t first, int64_t length) {
    row(f, task, GBX_ROLE_INPUT, first, length);
}

static void writes(fixture *f, uint64_t task, int64_t first, int64_t length) {
    row(f, task, GBX_ROLE_OUTPUT, first, length);
}

static void finish(fixture *f) {
    finish_journal(&f->journal, &f->dump);
    assert_ok(
        gbx_reader_open(f->dump.directory, GBX_INDEX_ARGUMENTS | GBX_INDEX_GRAPH, &f->reader));
    assert_ok(gbx_entries_create(f->reader, &f->entries));
    assert_ok(gbx_task_graph_create(f->reader, &f->graph));
}

static void ask(fixture *f, const uint64_t *guilty, size_t count) {
    free(f->found);
    f->found = NULL;
    assert_ok(gbx_downstream_find(f->entries, f->graph, guilty, count, &f->found, &f->found_count,
                                  &f->is_complete));
}

static void check_found(const fixture *f, const uint64_t *wanted, size_t count) {
    assert_int_equal(f->found_count, count);
    for (size_t i = 0; i < count; ++i)
        assert_int_equal(f->found[i], wanted[i]);
}

/* What is downstream of one task, all of which is known. */
#define check_victims(f, guilty, ...)                                                              \
    do {                                                                                           \
        static const uint64_t is_wanted[] = {__VA_ARGS__};                                         \
        ask((f), &(const uint64_t){guilty}, 1);                                                    \
        check_found((f), is_wanted, sizeof is_wanted / sizeof is_wanted[0]);                       \
        assert_true((f)->is_complete);                                                             \
    } while (0)

static void check_nobody(fixture *f, uint64_t guilty) {
    ask(f, &guilty, 1);
    check_found(f, NULL, 0);
    assert_true(f->is_complete);
}

/* --- one after the other --- */

static void test_chain(void **state) {
    fixture *f = *state;
    writes(f, 0, 0, 8);
    for (uint64_t task = 1; task < 5; ++task) {
        reads(f, task, 8 * ((int64_t)task - 1), 8);
        writes(f, task, 8 * (int64_t)task, 8);
    }
    reads(f, 5, 64, 8); /* what nobody wrote */
    writes(f, 5, 72, 8);
    finish(f);
    check_victims(f, 0, 1, 2, 3, 4);
    check_victims(f, 2, 3, 4);
    check_nobody(f, 4);
    check_nobody(f, 5);
    ask(f, NULL, 0);
    check_found(f, NULL, 0);
    ask(f, (const uint64_t[]){99}, 1); /* no task */
    check_found(f, NULL, 0);
}

static void test_overwritten(void **state) {
    fixture *f = *state;
    writes(f, 0, 0, 8);
    reads(f, 1, 64, 8);
    writes(f, 1, 0, 8); /* all of it is good again */
    reads(f, 2, 0, 8);
    writes(f, 3, 16, 8);
    writes(f, 4, 16, 7); /* one element stays */
    reads(f, 5, 16, 7);
    writes(f, 5, 32, 8);
    reads(f, 6, 23, 1);
    reads(f, 7, 32, 8);
    finish(f);
    check_nobody(f, 0);
    check_victims(f, 3, 6);
    check_victims(f, 1, 2);
    check_victims(f, 4, 5, 7);
}

static void test_partial_overlap(void **state) {
    fixture *f = *state;
    writes(f, 0, 10, 10);
    reads(f, 1, 0, 10);  /* ends before it */
    reads(f, 2, 20, 10); /* begins behind it */
    reads(f, 3, 0, 11);
    reads(f, 4, 19, 5);
    reads(f, 5, 12, 2);
    reads(f, 6, 0, 40);
    finish(f);
    check_victims(f, 0, 3, 4, 5, 6);
}

static void test_strided(void **state) {
    fixture *f = *state;
    /* Columns of a matrix of 8 x 8. */
    put(f, (argument){0, GBX_ROLE_OUTPUT, BASE, 3, {8, 1}, {8, 1}});
    put(f, (argument){1, GBX_ROLE_INPUT, BASE, 2, {8, 1}, {8, 1}});
    put(f, (argument){2, GBX_ROLE_INPUT, BASE, 3, {4, 1}, {16, 1}});
    put(f, (argument){3, GBX_ROLE_INPUT, BASE, 4, {8, 7}, {8, 1}}); /* around it */
    put(f, (argument){4, GBX_ROLE_INPUT, BASE, 8, {1, 8}, {8, 1}}); /* a row */
    put(f, (argument){5, GBX_ROLE_INPUT, BASE + 12, 0, {1, 1}, {1, 1}});
    put(f, (argument){6, GBX_ROLE_INPUT, BASE, 3, {5, 1}, {0, 1}}); /* one element, often */
    finish(f);
    check_victims(f, 0, 2, 4, 5, 6);
}

static void test_inouts(void **state) {
    fixture *f = *state;
    row(f, 0, GBX_ROLE_INOUT, 0, 8);
    row(f, 1, GBX_ROLE_INOUT, 0, 8);
    row(f, 2, GBX_ROLE_INOUT, 4, 8);
    reads(f, 3, 8, 4); /* only what 2 left */
    reads(f, 4, 0, 4);
    row(f, 5, GBX_ROLE_INOUT, 32, 8);
    finish(f);
    check_victims(f, 0, 1, 2, 3, 4);
    check_victims(f, 2, 3);
    check_victims(f, 1, 2, 3, 4);
    check_nobody(f, 5);
}

static void test_several(void **state) {
    fixture *f = *state;
    writes(f, 0, 0, 8);
    writes(f, 1, 8, 8);
    reads(f, 2, 0, 8);
    writes(f, 2, 16, 8);
    reads(f, 3, 8, 8);
    writes(f, 3, 24, 8);
    reads(f, 4, 16, 16);
    writes(f, 4, 0, 8);
    reads(f, 5, 0, 8);
    finish(f);
    ask(f, (const uint64_t[]){1, 0}, 2); /* in any order */
    check_found(f, (const uint64_t[]){2, 3, 4, 5}, 4);
    ask(f, (const uint64_t[]){0, 2}, 2); /* a guilty task is no victim of another */
    check_found(f, (const uint64_t[]){4, 5}, 2);
    ask(f, (const uint64_t[]){4, 3}, 2);
    check_found(f, (const uint64_t[]){5}, 1);
}

/* --- what cannot be followed --- */

static void test_pieces(void **state) {
    fixture *f = *state;
    const int64_t pieces = (int64_t)GBX_FOLLOWED_PIECES + 1;
    put(f, (argument){0, GBX_ROLE_OUTPUT, BASE, 0, {pieces, 1}, {2, 1}});
    put(f, (argument){1, GBX_ROLE_INPUT, BASE, 0, {1, 1}, {1, 1}});
    put(f, (argument){2, GBX_ROLE_OUTPUT, BASE + (1 << 24), 0, {pieces - 1, 1}, {2, 1}});
    put(f, (argument){3, GBX_ROLE_INPUT, BASE + (1 << 24), 2 * (pieces - 2), {1, 1}, {1, 1}});
    finish(f);
    ask(f, &(const uint64_t){0}, 1);
    check_found(f, NULL, 0);
    assert_false(f->is_complete);
    check_victims(f, 2, 3);
}

static void test_without_addresses(void **state) {
    fixture *f = *state;
    put(f, (argument){0, GBX_ROLE_OUTPUT, 0, 0, {1, 8}, {8, 1}});
    writes(f, 1, 0, 8);
    put(f, (argument){2, GBX_ROLE_INPUT, 0, 0, {1, 8}, {8, 1}});
    reads(f, 3, 0, 8);
    finish(f);
    ask(f, &(const uint64_t){0}, 1);
    check_found(f, NULL, 0);
    assert_false(f->is_complete);
    ask(f, &(const uint64_t){1}, 1);
    check_found(f, (const uint64_t[]){3}, 1);
    assert_false(f->is_complete);
}

/* A tensor without elements has nothing to follow, wherever it lies. */
static void test_empty(void **state) {
    fixture *f = *state;
    writes(f, 0, 0, 8);
    put(f, (argument){0, GBX_ROLE_OUTPUT, 0, 0, {0, 8}, {8, 1}});
    put(f, (argument){1, GBX_ROLE_INPUT, BASE, 0, {8, 0}, {1, 1}});
    put(f, (argument){2, GBX_ROLE_INPUT, 0, 0, {0, 1}, {1, 1}});
    reads(f, 3, 7, 1);
    finish(f);
    check_victims(f, 0, 3);
}

/* --- upstream --- */

static void check_upstream(fixture *f, uint64_t task, const uint64_t *wanted, size_t count) {
    gbx_upstream *found;
    size_t found_count;
    bool is_complete;
    assert_ok(gbx_upstream_find(f->entries, f->graph, task, &found, &found_count, &is_complete));
    assert_int_equal(found_count, count);
    for (size_t i = 0; i < count; ++i) {
        gbx_entry entry;
        assert_int_equal(found[i].task, wanted[i]);
        assert_ok(gbx_entries_at(f->entries, found[i].entry, &entry));
        assert_int_equal(entry.head->task, wanted[i]);
        assert_int_equal(entry.head->stage, GBX_STAGE_AFTER);
    }
    assert_true(is_complete);
    free(found);
}

static void test_upstream(void **state) {
    fixture *f = *state;
    writes(f, 0, 0, 8); /* 1 writes over it */
    writes(f, 1, 0, 8);
    reads(f, 2, 4, 4);
    writes(f, 2, 8, 4);
    writes(f, 3, 100, 4); /* nobody reads it */
    reads(f, 4, 0, 2);
    reads(f, 4, 11, 1);
    writes(f, 4, 20, 1);
    finish(f);
    check_upstream(f, 4, (const uint64_t[]){2, 1}, 2);
    check_upstream(f, 3, NULL, 0);
    check_upstream(f, 0, NULL, 0);
}

/* --- random dumps, against a walk over all bytes --- */

typedef struct model {
    uint64_t seed;
    bool is_bad[WINDOW];
    uint64_t victims[TASKS_MAX];
    size_t victim_count;
} model;

static uint64_t pick(model *m, uint64_t end) {
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->seed >> 33) % end;
}

static argument random_argument(model *m, uint64_t task) {
    argument a = {.task = task, .role = (unsigned)pick(m, 3), .data = BASE + pick(m, 2) * 4 * 40};
    for (int d = 0; d < 2; ++d)
        a.shape[d] = (int64_t)pick(m, 5) + (pick(m, 8) > 0);
    a.strides[1] = 1 + (int64_t)pick(m, 3);
    a.strides[0] = pick(m, 4) ? 5 * a.strides[1] + (int64_t)pick(m, 4) : a.strides[1];
    if (a.role == GBX_ROLE_INPUT && pick(m, 4) == 0)
        a.strides[0] = 0;
    a.start_offset = (int64_t)pick(m, 20);
    return a;
}

/* A task is upstream of those that are downstream of it. */
static void check_both_ways(fixture *f, uint64_t tasks) {
    bool is_below[TASKS_MAX][TASKS_MAX] = {0};
    for (uint64_t task = 0; task < tasks; ++task) {
        ask(f, &task, 1);
        for (size_t i = 0; i < f->found_count; ++i)
            is_below[task][f->found[i]] = true;
    }
    for (uint64_t task = 0; task < tasks; ++task) {
        uint64_t above[TASKS_MAX];
        size_t count = 0;
        for (uint64_t other = task; other-- > 0;)
            if (is_below[other][task])
                above[count++] = other;
        check_upstream(f, task, above, count);
    }
}

/* Reads whether any element is bad, or sets all. */
static bool visit(model *m, const argument *a, bool is_write, bool is_bad) {
    bool any = false;
    for (int64_t i = 0; i < a->shape[0]; ++i)
        for (int64_t j = 0; j < a->shape[1]; ++j) {
            uint64_t at = (a->data - BASE) / 4 +
                          (uint64_t)(a->start_offset + i * a->strides[0] + j * a->strides[1]);
            assert_true(at < WINDOW);
            any |= m->is_bad[at];
            if (is_write)
                m->is_bad[at] = is_bad;
        }
    return any;
}

static void walk(model *m, const fixture *f, const uint64_t *guilty, size_t count) {
    memset(m->is_bad, 0, sizeof m->is_bad);
    m->victim_count = 0;
    for (uint64_t task = 0; task < f->task_count; ++task) {
        bool is_guilty = false, is_victim = false;
        for (size_t i = 0; i < count; ++i)
            is_guilty |= guilty[i] == task;
        for (size_t i = 0; i < f->argument_count; ++i)
            if (f->arguments[i].task == task && f->arguments[i].role != GBX_ROLE_OUTPUT)
                is_victim |= visit(m, &f->arguments[i], false, false);
        is_victim &= !is_guilty;
        for (size_t i = 0; i < f->argument_count; ++i)
            if (f->arguments[i].task == task && f->arguments[i].role != GBX_ROLE_INPUT)
                visit(m, &f->arguments[i], true, is_guilty || is_victim);
        if (is_victim)
            m->victims[m->victim_count++] = task;
    }
}

static size_t try_dump(model *m) {
    fixture *f;
    size_t found = 0;
    set_up((void **)&f);
    uint64_t tasks = 4 + pick(m, TASKS_MAX - 3);
    for (uint64_t task = 0; task < tasks; ++task)
        for (uint64_t i = 1 + pick(m, ARGS_MAX - 1); i > 0; --i)
            put(f, random_argument(m, task));
    finish(f);
    for (int i = 0; i < 6; ++i) {
        const uint64_t guilty[2] = {pick(m, tasks), pick(m, tasks)};
        size_t count = 1 + pick(m, 2);
        walk(m, f, guilty, count);
        ask(f, guilty, count);
        check_found(f, m->victims, m->victim_count);
        assert_true(f->is_complete);
        found += m->victim_count;
    }
    check_both_ways(f, tasks);
    tear_down((void **)&f);
    return found;
}

static void test_random(void **state) {
    (void)state;
    model m = {.seed = 7};
    size_t found = 0;
    for (int i = 0; i < DUMPS; ++i)
        found += try_dump(&m);
    assert_true(found > DUMPS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_overwritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_partial_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strided, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_inouts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upstream, set_up, tear_down),
        cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
