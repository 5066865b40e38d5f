#include "replay_calls.h"

#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"

/* --- values --- */

static void calls_a_kernel_on_its_inputs(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 11);
    replay_run(&call);
    assert_clean(&call);
    assert_affine(&call, 11);
    assert_false(call.outcome.is_relocated);
    assert_int_equal(call.outcome.unchanged, 0);
    assert_in_range(call.outcome.ns, 1, 3600 * GBX_NS_PER_SECOND);
    assert_int_equal(gbx_replay_placed_tensor(call.engine, REPLAY_Y)->data, REPLAY_BASE + 0x10000);
    assert_null(gbx_replay_placed_tensor(call.engine, REPLAY_WAY));
    int32_t values[REPLAY_CELLS];
    for (uint32_t i = 0; i < 6; ++i)
        if (i != REPLAY_Y && i != REPLAY_Z)
            assert_fails(gbx_replay_output(call.engine, i, GBX_KEPT_FIRST, values),
                         GBX_INVALID_ARGUMENT, "it is not an output");
    replay_close(&call);
}

/* The bytes of y before the calls: different everywhere. */
static void assert_starts_differ(const unsigned char *one, const unsigned char *other,
                                 size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        if (one[i] == other[i])
            fail_msg("byte %zu is 0x%02x in both", i, one[i]);
}

static void what_is_not_written_stays_as_it_was(void **state) {
    (void)state;
    replay_call call;
    int32_t left[REPLAY_CELLS], starts[2][REPLAY_CELLS];
    replay_prepare(&call, WAY_NOTHING, 0);
    replay_run(&call);
    assert_clean(&call);
    assert_int_equal(call.outcome.unchanged, 1u << REPLAY_Y | 1u << REPLAY_Z);
    for (int i = 0; i < 2; ++i) {
        gbx_replay_kept which = i ? GBX_KEPT_OTHER : GBX_KEPT_FIRST;
        replay_values(&call, REPLAY_Y, i ? GBX_KEPT_OTHER_START : GBX_KEPT_START, starts[i]);
        replay_values(&call, REPLAY_Y, which, left);
        assert_memory_equal(left, starts[i], sizeof left);
        replay_values(&call, REPLAY_Z, which, left);
        assert_memory_equal(left, call.z, sizeof left);
    }
    assert_starts_differ((unsigned char *)starts[0], (unsigned char *)starts[1], sizeof starts[0]);
    const gbx_answer *answer = call.outcome.answer;
    assert_int_equal(answer->outputs[REPLAY_Y].bits.not_written, REPLAY_CELLS);
    assert_int_equal(answer->outputs[REPLAY_Y].bits.mismatches, 0);
    assert_int_equal(answer->outputs[REPLAY_Z].bits.not_written, 0);
    assert_int_equal(answer->gap_count, 1);
    assert_int_equal(answer->gaps[0].argument, REPLAY_Y);
    assert_int_equal(answer->gaps[0].first, 0);
    assert_int_equal(answer->gaps[0].count, REPLAY_CELLS);
    replay_close(&call);
}

/* Two elements of the dump differ from what the kernel gives. */
static void outputs_are_compared_with_the_dump(void **state) {
    (void)state;
    replay_call call;
    int32_t z[REPLAY_CELLS];
    replay_prepare(&call, WAY_AFFINE, 11);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        call.y_after[i] = 2 * call.x[i] + 11;
        z[i] = call.z[i] + call.x[i];
    }
    call.arguments[REPLAY_Z].after = z;
    z[20] += 300;
    z[33] -= 5;
    replay_run(&call);
    assert_clean(&call);
    const gbx_answer *answer = call.outcome.answer;
    assert_int_equal(answer->outputs[REPLAY_Y].bits.elements, REPLAY_CELLS);
    assert_int_equal(answer->outputs[REPLAY_Y].bits.mismatches, 0);
    const gbx_bits_comparison *bits = &answer->outputs[REPLAY_Z].bits;
    assert_int_equal(bits->mismatches, 2);
    assert_int_equal(bits->first_bad, 20);
    assert_int_equal((int32_t)bits->dump_bits, z[20]);
    assert_int_equal((int32_t)bits->replay_bits, z[20] - 300);
    assert_true(bits->max_abs == 300.0);
    replay_close(&call);
}

