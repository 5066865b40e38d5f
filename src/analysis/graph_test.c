#include "journal_test_builder.h"

#include "analysis/graph.h"

enum { TASKS_MAX = 40, EDGES_MAX = 200, GRAPHS = 400, FAR_TASKS = 1500 };

/* What a dump records, and what follows by trying all paths. Tasks are indices in `numbers`. */
typedef struct model {
    uint64_t count;
    uint64_t numbers[TASKS_MAX];
    bool edges[TASKS_MAX][TASKS_MAX]; /* [later][earlier] */
    bool paths[TASKS_MAX][TASKS_MAX];
    uint64_t unknown_edges; /* different ones per task */
} model;

typedef struct fixture {
    dump dump;
    builder journal;
    gbx_task_graph *graph;
} fixture;

static uint64_t random_below(uint64_t *seed, uint64_t end) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % end;
}

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_dump(&f->dump);
    begin_journal(&f->journal);
    add_run(&f->journal, "{\"generator\":\"test\",\"run\":{}}");
    end_block(&f->journal);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    gbx_task_graph_destroy(f->graph);
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f);
    return 0;
}

/* Closes the reader before the graph is used. */
static void open_graph(fixture *f) {
    gbx_reader *reader = NULL;
    finish_journal(&f->journal, &f->dump);
    gbx_status status =
        gbx_reader_open(f->dump.directory, GBX_INDEX_GRAPH | GBX_INDEX_ARGUMENTS, &reader);
    if (!status)
        status = gbx_task_graph_create(reader, &f->graph);
    if (status)
        fail_msg("%s", gbx_status_message(status));
    gbx_reader_close(reader);
}

static void put_task(fixture *f, uint64_t task, uint64_t time_ns) {
    begin_record(&f->journal, (head){.type = 3, .task = task, .time_ns = time_ns});
    put_u64(&f->journal, task);
    for (int i = 0; i < 6; ++i)
        put_u32(&f->journal, 0);
}

static void put_done(fixture *f, uint64_t task, uint64_t time_ns) {
    begin_record(&f->journal, (head){.type = 5, .stage = 1, .task = task, .time_ns = time_ns});
}

static void put_edges(fixture *f, uint64_t task, const uint64_t *predecessors, size_t count) {
    begin_record(&f->journal, (head){.type = 4, .task = task});
    for (size_t i = 0; i < count; ++i)
        put_u64(&f->journal, predecessors[i]);
}

static void find_paths(model *m) {
    memcpy(m->paths, m->edges, sizeof m->paths);
    for (uint64_t through = 0; through < m->count; ++through)
        for (uint64_t later = 0; later < m->count; ++later)
            for (uint64_t earlier = 0; earlier < m->count; ++earlier)
                m->paths[later][earlier] |= m->paths[later][through] && m->paths[through][earlier];
}

/* --- tests --- */

static void test_times_and_edges(void **state) {
    fixture *f = *state;
    uint64_t first[] = {7, 3}, second[] = {3};
    put_done(f, 9, 500);
    put_edges(f, 9, first, 2);
    put_task(f, 9, 400);
    put_task(f, 3, 100);
    put_edges(f, 9, second, 1); /* the same edge twice */
    put_task(f, 7, 200);
    put_done(f, 3, 150);
    put_task(f, 9, 999); /* the first one counts */
    open_graph(f);
    assert_int_equal(gbx_task_graph_count(f->graph), 3);
    assert_int_equal(gbx_task_graph_bad_edges(f->graph), 0);
    const gbx_graph_task *last = gbx_task_graph_at(f->graph, 2);
    assert_int_equal(last->task, 9);
    assert_int_equal(last->begin_ns, 400);
    assert_int_equal(last->end_ns, 500);
    assert_int_equal(last->predecessor_count, 2);
    assert_int_equal(last->predecessors[0], 3);
    assert_int_equal(last->predecessors[1], 7);
    assert_int_equal(gbx_task_graph_at(f->graph, 0)->end_ns, 150);
    assert_true(gbx_task_graph_at(f->graph, 1)->end_ns == UINT64_MAX);
    assert_int_equal(gbx_task_graph_place(f->graph, 7), 1);
    assert_true(gbx_task_graph_place(f->graph, 8) == UINT64_MAX);
    assert_false(gbx_task_graph_is_before(f->graph, 8, 9));
    assert_false(gbx_task_graph_is_before(f->graph, 3, 8));
    assert_false(gbx_task_graph_is_before(f->graph, 9, 9));
}

