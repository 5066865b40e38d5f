#include "hand_made_dump.h"

#include <sys/file.h>

#include "store/manifest/manifest.h"
#include "store/recover.h"
#include "store/verify/verify.h"

static made_dump dump;

static void make(void) {
    made_good(&dump);
    made_write(&dump);
}

static size_t read_file(const char *name, unsigned char *out_bytes, size_t capacity) {
    char path[160];
    made_path(&dump, name, path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(out_bytes, 1, capacity, file);
    fclose(file);
    return size;
}

static bool is_there(const char *name) {
    return made_file_bytes(&dump, name) != UINT64_MAX;
}

/* The dump verifies, has so many records, and is marked complete or not. */
static void check_good(uint64_t records, bool is_complete) {
    gbx_verification found;
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    for (size_t i = 0; i < found.findings.count; ++i)
        print_message("%s\n", found.findings.items[i].what);
    assert_int_equal(found.findings.count, 0);
    assert_int_equal(found.records, records);
    assert_int_equal(gbx_reader_is_complete(found.reader), is_complete);
    assert_false(found.can_be_recovered);
    gbx_verification_free(&found);
}

static void check_manifest_has(const char *text) {
    static unsigned char bytes[1 << 16];
    size_t size = read_file("tensor_dump.json", bytes, sizeof bytes - 1);
    bytes[size] = '\0';
    if (!strstr((const char *)bytes, text))
        fail_msg("%s is not in the manifest", text);
}

static void check_nothing_to_do(void) {
    gbx_recovery again;
    static unsigned char before[1 << 16], after[1 << 16];
    size_t size = read_file("tensor_dump.rec", before, sizeof before);
    assert_ok(gbx_dump_recover(dump.directory, &again));
    assert_true(again.was_whole);
    assert_false(again.has_ended || again.has_tensor_manifest || again.has_args_manifests);
    assert_int_equal(again.cut_bytes, 0);
    gbx_recovery_free(&again);
    assert_int_equal(read_file("tensor_dump.rec", after, sizeof after), size);
    assert_memory_equal(before, after, size);
}

static void a_complete_dump_is_not_changed(void **state) {
    (void)state;
    make();
    assert_ok(gbx_manifest_write(dump.directory, true, false));
    size_t files = count_open_files();
    check_nothing_to_do();
    assert_int_equal(count_open_files(), files);
    check_good(7, true);
    made_remove(&dump);
}

/* Counts the records, and the arguments among them, of the complete blocks before a length. */
static uint64_t arguments_before(uint64_t bytes) {
    static const uint64_t arguments[] = {0, 2, 6, 7};
    size_t blocks = 0;
    while (blocks < dump.block_count && dump.block_starts[blocks + 1] <= bytes)
        ++blocks;
    return arguments[blocks];
}

/* As left by a run that was killed when the journal had so many bytes. */
static void check_killed_at(uint64_t bytes) {
    static unsigned char journal[1 << 16], tail[1 << 16];
    gbx_recovery recovery;
    make();
    size_t size = read_file("tensor_dump.rec", journal, sizeof journal);
    assert_true(bytes < size);
    made_cut(&dump, "tensor_dump.rec", bytes);
    uint64_t good = bytes >= dump.block_starts[2] ? dump.block_starts[2] : dump.block_starts[1];
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_false(recovery.was_whole);
    assert_true(recovery.has_ended && recovery.has_tensor_manifest);
    assert_false(recovery.has_args_manifests || recovery.is_complete);
    assert_int_equal(recovery.records, arguments_before(bytes));
    assert_int_equal(recovery.cut_bytes, bytes - good);
    assert_int_equal(is_there("tensor_dump.rec.broken"), bytes > good);
    if (bytes > good) {
        assert_int_equal(read_file("tensor_dump.rec.broken", tail, sizeof tail), bytes - good);
        assert_memory_equal(tail, journal + good, bytes - good);
    }
    assert_int_equal(read_file("tensor_dump.rec", tail, sizeof tail) > good, true);
    assert_memory_equal(tail, journal, good); /* complete blocks are unchanged */
    gbx_recovery_free(&recovery);
    check_good(arguments_before(bytes), false);
    check_manifest_has("\"complete\": false");
    check_manifest_has("\"status\": \"killed before the dump was complete; recovered\"");
    check_nothing_to_do();
    made_remove(&dump);
}

static void a_run_killed_at_any_moment_is_recovered(void **state) {
    (void)state;
    made_good(&dump);
    make();
    made_remove(&dump);
    uint64_t first = dump.block_starts[1];
    uint64_t second = dump.block_starts[2];
    uint64_t end = dump.block_starts[3];
    check_killed_at(first);
    check_killed_at(second - 1);
    check_killed_at(second);
    check_killed_at(second + 1);
    check_killed_at(end - 1);
    for (uint64_t bytes = first; bytes < end; bytes += 61)
        check_killed_at(bytes);
}

/* Preallocated room after the blocks, as after a loss of power. */
static void zeros_at_the_end_are_cut_off(void **state) {
    (void)state;
    gbx_recovery recovery;
    make();
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[2]);
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[2] + 5000);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.cut_bytes, 5000);
    assert_non_null(strstr(recovery.stop_text, "zeros"));
    gbx_recovery_free(&recovery);
    check_good(6, false);
    made_remove(&dump);
}

