#include "hand_made_dump.h"

#include <sys/file.h>

#include "store/manifest/manifest.h"
#include "store/verify/verify.h"

/* Changes records before they are written, or files afterwards; either may be NULL. */
typedef struct damage {
    void (*change)(made_dump *dump);
    void (*harm)(made_dump *dump);
    size_t count;          /* of findings */
    gbx_finding_kind kind; /* of the first finding, like the fields below */
    int index;             /* of its record; -1 for none */
    const char *kernel;
    const char *texts[4]; /* found in what, expected or got */
} damage;

static made_dump dump;

static void make(void (*change)(made_dump *), void (*harm)(made_dump *)) {
    made_good(&dump);
    if (change)
        change(&dump);
    made_write(&dump);
    assert_ok(gbx_manifest_write(dump.directory, true, false));
    if (harm)
        harm(&dump);
}

static void print_findings(const gbx_findings *findings) {
    for (size_t i = 0; i < findings->count; ++i)
        print_message("%s: %s, expected %s, got %s\n",
                      gbx_name_of(&gbx_finding_kinds, findings->items[i].kind),
                      findings->items[i].what, findings->items[i].expected, findings->items[i].got);
}

static void check_text(const gbx_finding *finding, const char *text) {
    bool is_there = strstr(finding->what, text) ||
                    (finding->expected && strstr(finding->expected, text)) ||
                    (finding->got && strstr(finding->got, text));
    if (!is_there)
        fail_msg("\"%s\" is not in the finding", text);
}

