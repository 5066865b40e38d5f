#include "replay_calls.h"

#include <math.h>
#include <signal.h>

#include "base/clock.h"

/* Tasks with the same tensors that do different things; the dump has what AFFINE gives. */
enum { MOST_WAYS = 8, MANY_NUMBER = 11 };

typedef struct many {
    replay_call call;
    int32_t y[REPLAY_CELLS];
    int32_t z[REPLAY_CELLS];
    gbx_replay_task tasks[MOST_WAYS];
    gbx_replay_argument arguments[MOST_WAYS][5];
    uint32_t task_count;
} many;

static void open_many(many *m, uint32_t jobs) {
    memset(m, 0, sizeof *m);
    replay_prepare(&m->call, WAY_AFFINE, MANY_NUMBER);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        m->y[i] = 2 * m->call.x[i] + MANY_NUMBER;
        m->z[i] = m->call.z[i] + m->call.x[i];
    }
    m->call.arguments[REPLAY_Y].after = m->y;
    m->call.arguments[REPLAY_Z].after = m->z;
    m->call.config.jobs = jobs;
    replay_open(&m->call);
}

/* A task that does something else; the engine compares it with the same dump. */
static const gbx_replay_task *add_way(many *m, enum replay_way way, uint64_t number) {
    gbx_replay_task *task = &m->tasks[m->task_count];
    assert_true(m->task_count < MOST_WAYS && m->call.read.argument_count == 5);
    *task = m->call.read;
    task->arguments = m->arguments[m->task_count++];
    memcpy(task->arguments, m->call.read.arguments, sizeof m->arguments[0]);
    task->arguments[REPLAY_WAY].bits = way;
    task->arguments[REPLAY_NUMBER].bits = number;
    return task;
}

static void submit(const many *m, const gbx_replay_task *task, uint64_t token) {
    gbx_replay_request request = replay_request(&m->call);
    request.task = task;
    request.token = token;
    assert_ok(gbx_replay_submit(m->call.engine, &request));
}

/* The next outcome, which has to be that of a task and a token. */
static gbx_replay_taken take(const many *m, const gbx_replay_task *task, uint64_t token) {
    gbx_replay_taken taken;
    bool is_there;
    assert_ok(gbx_replay_take(m->call.engine, true, &taken, &is_there));
    assert_true(is_there);
    assert_int_equal(taken.request.token, token);
    assert_ptr_equal(taken.request.task, task);
    return taken;
}

static void assert_all_taken(const many *m) {
    gbx_replay_taken taken;
    bool is_there = true;
    assert_ok(gbx_replay_take(m->call.engine, true, &taken, &is_there));
    assert_false(is_there);
}

/* Bit exact, and nothing to report. A task beside a stray write may have been asked alone. */
static void assert_good(const gbx_replay_taken *taken, bool may_be_alone) {
    const gbx_replay_outcome *outcome = &taken->outcome;
    assert_null(taken->status);
    if (outcome->fault)
        fail_msg("task %d: %s", (int)taken->request.token, outcome->fault->text);
    assert_int_equal(outcome->unchanged, 0);
    assert_in_range(outcome->ns, 1, 3600 * GBX_NS_PER_SECOND);
    assert_true(outcome->is_clean || may_be_alone);
    if (outcome->is_clean) {
        assert_null(outcome->answer);
        return;
    }
    assert_int_equal(outcome->answer->finding_count, 0);
    assert_int_equal(outcome->answer->stray_bytes, 0);
    for (uint32_t i = REPLAY_Y; i <= REPLAY_Z; ++i) {
        const gbx_bits_comparison *bits = &outcome->answer->outputs[i].bits;
        assert_int_equal(bits->elements, REPLAY_CELLS);
        assert_int_equal(bits->mismatches + bits->not_written + bits->unstable, 0);
    }
}

static void assert_taken_fault(const gbx_replay_taken *taken, int signal, const char *text) {
    assert_null(taken->status);
    assert_non_null(taken->outcome.fault);
    assert_null(taken->outcome.answer);
    assert_false(taken->outcome.is_clean);
    assert_int_equal(taken->outcome.fault->signal, signal);
    if (!strstr(taken->outcome.fault->text, text))
        fail_msg("\"%s\" is not in: %s", text, taken->outcome.fault->text);
}