/* Everything from the damage on is kept beside the journal, including complete blocks. */
static void a_damaged_journal_is_recovered_up_to_the_damage(void **state) {
    (void)state;
    static unsigned char journal[1 << 16], tail[1 << 16];
    gbx_recovery recovery;
    make();
    made_flip(&dump, "tensor_dump.rec", dump.block_starts[1] + 40, 2);
    size_t size = read_file("tensor_dump.rec", journal, sizeof journal);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.records, 2);
    assert_int_equal(recovery.cut_bytes, size - dump.block_starts[1]);
    assert_non_null(strstr(recovery.stop_text, "checksum"));
    assert_non_null(strstr(recovery.tail_path, "/tensor_dump/tensor_dump.rec.broken"));
    gbx_recovery_free(&recovery);
    assert_int_equal(read_file("tensor_dump.rec.broken", tail, sizeof tail),
                     size - dump.block_starts[1]);
    assert_memory_equal(tail, journal + dump.block_starts[1], size - dump.block_starts[1]);
    check_good(2, false);
    check_manifest_has("the end of the journal was damaged");
    made_remove(&dump);
}

/* The tail that an earlier recovery kept is not overwritten. */
static void every_tail_is_kept(void **state) {
    (void)state;
    gbx_recovery recovery;
    make();
    made_write_file(&dump, "tensor_dump.rec.broken", "older", 5);
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[3] - 3);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_non_null(strstr(recovery.tail_path, "tensor_dump.rec.broken.2"));
    gbx_recovery_free(&recovery);
    assert_int_equal(made_file_bytes(&dump, "tensor_dump.rec.broken"), 5);
    check_good(6, false);
    made_remove(&dump);
}

/* Killed after the journal was complete: the run had ended by itself. */
static void missing_manifests_are_written(void **state) {
    (void)state;
    gbx_recovery recovery;
    make();
    made_write_file(&dump, "tensor_dump.json.tmp", "{", 1);
    made_write_file(&dump, "kernel_args_dump.json.tmp", "{", 1);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_true(recovery.has_tensor_manifest && recovery.is_complete);
    assert_false(recovery.was_whole || recovery.has_ended || recovery.has_args_manifests);
    assert_int_equal(recovery.removed_files, 2);
    assert_int_equal(recovery.records, 7);
    assert_int_equal(recovery.tasks, 2);
    assert_int_equal(recovery.payload_bytes, 140);
    gbx_recovery_free(&recovery);
    assert_false(is_there("tensor_dump.json.tmp") || is_there("kernel_args_dump.json.tmp"));
    check_good(7, true);
    check_manifest_has("\"complete\": true");
    made_remove(&dump);
}

static void only_manifests_that_were_wanted_are_written(void **state) {
    (void)state;
    gbx_recovery recovery;
    memset(&dump, 0, sizeof dump);
    made_run(&dump, "{\"generator\": \"hand\", \"run\": {}, \"has_args\": true, \"kernels\": []}");
    made_end_block(&dump);
    made_write(&dump);
    char path[160];
    made_path(&dump, "tensor_dump.bin", path);
    assert_int_equal(unlink(path), 0);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_true(recovery.has_args_manifests && recovery.has_ended);
    assert_false(recovery.has_tensor_manifest);
    gbx_recovery_free(&recovery);
    assert_true(is_there("args_dump.json") && is_there("kernel_args_dump.json"));
    assert_false(is_there("tensor_dump.json"));
    check_good(0, false);
    made_remove(&dump);
}

