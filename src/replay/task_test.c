#include "replay_calls.h"

static const char signed_kernels[] =
    "[{\"func_id\": 1, \"name\": \"left\", \"core_type\": \"aiv\", \"signature\": [\"in\", "
    "\"scalar:uint64\", \"out\", \"inout\", \"scalar\"], \"arg_names\": [\"x\", \"way\", \"y\", "
    "\"z\", \"number\"]}]";

/* With the sentence that commands print. */
static gbx_status read_task(replay_call *call, uint64_t task) {
    gbx_status status = gbx_replay_task_read(call->made.entries, task, &call->read);
    return status ? gbx_replay_task_explain(&call->read, status, true) : NULL;
}

/* The task is refused, and the sentence has all of these. */
#define assert_refused(call, ...)                                                                  \
    do {                                                                                           \
        made_replay_open(&(call)->made, &(call)->task);                                            \
        assert_fails(read_task((call), 0), GBX_NOT_FOUND, "replaying task 0", __VA_ARGS__);        \
        made_replay_close(&(call)->made);                                                          \
    } while (0)

static void read_it(replay_call *call) {
    made_replay_open(&call->made, &call->task);
    assert_ok(gbx_replay_task_read(call->made.entries, 0, &call->read));
}

static void forget_it(replay_call *call) {
    gbx_replay_task_free(&call->read);
    made_replay_close(&call->made);
}