/* y[0] holds what was there before: which element depends on it is known. */
static void reads_of_undeclared_values_are_found(void **state) {
    (void)state;
    replay_call call;
    int32_t y[2][REPLAY_CELLS], starts[2][REPLAY_CELLS];
    replay_prepare(&call, WAY_ADD, 3);
    replay_run(&call);
    assert_null(call.outcome.fault);
    const gbx_answer *answer = call.outcome.answer;
    assert_int_equal(answer->stray_bytes, 0);
    assert_int_equal(answer->finding_count, 1);
    assert_int_equal(answer->findings[0].kind, GBX_UNDECLARED_READ);
    assert_int_equal(answer->findings[0].argument, REPLAY_Y);
    assert_int_equal(answer->findings[0].element, 0);
    assert_int_equal(answer->findings[0].elements, 1);
    for (int i = 0; i < 2; ++i) {
        replay_values(&call, REPLAY_Y, i ? GBX_KEPT_OTHER : GBX_KEPT_FIRST, y[i]);
        replay_values(&call, REPLAY_Y, i ? GBX_KEPT_OTHER_START : GBX_KEPT_START, starts[i]);
        assert_int_equal((uint32_t)y[i][0], (uint32_t)(2 * call.x[0] + 3) + (uint32_t)starts[i][0]);
    }
    assert_memory_equal(&y[0][1], &y[1][1], sizeof y[0] - sizeof y[0][0]);
    replay_close(&call);
}

/* Rows of x lie 9 apart and backwards, columns of y backwards, z is transposed. */
static void strided_views_are_laid_out_as_they_were(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, (uint64_t)-4);
    call.arguments[REPLAY_X].strides[0] = -9;
    call.arguments[REPLAY_X].start_offset = 9 * (REPLAY_ROWS - 1);
    call.arguments[REPLAY_Y].strides[0] = 2 * REPLAY_COLUMNS + 1;
    call.arguments[REPLAY_Y].strides[1] = -2;
    call.arguments[REPLAY_Y].start_offset = 2 * REPLAY_COLUMNS + 3;
    call.arguments[REPLAY_Z].strides[0] = 1;
    call.arguments[REPLAY_Z].strides[1] = REPLAY_ROWS + 5;
    replay_run(&call);
    assert_clean(&call);
    assert_affine(&call, -4);
    replay_close(&call);
}

/* Payloads of the caller instead of the dump's, also where elements lie apart; those that are not
 * given stay the dump's, and so do all in the next call. */
static void inputs_can_be_replaced(void **state) {
    (void)state;
    replay_call call;
    int32_t other[2][REPLAY_CELLS], own[2][REPLAY_CELLS];
    const void *start[5] = {NULL};
    replay_prepare(&call, WAY_AFFINE, 5);
    call.arguments[REPLAY_X].strides[0] = 2 * REPLAY_COLUMNS;
    call.arguments[REPLAY_X].strides[1] = -2;
    call.arguments[REPLAY_X].start_offset = 2 * REPLAY_COLUMNS;
    memcpy(own[0], call.x, sizeof own[0]);
    memcpy(own[1], call.z, sizeof own[1]);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        other[0][i] = 31 * i - 700;
        other[1][i] = 100000 - i * i;
    }
    replay_open(&call);
    gbx_replay_request request = replay_request(&call);
    request.start = start;
    for (int given = 0; given < 4; ++given) {
        start[REPLAY_X] = given & 1 ? other[0] : NULL;
        start[REPLAY_Z] = given & 2 ? other[1] : NULL;
        memcpy(call.x, given & 1 ? other[0] : own[0], sizeof call.x);
        memcpy(call.z, given & 2 ? other[1] : own[1], sizeof call.z);
        assert_ok(replay_try(&call, &request));
        assert_null(call.outcome.fault);
        assert_affine(&call, 5);
    }
    memcpy(call.x, own[0], sizeof call.x);
    memcpy(call.z, own[1], sizeof call.z);
    replay_again(&call);
    assert_clean(&call);
    assert_affine(&call, 5);
    replay_close(&call);
}