static void missing_payload_is_reported(void **state) {
    (void)state;
    gbx_recovery recovery;
    gbx_verification found;
    make();
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[2]);
    made_cut(&dump, "tensor_dump.bin", MADE_INOUT_AT + 3);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.findings.count, 1);
    assert_int_equal(recovery.findings.items[0].place.index, 4);
    assert_string_equal(recovery.findings.items[0].kernel, "fold");
    assert_string_equal(recovery.findings.items[0].got, "4 bytes at byte 4096");
    gbx_recovery_free(&recovery);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 1);
    assert_int_equal(found.findings.items[0].kind, GBX_FINDING_OFFSET);
    gbx_verification_free(&found);
    made_remove(&dump);
}

static void a_run_that_goes_on_is_refused(void **state) {
    (void)state;
    gbx_recovery recovery;
    char path[160];
    make();
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[2] + 7);
    made_path(&dump, "tensor_dump.rec", path);
    int writer = open(path, O_WRONLY);
    assert_int_equal(flock(writer, LOCK_EX), 0);
    assert_fails(gbx_dump_recover(dump.directory, &recovery), GBX_UNSUPPORTED, "is in use",
                 "the run is still going on", "wait until it ends");
    assert_int_equal(made_file_bytes(&dump, "tensor_dump.rec"), dump.block_starts[2] + 7);
    assert_false(is_there("tensor_dump.rec.broken") || is_there("tensor_dump.json"));
    close(writer);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    gbx_recovery_free(&recovery);
    check_good(6, false);
    made_remove(&dump);
}

static void without_a_record_nothing_is_touched(void **state) {
    (void)state;
    gbx_recovery recovery;
    static const uint64_t lengths[] = {0, 10, 64, 70, 200};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i) {
        make();
        made_cut(&dump, "tensor_dump.rec", lengths[i]);
        assert_fails(gbx_dump_recover(dump.directory, &recovery), GBX_BAD_FORMAT,
                     "no record can be kept", dump.directory);
        assert_int_equal(made_file_bytes(&dump, "tensor_dump.rec"), lengths[i]);
        assert_false(is_there("tensor_dump.rec.broken") || is_there("tensor_dump.json"));
        made_remove(&dump);
    }
    make();
    char path[160];
    made_path(&dump, "tensor_dump.rec", path);
    assert_int_equal(unlink(path), 0);
    assert_fails(gbx_dump_recover(dump.directory, &recovery), GBX_NOT_FOUND, "is missing");
    made_write_file(&dump, "tensor_dump.json", "{\"tensors\": []}", 15);
    assert_fails(gbx_dump_recover(dump.directory, &recovery), GBX_NOT_FOUND, "it has no journal",
                 dump.directory);
    made_remove(&dump);
}

/* What a newer version wrote is not damage: every byte and every file name stays. */
static void check_left_alone(const char *expected) {
    static unsigned char before[1 << 16], after[1 << 16];
    gbx_recovery recovery;
    made_write_file(&dump, "tensor_dump.json.tmp", "{", 1);
    size_t size = read_file("tensor_dump.rec", before, sizeof before);
    assert_fails(gbx_dump_recover(dump.directory, &recovery), GBX_UNSUPPORTED, expected,
                 "nothing was changed", dump.directory);
    assert_int_equal(read_file("tensor_dump.rec", after, sizeof after), size);
    assert_memory_equal(before, after, size);
    assert_false(is_there("tensor_dump.rec.broken") || is_there("tensor_dump.json"));
    assert_true(is_there("tensor_dump.json.tmp"));
    made_remove(&dump);
}

static void unknown_records_are_not_changed(void **state) {
    (void)state;
    made_good(&dump);
    ((gbx_record *)made_record(&dump, MADE_DONE_1))->type = GBX_RECORD_MUST_UNDERSTAND | 12;
    made_write(&dump);
    check_left_alone("needs a newer glassbox");

    made_good(&dump);
    made_tensor_at(&dump, MADE_OUTPUT)->head.dtype = GBX_DTYPE_COUNT;
    made_write(&dump);
    check_left_alone("the checksum of the block matches, so it was written like this");

    made_good(&dump);
    made_done(&dump, 1); /* after END */
    made_end_block(&dump);
    made_write(&dump);
    check_left_alone("the checksum of the block matches, so it was written like this");

    make();
    made_flip(&dump, "tensor_dump.rec", 8, 1); /* version 3 */
    check_left_alone("version 3");
}