static void test_no_tasks(void **state) {
    fixture *f = *state;
    open_graph(f);
    assert_int_equal(gbx_task_graph_count(f->graph), 0);
    assert_true(gbx_task_graph_place(f->graph, 0) == UINT64_MAX);
    assert_false(gbx_task_graph_is_before(f->graph, 0, 0));
}

/* A task whose own record was lost is known by its arguments. */
static void test_lost_task(void **state) {
    fixture *f = *state;
    add_scalar(&f->journal, (head){.task = 5, .time_ns = 77}, 1);
    put_edges(f, 6, (uint64_t[]){5}, 1);
    open_graph(f);
    assert_int_equal(gbx_task_graph_count(f->graph), 2);
    assert_int_equal(gbx_task_graph_at(f->graph, 0)->begin_ns, 77);
    assert_true(gbx_task_graph_is_before(f->graph, 5, 6));
}

static void test_order_against_numbers(void **state) {
    fixture *f = *state;
    for (uint64_t i = 0; i < 4; ++i)
        put_task(f, i, 0);
    put_edges(f, 0, (uint64_t[]){3}, 1);
    put_edges(f, 3, (uint64_t[]){2}, 1);
    open_graph(f);
    static const uint64_t expected[] = {2, 3, 0, 1};
    for (uint64_t i = 0; i < 4; ++i)
        assert_int_equal(gbx_task_graph_at(f->graph, i)->task, expected[i]);
    assert_true(gbx_task_graph_is_before(f->graph, 2, 0));
    assert_false(gbx_task_graph_is_before(f->graph, 0, 2));
    assert_false(gbx_task_graph_is_before(f->graph, 2, 1));
}

static void test_long_cycle(void **state) {
    fixture *f = *state;
    enum { LENGTH = 20000 };
    for (uint64_t i = 0; i < LENGTH; ++i) {
        put_task(f, i, 0);
        put_edges(f, i, (uint64_t[]){(i + 1) % LENGTH}, 1);
        if (i % 1000 == 999)
            end_block(&f->journal);
    }
    open_graph(f);
    assert_int_equal(gbx_task_graph_bad_edges(f->graph), 1);
    assert_true(gbx_task_graph_is_before(f->graph, LENGTH - 1, 0));
    assert_false(gbx_task_graph_is_before(f->graph, 0, LENGTH - 1));
}

static void make_random(fixture *f, model *m, uint64_t seed) {
    uint64_t number = 0;
    bool may_go_back = random_below(&seed, 2);
    m->count = 1 + random_below(&seed, TASKS_MAX);
    for (uint64_t i = 0; i < m->count; ++i) {
        number += 1 + (random_below(&seed, 3) == 0 ? random_below(&seed, 5) : 0);
        m->numbers[i] = number;
        put_task(f, number, 0);
    }
    for (uint64_t i = random_below(&seed, EDGES_MAX); i > 0; --i) {
        uint64_t a = random_below(&seed, m->count), b = random_below(&seed, m->count);
        uint64_t later = may_go_back || a > b ? a : b, earlier = later == a ? b : a;
        if (!may_go_back && later == earlier)
            continue;
        put_edges(f, m->numbers[later], &m->numbers[earlier], 1);
        m->edges[later][earlier] = true;
    }
    for (uint64_t i = 0; i < m->count; ++i)
        if (random_below(&seed, 8) == 0) {
            put_edges(f, m->numbers[i], (uint64_t[]){1000, 1000}, 2);
            ++m->unknown_edges;
        }
    find_paths(m);
}