/* y begins two rows into x: rows of x that are read after they were written show it. */
static void inputs_win_where_an_output_overlaps(void **state) {
    (void)state;
    replay_call call;
    int32_t y[REPLAY_CELLS], start[REPLAY_CELLS], other[REPLAY_CELLS];
    replay_prepare(&call, WAY_NOTHING, 0);
    call.arguments[REPLAY_Y].address = REPLAY_BASE + 2 * REPLAY_COLUMNS * sizeof(int32_t);
    replay_run(&call);
    assert_clean(&call);
    replay_values(&call, REPLAY_Y, GBX_KEPT_FIRST, y);
    replay_values(&call, REPLAY_Y, GBX_KEPT_START, start);
    replay_values(&call, REPLAY_Y, GBX_KEPT_OTHER, other);
    for (int i = 0; i < REPLAY_CELLS; ++i) {
        int from = i + 2 * REPLAY_COLUMNS;
        assert_int_equal(y[i], from < REPLAY_CELLS ? call.x[from] : start[i]);
        assert_int_equal(start[i], y[i]);
        assert_true((other[i] == y[i]) == (from < REPLAY_CELLS));
    }
    /* What it began with is known there, whatever was written. */
    assert_int_equal(call.outcome.answer->outputs[REPLAY_Y].bits.not_written, 2 * REPLAY_COLUMNS);
    replay_set_way(&call, WAY_AFFINE, 1);
    replay_again(&call);
    assert_clean(&call);
    replay_values(&call, REPLAY_Y, GBX_KEPT_FIRST, y);
    /* Row by row: row i of y is row i + 2 of x, so later rows see what earlier ones left. */
    int32_t memory[REPLAY_CELLS + 2 * REPLAY_COLUMNS] = {0};
    memcpy(memory, call.x, sizeof call.x);
    for (int i = 0; i < REPLAY_CELLS; ++i)
        memory[i + 2 * REPLAY_COLUMNS] = 2 * memory[i] + 1;
    assert_memory_equal(y, memory + 2 * REPLAY_COLUMNS, sizeof y);
    replay_close(&call);
}

/* Rows of 5 halves, which begin in either half of a byte; the halves beside them stay. */
static void halves_of_bytes_are_restored(void **state) {
    (void)state;
    replay_call call;
    unsigned char x[3 * REPLAY_ROWS] = {0};
    unsigned char y[3 * REPLAY_ROWS] = {0};
    for (int i = 0; i < 3 * REPLAY_ROWS; ++i)
        x[i] = (unsigned char)(i % 3 == 2 ? i % 16 : 0x37 * i + 5);
    replay_prepare(&call, WAY_HALVES, 9);
    for (int i = 0; i < 2; ++i) {
        call.arguments[i].dtype = GBX_INT4;
        call.arguments[i].shape[1] = 5;
        call.arguments[i].strides[0] = 7 + 4 * i;
        call.arguments[i].strides[1] = 1 + i;
        call.arguments[i].start_offset = 3 - i;
    }
    call.arguments[REPLAY_X].before = x;
    call.arguments[REPLAY_Y].after = y;
    replay_run(&call);
    assert_clean(&call);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, y));
    for (int row = 0; row < REPLAY_ROWS; ++row)
        for (int i = 0; i < 5; ++i) {
            unsigned from = (unsigned)x[3 * row + i / 2] >> (i % 2 * 4) & 15u;
            unsigned to = (unsigned)y[3 * row + i / 2] >> (i % 2 * 4) & 15u;
            assert_int_equal(to, (from + 9) % 16);
        }
    replay_close(&call);
}

/* --- blocks and subtasks --- */

static void prepare_mix(replay_call *call, enum replay_way way, uint32_t blocks, uint64_t number) {
    static unsigned char room[100 * 18 * sizeof(int32_t)];
    replay_prepare(call, way, number);
    call->task.block_num = blocks;
    for (uint32_t i = 0; i < 3; ++i)
        call->task.func_ids[i] = i;
    call->arguments[REPLAY_Y].shape[0] = blocks;
    call->arguments[REPLAY_Y].shape[1] = 18;
    call->arguments[REPLAY_Y].strides[0] = 18;
    call->arguments[REPLAY_Y].after = room;
    assert_true(blocks <= 100);
}

static void every_dispatch_gets_its_contexts(void **state) {
    (void)state;
    replay_call call;
    uint32_t seen[5 * 18];
    for (int has_dispatches = 0; has_dispatches < 2; ++has_dispatches) {
        prepare_mix(&call, WAY_REPORT, 5, 0);
        call.task.has_dispatches = has_dispatches;
        call.config = (gbx_replay_engine_config){.chip_blocks = 4, .gm_bytes = 256 << 20};
        replay_run(&call);
        assert_clean(&call);
        assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, seen));
        for (uint32_t i = 0; i < 15; ++i) {
            uint32_t block = i / 3;
            uint32_t subtask = i % 3;
            uint32_t core = has_dispatches ? i + 30 : block % 4 * 3 + subtask;
            const uint32_t expected[6] = {block, 5, subtask, core, 4, 256 ^ 0x7e90};
            assert_memory_equal(seen + 6 * i, expected, sizeof expected);
        }
        replay_close(&call);
    }
}