static void check_damage(const damage *expected) {
    gbx_verification found;
    make(expected->change, expected->harm);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    if (found.findings.count != expected->count)
        print_findings(&found.findings);
    assert_int_equal(found.findings.count, expected->count);
    const gbx_finding *first = &found.findings.items[0];
    if (first->kind != expected->kind)
        print_findings(&found.findings);
    assert_int_equal(first->kind, expected->kind);
    assert_int_equal(first->has_place ? (int)first->place.index : -1, expected->index);
    if (expected->kernel)
        assert_string_equal(first->kernel, expected->kernel);
    for (size_t i = 0; i < 4 && expected->texts[i]; ++i)
        check_text(first, expected->texts[i]);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* --- a correct dump --- */

static void a_good_dump_is_good(void **state) {
    (void)state;
    gbx_verification found;
    make(NULL, NULL);
    size_t files = count_open_files();
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    print_findings(&found.findings);
    assert_int_equal(found.findings.count, 0);
    assert_int_equal(found.records, 7);
    assert_int_equal(found.payload_bytes, 140);
    assert_int_equal(found.hashed_records, 6);
    assert_int_equal(found.unhashed_tensors, 0);
    assert_int_equal(found.file_bytes, MADE_BIN_BYTES);
    assert_true(found.is_strict);
    assert_false(found.can_be_recovered);
    gbx_verification_free(&found);
    assert_int_equal(count_open_files(), files);
    made_remove(&dump);
}

/* --- payload --- */

static void flip_input(made_dump *made) {
    made_flip(made, "tensor_dump.bin", MADE_INPUT_AT + 23, 0x01);
}

static void flip_output(made_dump *made) {
    made_flip(made, "tensor_dump.bin", MADE_OUTPUT_AT, 0x80);
}

/* Not part of any payload. */
static void flip_gap(made_dump *made) {
    made_flip(made, "tensor_dump.bin", MADE_TRUNCATED_AT + 64, 0xff);
}

static void flip_hash(made_dump *made) {
    made_tensor_at(made, MADE_TRUNCATED)->hash_high ^= 1;
}

static void flip_empty_hash(made_dump *made) {
    made_tensor_at(made, MADE_EMPTY)->hash_low ^= 1;
}

static void flip_duplicate_hash(made_dump *made) {
    made_tensor_at(made, MADE_DUPLICATE)->hash_low ^= 1;
}

static void remove_payload(made_dump *made) {
    char path[160];
    made_path(made, "tensor_dump.bin", path);
    assert_int_equal(unlink(path), 0);
}

static void cut_payload(made_dump *made) {
    made_cut(made, "tensor_dump.bin", MADE_TRUNCATED_AT + 63);
}

static void empty_payload(made_dump *made) {
    made_cut(made, "tensor_dump.bin", 0);
}

static void point_beyond(made_dump *made) {
    made_tensor_at(made, MADE_TRUNCATED)->bin_offset = UINT64_C(1) << 40;
}

static void point_between(made_dump *made) {
    made_payload(made, made_tensor_at(made, MADE_INOUT), MADE_INOUT_AT + 32, 4, 9);
}

static void overlap(made_dump *made) {
    gbx_record_tensor *record = made_tensor_at(made, MADE_TRUNCATED);
    made_payload(made, record, MADE_OUTPUT_AT, 64, 2); /* its first bytes are those of the output */
}

static void store_twice(made_dump *made) {
    gbx_record_end *end = made_record(made, MADE_END);
    made_tensor_at(made, MADE_DUPLICATE)->head.flags &= (uint16_t)~GBX_FLAG_DUPLICATE;
    end->deduplicated = 0;
    end->stored_bytes += 24;
}

static void share_nothing(made_dump *made) {
    gbx_record_end *end = made_record(made, MADE_END);
    made_tensor_at(made, MADE_INOUT)->head.flags |= GBX_FLAG_DUPLICATE;
    end->deduplicated = 2;
    end->stored_bytes -= 4;
}

static void damaged_payload_is_found_and_named(void **state) {
    (void)state;
    static const damage cases[] = {
        {NULL, flip_input, 1, GBX_FINDING_HASH, 0, "scale", {"24 bytes at byte 0"}},
        {NULL, flip_output, 2, GBX_FINDING_HASH, 2, "scale", {"24 bytes at byte 64"}},
        {flip_hash, NULL, 1, GBX_FINDING_HASH, 6, "fold", {"64 bytes at byte 8192"}},
        {flip_empty_hash,
         NULL,
         1,
         GBX_FINDING_HASH,
         5,
         "fold",
         {"hash of 0 bytes", "99aa06d3014798d86001c324468d497f"}},
        {flip_duplicate_hash, NULL, 1, GBX_FINDING_HASH, 3, "fold", {"24 bytes at byte 64"}},
        {NULL,
         remove_payload,
         1,
         GBX_FINDING_FILE,
         -1,
         NULL,
         {"tensor_dump.bin is missing", "6 records", "116 bytes"}},
        {NULL,
         cut_payload,
         1,
         GBX_FINDING_OFFSET,
         6,
         "fold",
         {"inside the 8255 bytes", "64 bytes at byte 8192"}},
        {NULL, empty_payload, 5, GBX_FINDING_OFFSET, 0, "scale", {"24 bytes at byte 0"}},
        {point_beyond, NULL, 1, GBX_FINDING_OFFSET, 6, "fold", {"64 bytes at byte 1099511627776"}},
        {point_between,
         NULL,
         1,
         GBX_FINDING_OFFSET,
         4,
         "fold",
         {"bin_offset", "a multiple of 64", "4128"}},
        {overlap,
         NULL,
         1,
         GBX_FINDING_OVERLAP,
         6,
         "fold",
         {"64 bytes at byte 64", "24 bytes at byte 64 of record 2"}},
        {store_twice, NULL, 1, GBX_FINDING_OVERLAP, 3, "fold", {"is also stored by record 2"}},
        {share_nothing, NULL, 1, GBX_FINDING_RECORD, 4, "fold", {"no record stored them"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_damage(&cases[i]);
}

static void bytes_of_no_record_do_not_count(void **state) {
    (void)state;
    gbx_verification found;
    make(NULL, flip_gap);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 0);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* Larger than what is read at a time, and across those boundaries. */
static void large_payload_is_hashed_in_pieces(void **state) {
    (void)state;
    static unsigned char bytes[5 << 20];
    static const int64_t shape[] = {5 << 20};
    for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    memset(&dump, 0, sizeof dump);
    made_run(&dump, made_run_json);
    made_task(&dump, 0, 0, 0);
    gbx_record_tensor *record =
        made_tensor(&dump, 0, 0, GBX_STAGE_BEFORE, GBX_ROLE_INPUT, GBX_UINT8, 1, shape);
    gbx_hash128 hash = gbx_hash_bytes(bytes, sizeof bytes);
    record->head.flags |= GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_HAS_HASH;
    record->bin_size = sizeof bytes;
    record->hash_low = hash.low;
    record->hash_high = hash.high;
    made_done(&dump, 0);
    gbx_record_end end = {.record_count = 1,
                          .task_count = 1,
                          .payload_bytes = sizeof bytes,
                          .stored_bytes = sizeof bytes};
    made_end(&dump, &end, "ok");
    made_end_block(&dump);
    made_write(&dump);
    made_write_file(&dump, "tensor_dump.bin", bytes, sizeof bytes);
    assert_ok(gbx_manifest_write(dump.directory, true, false));
    static const size_t places[] = {0, (1 << 20) - 1, 1 << 20, (4 << 20) + 5, sizeof bytes - 1};
    for (size_t i = 0; i <= sizeof places / sizeof places[0]; ++i) {
        gbx_verification found;
        bool is_harmed = i < sizeof places / sizeof places[0];
        if (is_harmed)
            made_flip(&dump, "tensor_dump.bin", places[i], 4);
        assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
        assert_int_equal(found.findings.count, is_harmed);
        gbx_verification_free(&found);
        if (is_harmed)
            made_flip(&dump, "tensor_dump.bin", places[i], 4);
    }
    made_remove(&dump);
}

/* --- sizes and contents of a record --- */

static void shorten(made_dump *made) {
    gbx_record_end *end = made_record(made, MADE_END);
    made_payload(made, made_tensor_at(made, MADE_INPUT), MADE_INPUT_AT, 20, 1);
    end->payload_bytes -= 4;
    end->stored_bytes -= 4;
}

static void claim_truncated(made_dump *made) {
    made_tensor_at(made, MADE_INOUT)->head.flags |= GBX_FLAG_TRUNCATED;
}

static void claim_no_payload(made_dump *made) {
    gbx_record_end *end = made_record(made, MADE_END);
    made_tensor_at(made, MADE_TRUNCATED)->head.flags &= (uint16_t)~GBX_FLAG_HAS_PAYLOAD;
    end->payload_bytes -= 64;
    end->stored_bytes -= 64;
}

static void claim_no_hash(made_dump *made) {
    made_tensor_at(made, MADE_INPUT)->head.flags &= (uint16_t)~GBX_FLAG_HAS_HASH;
}

static void claim_contiguous(made_dump *made) {
    made_tensor_at(made, MADE_INOUT)->head.flags |= GBX_FLAG_CONTIGUOUS;
}

static void start_before(made_dump *made) {
    made_tensor_at(made, MADE_INPUT)->start_offset = -1;
}

static void swap_stage(made_dump *made) {
    made_tensor_at(made, MADE_OUTPUT)->head.role = GBX_ROLE_INPUT;
}

static void records_that_contradict_themselves_are_found(void **state) {
    (void)state;
    static const damage cases[] = {
        {shorten, NULL, 1, GBX_FINDING_SIZE, 0, "scale", {"bin_size", "24", "20"}},
        {claim_truncated, NULL, 1, GBX_FINDING_SIZE, 4, "fold", {"truncated", "less than 4", "4"}},
        {claim_no_payload, NULL, 1, GBX_FINDING_SIZE, 6, "fold", {"without payload", "0", "64"}},
        {claim_no_hash, NULL, 1, GBX_FINDING_RECORD, 0, "scale", {"has payload, but no hash"}},
        {claim_contiguous,
         NULL,
         1,
         GBX_FINDING_RECORD,
         4,
         "fold",
         {"is_contiguous", "false", "true"}},
        {start_before, NULL, 1, GBX_FINDING_RECORD, 0, "scale", {"do not describe a valid tensor"}},
        {swap_stage, NULL, 1, GBX_FINDING_RECORD, 2, "scale", {"stage of an input"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_damage(&cases[i]);
}

/* --- counts --- */

static void miscount_records(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->record_count = 8;
}

static void miscount_tasks(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->task_count = 1;
}

static void miscount_dispatches(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->dispatch_count = 1;
}

static void miscount_payload(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->payload_bytes = 141;
}

static void miscount_stored(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->stored_bytes = 140;
}

static void miscount_duplicates(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->deduplicated = 0;
}

static void miscount_dropped(made_dump *made) {
    ((gbx_record_end *)made_record(made, MADE_END))->dropped = 3;
}

static void miscount_predecessors(made_dump *made) {
    ((gbx_record_task *)made_record(made, MADE_TASK_1))->predecessor_count = 2;
}

static void forget_predecessors(made_dump *made) {
    ((gbx_record_task *)made_record(made, MADE_TASK_1))->predecessor_count = 0;
}

static void repeat_argument(made_dump *made) {
    gbx_record *again = made_record(made, MADE_EMPTY);
    again->arg_index = 0;
}

/* A record of the same length that says nothing about the task. */
static void lose_task(made_dump *made) {
    gbx_record_task *task = made_record(made, MADE_TASK_0);
    gbx_record_end *end = made_record(made, MADE_END);
    task->head.type = GBX_RECORD_RUN_ARG;
    task->head.dtype = GBX_UINT64;
    task->task_id = 0;
    end->task_count = 1;
}

static void lose_done(made_dump *made) {
    gbx_record *done = made_record(made, MADE_DONE_1);
    done->task = 0;
}

static void wrong_counts_are_found(void **state) {
    (void)state;
    static const damage cases[] = {
        {miscount_records, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"record_count", "7", "8"}},
        {miscount_tasks, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"task_count", "2", "1"}},
        {miscount_dispatches, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"dispatch_count", "0", "1"}},
        {miscount_payload, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"payload_bytes", "140", "141"}},
        {miscount_stored, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"stored_bytes", "116", "140"}},
        {miscount_duplicates, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"deduplicated", "1", "0"}},
        {miscount_dropped, NULL, 1, GBX_FINDING_COUNT, -1, NULL, {"dropped", "0", "3"}},
        {miscount_predecessors,
         NULL,
         1,
         GBX_FINDING_TASK,
         -1,
         NULL,
         {"task 1: predecessors", "2", "1"}},
        {forget_predecessors,
         NULL,
         1,
         GBX_FINDING_TASK,
         -1,
         NULL,
         {"task 1: predecessors", "0", "1"}},
        {repeat_argument, NULL, 1, GBX_FINDING_TASK, 4, "fold", {"recorded twice"}},
        {lose_task, NULL, 1, GBX_FINDING_TASK, -1, NULL, {"task 0: TASK records", "1", "0"}},
        {lose_done, NULL, 2, GBX_FINDING_TASK, -1, NULL, {"task 0: completions", "1", "2"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_damage(&cases[i]);
}

/* --- what tasks announce --- */

/* Gives a TASK record its tail. */
static void announce(made_dump *made, size_t place, uint32_t before, uint32_t after) {
    gbx_record *task = made_record(made, place);
    size_t end = made->starts[place] + (size_t)task->words * 8;
    memmove(made->records + end + 8, made->records + end, made->used - end);
    memcpy(made->records + end, (const uint32_t[2]){before, after}, 8);
    ++task->words;
    for (size_t i = place + 1; i < made->count; ++i)
        made->starts[i] += 8;
    made->used += 8;
}

static void announce_all(made_dump *made) {
    announce(made, MADE_TASK_0, 2, 1);
    announce(made, MADE_TASK_1, 3, 1);
}

static void announce_more(made_dump *made) {
    announce(made, MADE_TASK_0, 2, 1);
    announce(made, MADE_TASK_1, 5, 1);
}

static void announce_fewer(made_dump *made) {
    announce(made, MADE_TASK_0, 2, 0);
    announce(made, MADE_TASK_1, 3, 1);
}

/* A task with two arguments less than it announced, and a loss of so many arguments. */
static void lose_arguments(made_dump *made, uint64_t argument_count, uint32_t is_least) {
    announce_more(made);
    gbx_record_end end = *(gbx_record_end *)made_record(made, MADE_END);
    made->used = made->starts[--made->count];
    gbx_record_loss *loss = made_append(made, GBX_RECORD_LOSS, sizeof *loss, 8);
    loss->head.arg_index = GBX_ARG_NONE;
    loss->head.stage = GBX_STAGE_NONE;
    loss->count = end.dropped = 3;
    loss->is_least = is_least;
    memcpy(loss + 1, &argument_count, 8);
    made_end(made, &end, "ok");
    made->block_ends[made->block_count - 1] = made->count;
}

static void lose_two_arguments(made_dump *made) {
    lose_arguments(made, 2, 0);
}

static void lose_one_argument(made_dump *made) {
    lose_arguments(made, 1, 0);
}

static void lose_unknown_arguments(made_dump *made) {
    lose_arguments(made, 0, 1);
}

static void announced_arguments_are_recorded_or_lost(void **state) {
    (void)state;
    static const damage wrong[] = {
        {announce_more,
         NULL,
         1,
         GBX_FINDING_TASK,
         -1,
         NULL,
         {"task 1, kernel fold: arguments that it announced", "6", "4"}},
        {announce_fewer,
         NULL,
         1,
         GBX_FINDING_TASK,
         -1,
         NULL,
         {"task 0, kernel scale: arguments that it announced", "2", "3"}},
        {lose_one_argument, NULL, 1, GBX_FINDING_TASK, -1, NULL, {"task 1, kernel fold", "6", "4"}},
    };
    static void (*const right[])(made_dump *) = {announce_all, lose_two_arguments,
                                                 lose_unknown_arguments};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
        check_damage(&wrong[i]);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; ++i) {
        gbx_verification found;
        make(right[i], NULL);
        assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
        print_findings(&found.findings);
        assert_int_equal(found.findings.count, 0);
        gbx_verification_free(&found);
        made_remove(&dump);
    }
}

/* Recorded losses are not missed; what is recorded must add up. */
static void lose_task_and_tell(made_dump *made) {
    lose_task(made);
    gbx_record_end end = *(gbx_record_end *)made_record(made, MADE_END);
    made->used = made->starts[--made->count];
    gbx_record_loss *loss = made_append(made, GBX_RECORD_LOSS, sizeof *loss, 0);
    loss->head.arg_index = GBX_ARG_NONE;
    loss->head.stage = GBX_STAGE_NONE;
    loss->count = 3;
    loss->cause = GBX_LOSS_STALL;
    end.dropped = 3;
    made_end(made, &end, "ok");
    made->block_ends[made->block_count - 1] = made->count;
}

static void recorded_losses_are_not_wrong(void **state) {
    (void)state;
    gbx_verification found;
    make(lose_task_and_tell, NULL);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    print_findings(&found.findings);
    assert_int_equal(found.findings.count, 0);
    assert_false(found.is_strict);
    assert_int_equal(gbx_reader_list_count(found.reader, GBX_LIST_LOSSES), 1);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* --- the journal --- */

static void flip_last_block(made_dump *made) {
    made_flip(made, "tensor_dump.rec", made->block_starts[2] + 100, 0x10);
}

static void flip_middle_block(made_dump *made) {
    made_flip(made, "tensor_dump.rec", made->block_starts[1] + 33, 0x01);
}

static void flip_block_head(made_dump *made) {
    made_flip(made, "tensor_dump.rec", made->block_starts[1] + 12, 0x01);
}

static void cut_last_block(made_dump *made) {
    made_cut(made, "tensor_dump.rec", made->block_starts[3] - 1);
}

static void cut_whole_block(made_dump *made) {
    made_cut(made, "tensor_dump.rec", made->block_starts[2]);
}

static void check_broken(void (*harm)(made_dump *), size_t journal_findings, uint64_t records,
                         const char *text) {
    gbx_verification found;
    make(NULL, harm);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    size_t count = 0;
    for (size_t i = 0; i < found.findings.count; ++i)
        count += found.findings.items[i].kind == GBX_FINDING_JOURNAL;
    assert_int_equal(count, journal_findings);
    check_text(&found.findings.items[0], text);
    assert_int_equal(found.records, records);
    assert_true(found.can_be_recovered);
    for (size_t i = 0; i < found.findings.count; ++i) /* no hash or size is reported as wrong */
        assert_true(found.findings.items[i].kind == GBX_FINDING_JOURNAL ||
                    found.findings.items[i].kind == GBX_FINDING_MANIFEST);
    gbx_verification_free(&found);
    made_remove(&dump);
}

static void a_broken_journal_is_found_and_the_rest_is_read(void **state) {
    (void)state;
    check_broken(
        flip_last_block, 2, 6,
        "block 2 do not match their checksum; readable records of the journal before it: 11");
    check_broken(
        flip_middle_block, 2, 2,
        "block 1 do not match their checksum; readable records of the journal before it: 4");
    check_broken(flip_block_head, 2, 2, "the head of block 1 does not match");
    check_broken(cut_last_block, 2, 6, "block 2 is cut off");
    check_broken(cut_whole_block, 1, 6, "there is no END record");
}

static void a_journal_that_cannot_be_read_is_a_failure(void **state) {
    (void)state;
    gbx_verification found;
    make(NULL, NULL);
    made_flip(&dump, "tensor_dump.rec", dump.block_starts[0] + 50, 0x01);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_BAD_FORMAT, "no readable block",
                 "block 0 do not match");
    made_cut(&dump, "tensor_dump.rec", 64);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_BAD_FORMAT, "the file ends");
    made_cut(&dump, "tensor_dump.rec", 0);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_BAD_FORMAT,
                 "not the journal of a dump");
    char path[160];
    made_path(&dump, "tensor_dump.rec", path);
    unlink(path);
    made_path(&dump, "tensor_dump.json", path);
    unlink(path);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_NOT_FOUND,
                 "tensor_dump.rec is missing");
    made_remove(&dump);
}

