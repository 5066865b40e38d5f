#include "replay_calls.h"

#include <glassbox/orchestration.h>

#include "replay/check/check.h"

/* A task with its dump, its reference and the result of the check. */
typedef struct checked {
    replay_call call;
    int32_t y[REPLAY_CELLS]; /* what the dump holds after completion */
    int32_t z[REPLAY_CELLS];
    gbx_check_reference references[3];
    size_t reference_count;
    gbx_check_result result;
} checked;

/* y = 2 x + 11 and z += x, like the reference, which is the kernel of these tests. */
static void prepare(checked *c, enum replay_way way) {
    memset(c, 0, sizeof *c);
    replay_prepare(&c->call, way, 11);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        c->y[i] = 2 * c->call.x[i] + 11;
        c->z[i] = c->call.z[i] + c->call.x[i];
    }
    c->call.arguments[REPLAY_Y].after = c->y;
    c->call.arguments[REPLAY_Z].after = c->z;
    c->references[0] = (gbx_check_reference){
        .func_id = 1, .object = compiled_object("replay.c"), .rtol = -1, .atol = -1};
    c->reference_count = 1;
}

static void again(checked *c) {
    memset(&c->result, 0xdd, sizeof c->result);
    assert_ok(gbx_check_task(c->call.engine, c->call.made.entries, 0, c->references,
                             c->reference_count, &c->result));
}

static void run_check(checked *c) {
    replay_open(&c->call);
    again(c);
}

static void assert_not_checked(const checked *c, const char *reason) {
    assert_int_equal(c->result.verdict, GBX_CHECK_NOT_CHECKED);
    assert_string_equal(c->result.reason, reason);
}

static void assert_not_checked_part(const checked *c, const char *part) {
    assert_int_equal(c->result.verdict, GBX_CHECK_NOT_CHECKED);
    if (!strstr(c->result.reason, part))
        fail_msg("\"%s\" does not have \"%s\"", c->result.reason, part);
}

/* --- right and wrong --- */

static void test_right(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    run_check(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    assert_string_equal(c.result.reason, "");
    assert_int_equal(c.result.output_count, 2);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(c.result.outputs[i].slot, REPLAY_Y + i);
        assert_int_equal(c.result.outputs[i].comparison.elements, REPLAY_CELLS);
        assert_int_equal(c.result.outputs[i].comparison.unequal, 0);
        assert_int_equal(c.result.outputs[i].not_written, 0);
    }
    assert_int_equal(c.result.stray_bytes, 0);
    replay_close(&c.call);
}

/* One element of the output, then one of the inout, then both. */
static void test_introduced(void **state) {
    static checked c;
    (void)state;
    for (int ways = 1; ways < 4; ++ways) {
        prepare(&c, WAY_AFFINE);
        c.y[17] += ways & 1 ? 5 : 0;
        c.z[40] -= ways & 2 ? 9 : 0;
        run_check(&c);
        assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED);
        const gbx_check_output *output = &c.result.outputs[c.result.worst_output];
        bool is_y = ways & 1;
        assert_int_equal(output->slot, is_y ? REPLAY_Y : REPLAY_Z);
        assert_int_equal(output->comparison.mismatches, 1);
        assert_int_equal(output->comparison.worst.index, is_y ? 17 : 40);
        assert_int_equal((int32_t)output->comparison.worst.got_bits, is_y ? c.y[17] : c.z[40]);
        assert_int_equal((int32_t)output->comparison.worst.want_bits,
                         is_y ? c.y[17] - 5 : c.z[40] + 9);
        replay_close(&c.call);
    }
}

