/* Reports in the form that src/replay/sanitize/run.c asks for, and texts that are none. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "replay/sanitize/internal.h"

static const char *const objects[GBX_SUBTASK_COUNT] = {NULL, "/cache/k.so", NULL};
static gbx_raw_reports found;

static void read_text(const char *text) {
    gbx_sanitize_free_reports(&found);
    assert_null(gbx_sanitize_read_reports(text, objects, &found));
}

static int forget(void **state) {
    (void)state;
    gbx_sanitize_free_reports(&found);
    return 0;
}

static void an_access_has_the_line_of_the_kernel(void **state) {
    (void)state;
    read_text("glassbox: calls\nglassbox: dispatch 3\n"
              "==7==ERROR: AddressSanitizer: use-after-poison on address 0x7e9000002040 at pc 0x1\n"
              "WRITE of size 8 at 0x7e9000002040 thread T1\n"
              "    #0 0x1 in memcpy asan.cpp:9:0 (/lib/libasan.so.8+0x1)\n"
              "    #1 0x2 in gbx_tensor_f32 /cache/include/glassbox/kernel.h:5:0 (k.so+0x2)\n"
              "    #2 0x2 in kernel_entry /a b/scale (1).c:7:13 (/cache/k.so+0x2)\n"
              "    #3 0x3 in enter main.c:1:0 (/cache/program+0x3)\n\n"
              "Address 0x7e9000002040 is a wild pointer.\n"
              "    #0 0x2 in other /other.c:99:1 (/cache/k.so+0x2)\n"
              "SUMMARY: AddressSanitizer: use-after-poison\nglassbox: done\n");
    assert_int_equal(found.count, 1);
    const gbx_raw_report *report = &found.items[0];
    const gbx_sanitize_frame *frame = &report->frames[GBX_STACK_ACCESS];
    assert_true(found.is_done && found.has_begun && report->is_write && report->has_address);
    assert_int_equal(report->kind, GBX_SANITIZE_WRITE_OUTSIDE);
    assert_int_equal(report->address, 0x7e9000002040);
    assert_int_equal(report->bytes, 8);
    assert_int_equal(report->parties[0], 3);
    assert_int_equal(frame->line, 7);
    assert_int_equal(frame->column, 13);
    assert_int_equal(frame->subtask, 1);
    assert_int_equal(frame->file_length, strlen("/a b/scale (1).c"));
    assert_memory_equal(frame->file, "/a b/scale (1).c", strlen("/a b/scale (1).c"));
}

static void watched_accesses_have_places_and_counts(void **state) {
    (void)state;
    read_text("glassbox: calls\nglassbox: dispatch 0\n"
              "glassbox: access reads 0x7e9000002040 4 64 2 1+0x11e8 1+0x2000\n"
              "glassbox: access input 0x7e9000003000 16 3 0 1+0x1200\n"
              "glassbox: access writes 0x7e9000004000 5000000000 64 0\n"
              "glassbox: times 1 7\n"
              "glassbox: crashed SEGV 0x10 1 5 1+0x1300 9+0x1\n");
    assert_int_equal(found.count, 4);
    const gbx_raw_report *read = &found.items[0], *input = &found.items[1];
    const gbx_raw_report *written = &found.items[2], *crash = &found.items[3];
    assert_int_equal(read->kind, GBX_SANITIZE_READ_OUTSIDE);
    assert_true(read->is_watched && !read->is_write && read->has_address);
    assert_int_equal(read->address, 0x7e9000002040);
    assert_int_equal(read->bytes, 4);
    assert_int_equal(read->slot, GBX_CALL_SLOTS);
    assert_int_equal(read->parties[0], 2);
    assert_int_equal(read->place_count, 2);
    assert_int_equal(read->places[1].subtask, 1);
    assert_int_equal(read->places[1].offset, 0x2000);
    assert_int_equal(read->count, 1);
    assert_int_equal(input->kind, GBX_SANITIZE_WRITES_INPUT);
    assert_int_equal(input->slot, 3);
    assert_int_equal(input->count, 7);
    assert_int_equal(written->kind, GBX_SANITIZE_WRITE_OUTSIDE);
    assert_int_equal(written->bytes, UINT32_MAX);
    assert_int_equal(written->place_count, 0);
    assert_int_equal(crash->kind, GBX_SANITIZE_CRASH);
    assert_string_equal(crash->what, "SEGV");
    assert_true(crash->has_address);
    assert_int_equal(crash->address, 0x10);
    assert_int_equal(crash->parties[0], 5);
    assert_int_equal(crash->place_count, 1);
}

static void an_output_has_its_history(void **state) {
    (void)state;
    read_text("glassbox: output 2 0x7e9000000100 12\n"
              "==7==WARNING: MemorySanitizer: use-of-uninitialized-value\n"
              "    #0 0x3 in main main.c:1:0 (/cache/program+0x3)\n\n"
              "  Uninitialized value was stored to memory at\n"
              "    #0 0x2 in kernel_entry /k.c:12:1 (/cache/k.so+0x2)\n\n"
              "  Uninitialized value was stored to memory at\n"
              "    #0 0x2 in kernel_entry /k.c:11:1 (/cache/k.so+0x2)\n\n"
              "  Uninitialized value was stored to memory at\n"
              "    #0 0x2 in kernel_entry /k.c:10:1 (/cache/k.so+0x2)\n\n"
              "  Uninitialized value was created by an allocation of 'sum' in the stack frame\n"
              "    #0 0x2 in kernel_entry /k.c:3:0 (/cache/k.so+0x2)\n"
              "glassbox: unwritten 4 0x7e9000000200 8\n");
    assert_int_equal(found.count, 2);
    const gbx_raw_report *report = &found.items[0];
    assert_int_equal(report->slot, 2);
    assert_int_equal(report->stained_bytes, 12);
    assert_int_equal(report->frames[GBX_STACK_STORED].line, 12);
    assert_int_equal(report->frames[GBX_STACK_FIRST].line, 10);
    assert_int_equal(report->frames[GBX_STACK_CREATED].line, 3);
    assert_string_equal(report->what, "local variable 'sum'");
    assert_false(report->has_frame[GBX_STACK_ACCESS]);
    assert_int_equal(found.items[1].kind, GBX_SANITIZE_UNWRITTEN);
    assert_int_equal(found.items[1].slot, 4);
}

static void a_race_has_two_lines_and_two_dispatches(void **state) {
    (void)state;
    read_text("WARNING: ThreadSanitizer: data race (pid=7)\n"
              "  Read of size 4 at 0x7e9000000100 by thread T2:\n"
              "    #0 0x2 in kernel_entry /k.c:5:0 (/cache/k.so+0x2)\n\n"
              "  Previous atomic write of size 4 at 0x7e9000000100 by thread T1:\n"
              "    #0 0x2 in kernel_entry /k.c:9:0 (/cache/k.so+0x2)\n\n"
              "  Thread T2 'dispatch 6' (tid=8, running) created by main thread at:\n"
              "    #0 0x2 in kernel_entry /k.c:77:0 (/cache/k.so+0x2)\n"
              "  Thread T1 'dispatch 5' (tid=9, running) created by main thread at:\n"
              "SUMMARY: ThreadSanitizer: data race\n");
    assert_int_equal(found.count, 1);
    const gbx_raw_report *report = &found.items[0];
    assert_true(report->kind == GBX_SANITIZE_RACE && !report->is_write && report->other_is_write);
    assert_int_equal(report->frames[GBX_STACK_ACCESS].line, 5);
    assert_int_equal(report->frames[GBX_STACK_OTHER].line, 9);
    assert_int_equal(report->parties[0], 6);
    assert_int_equal(report->parties[1], 5);
}

static void broken_texts_are_no_reports(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        "#0",
                                        "    #0 0x1 in",
                                        "    #0 0x1 in f (",
                                        "  READ of size",
                                        "glassbox: output",
                                        "glassbox: unwritten 99 0x 1",
                                        "x: runtime error: ",
                                        "WARNING: ThreadSanitizer: ",
                                        "WARNING: ThreadSanitizer: (pid=7)",
                                        "WARNING: ThreadSanitizer:   (",
                                        "glassbox: dispatch all",
                                        "glassbox: access",
                                        "glassbox: access ",
                                        "glassbox: access reads",
                                        "glassbox: access reads 0x1 1 1 1 1",
                                        "glassbox: times 9 9",
                                        "glassbox: unknown ",
                                        "glassbox: crashed "};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        read_text(texts[i]);
    read_text("glassbox: failed the call file cannot be opened\n");
    assert_int_equal(found.count, 0);
    assert_memory_equal(found.failure, "the call file", 13);
}

static void a_function_that_is_unknown_has_a_kernel(void **state) {
    (void)state;
    read_text("glassbox: unknown 2 mtx_lock\n");
    assert_int_equal(found.unknown_of, 2);
    assert_string_equal(found.unknown, "mtx_lock\n");
    assert_false(found.has_begun);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_access_has_the_line_of_the_kernel, forget),
        cmocka_unit_test_teardown(watched_accesses_have_places_and_counts, forget),
        cmocka_unit_test_teardown(an_output_has_its_history, forget),
        cmocka_unit_test_teardown(a_race_has_two_lines_and_two_dispatches, forget),
        cmocka_unit_test_teardown(broken_texts_are_no_reports, forget),
        cmocka_unit_test_teardown(a_function_that_is_unknown_has_a_kernel, forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