static void a_run_that_goes_on_is_reported(void **state) {
    (void)state;
    gbx_verification found;
    char path[160];
    make(NULL, NULL);
    made_path(&dump, "tensor_dump.rec", path);
    int writer = open(path, O_WRONLY);
    assert_int_equal(flock(writer, LOCK_EX), 0);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_UNSUPPORTED, "is being written",
                 "wait until it ends");
    close(writer);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* --- a manifest without a journal --- */

static void take_journal_away(made_dump *made) {
    char path[160];
    made_path(made, "tensor_dump.rec", path);
    assert_int_equal(unlink(path), 0);
}

static void replace_in_manifest(made_dump *made, const char *old, const char *new) {
    static char text[1 << 16], changed[1 << 16];
    char path[160];
    made_path(made, "tensor_dump.json", path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(text, old);
    assert_non_null(at);
    int size = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, new,
                        at + strlen(old));
    made_write_file(made, "tensor_dump.json", changed, (size_t)size);
}

static void count_one_more(made_dump *made) {
    take_journal_away(made);
    replace_in_manifest(made, "\"before_dispatch\": 5", "\"before_dispatch\": 6");
}

static void flip_without_journal(made_dump *made) {
    take_journal_away(made);
    flip_output(made);
}

static void move_beyond(made_dump *made) {
    take_journal_away(made);
    replace_in_manifest(made, "\"bin_offset\":8192", "\"bin_offset\":12288");
}