/* The only finding; the outputs are right. */
static void assert_taken_stray(const gbx_replay_taken *taken, uint64_t address, uint64_t bytes) {
    assert_null(taken->status);
    assert_null(taken->outcome.fault);
    assert_false(taken->outcome.is_clean);
    const gbx_answer *answer = taken->outcome.answer;
    assert_non_null(answer);
    assert_int_equal(answer->stray_bytes, bytes);
    assert_int_equal(answer->stray_address, address);
    assert_int_equal(answer->finding_count, 1);
    assert_int_equal(answer->findings[0].kind, GBX_STRAY_WRITE);
    assert_int_equal(answer->findings[0].address, address);
    assert_int_equal(answer->findings[0].end, address + bytes);
}

/* As many as can be pending; more are refused until one is taken. */
static void clean_tasks_are_clean(void **state) {
    (void)state;
    static many m;
    for (uint32_t jobs = 1; jobs <= 2; ++jobs) {
        open_many(&m, jobs);
        const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
        uint64_t count = 0;
        for (; !gbx_replay_is_full(m.call.engine); ++count)
            submit(&m, affine, count);
        assert_true(count >= 1000);
        gbx_replay_request request = replay_request(&m.call);
        assert_fails(gbx_replay_submit(m.call.engine, &request), GBX_INTERNAL, "too many");
        assert_fails(replay_try(&m.call, &request), GBX_INTERNAL, "others are pending");
        for (uint64_t i = 0; i < count; ++i) {
            gbx_replay_taken taken = take(&m, affine, i);
            assert_good(&taken, false);
            gbx_replay_outcome_free(&taken.outcome);
        }
        assert_all_taken(&m);
        replay_close(&m.call);
    }
    assert_false(has_children());
}

/* Every kind of trouble among good tasks, at irregular distances. */
typedef struct trouble {
    enum replay_way way;
    uint64_t number;
    int signal;
    const char *text;       /* of a fault; NULL: */
    uint64_t stray_address; /* where it writes */
    uint64_t stray_bytes;
} trouble;

static void assert_trouble(const gbx_replay_taken *taken, const trouble *t) {
    if (t->text)
        assert_taken_fault(taken, t->signal, t->text);
    else
        assert_taken_stray(taken, t->stray_address, t->stray_bytes);
}

static void run_among_others(const trouble *troubles, uint32_t kinds, uint32_t jobs, int count,
                             bool may_be_alone) {
    static many m;
    const gbx_replay_task *tasks[300];
    const trouble *of[300] = {NULL};
    uint32_t next = 0;
    assert_true(count <= 300);
    open_many(&m, jobs);
    const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
    for (uint32_t i = 0; i < kinds; ++i)
        (void)add_way(&m, troubles[i].way, troubles[i].number);
    /* The first and the last task of all, and of a batch, and two in a row. */
    for (int i = 0; i < count; ++i) {
        bool is_bad = i == 0 || i == count - 1 || i == 127 || i == 128 || i % 17 == 9;
        tasks[i] = is_bad ? &m.tasks[1 + next % kinds] : affine;
        of[i] = is_bad ? &troubles[next++ % kinds] : NULL;
    }
    for (int i = 0; i < count; ++i)
        submit(&m, tasks[i], 1000 + (uint64_t)i);
    for (int i = 0; i < count; ++i) {
        gbx_replay_taken taken = take(&m, tasks[i], 1000 + (uint64_t)i);
        if (of[i])
            assert_trouble(&taken, of[i]);
        else
            assert_good(&taken, may_be_alone);
        gbx_replay_outcome_free(&taken.outcome);
    }
    assert_all_taken(&m);
    replay_set_way(&m.call, WAY_AFFINE, 5); /* the engine goes on */
    replay_again(&m.call);
    assert_clean(&m.call);
    assert_affine(&m.call, 5);
    replay_close(&m.call);
    assert_false(has_children());
}

/* Good tasks beside one that crashes stay clean without being asked alone. */
static void tasks_that_crash_cost_only_themselves(void **state) {
    (void)state;
    static const trouble troubles[] = {
        {WAY_STORE, 0x1230, SIGSEGV, "kernel left crashed (block 0, aiv0): SIGSEGV at 0x1230", 0,
         0},
        {WAY_EXIT, 3, 0, "kernel left ended the process with exit code 3", 0, 0},
        {WAY_ABORT, MANY_NUMBER, SIGABRT, "kernel left crashed (block 0, aiv0): SIGABRT", 0, 0},
        {WAY_THREAD_END, MANY_NUMBER, 0, "kernel left ended its thread", 0, 0},
    };
    int count = is_thread_sanitized() ? 150 : 300;
    for (uint32_t jobs = 1; jobs <= 2; ++jobs)
        run_among_others(troubles, sizeof troubles / sizeof troubles[0], jobs, count, false);
}