/* Records of unknown types stay when the run was killed. */
static void records_of_newer_types_are_kept(void **state) {
    (void)state;
    static unsigned char before[1 << 16], after[1 << 16];
    gbx_recovery recovery;
    made_good(&dump);
    ((gbx_record *)made_record(&dump, MADE_DONE_0))->type = 77;
    made_write(&dump);
    size_t size = read_file("tensor_dump.rec", before, sizeof before);
    made_cut(&dump, "tensor_dump.rec", dump.block_starts[2]);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.newer_records, 1);
    assert_int_equal(recovery.records, 6);
    assert_true(recovery.has_ended && recovery.has_tensor_manifest);
    gbx_recovery_free(&recovery);
    assert_true(read_file("tensor_dump.rec", after, sizeof after) > dump.block_starts[2]);
    assert_true(size > dump.block_starts[2]);
    assert_memory_equal(before, after, dump.block_starts[2]);
    check_good(6, false);
    /* The manifest may hold what those records say, so it is not replaced by one with less. */
    made_flip(&dump, "tensor_dump.rec", dump.block_starts[2] + 40, 2);
    size = read_file("tensor_dump.json", before, sizeof before);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.kept_entries, 6);
    assert_false(recovery.has_tensor_manifest);
    gbx_recovery_free(&recovery);
    assert_int_equal(read_file("tensor_dump.json", after, sizeof after), size);
    assert_memory_equal(before, after, size);
    made_remove(&dump);
}

/* A manifest that has more than the damaged journal stays; one that has not is replaced. */
static void a_manifest_is_not_made_poorer(void **state) {
    (void)state;
    static unsigned char before[1 << 16], after[1 << 16];
    gbx_recovery recovery;
    make();
    assert_ok(gbx_manifest_write(dump.directory, true, false));
    size_t size = read_file("tensor_dump.json", before, sizeof before);
    made_flip(&dump, "tensor_dump.rec", dump.block_starts[1] + 40, 2);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.records, 2);
    assert_int_equal(recovery.kept_entries, 7);
    assert_true(recovery.cut_bytes > 0 && recovery.has_ended);
    assert_false(recovery.has_tensor_manifest || recovery.was_whole);
    gbx_recovery_free(&recovery);
    assert_int_equal(read_file("tensor_dump.json", after, sizeof after), size);
    assert_memory_equal(before, after, size);
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_true(recovery.was_whole);
    gbx_recovery_free(&recovery);
    made_remove(&dump);

    make();
    assert_ok(gbx_manifest_write(dump.directory, true, false));
    made_flip(&dump, "tensor_dump.rec", made_file_bytes(&dump, "tensor_dump.rec") - 1, 2);
    made_cut(&dump, "tensor_dump.json", 400); /* no longer JSON */
    assert_ok(gbx_dump_recover(dump.directory, &recovery));
    assert_int_equal(recovery.kept_entries, 0);
    assert_true(recovery.has_tensor_manifest);
    gbx_recovery_free(&recovery);
    check_good(6, false);
    made_remove(&dump);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_complete_dump_is_not_changed),
        cmocka_unit_test(a_run_killed_at_any_moment_is_recovered),
        cmocka_unit_test(zeros_at_the_end_are_cut_off),
        cmocka_unit_test(a_damaged_journal_is_recovered_up_to_the_damage),
        cmocka_unit_test(every_tail_is_kept),
        cmocka_unit_test(missing_manifests_are_written),
        cmocka_unit_test(only_manifests_that_were_wanted_are_written),
        cmocka_unit_test(missing_payload_is_reported),
        cmocka_unit_test(a_run_that_goes_on_is_refused),
        cmocka_unit_test(without_a_record_nothing_is_touched),
        cmocka_unit_test(unknown_records_are_not_changed),
        cmocka_unit_test(records_of_newer_types_are_kept),
        cmocka_unit_test(a_manifest_is_not_made_poorer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