/* Exactly at the tolerance is right. The loosest of the kernels of a mix counts. */
static void test_tolerances(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    c.y[3] += 8;
    c.references[0].atol = 8;
    run_check(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    assert_true(c.result.outputs[0].comparison.tolerance.rtol == 0.0);
    assert_true(c.result.outputs[0].comparison.max_abs == 8.0);
    c.references[0].atol = 7;
    again(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED);
    c.references[0].rtol = 0.01; /* of more than 2000 */
    again(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    replay_close(&c.call);

    prepare(&c, WAY_AFFINE);
    c.call.task.func_ids[2] = 2; /* both do the same to y; z would count twice */
    c.call.arguments[REPLAY_Z].role = 0;
    c.call.arguments[REPLAY_Z].has_no_after = true;
    c.y[3] += 8;
    c.references[0].atol = 7;
    c.references[1] = c.references[0];
    c.references[1].func_id = 2;
    c.reference_count = 2;
    run_check(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED);
    c.references[1].atol = 8;
    again(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    replay_close(&c.call);
}

/* --- what references write --- */

static void test_not_written(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_NOTHING);
    run_check(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED); /* z should not have changed */
    assert_int_equal(c.result.worst_output, 1);
    assert_int_equal(c.result.outputs[0].not_written, REPLAY_CELLS);
    assert_int_equal(c.result.outputs[0].comparison.elements, 0);
    assert_int_equal(c.result.outputs[0].comparison.mismatches, 0);
    replay_close(&c.call);

    prepare(&c, WAY_NOTHING);
    memcpy(c.z, c.call.z, sizeof c.z); /* z is right, but nothing is known of y */
    run_check(&c);
    assert_not_checked(&c, "its reference writes no element of output argument 1");
    assert_int_equal(c.result.outputs[1].comparison.elements, REPLAY_CELLS);
    assert_int_equal(c.result.outputs[1].comparison.unequal, 0);
    replay_close(&c.call);

    prepare(&c, WAY_NOTHING);
    c.call.arguments[REPLAY_Z].role = 0;
    c.call.arguments[REPLAY_Z].has_no_after = true;
    run_check(&c);
    assert_not_checked(&c, "its reference writes no element of output argument 1");
    replay_close(&c.call);
}

static void test_stray_writes(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_INPUT);
    run_check(&c);
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    assert_int_equal(c.result.stray_bytes, sizeof(int32_t));
    assert_int_equal(c.result.stray_address, REPLAY_BASE);
    replay_close(&c.call);
}

/* --- what cannot be checked --- */

static void test_references_that_are_not_there(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    c.references[0].object = NULL;
    run_check(&c);
    assert_not_checked_part(&c, " has no reference in scene.json");
    c.reference_count = 0;
    again(&c);
    assert_not_checked_part(&c, "the scene has no kernel ");
    replay_close(&c.call);
}

static bool is_found_hung(checked *c, uint32_t timeout_ms) {
    prepare(c, WAY_SPIN);
    c->call.config.timeout_ms = timeout_ms;
    replay_open(&c->call);
    memset(&c->result, 0xdd, sizeof c->result);
    gbx_status status = gbx_check_task(c->call.engine, c->call.made.entries, 0, c->references,
                                       c->reference_count, &c->result);
    bool is_found = !status && strstr(c->result.reason, " hung");
    gbx_status_free(status);
    return is_found;
}

static void test_references_that_fail(void **state) {
    static const char hung_before[] =
        "the reference of kernel left hung in an earlier task and was not run again";
    static checked c;
    (void)state;
    prepare(&c, WAY_ABORT);
    run_check(&c);
    assert_not_checked_part(&c, " crashed with SIGABRT");
    replay_close(&c.call);

    prepare(&c, WAY_EXIT);
    run_check(&c);
    assert_not_checked_part(&c, " ended its process");
    replay_close(&c.call);

    uint32_t timeout_ms = 1000; /* includes loading, which may take long on a stalled machine */
    while (!is_found_hung(&c, timeout_ms) && timeout_ms < 100 * 1000) {
        replay_close(&c.call);
        timeout_ms *= 10;
    }
    assert_not_checked_part(&c, " hung: it took longer than --timeout");
    assert_int_equal(c.result.output_count, 0);
    again(&c); /* it would take as long once more */
    assert_not_checked(&c, hung_before);
    assert_int_equal(c.result.output_count, 0);
    replay_close(&c.call);

    prepare(&c, WAY_HANG);
    run_check(&c);
    assert_not_checked(&c, "the reference of kernel left waits for a flag that nothing sets");
    again(&c);
    assert_not_checked(&c, hung_before);
    assert_int_equal(c.result.output_count, 0);
    replay_close(&c.call);
}

/* An output that is wrong is reported, whatever else is missing. */
static void test_outputs_that_are_missing(void **state) {
    static checked c;
    (void)state;
    for (int is_wrong = 0; is_wrong < 2; ++is_wrong) {
        prepare(&c, WAY_AFFINE);
        c.call.arguments[REPLAY_Z].after = NULL;
        c.y[2] += is_wrong;
        run_check(&c);
        assert_int_equal(c.result.missing_outputs, 1);
        if (is_wrong)
            assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED);
        else
            assert_not_checked(&c, "output argument 2 has no payload in the dump; run with "
                                   "--dump-tensor=full");
        replay_close(&c.call);
    }
}