/* These only end by being found to wait, which takes a while. */
static void tasks_that_wait_forever_cost_only_themselves(void **state) {
    (void)state;
    static const trouble troubles[] = {
        {WAY_HANG, MANY_NUMBER, 0, "kernel left waits for a flag that nothing sets", 0, 0}};
    for (uint32_t jobs = 1; jobs <= 2; ++jobs)
        run_among_others(troubles, 1, jobs, 9, false);
}

/* Right outputs, but something else was written: in an input, beside an output, and far away, which
 * is a fault in other memory than that of the run. */
static void tasks_with_stray_writes_are_named(void **state) {
    (void)state;
    const uint64_t y = REPLAY_BASE + 0x10000;
    const trouble troubles[] = {{WAY_INPUT, MANY_NUMBER, 0, NULL, REPLAY_BASE, 4},
                                {WAY_BESIDE, MANY_NUMBER, 0, NULL, y - 1, 1},
                                {WAY_STORE, 0x4560, SIGSEGV, "SIGSEGV at 0x4560", 0, 0}};
    int count = is_thread_sanitized() ? 150 : 300;
    for (uint32_t jobs = 1; jobs <= 2; ++jobs)
        run_among_others(troubles, sizeof troubles / sizeof troubles[0], jobs, count, true);
}

/* The tensors of the next task lie where the stray write was, and are put there and taken away. */
static void stray_writes_are_found_where_the_next_task_has_tensors(void **state) {
    (void)state;
    static many m;
    for (int moved = REPLAY_X; moved <= REPLAY_Y; ++moved) {
        open_many(&m, 1);
        const uint64_t y = m.call.arguments[REPLAY_Y].address;
        gbx_replay_task *beside = &m.tasks[m.task_count];
        (void)add_way(&m, WAY_BESIDE, MANY_NUMBER);
        gbx_replay_task *next = &m.tasks[m.task_count];
        (void)add_way(&m, WAY_AFFINE, MANY_NUMBER);
        beside->arguments[REPLAY_Y].tensor.data = y + sizeof m.y;
        if (moved == REPLAY_X) { /* x of the next lies before y in the same window */
            for (int i = 0; i < 2; ++i)
                m.tasks[i].arguments[REPLAY_X].tensor.data = y + 0x400 - 0x400 * (uint64_t)i;
            next->arguments[REPLAY_Y].tensor.data = y + 0x400;
        }
        for (uint64_t i = 0; i < 60; ++i)
            submit(&m, i % 2 ? next : beside, i);
        for (uint64_t i = 0; i < 60; ++i) {
            gbx_replay_taken taken = take(&m, i % 2 ? next : beside, i);
            if (i % 2)
                assert_good(&taken, true);
            else
                assert_taken_stray(&taken, y + sizeof m.y - 1, 1);
            gbx_replay_outcome_free(&taken.outcome);
        }
        replay_close(&m.call);
    }
}

/* A stray at an address of the run, and outputs that differ: asked alone, at these addresses. */
static void tasks_that_differ_are_asked_alone(void **state) {
    (void)state;
    static many m;
    const uint64_t beside = REPLAY_BASE + 0x20000 - 8;
    const int32_t added = (int32_t)(uint32_t)beside - MANY_NUMBER;
    open_many(&m, 2);
    const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
    const gbx_replay_task *other = add_way(&m, WAY_AFFINE, MANY_NUMBER + 2);
    const gbx_replay_task *nothing = add_way(&m, WAY_NOTHING, 0);
    const gbx_replay_task *stray = add_way(&m, WAY_STRAY, beside);
    const gbx_replay_task *const tasks[] = {affine, other, nothing, stray, affine};
    for (uint64_t i = 0; i < 5; ++i)
        submit(&m, tasks[i], i);
    gbx_replay_taken taken[5];
    for (uint64_t i = 0; i < 5; ++i)
        taken[i] = take(&m, tasks[i], i);
    assert_good(&taken[0], true);
    assert_good(&taken[4], true);
    for (int i = 1; i < 4; ++i) {
        assert_null(taken[i].status);
        assert_null(taken[i].outcome.fault);
        assert_non_null(taken[i].outcome.answer);
    }
    const gbx_bits_comparison *y = &taken[1].outcome.answer->outputs[REPLAY_Y].bits;
    assert_int_equal(y->mismatches, REPLAY_CELLS);
    assert_true(y->max_abs == 2.0);
    assert_int_equal(taken[1].outcome.answer->outputs[REPLAY_Z].bits.mismatches, 0);
    assert_int_equal(taken[1].outcome.answer->finding_count, 0);
    assert_int_equal(taken[2].outcome.answer->outputs[REPLAY_Y].bits.not_written, REPLAY_CELLS);
    assert_int_equal(taken[2].outcome.unchanged, 1u << REPLAY_Y | 1u << REPLAY_Z);
    y = &taken[3].outcome.answer->outputs[REPLAY_Y].bits;
    assert_int_equal(y->mismatches, REPLAY_CELLS);
    assert_true(y->max_abs == fabs((double)added));
    assert_taken_stray(&taken[3], beside, 1);
    for (int i = 0; i < 5; ++i)
        gbx_replay_outcome_free(&taken[i].outcome);
    replay_close(&m.call);
}