static void blocks_and_subtasks_wait_for_each_other(void **state) {
    (void)state;
    replay_call call;
    int32_t y[8 * 18], start[8 * 18];
    int32_t z[REPLAY_CELLS];
    prepare_mix(&call, WAY_MEET, 8, 24);
    call.z[0] = 0;
    replay_run(&call);
    assert_clean(&call);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, y));
    replay_values(&call, REPLAY_Z, GBX_KEPT_FIRST, z);
    assert_int_equal(z[0], 24);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_START, start));
    for (int block = 0; block < 8; ++block)
        for (int subtask = 0; subtask < 18; ++subtask)
            assert_int_equal(y[18 * block + subtask],
                             subtask < 3 ? 100 * block + subtask + 7 : start[18 * block + subtask]);
    assert_int_equal(call.outcome.answer->order, GBX_ORDER_WAITS);
    replay_close(&call);
}

/* 100 blocks on a chip of 4: exactly twelve dispatches at a time can meet. */
static void blocks_run_in_waves(void **state) {
    (void)state;
    replay_call call;
    uint32_t seen[100 * 18];
    prepare_mix(&call, WAY_REPORT, 100, 0);
    call.config.chip_blocks = 4;
    replay_run(&call);
    assert_clean(&call);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, seen));
    for (uint32_t i = 0; i < 300; ++i) {
        assert_int_equal(seen[6 * i], i / 3);
        assert_int_equal(seen[6 * i + 2], i % 3);
        assert_int_equal(seen[6 * i + 3], i / 3 % 4 * 3 + i % 3);
    }
    replay_close(&call);

    int32_t y[8 * 18];
    prepare_mix(&call, WAY_MEET, 8, 12);
    call.z[0] = 0;
    call.config.chip_blocks = 4;
    replay_run(&call);
    assert_clean(&call);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, y));
    assert_int_equal(y[18 * 7 + 2], 709);
    replay_close(&call);
}

static void one_dispatch_runs_by_itself(void **state) {
    (void)state;
    replay_call call;
    uint32_t seen[5 * 18], start[5 * 18];
    prepare_mix(&call, WAY_REPORT, 5, 0);
    call.dispatch = 7;
    replay_run(&call);
    assert_clean(&call);
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_FIRST, seen));
    assert_ok(gbx_replay_output(call.engine, REPLAY_Y, GBX_KEPT_START, start));
    for (uint32_t i = 0; i < 15; ++i)
        assert_int_equal(seen[6 * i], i == 7 ? 2 : start[6 * i]);
    assert_int_equal(seen[6 * 7 + 2], 1);
    assert_int_equal(call.outcome.answer->outputs[REPLAY_Y].bits.not_written, 14 * 6);
    call.dispatch = 15;
    gbx_replay_request request = replay_request(&call);
    assert_fails(replay_try(&call, &request), GBX_INVALID_ARGUMENT, "no dispatch 15", "0 to 14");
    replay_close(&call);
}

/* --- undeclared writes --- */

static void assert_stray(uint64_t address) {
    replay_call call;
    replay_prepare(&call, WAY_STRAY, address);
    call.arguments[REPLAY_Y].strides[0] = REPLAY_COLUMNS + 1;
    replay_run(&call);
    assert_strays(&call, address, 1, address + 1);
    assert_affine(&call, (int32_t)(uint32_t)address);
    replay_close(&call);
}

static void stray_writes_are_found(void **state) {
    (void)state;
    uint64_t y = REPLAY_BASE + 0x10000;
    assert_stray(y - 1);
    assert_stray(y + REPLAY_COLUMNS * 4); /* the gap of the first row */
    assert_stray(y + ((REPLAY_COLUMNS + 1) * (REPLAY_ROWS - 1) + REPLAY_COLUMNS) * 4);
    assert_stray(y - 0x1000); /* the first byte of the page before it, and the last behind it */
    assert_stray(y + 0x1fff);
    replay_call call;
    replay_prepare(&call, WAY_INPUT, 0);
    replay_run(&call);
    assert_strays(&call, REPLAY_BASE, 4, REPLAY_BASE + 4);
    replay_set_way(&call, WAY_AFFINE, 3); /* all is restored */
    replay_again(&call);
    assert_clean(&call);
    assert_affine(&call, 3);
    replay_close(&call);
}