static void test_tasks_that_cannot_be_run(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    c.call.task.has_no_done = true;
    c.call.task.has_dispatches = true;
    run_check(&c);
    assert_not_checked(&c, "it did not complete: it crashed, hung, or was running when the run "
                           "ended");
    replay_close(&c.call);

    prepare(&c, WAY_AFFINE);
    c.call.arguments[REPLAY_X].before = NULL;
    replay_open_engine(&c.call);
    again(&c);
    assert_not_checked_part(&c, "argument 0");
    assert_null(strstr(c.result.reason, "replaying"));
    gbx_replay_engine_close(c.call.engine);
    made_replay_close(&c.call.made);

    prepare(&c, WAY_AFFINE); /* does not concern the task */
    c.call.config.child_program = "/no/such/program";
    replay_open_engine(&c.call);
    assert_fails(gbx_check_task(c.call.engine, c.call.made.entries, 0, c.references, 1, &c.result),
                 GBX_NOT_FOUND, "/no/such/program");
    gbx_replay_engine_close(c.call.engine);
    made_replay_close(&c.call.made);
}

/* The kernel is not to blame if its reference reads uninitialized bytes. */
static void test_references_that_are_not_steady(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_ADD);
    run_check(&c);
    assert_not_checked_part(&c, "its reference gives different results each time");
    assert_int_equal(c.result.output_count, 0);
    replay_close(&c.call);
}

/* No kernel is blamed for data that changed on disk; a task that is right with it stays right. */
static void test_damage(void **state) {
    static checked c;
    (void)state;
    for (int place = REPLAY_X; place <= REPLAY_Z; ++place) {
        char reason[96];
        prepare(&c, WAY_AFFINE);
        made_argument *argument = &c.call.arguments[place]; /* all hashes are zeros */
        argument->before_flags = place == REPLAY_X ? GBX_FLAG_HAS_HASH : 0;
        argument->after_flags = place == REPLAY_X ? 0 : GBX_FLAG_HAS_HASH;
        run_check(&c);
        assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
        replay_close(&c.call);
        c.y[4] += 1;
        run_check(&c);
        snprintf(
            reason, sizeof reason,
            "argument %d is damaged in the dump: its hash no longer matches; run glassbox verify",
            place);
        assert_not_checked(&c, reason);
        assert_int_equal(c.result.output_count, 0);
        const void *got[5] = {[REPLAY_Y] = c.y}; /* what the dump has of y does not count */
        assert_ok(gbx_check_payloads(c.call.engine, c.call.made.entries, &c.call.read, got,
                                     c.references, 1, &c.result));
        assert_int_equal(c.result.verdict,
                         place == REPLAY_X ? GBX_CHECK_NOT_CHECKED : GBX_CHECK_INTRODUCED);
        replay_close(&c.call);
    }
}

/* Empty tensors are neither right nor wrong; tensors that do not fit concern only their task. */
static void test_tasks_without_elements_or_with_too_many(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    for (int i = REPLAY_X; i <= REPLAY_Z; ++i)
        c.call.arguments[i].shape[0] = 0;
    run_check(&c);
    assert_not_checked(&c, "its outputs have no elements");
    replay_close(&c.call);

    prepare(&c, WAY_AFFINE);
    c.call.arguments[REPLAY_Y].after = NULL;
    c.call.arguments[REPLAY_Y].shape[0] = INT64_C(1) << 40;
    run_check(&c);
    assert_not_checked_part(&c, "its tensors and the copies to compare need more than the ");
    assert_int_equal(c.result.output_count, 0);
    replay_close(&c.call);
}

/* --- payloads of the caller --- */

static void test_payloads(void **state) {
    static checked c;
    (void)state;
    prepare(&c, WAY_AFFINE);
    int32_t other[REPLAY_CELLS];
    memcpy(other, c.y, sizeof other);
    c.y[0] += 1; /* the dump does not count */
    replay_open(&c.call);
    const void *got[5] = {[REPLAY_Y] = other};
    assert_ok(gbx_check_payloads(c.call.engine, c.call.made.entries, &c.call.read, got,
                                 c.references, 1, &c.result));
    assert_int_equal(c.result.verdict, GBX_CHECK_RIGHT);
    assert_int_equal(c.result.output_count, 1);
    other[7] -= 2;
    assert_ok(gbx_check_payloads(c.call.engine, c.call.made.entries, &c.call.read, got,
                                 c.references, 1, &c.result));
    assert_int_equal(c.result.verdict, GBX_CHECK_INTRODUCED);
    assert_int_equal(c.result.outputs[0].comparison.worst.index, 7);
    assert_int_equal((int32_t)c.result.outputs[0].comparison.worst.got_bits, other[7]);
    replay_close(&c.call);
}