static void a_task_is_read_as_a_call(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0xfedcba9876543210);
    call.task.kernels = signed_kernels;
    call.task.block_num = 2;
    read_it(&call);
    const gbx_replay_task *task = &call.read;
    char title[GBX_REPLAY_TITLE_BYTES];
    assert_string_equal(gbx_replay_task_title(task, title), "task 0, kernel left");
    assert_int_equal(task->task_id, 77);
    assert_int_equal(task->func_ids[0], UINT32_MAX);
    assert_int_equal(task->func_ids[1], 1);
    assert_null(task->kernel_names[0]);
    assert_true(task->did_complete && task->has_addresses);
    assert_int_equal(task->argument_count, 5);
    static const char *const names[] = {"x", "y", "z", "way", "number"};
    static const uint32_t roles[] = {0, 1, 2, 0, 0};
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(task->arguments[i].slot, i);
        assert_int_equal(task->arguments[i].role, roles[i]);
        assert_int_equal(task->arguments[i].is_tensor, i < 3);
        assert_string_equal(task->arguments[i].name, names[i]);
    }
    assert_int_equal(task->arguments[3].bits, WAY_REPORT);
    assert_int_equal(task->arguments[4].bits, 0xfedcba9876543210);
    assert_int_equal(task->arguments[4].dtype, GBX_UINT64);
    assert_int_equal(task->arguments[2].tensor.data, REPLAY_BASE + 0x20000);
    assert_int_equal(task->arguments[2].tensor.buffer_bytes, 0);
    assert_int_equal(task->arguments[2].tensor.shape[1], REPLAY_COLUMNS);
    /* Entries by stage, then slot: x z way number, y z. */
    assert_int_equal(task->arguments[0].before, 0);
    assert_int_equal(task->arguments[2].before, 1);
    assert_int_equal(task->arguments[1].after, 4);
    assert_int_equal(task->arguments[2].after, 5);
    assert_int_equal(task->arguments[0].after, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(task->arguments[1].before, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(task->dispatch_count, 2);
    assert_int_equal(task->dispatches[1].block_idx, 1);
    assert_int_equal(task->dispatches[1].subtask, GBX_SUBTASK_AIV0);
    assert_int_equal(task->dispatches[1].core_id, GBX_REPLAY_NO_CORE);
    forget_it(&call);
}

static void kernels_of_a_mix_are_named(void **state) {
    (void)state;
    replay_call call;
    char title[GBX_REPLAY_TITLE_BYTES];
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.func_ids[0] = 9;
    call.task.func_ids[2] = 2;
    read_it(&call);
    assert_string_equal(gbx_replay_task_title(&call.read, title),
                        "task 0, kernels func 9, left, right");
    forget_it(&call);
}

static void a_task_that_is_not_there_is_out_of_range(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    made_replay_open(&call.made, &call.task);
    gbx_status status = read_task(&call, 1);
    assert_int_equal(gbx_status_code(status), GBX_OUT_OF_RANGE);
    assert_string_equal(gbx_status_message(status),
                        "replaying task 1: the dump has no such task; see glassbox view");
    gbx_status_free(status);
    assert_int_equal(call.read.lack, GBX_REPLAY_LACKS_TASK);
    made_replay_close(&call.made);
}

/* --- what is missing --- */

static void all_that_is_missing_is_named(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.kernels = signed_kernels;
    call.arguments[REPLAY_X].cut_bytes = 8;
    call.arguments[REPLAY_Z].before = NULL;
    call.arguments[REPLAY_NUMBER].has_no_before = true;
    assert_refused(&call, "kernel left", "argument 0 (x) is truncated to 184 of 192 bytes",
                   "argument 2 (z) has no payload at level full",
                   "argument 4 (number) was not recorded", "--dump-tensor=full");
}

static void why_it_is_missing_is_reported(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.kernels = signed_kernels;
    call.arguments[REPLAY_Z].has_no_before = true;
    call.task.level = "partial";
    assert_refused(&call, "argument 2 (z) is not marked, and the dump level is partial");
    call.task.filters = "[\"arg=0\"]";
    assert_refused(&call, "argument 2 (z) was excluded by the filters");
    call.task.lost_argument = REPLAY_Z;
    assert_refused(&call, "argument 2 (z) was lost: the disk failed");
    call.task.is_skipped = true;
    assert_refused(&call, "its tensors are undescribed, so the dump skipped it");
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.level = "hybrid";
    call.arguments[REPLAY_X].before = NULL;
    assert_refused(&call, "argument 0 has no payload at level hybrid");
    call.arguments[REPLAY_X].before = call.x;
    call.arguments[REPLAY_X].before_flags = GBX_FLAG_OVERWRITTEN;
    assert_refused(&call, "argument 0 was overwritten before it was captured");
}

/* An output without record has no shape; only a signature or a dispatch shows that it exists. */
static void outputs_need_a_shape(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.arguments[REPLAY_Y].has_no_after = true;
    call.arguments[REPLAY_Z].has_no_after = true;
    assert_refused(&call, "argument 1 was not recorded"); /* a gap before argument 2 */
    call.task.has_dispatches = true;
    call.task.has_no_done = true;
    read_it(&call);
    assert_false(call.read.did_complete);
    assert_int_equal(call.read.arguments[1].tensor.shape[0], REPLAY_ROWS);
    assert_int_equal(call.read.arguments[1].role, 1);
    assert_int_equal(call.read.arguments[1].after, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(call.read.dispatches[0].core_id, 31);
    forget_it(&call);
}

static void a_partial_list_without_a_signature_is_refused(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.level = "partial";
    assert_refused(&call, "its arguments are unknown; run again");
    call.task.has_dispatches = true;
    read_it(&call);
    forget_it(&call);
}

/* --- tasks that did not complete --- */

static void in_flight_outputs_are_not_compared(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.arguments[REPLAY_Y].after_flags = GBX_FLAG_IN_FLIGHT;
    call.arguments[REPLAY_Z].after_flags = GBX_FLAG_IN_FLIGHT;
    call.task.has_no_done = true;
    read_it(&call);
    assert_false(call.read.did_complete);
    assert_int_equal(call.read.arguments[1].tensor.data, REPLAY_BASE + 0x10000);
    assert_int_equal(call.read.arguments[1].after, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(call.read.arguments[2].after, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(call.read.arguments[2].before, 1);
    forget_it(&call);
}

/* The chip died, or the run was killed: the dump has the task's inputs, and no outputs. */
static void cut_short(replay_call *call) {
    replay_prepare(call, WAY_REPORT, 0x1122334455667788);
    call->task.has_no_done = true;
    call->arguments[REPLAY_Y].has_no_after = true;
    call->arguments[REPLAY_Z].has_no_after = true;
}

/* Dispatches record the addresses of outputs, which is all that a call needs. */
static void a_task_that_was_cut_short_is_read_from_dispatches(void **state) {
    (void)state;
    for (int i = 0; i < 4; ++i) {
        replay_call call;
        cut_short(&call);
        call.task.kernels = i & 1 ? signed_kernels : NULL;
        call.task.has_no_end = i & 2;
        call.task.has_args = true;
        call.task.has_dispatches = true;
        call.task.unnamed_losses = 2;
        call.task.loss_cause = GBX_LOSS_DEVICE;
        read_it(&call);
        const gbx_replay_argument *y = &call.read.arguments[REPLAY_Y];
        assert_false(call.read.did_complete);
        assert_int_equal(call.read.argument_count, 5);
        assert_true(y->is_tensor);
        assert_int_equal(y->role, 1);
        assert_int_equal(y->tensor.data, REPLAY_BASE + 0x10000);
        assert_int_equal(y->tensor.dtype, call.arguments[REPLAY_Y].dtype);
        assert_memory_equal(y->tensor.shape, call.arguments[REPLAY_Y].shape, 16);
        assert_memory_equal(y->tensor.strides, call.arguments[REPLAY_Y].strides, 16);
        assert_int_equal(y->after, GBX_REPLAY_NO_ENTRY);
        assert_int_equal(call.read.arguments[REPLAY_Z].before, 1);
        assert_int_equal(call.read.arguments[REPLAY_Z].after, GBX_REPLAY_NO_ENTRY);
        assert_int_equal(call.read.arguments[REPLAY_NUMBER].bits, 0x1122334455667788);
        forget_it(&call);
    }
}

/* The level was sufficient, so the sentence does not ask for another. */
#define assert_refused_with(call, sentence)                                                        \
    do {                                                                                           \
        made_replay_open(&(call)->made, &(call)->task);                                            \
        gbx_status status = read_task((call), 0);                                                  \
        assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);                                  \
        assert_string_equal(gbx_status_message(status), sentence);                                 \
        gbx_status_free(status);                                                                   \
        made_replay_close(&(call)->made);                                                          \
    } while (0)

#define REFUSED "replaying task 0, kernel left: the dump lacks data that the task needs: "

static void a_task_that_was_cut_short_has_outputs_somewhere(void **state) {
    (void)state;
    replay_call call;
    cut_short(&call);
    call.task.kernels = signed_kernels;
    assert_refused_with(&call, REFUSED
                        "argument 1 (y) was not recorded: the run ended first, so its address is "
                        "unknown; run again with --dump-args, which records addresses at dispatch");
    call.task.unnamed_losses = 1;
    call.task.loss_cause = GBX_LOSS_DEVICE;
    call.task.has_no_end = true;
    call.arguments[REPLAY_NUMBER].has_no_before = true;
    assert_refused_with(&call, REFUSED
                        "argument 1 (y) was not recorded: the run ended first, so its address is "
                        "unknown; argument 4 (number) was not recorded: the run ended first; run "
                        "again with --dump-args, which records addresses at dispatch");
    call.task.has_args = true; /* but the task has no dispatch records */
    call.arguments[REPLAY_NUMBER].has_no_before = false;
    assert_refused_with(&call, REFUSED
                        "argument 1 (y) was not recorded: the run ended first, so its address is "
                        "unknown; run again");
    call.task.has_args = false;
    call.task.level = "stats";
    call.arguments[REPLAY_X].before = NULL;
    assert_refused(&call, "argument 0 (x) has no payload at level stats",
                   "argument 1 (y) was not recorded: the run ended first",
                   "run again with --dump-tensor=full --dump-args");
}

/* Without a signature the list of arguments may be incomplete: it cannot be called. */
static void a_task_that_was_cut_short_may_have_more_outputs(void **state) {
    (void)state;
    static const char sentence[] =
        REFUSED "the run ended before the outputs of this task were recorded, so their number and "
                "addresses are unknown; run again with --dump-args, which records addresses at "
                "dispatch";
    replay_call call;
    cut_short(&call);
    assert_refused_with(&call, sentence);
    call.arguments[REPLAY_Y].has_no_after = false;
    assert_refused_with(&call, sentence);
    /* It faulted, but the run was killed before all was recorded. */
    call.arguments[REPLAY_Y].after_flags = GBX_FLAG_IN_FLIGHT;
    call.task.has_no_end = true;
    assert_refused_with(&call, sentence);
}

/* Programs decide by the code; the text of a reason is the same for all tasks. */
static void a_refusal_has_a_code_and_only_its_reason(void **state) {
    static const struct {
        bool is_skipped;
        bool has_no_done;
        const char *level;
        gbx_replay_lack lack;
        const char *reason;
        const char *untitled;
    } cases[] = {
        {true, false, "full", GBX_REPLAY_LACKS_DESCRIPTION,
         "its tensors are undescribed, so the dump skipped it; describe them in the "
         "orchestration (gbx_set_tensor_info_to_task)",
         NULL},
        {false, false, "partial", GBX_REPLAY_LACKS_SIGNATURE,
         "its arguments are unknown; run again with --dump-tensor=full, or declare the "
         "signature of its kernels",
         NULL},
        {false, true, "full", GBX_REPLAY_LACKS_OUTPUTS,
         "the run ended before the outputs of this task were recorded, so their number and "
         "addresses are unknown; run again with --dump-args, which records addresses at dispatch",
         "the dump lacks data that the task needs: the run ended before the outputs of this task were "
         "recorded, so their number and addresses are unknown; run again with --dump-args, which "
         "records addresses at dispatch"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        replay_call call;
        replay_prepare(&call, WAY_REPORT, 0);
        call.task.is_skipped = cases[i].is_skipped;
        call.task.has_no_done = cases[i].has_no_done;
        call.task.level = cases[i].level;
        made_replay_open(&call.made, &call.task);
        gbx_status status = gbx_replay_task_read(call.made.entries, 0, &call.read);
        assert_int_equal(call.read.lack, cases[i].lack);
        assert_string_equal(gbx_status_message(status), cases[i].reason);
        status = gbx_replay_task_explain(&call.read, status, false);
        assert_string_equal(gbx_status_message(status),
                            cases[i].untitled ? cases[i].untitled : cases[i].reason);
        gbx_status_free(status);
        made_replay_close(&call.made);
    }
}

/* With and without dispatches, and as older versions recorded it: as a uint64. */
static void a_tensor_that_was_never_described_is_named(void **state) {
    static const char sentence[] =
        REFUSED "argument 2 (z) was not described, although the signature of the kernel calls it a "
                "tensor; describe it in the orchestration (gbx_set_tensor_info_to_task) and run "
                "again";
    (void)state;
    for (int has_dispatches = 0; has_dispatches < 2; ++has_dispatches) {
        replay_call call;
        replay_prepare(&call, WAY_REPORT, 0);
        call.task.kernels = signed_kernels;
        call.task.has_dispatches = has_dispatches;
        call.arguments[REPLAY_Z].is_undescribed = true;
        assert_refused_with(&call, sentence);
        call.arguments[REPLAY_Z] = replay_scalar(REPLAY_BASE + 0x20000);
        assert_refused_with(&call, sentence);
        call.arguments[REPLAY_Z].dtype = GBX_DTYPE_NONE;
        assert_refused_with(&call, sentence);
    }
}

/* Records lost during the run are not missing because it ended. */
static void losses_are_not_blamed_on_the_end(void **state) {
    (void)state;
    replay_call call;
    cut_short(&call);
    call.task.kernels = signed_kernels;
    call.task.unnamed_losses = 2;
    call.task.loss_cause = GBX_LOSS_STALL;
    assert_refused_with(&call, REFUSED "argument 1 (y) was not recorded; run again with "
                                       "--dump-tensor=full");
    call.task.unnamed_losses = 1;
    assert_refused(&call, "argument 1 (y) was not recorded: the run ended first", "--dump-args");
    call.task.filters = "[\"arg=0\"]";
    assert_refused(&call, "argument 1 (y) was excluded by the filters",
                   "--dump-tensor=full, without filters");
}

static void an_output_without_bytes_runs_and_is_not_compared(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.arguments[REPLAY_Y].after = NULL;
    read_it(&call);
    assert_true(call.read.did_complete);
    assert_int_equal(call.read.arguments[1].after, GBX_REPLAY_NO_ENTRY);
    assert_int_equal(call.read.arguments[2].after, 5);
    forget_it(&call);
}

static void an_empty_tensor_needs_no_bytes(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.arguments[REPLAY_X].shape[0] = 0;
    call.arguments[REPLAY_X].before = NULL;
    read_it(&call);
    assert_int_equal(call.read.arguments[0].tensor.shape[0], 0);
    forget_it(&call);
}

/* --- nonsense --- */

#define assert_nonsense(call, ...)                                                                 \
    do {                                                                                           \
        made_replay_open(&(call)->made, &(call)->task);                                            \
        assert_fails(gbx_replay_task_read((call)->made.entries, 0, &(call)->read), GBX_BAD_FORMAT, \
                     __VA_ARGS__);                                                                 \
        made_replay_close(&(call)->made);                                                          \
    } while (0)

static void tasks_that_make_no_sense_are_refused(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.block_num = 0;
    assert_nonsense(&call, "kernels in 0 blocks; run glassbox verify");
    call.task.block_num = 65537;
    assert_nonsense(&call, "kernels in 65537 blocks; run glassbox verify");
    call.task.block_num = 1;
    call.task.func_ids[1] = UINT32_MAX;
    assert_nonsense(&call, "it cannot have 0 kernels in 1 blocks");
    replay_prepare(&call, WAY_REPORT, 0);
    call.arguments[REPLAY_Y].shape[0] = INT64_C(1) << 40;
    call.arguments[REPLAY_Y].strides[0] = INT64_C(1) << 40;
    call.arguments[REPLAY_Y].after = NULL;
    assert_nonsense(&call, "argument 1 of task 0");
}

/* A loss of several records names only the first: any list of arguments may be incomplete. */
static void losses_without_names_leave_the_list_open(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_REPORT, 0);
    call.task.unnamed_losses = 3;
    assert_refused(&call, "its arguments are unknown; run again");
    call.task.has_dispatches = true;
    read_it(&call);
    assert_int_equal(call.read.argument_count, 5);
    forget_it(&call);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_read_as_a_call),
        cmocka_unit_test(kernels_of_a_mix_are_named),
        cmocka_unit_test(a_task_that_is_not_there_is_out_of_range),
        cmocka_unit_test(all_that_is_missing_is_named),
        cmocka_unit_test(why_it_is_missing_is_reported),
        cmocka_unit_test(outputs_need_a_shape),
        cmocka_unit_test(a_partial_list_without_a_signature_is_refused),
        cmocka_unit_test(in_flight_outputs_are_not_compared),
        cmocka_unit_test(a_task_that_was_cut_short_is_read_from_dispatches),
        cmocka_unit_test(a_task_that_was_cut_short_has_outputs_somewhere),
        cmocka_unit_test(a_refusal_has_a_code_and_only_its_reason),
        cmocka_unit_test(a_task_that_was_cut_short_may_have_more_outputs),
        cmocka_unit_test(losses_are_not_blamed_on_the_end),
        cmocka_unit_test(an_output_without_bytes_runs_and_is_not_compared),
        cmocka_unit_test(an_empty_tensor_needs_no_bytes),
        cmocka_unit_test(a_tensor_that_was_never_described_is_named),
        cmocka_unit_test(losses_without_names_leave_the_list_open),
        cmocka_unit_test(tasks_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