/* Byte for byte: memory kept from the previous run would be found equal. */
static void memory_is_restored_between_runs(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_STRAY, 0);
    replay_open(&call);
    for (uint64_t i = 0; i < 80; ++i) {
        /* Some close together and repeatedly, some in all pages around tensors. */
        uint64_t address = REPLAY_BASE + 0x10000 * (i % 3) + (i < 40 ? 0x1000 : i * 100 - 0x1000);
        address += i < 40 ? i / 2 * 3 : 0;
        bool is_input = address >= REPLAY_BASE && address < REPLAY_BASE + sizeof call.x;
        bool is_output = !is_input && (address & 0xffff) < sizeof call.x;
        if (is_output)
            continue;
        replay_set_way(&call, WAY_STRAY, address);
        replay_again(&call);
        assert_strays(&call, address, 1, address + 1);
        assert_affine(&call, (int32_t)(uint32_t)address);
    }
    replay_close(&call);
}

/* --- addresses --- */

static void another_slot_of_addresses_is_taken(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 2);
    for (int i = 0; i < 3; ++i)
        call.arguments[i].address += UINT64_C(5) << 35;
    call.config.gm_bytes = 1 << 20; /* too little: it grows */
    replay_run(&call);
    assert_clean(&call);
    assert_affine(&call, 2);
    assert_false(call.outcome.is_relocated);
    replay_close(&call);
}

/* y is the second half of the buffer of x and z its own; far from all slots, and in two slots. */
static void other_addresses_are_laid_out_anew(void **state) {
    (void)state;
    for (int round = 0; round < 2; ++round) {
        replay_call call;
        replay_prepare(&call, WAY_AFFINE, 6);
        uint64_t far = round ? REPLAY_BASE : UINT64_C(0x12345678010);
        call.arguments[REPLAY_X].address = far;
        call.arguments[REPLAY_Y].address = far;
        call.arguments[REPLAY_Y].start_offset = REPLAY_CELLS;
        call.arguments[REPLAY_Z].address = far + (UINT64_C(1) << 36);
        replay_run(&call);
        assert_clean(&call);
        assert_affine(&call, 6);
        assert_true(call.outcome.is_relocated);
        const gbx_tensor *x = gbx_replay_placed_tensor(call.engine, REPLAY_X);
        const gbx_tensor *z = gbx_replay_placed_tensor(call.engine, REPLAY_Z);
        assert_int_equal(x->data, gbx_replay_placed_tensor(call.engine, REPLAY_Y)->data);
        assert_int_equal(x->data % 4096, far % 4096);
        assert_true(z->data - x->data < 65536);
        replay_close(&call);
    }
}

static void tensors_without_addresses_get_some(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 8);
    for (int i = 0; i < 3; ++i)
        call.arguments[i].address = 0;
    call.arguments[REPLAY_X].start_offset = 100;
    replay_open(&call);
    call.read.has_addresses = false;
    replay_again(&call);
    assert_clean(&call);
    assert_affine(&call, 8);
    assert_true(call.outcome.is_relocated);
    replay_close(&call);
}

static void assert_too_much(int64_t rows) {
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 8);
    call.arguments[REPLAY_Y].shape[0] = rows;
    call.arguments[REPLAY_Y].strides[0] = 0; /* all in one place: it is payload that takes memory */
    call.arguments[REPLAY_Y].after = NULL;
    replay_open(&call);
    gbx_replay_request request = replay_request(&call);
    assert_fails(replay_try(&call, &request), GBX_EXHAUSTED, "more than the");
    replay_close(&call);
}

/* A third of the memory fits, but not with the copies of an output to compare. */
static void tensors_that_take_too_much_are_refused(void **state) {
    (void)state;
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_too_much(INT64_C(1) << 50);
    assert_too_much((int64_t)(there / 3 / (REPLAY_COLUMNS * sizeof(int32_t))));
}

/* --- many --- */

/* The resources of this process and its child. */
typedef struct holdings {
    size_t files;
    size_t mappings;
    size_t allocated;
    size_t child_files;
    size_t child_mappings;
} holdings;

static size_t count_lines(const char *command) {
    unsigned long count = 0;
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%lu", &count), 1);
    pclose(pipe);
    return count;
}