/* One of them crashes when it is loaded. */
static void kernels_that_cannot_be_loaded_cost_only_themselves(void **state) {
    (void)state;
    static many m;
    for (uint32_t jobs = 1; jobs <= 2; ++jobs) {
        open_many(&m, jobs);
        const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
        for (uint64_t i = 0; i < 60; ++i) {
            gbx_replay_request request = replay_request(&m.call);
            request.task = affine;
            request.token = i;
            if (i % 20 == 7)
                request.objects[GBX_SUBTASK_AIV0] = "/nowhere/kernel.so";
            if (i % 20 == 13)
                request.objects[GBX_SUBTASK_AIV0] = compiled_object("broken_constructor.c");
            assert_ok(gbx_replay_submit(m.call.engine, &request));
        }
        for (uint64_t i = 0; i < 60; ++i) {
            gbx_replay_taken taken = take(&m, affine, i);
            if (i % 20 == 7)
                assert_fails(taken.status, GBX_BAD_KERNEL, "/nowhere/kernel.so");
            else if (i % 20 == 13)
                assert_fails(taken.status, GBX_BAD_KERNEL, "a constructor of a shared object");
            else
                assert_good(&taken, false);
            gbx_replay_outcome_free(&taken.outcome);
        }
        replay_close(&m.call);
    }
}

/* Tensors at other places and of other sizes, with several dispatches, and alone. */
static void tasks_of_all_kinds_come_in_order(void **state) {
    (void)state;
    static many m;
    enum { COUNT = 120 };
    open_many(&m, 2);
    const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
    gbx_replay_task *fewer = &m.tasks[m.task_count]; /* the first rows of everything */
    (void)add_way(&m, WAY_AFFINE, MANY_NUMBER);
    gbx_replay_task *moved = &m.tasks[m.task_count];
    (void)add_way(&m, WAY_AFFINE, MANY_NUMBER);
    for (int i = REPLAY_X; i <= REPLAY_Z; ++i) {
        fewer->arguments[i].tensor.shape[0] = 5;
        moved->arguments[i].tensor.data += 0x100040 * (uint64_t)(i + 1);
    }
    gbx_replay_dispatch dispatches[4]; /* two rows each */
    gbx_replay_task *wide = &m.tasks[m.task_count];
    (void)add_way(&m, WAY_AFFINE, MANY_NUMBER);
    wide->block_num = wide->dispatch_count = 4;
    wide->dispatches = dispatches;
    for (uint32_t i = 0; i < 4; ++i)
        dispatches[i] = (gbx_replay_dispatch){
            .subtask = GBX_SUBTASK_AIV0, .block_idx = i, .core_id = GBX_REPLAY_NO_CORE};
    const gbx_replay_task *const tasks[] = {affine, fewer, moved, wide};
    for (uint64_t i = 0; i < COUNT; ++i) {
        gbx_replay_request request = replay_request(&m.call);
        request.task = tasks[i * 7 / 3 % 4];
        request.token = i;
        request.runs = i % 11 == 5 ? 3 : 0;
        assert_ok(gbx_replay_submit(m.call.engine, &request));
    }
    for (uint64_t i = 0; i < COUNT; ++i) {
        const gbx_replay_task *task = tasks[i * 7 / 3 % 4];
        gbx_replay_taken taken = take(&m, task, i);
        bool is_alone = task == wide || i % 11 == 5;
        if (task == fewer && is_alone) {
            assert_int_equal(taken.outcome.answer->outputs[REPLAY_Z].bits.elements,
                             5 * REPLAY_COLUMNS);
            assert_int_equal(taken.outcome.answer->outputs[REPLAY_Z].bits.mismatches, 0);
        } else {
            assert_good(&taken, is_alone);
        }
        if (is_alone) {
            assert_int_equal(taken.outcome.answer->runs, i % 11 == 5 ? 3 : 1);
            assert_int_equal(taken.outcome.answer->different, 0);
            assert_int_equal(taken.outcome.answer->order,
                             task == wide ? GBX_ORDER_ASKED : GBX_ORDER_SINGLE);
        }
        gbx_replay_outcome_free(&taken.outcome);
    }
    assert_all_taken(&m);
    replay_close(&m.call);
}