static void say_contiguous(made_dump *made) {
    take_journal_away(made);
    replace_in_manifest(made, "\"is_contiguous\":false", "\"is_contiguous\":true");
}

static void forget_hash(made_dump *made) {
    take_journal_away(made);
    replace_in_manifest(made, "\"hash\":", "\"digest\":");
}

static void a_manifest_without_journal_is_verified(void **state) {
    (void)state;
    static const damage cases[] = {
        {NULL, count_one_more, 1, GBX_FINDING_COUNT, -1, NULL, {"before_dispatch", "5", "6"}},
        {NULL, flip_without_journal, 2, GBX_FINDING_HASH, 2, "scale", {"24 bytes at byte 64"}},
        {NULL, move_beyond, 1, GBX_FINDING_OFFSET, 6, "fold", {"12288 bytes of tensor_dump.bin"}},
    };
    gbx_verification found;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        check_damage(&cases[i]);
    make(NULL, take_journal_away);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 0);
    assert_int_equal(found.records, 7);
    assert_int_equal(found.hashed_records, 6);
    assert_false(found.can_be_recovered);
    gbx_verification_free(&found);
    made_remove(&dump);
    make(NULL, say_contiguous);
    assert_fails(gbx_dump_verify(dump.directory, NULL, &found), GBX_BAD_FORMAT,
                 "tensors[4].is_contiguous: is true, but");
    made_remove(&dump);
    make(NULL, forget_hash);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 0);
    assert_int_equal(found.hashed_records, 5);
    assert_int_equal(found.unchecked_tensors, 1);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* Payload of other tools need not be aligned, and may overlap. */