/* Checks that the graph has the edges of the dump, except on cycles; takes them over. */
static void compare_edges(const fixture *f, model *m) {
    uint64_t dropped = 0;
    for (uint64_t later = 0; later < m->count; ++later) {
        const gbx_graph_task *task =
            gbx_task_graph_at(f->graph, gbx_task_graph_place(f->graph, m->numbers[later]));
        uint64_t k = 0;
        for (uint64_t earlier = 0; earlier < m->count; ++earlier) {
            bool is_there =
                k < task->predecessor_count && task->predecessors[k] == m->numbers[earlier];
            k += is_there;
            if (is_there)
                assert_true(m->edges[later][earlier]);
            if (is_there == m->edges[later][earlier])
                continue;
            assert_true(later == earlier || m->paths[earlier][later]);
            m->edges[later][earlier] = false;
            ++dropped;
        }
        assert_int_equal(k, task->predecessor_count);
    }
    assert_int_equal(dropped + m->unknown_edges, gbx_task_graph_bad_edges(f->graph));
    find_paths(m);
}

static void compare_paths(const fixture *f, const model *m, uint64_t seed) {
    for (uint64_t i = 0; i < m->count * m->count * 2; ++i) {
        bool is_in_order = i < m->count * m->count;
        uint64_t later = is_in_order ? i / m->count : random_below(&seed, m->count);
        uint64_t earlier = is_in_order ? i % m->count : random_below(&seed, m->count);
        bool is_before = gbx_task_graph_is_before(f->graph, m->numbers[earlier], m->numbers[later]);
        assert_int_equal(is_before, m->paths[later][earlier]);
        if (is_before)
            assert_true(gbx_task_graph_place(f->graph, m->numbers[earlier]) <
                        gbx_task_graph_place(f->graph, m->numbers[later]));
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    uint64_t with_cycles = 0;
    for (uint64_t i = 0; i < GRAPHS; ++i) {
        fixture *f;
        model *m = calloc(1, sizeof *m);
        assert_non_null(m);
        set_up((void **)&f);
        make_random(f, m, i);
        open_graph(f);
        assert_int_equal(gbx_task_graph_count(f->graph), m->count);
        for (uint64_t place = 0; place < m->count; ++place)
            assert_int_equal(
                gbx_task_graph_place(f->graph, gbx_task_graph_at(f->graph, place)->task), place);
        with_cycles += gbx_task_graph_bad_edges(f->graph) > m->unknown_edges;
        compare_edges(f, m);
        compare_paths(f, m, i);
        tear_down((void **)&f);
        free(m);
    }
    assert_in_range(with_cycles, GRAPHS / 4, GRAPHS * 3 / 4);
}

/* Edges of a long graph: a few near ones, and sometimes one to any task. */
static void put_long_graph(fixture *f, bool (*paths)[FAR_TASKS], uint64_t seed) {
    for (uint64_t later = 0; later < FAR_TASKS; ++later) {
        put_task(f, later, 0);
        for (uint64_t i = random_below(&seed, 4); later > 0 && i > 0; --i) {
            bool is_far = random_below(&seed, 20) == 0;
            uint64_t back = 1 + random_below(&seed, is_far || later < 8 ? later : 8);
            put_edges(f, later, (uint64_t[]){later - back}, 1);
            paths[later][later - back] = true;
            for (uint64_t k = 0; k < later - back; ++k)
                paths[later][k] |= paths[later - back][k];
        }
        if (later % 100 == 99)
            end_block(&f->journal);
    }
}

/* All tasks ask for the same few, as readers of the same tensors do, in any order. */
static void test_far_paths(void **state) {
    fixture *f = *state;
    uint64_t seed = 5, found = 0, asked = 0;
    bool(*paths)[FAR_TASKS] = calloc(FAR_TASKS, sizeof *paths);
    assert_non_null(paths);
    put_long_graph(f, paths, 3);
    open_graph(f);
    for (uint64_t later = 1; later < FAR_TASKS; ++later)
        for (int i = 0; i < 12; ++i, ++asked) {
            uint64_t earlier = random_below(&seed, i < 8 ? 12 : FAR_TASKS);
            bool is_before = gbx_task_graph_is_before(f->graph, earlier, later);
            assert_int_equal(is_before, paths[later][earlier]);
            found += is_before;
        }
    assert_in_range(found, asked / 5, asked * 4 / 5);
    free(paths);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_times_and_edges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_order_against_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_cycle, set_up, tear_down),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test_setup_teardown(test_far_paths, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