static void kill_child(void) {
    int pid = 0;
    FILE *children = fopen("/proc/thread-self/children", "r");
    assert_non_null(children);
    assert_int_equal(fscanf(children, "%d", &pid), 1);
    fclose(children);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

/* As if something that a kernel left behind had ended it: the next task, which is asked alone, is
 * not to blame. */
static void a_process_that_ends_between_tasks_is_replaced(void **state) {
    (void)state;
    static many m;
    open_many(&m, 1);
    const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
    for (uint64_t i = 0; i < 6; ++i) {
        gbx_replay_request request = replay_request(&m.call);
        request.task = affine;
        request.token = i;
        request.runs = 2;
        assert_ok(gbx_replay_submit(m.call.engine, &request));
        gbx_replay_taken taken = take(&m, affine, i);
        assert_good(&taken, true);
        gbx_replay_outcome_free(&taken.outcome);
        kill_child();
    }
    replay_close(&m.call);
    assert_false(has_children());
}

/* The second engine runs while the first does. */
static void engines_run_side_by_side(void **state) {
    (void)state;
    static many m[2];
    const gbx_replay_task *tasks[2];
    for (int i = 0; i < 2; ++i) {
        open_many(&m[i], 1);
        tasks[i] = add_way(&m[i], WAY_AFFINE, MANY_NUMBER + (uint64_t)i);
    }
    for (uint64_t round = 0; round < 3; ++round) {
        for (int i = 0; i < 2; ++i)
            for (uint64_t k = 0; k < 10; ++k)
                submit(&m[i], tasks[i], 10 * round + k);
        for (int i = 0; i < 2; ++i)
            for (uint64_t k = 0; k < 10; ++k) {
                gbx_replay_taken taken = take(&m[i], tasks[i], 10 * round + k);
                if (i == 0)
                    assert_good(&taken, false);
                else
                    assert_true(taken.outcome.answer->outputs[REPLAY_Y].bits.max_abs == 1.0);
                gbx_replay_outcome_free(&taken.outcome);
            }
    }
    for (int i = 0; i < 2; ++i)
        replay_close(&m[i].call);
}

/* An engine that is closed takes its processes and all that was not taken with it. */
static void tasks_that_are_not_taken_are_left_behind(void **state) {
    (void)state;
    static many m;
    open_many(&m, 2);
    const gbx_replay_task *affine = add_way(&m, WAY_AFFINE, MANY_NUMBER);
    const gbx_replay_task *wrong = add_way(&m, WAY_INPUT, MANY_NUMBER);
    for (uint64_t i = 0; i < 200; ++i)
        submit(&m, i % 3 ? affine : wrong, i);
    gbx_replay_taken taken = take(&m, wrong, 0);
    assert_taken_stray(&taken, REPLAY_BASE, 4);
    gbx_replay_outcome_free(&taken.outcome);
    replay_close(&m.call);
    assert_false(has_children());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_tasks_are_clean),
        cmocka_unit_test(tasks_that_crash_cost_only_themselves),
        cmocka_unit_test(tasks_that_wait_forever_cost_only_themselves),
        cmocka_unit_test(tasks_with_stray_writes_are_named),
        cmocka_unit_test(stray_writes_are_found_where_the_next_task_has_tensors),
        cmocka_unit_test(tasks_that_differ_are_asked_alone),
        cmocka_unit_test(kernels_that_cannot_be_loaded_cost_only_themselves),
        cmocka_unit_test(tasks_of_all_kinds_come_in_order),
        cmocka_unit_test(a_process_that_ends_between_tasks_is_replaced),
        cmocka_unit_test(engines_run_side_by_side),
        cmocka_unit_test(tasks_that_are_not_taken_are_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