static void a_dump_of_another_tool_is_verified_as_far_as_possible(void **state) {
    (void)state;
    static const char manifest[] =
        "{\"bin_file\": \"x.bin\", \"total_args\": 2, \"args\": ["
        "{\"task_id\": 1, \"arg_index\": 0, \"role\": \"input\", \"stage\": \"after_completion\","
        " \"dtype\": \"UINT8\", \"shape\": [10], \"bin_offset\": 3, \"bin_size\": 10},"
        "{\"task_id\": 1, \"arg_index\": 0, \"role\": \"input\", \"stage\": \"after_completion\","
        " \"dtype\": \"UINT8\", \"shape\": [10], \"bin_offset\": 7, \"bin_size\": 10}]}";
    gbx_verification found;
    make(NULL, take_journal_away);
    char path[160];
    made_path(&dump, "tensor_dump.json", path);
    assert_int_equal(unlink(path), 0);
    made_write_file(&dump, "args_dump.json", manifest, sizeof manifest - 1);
    made_write_file(&dump, "x.bin", "0123456789abcdefg", 17);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    print_findings(&found.findings);
    assert_int_equal(found.findings.count, 0);
    assert_int_equal(found.unchecked_tensors, 2);
    assert_int_equal(found.hashed_records, 0);
    gbx_verification_free(&found);
    made_write_file(&dump, "x.bin", "0123456789abcdef", 16);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 1);
    assert_int_equal(found.findings.items[0].kind, GBX_FINDING_OFFSET);
    check_text(&found.findings.items[0], "16 bytes of x.bin");
    gbx_verification_free(&found);
    made_path(&dump, "x.bin", path);
    assert_int_equal(unlink(path), 0);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 1);
    check_text(&found.findings.items[0], "x.bin is missing: 2 records have 20 bytes");
    gbx_verification_free(&found);
    made_remove(&dump);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_dump_is_good),
        cmocka_unit_test(damaged_payload_is_found_and_named),
        cmocka_unit_test(bytes_of_no_record_do_not_count),
        cmocka_unit_test(large_payload_is_hashed_in_pieces),
        cmocka_unit_test(records_that_contradict_themselves_are_found),
        cmocka_unit_test(wrong_counts_are_found),
        cmocka_unit_test(announced_arguments_are_recorded_or_lost),
        cmocka_unit_test(recorded_losses_are_not_wrong),
        cmocka_unit_test(a_broken_journal_is_found_and_the_rest_is_read),
        cmocka_unit_test(a_journal_that_cannot_be_read_is_a_failure),
        cmocka_unit_test(a_run_that_goes_on_is_reported),
        cmocka_unit_test(a_manifest_without_journal_is_verified),
        cmocka_unit_test(a_dump_of_another_tool_is_verified_as_far_as_possible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