/* --- many tasks at a time --- */

enum { JOBS = 90 };

/* What each job does, in turn: the task says it, and its reference gets it. */
static const enum replay_way job_ways[] = {WAY_AFFINE, WAY_INPUT,  WAY_AFFINE,
                                           WAY_ADD,    WAY_AFFINE, WAY_ABORT,
                                           WAY_AFFINE, WAY_BESIDE, WAY_NOTHING};

static void prepare_job(checked *c, gbx_check_job *job, enum replay_way way, uint64_t token) {
    assert_ok(gbx_check_prepare(job, c->call.made.entries, 0, c->references, 1));
    assert_true(job->is_asked);
    job->task.arguments[REPLAY_WAY].bits = way;
    job->request.token = token;
    assert_ok(gbx_replay_submit(c->call.engine, &job->request));
}

static void assert_job(const gbx_check_result *result, enum replay_way way) {
    const uint64_t y = REPLAY_BASE + 0x10000;
    bool is_stray = way == WAY_INPUT || way == WAY_BESIDE;
    uint64_t address = way == WAY_INPUT ? REPLAY_BASE : y - 1;
    switch (way) {
    case WAY_ADD:
        assert_int_equal(result->verdict, GBX_CHECK_NOT_CHECKED);
        assert_non_null(strstr(result->reason, "different results each time"));
        break;
    case WAY_ABORT:
        assert_int_equal(result->verdict, GBX_CHECK_NOT_CHECKED);
        assert_non_null(strstr(result->reason, "crashed with SIGABRT"));
        break;
    case WAY_NOTHING:
        assert_int_equal(result->verdict, GBX_CHECK_INTRODUCED);
        assert_int_equal(result->worst_output, 1);
        assert_int_equal(result->outputs[0].not_written, REPLAY_CELLS);
        break;
    default:
        assert_int_equal(result->verdict, GBX_CHECK_RIGHT);
        assert_int_equal(result->output_count, 2);
        for (int i = 0; i < 2; ++i) {
            assert_int_equal(result->outputs[i].comparison.elements, REPLAY_CELLS);
            assert_int_equal(result->outputs[i].comparison.unequal, 0);
            assert_int_equal(result->outputs[i].not_written, 0);
        }
    }
    assert_int_equal(result->stray_bytes, is_stray ? (way == WAY_INPUT ? 4 : 1) : 0);
    assert_int_equal(result->stray_address, is_stray ? address : 0);
}

static void test_many(void **state) {
    static checked c;
    gbx_check_job *jobs = calloc(JOBS, sizeof *jobs);
    (void)state;
    assert_non_null(jobs);
    for (uint32_t processes = 1; processes <= 2; ++processes) {
        prepare(&c, WAY_AFFINE);
        c.call.config.jobs = processes;
        replay_open(&c.call);
        for (uint64_t i = 0; i < JOBS; ++i)
            prepare_job(&c, &jobs[i], job_ways[i % 9], i);
        for (uint64_t i = 0; i < JOBS; ++i) {
            gbx_replay_taken taken;
            bool is_there;
            assert_ok(gbx_replay_take(c.call.engine, true, &taken, &is_there));
            assert_true(is_there);
            assert_ok(taken.status);
            assert_int_equal(taken.request.token, i);
            assert_ok(gbx_check_conclude(&jobs[i], &taken.outcome));
            assert_job(&jobs[i].result, job_ways[i % 9]);
            gbx_replay_outcome_free(&taken.outcome);
            gbx_check_job_free(&jobs[i]);
        }
        replay_close(&c.call);
    }
    free(jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_introduced),
        cmocka_unit_test(test_tolerances),
        cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_stray_writes),
        cmocka_unit_test(test_references_that_are_not_there),
        cmocka_unit_test(test_references_that_fail),
        cmocka_unit_test(test_outputs_that_are_missing),
        cmocka_unit_test(test_tasks_that_cannot_be_run),
        cmocka_unit_test(test_references_that_are_not_steady),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_tasks_without_elements_or_with_too_many),
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