static int child_pid(void) {
    int pid = 0;
    FILE *file = fopen("/proc/thread-self/children", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static holdings hold(void) {
    char command[128];
    holdings now = {.files = count_open_files(),
                    .mappings = count_mappings_of("glassbox-"),
                    .allocated = mallinfo2().uordblks};
    int pid = child_pid();
    snprintf(command, sizeof command, "ls /proc/%d/fd | wc -l", pid);
    now.child_files = count_lines(command);
    snprintf(command, sizeof command, "wc -l < /proc/%d/maps", pid);
    now.child_mappings = count_lines(command);
    return now;
}

static void call_many_times(replay_call *call, int count) {
    for (int i = 0; i < count; ++i) {
        replay_set_way(call, i % 100 == 99 ? WAY_DESCRIPTOR : WAY_AFFINE, (uint64_t)i);
        replay_again(call);
        assert_clean(call);
        assert_affine(call, i);
    }
}

/* The C library keeps a varying amount of freed memory and threads: less than a byte per run, and
 * few mappings; it does not grow. The thread sanitizer maps more and more. */
static bool has_grown_by_runs(const holdings *before, const holdings *after, int count) {
    return after->allocated >= before->allocated + (size_t)count ||
           (!is_thread_sanitized() && after->child_mappings > before->child_mappings + 8);
}

static void many_runs_leave_nothing_behind(void **state) {
    (void)state;
    replay_call call;
    replay_prepare(&call, WAY_AFFINE, 0);
    replay_run(&call);
    call_many_times(&call, 10);
    (void)hold(); /* the first time, the C library keeps something */
    holdings before = hold();
    int count = is_thread_sanitized() ? 100 : 1000;
    bool has_grown = true;
    for (int round = 0; round < 5 && has_grown; ++round) {
        call_many_times(&call, count);
        holdings after = hold();
        assert_int_equal(after.files, before.files);
        assert_int_equal(after.mappings, before.mappings);
        assert_int_equal(after.child_files, before.child_files);
        has_grown = has_grown_by_runs(&before, &after, count);
        before = after;
    }
    assert_false(has_grown);
    replay_close(&call);
    assert_false(has_children());
}

/* --- for other programs --- */

static int run_call_program(const char *path) {
    char command[512];
    snprintf(command, sizeof command, "%s %s 2>/dev/null", getenv("GLASSBOX_CALL"), path);
    return system(command);
}

/* The program needs only the file; its kernel reports what it saw by its exit code. */
static void a_written_call_runs_by_itself(void **state) {
    (void)state;
    replay_call call;
    char path[192];
    replay_prepare(&call, WAY_EXIT, 37);
    replay_open(&call);
    snprintf(path, sizeof path, "%s/call", call.made.files.root);
    gbx_replay_request request = replay_request(&call);
    assert_ok(gbx_replay_write_call(call.engine, &request, path));
    assert_int_equal(WEXITSTATUS(run_call_program(path)), 37);
    replay_set_way(&call, WAY_AFFINE, 1);
    assert_ok(gbx_replay_write_call(call.engine, &request, path));
    assert_int_equal(WEXITSTATUS(run_call_program(path)), 0);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    /* Wherever the file is cut off, it is refused. */
    for (int i = 1; i < 4; ++i) {
        assert_int_equal(truncate(path, about.st_size / 4 * (4 - i) + i), 0);
        assert_int_equal(WEXITSTATUS(run_call_program(path)), 2);
    }
    unlink(path);
    replay_close(&call);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_a_kernel_on_its_inputs),
        cmocka_unit_test(what_is_not_written_stays_as_it_was),
        cmocka_unit_test(outputs_are_compared_with_the_dump),
        cmocka_unit_test(reads_of_undeclared_values_are_found),
        cmocka_unit_test(strided_views_are_laid_out_as_they_were),
        cmocka_unit_test(inputs_can_be_replaced),
        cmocka_unit_test(inputs_win_where_an_output_overlaps),
        cmocka_unit_test(halves_of_bytes_are_restored),
        cmocka_unit_test(every_dispatch_gets_its_contexts),
        cmocka_unit_test(blocks_and_subtasks_wait_for_each_other),
        cmocka_unit_test(blocks_run_in_waves),
        cmocka_unit_test(one_dispatch_runs_by_itself),
        cmocka_unit_test(stray_writes_are_found),
        cmocka_unit_test(memory_is_restored_between_runs),
        cmocka_unit_test(another_slot_of_addresses_is_taken),
        cmocka_unit_test(other_addresses_are_laid_out_anew),
        cmocka_unit_test(tensors_without_addresses_get_some),
        cmocka_unit_test(tensors_that_take_too_much_are_refused),
        cmocka_unit_test(many_runs_leave_nothing_behind),
        cmocka_unit_test(a_written_call_runs_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
