#include "journal_test_builder.h"

#include <inttypes.h>

#include "store/manifest/manifest.h"
#include "store/reader.h"

static const uint32_t aiv_only[3] = {UINT32_MAX, 7, UINT32_MAX};
static const uint32_t mixed[3] = {3, 7, UINT32_MAX};
static const uint64_t no_counts[8];

static const char run_json[] =
    "{\"generator\": \"glassbox 0.1.0\", \"run\": {\"run_id\": \"r-1\", \"scene\": \"softmax\", "
    "\"case\": \"small\", \"platform\": \"a5sim\", \"runtime\": \"host_build_graph\", \"rank\": 2, "
    "\"round\": 1, \"started_at\": \"2026-01-02T03:04:05Z\"}, \"dump_level\": \"full\", "
    "\"has_args\": true, \"filters\": [\"kernel=a*\"], \"kernels\": [{\"func_id\": 7, \"name\": "
    "\"add\", \"core_type\": \"aiv\", \"signature\": [\"in\", \"scalar:float32\", \"out\"], "
    "\"arg_names\": [\"x\", \"alpha\", \"y\"]}, {\"func_id\": 3, \"name\": \"mul\", \"core_type\": "
    "\"aic\", \"signature\": [\"in\", \"out\"]}], \"run_args\": [{\"name\": \"x\", \"role\": "
    "\"input\"}, {\"name\": null, \"role\": \"scalar\"}]}";

static void add_dispatch(builder *b, uint64_t task, uint32_t block_idx, uint32_t subtask) {
    begin_record(b, (head){.type = 8, .task = task, .time_ns = 50});
    put_u64(b, 0x100 + task);
    put_u32(b, 7);
    put_u32(b, 4);
    put_u32(b, block_idx);
    put_u32(b, 2);
    put_u32(b, subtask);
    put_u32(b, 2);
    put_u64(b, 0xaaaa);
    put_u64(b, 0xbbbb);
    static const unsigned char tensor_slot[8] = {0, 1, 0, 1, 2};
    put_bytes(b, tensor_slot, 8);
    put_u64(b, 0x5000);
    put_u64(b, 0x6000);
    put_u64(b, 3);
    static const uint64_t geometry[] = {4, 8, 16, 1};
    for (int i = 0; i < 4; ++i)
        put_u64(b, geometry[i]);
    static const unsigned char scalar_slot[8] = {1, 0, 0, 1, 0};
    put_bytes(b, scalar_slot, 8);
    put_u64(b, 0x3f800000);
}

static void add_run_arg(builder *b, unsigned arg_index, bool is_tensor, uint64_t bits) {
    begin_record(
        b, (head){.type = 2, .arg_index = arg_index, .dtype = 1, .ndims = is_tensor ? 1u : 0u});
    put_u64(b, is_tensor);
    put_u64(b, bits);
    if (is_tensor)
        put_u64(b, 24);
}

static void add_edges(builder *b, uint64_t task, uint64_t first, uint64_t second) {
    begin_record(b, (head){.type = 4, .task = task});
    put_u64(b, first);
    put_u64(b, second);
}

static void add_view(builder *b, unsigned stage, unsigned arg_index, uint64_t task, unsigned flags,
                     uint64_t bin_size) {
    static const int64_t shape[] = {2, 3};
    static const int64_t strides[] = {-3, 1};
    add_tensor(b,
               (head){.stage = stage,
                      .role = 2,
                      .arg_index = arg_index,
                      .dtype = 1,
                      .ndims = 2,
                      .flags = flags,
                      .task = task,
                      .time_ns = 60},
               (tensor_fields){.buffer_addr = 0x1000,
                               .bin_offset = 64,
                               .bin_size = bin_size,
                               .hash_low = 1,
                               .hash_high = 2,
                               .start_offset = 3,
                               .shape = shape,
                               .strides = strides});
    if (flags & 4)
        for (int i = 0; i < 7; ++i)
            put_u64(b, (uint64_t)i);
}

/* Every type; the records of two tasks out of order; three blocks. */
static void build_all(builder *b) {
    begin_journal(b);
    add_run(b, run_json);
    add_run_arg(b, 1, false, 99);
    add_run_arg(b, 0, true, 0x2000);
    end_block(b);
    add_dispatch(b, 5, 1, 0);
    add_view(b, 1, 0, 5, 1 | 2 | 4 | 8, 24);
    add_scalar(b, (head){.arg_index = 2, .dtype = 9, .task = 5}, 42);
    add_dispatch(b, 5, 0, 1);
    begin_record(b, (head){.type = 5, .task = 5, .time_ns = 70});
    add_view(b, 0, 1, 2, 1 | 32, 24);
    end_block(b);
    add_task(b, 5, 0x105, mixed, 2);
    add_edges(b, 5, 2, 3);
    add_view(b, 0, 0, 5, 0, 0);
    add_scalar(b, (head){.arg_index = 0, .dtype = 9, .task = 2}, 43);
    add_task(b, 2, 0x102, aiv_only, 1);
    add_view(b, 1, 1, 2, 1 | 16, 8);
    add_loss(b, (head){.stage = 1, .arg_index = 3, .task = 2}, 0, 11);
    add_loss(b, (head){.stage = 255, .arg_index = 255}, 3, 4);
    add_skipped(b, (head){.stage = 255, .arg_index = 255, .task = 5}, 1, 7);
    static const uint64_t counts[8] = {5, 2, 2, 56, 32, 1, 15, 1234};
    add_end(b, 1u << 8, counts, "ok");
    end_block(b);
}

static gbx_reader *open_all(const dump *d, unsigned indexed) {
    gbx_reader *reader = NULL;
    gbx_status status = gbx_reader_open(d->directory, indexed, &reader);
    assert_string_equal(gbx_status_message(status), "");
    return reader;
}

static const unsigned everything = GBX_INDEX_ARGUMENTS | GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH;

typedef struct fixture {
    dump d;
    builder b;
    uint32_t version; /* in the header on disk */
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    make_dump(&f->d);
    build_all(&f->b);
    finish_journal(&f->b, &f->d);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    remove_dump(&f->d);
    free(f->b.bytes);
    free(f);
    return 0;
}

static void totals_are_counted_from_the_records(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, GBX_INDEX_NOTHING);
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    assert_int_equal(totals->records, 5);
    assert_int_equal(totals->tensors, 3);
    assert_int_equal(totals->before_dispatch, 4);
    assert_int_equal(totals->after_completion, 1);
    assert_int_equal(totals->inputs, 2);
    assert_int_equal(totals->outputs, 0);
    assert_int_equal(totals->inouts, 3);
    assert_int_equal(totals->truncated, 1);
    assert_int_equal(totals->deduplicated, 1);
    assert_int_equal(totals->in_flight, 1);
    assert_int_equal(totals->payload_bytes, 24 + 24 + 8);
    assert_int_equal(totals->stored_bytes, 24 + 8);
    assert_int_equal(totals->tasks, 2);
    assert_int_equal(totals->dispatches, 2);
    assert_int_equal(totals->dispatch_args, 4);
    assert_int_equal(totals->run_args, 2);
    assert_int_equal(totals->losses, 2);
    assert_int_equal(totals->dropped, 15);
    assert_int_equal(totals->skipped, 1);
    assert_int_equal(gbx_reader_count(reader), 0);
    gbx_reader_close(reader);
}

static void everything_is_known(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, GBX_INDEX_NOTHING);
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    assert_int_equal(extent->block_count, 3);
    assert_int_equal(extent->record_count, 3 + 6 + 10);
    assert_int_equal(extent->good_bytes, f->b.size);
    assert_int_equal(extent->file_bytes, f->b.size);
    assert_int_equal(extent->stop, GBX_STOP_END);
    assert_int_equal(extent->stop_offset, f->b.size);
    assert_string_equal(extent->stop_text, "");
    assert_true(gbx_reader_is_complete(reader));
    assert_string_equal(gbx_reader_end_text(reader), "ok");
    assert_int_equal(gbx_reader_end(reader)->stall_ns, 1234);
    assert_int_equal(gbx_reader_end(reader)->record_count, 5);
    const gbx_run_info *run = gbx_reader_run(reader);
    assert_string_equal(run->scene, "softmax");
    assert_int_equal(run->rank, 2);
    assert_string_equal(run->filters[0], "kernel=a*");
    assert_string_equal(gbx_run_info_kernel(run, 3)->name, "mul");
    assert_null(gbx_run_info_kernel(run, 4));
    /* With the signature in, scalar, out, the scalar is in the last slot. */
    assert_string_equal(gbx_run_info_slot_name(run, mixed, 1), "y");
    assert_string_equal(gbx_run_info_slot_name(run, mixed, 2), "alpha");
    assert_null(gbx_run_info_slot_name(run, mixed, 3));
    assert_null(gbx_run_info_slot_name(run, mixed, 200));
    gbx_reader_close(reader);
}

/* type, task, and stage and arg_index or block_idx and subtask. */
static const uint64_t manifest_order[][4] = {
    {3, 2, 0, 0}, {6, 2, 0, 0}, {7, 2, 0, 1}, {7, 2, 1, 1}, {3, 5, 0, 0}, {7, 5, 0, 0},
    {6, 5, 0, 2}, {7, 5, 1, 0}, {8, 5, 0, 1}, {8, 5, 1, 0}, {5, 5, 0, 0}, {4, 5, 0, 0}};

static void the_index_is_sorted(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, everything);
    size_t count = sizeof manifest_order / sizeof manifest_order[0];
    assert_int_equal(gbx_reader_count(reader), count);
    for (size_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        assert_null(gbx_reader_at(reader, i, &record));
        assert_int_equal(record->type, manifest_order[i][0]);
        assert_int_equal(record->task, manifest_order[i][1]);
        const gbx_record_dispatch *dispatch = (const gbx_record_dispatch *)record;
        bool is_dispatch = record->type == GBX_RECORD_DISPATCH;
        assert_int_equal(is_dispatch ? dispatch->block_idx : record->stage, manifest_order[i][2]);
        assert_int_equal(is_dispatch ? dispatch->subtask : record->arg_index, manifest_order[i][3]);
    }
    assert_int_equal(gbx_reader_find(reader, 0), 0);
    assert_int_equal(gbx_reader_find(reader, 5), 4);
    assert_int_equal(gbx_reader_find(reader, 6), count);
    assert_int_equal(gbx_reader_find(reader, UINT64_MAX), count);
    assert_int_equal(gbx_reader_kind(reader, 4), 0);
    assert_int_equal(gbx_reader_kind(reader, 9), GBX_INDEX_DISPATCHES);
    assert_int_equal(gbx_reader_kind(reader, 11), GBX_INDEX_GRAPH);
    gbx_reader_close(reader);
}

static void only_what_was_asked_for_is_indexed(void **state) {
    fixture *f = *state;
    static const unsigned counts[8] = {0, 8, 4, 10, 4, 10, 6, 12};
    for (unsigned indexed = 0; indexed < 8; ++indexed) {
        gbx_reader *reader = open_all(&f->d, indexed);
        assert_int_equal(gbx_reader_count(reader), counts[indexed]);
        gbx_record_task task;
        bool is_found = true;
        assert_null(gbx_reader_find_task(reader, 5, &task, &is_found));
        assert_int_equal(is_found, indexed != 0);
        gbx_reader_close(reader);
    }
}

static void parts_of_records_are_found(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, everything);
    const gbx_record *record = NULL;
    assert_null(gbx_reader_at(reader, 7, &record));
    const gbx_record_tensor *tensor = (const gbx_record_tensor *)record;
    assert_int_equal(gbx_record_shape(tensor)[1], 3);
    assert_int_equal(gbx_record_strides(tensor)[0], -3);
    assert_int_equal(gbx_record_statistics(tensor)->subnormal_count, 6);
    gbx_tensor view;
    gbx_record_view(tensor, &view);
    assert_int_equal(view.data, 0x1000);
    assert_int_equal(view.start_offset, 3);
    assert_int_equal(view.strides[0], -3);
    assert_int_equal(view.ndims, 2);
    assert_null(gbx_reader_at(reader, 8, &record));
    gbx_slot_view slot;
    const void *next = gbx_record_next_slot((const gbx_record_dispatch *)record + 1, &slot);
    assert_int_equal(slot.data, 0x6000);
    assert_int_equal(slot.start_offset, 3);
    assert_int_equal(slot.strides[0], 16);
    gbx_record_next_slot(next, &slot);
    assert_int_equal(slot.slot->bits, 0x3f800000);
    assert_null(slot.shape);
    assert_null(gbx_reader_at(reader, 11, &record));
    uint64_t count = 0;
    assert_int_equal(gbx_record_edges(record, &count)[1], 3);
    assert_int_equal(count, 2);
    gbx_record_task task;
    bool is_found = false;
    assert_null(gbx_reader_find_task(reader, 2, &task, &is_found));
    assert_true(is_found);
    assert_int_equal(task.task_id, 0x102);
    assert_null(gbx_reader_find_task(reader, 3, &task, &is_found));
    assert_false(is_found);
    gbx_reader_close(reader);
}

static void lists_have_what_is_about_no_argument(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, GBX_INDEX_NOTHING);
    const gbx_record *record = NULL;
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_RUN_ARGS), 2);
    assert_null(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, 0, &record));
    assert_int_equal(record->arg_index, 0);
    assert_int_equal(gbx_record_run_arg_shape((const gbx_record_run_arg *)record)[0], 24);
    assert_null(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, 1, &record));
    assert_int_equal(((const gbx_record_run_arg *)record)->bits, 99);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_LOSSES), 2);
    assert_null(gbx_reader_list_at(reader, GBX_LIST_LOSSES, 1, &record));
    assert_int_equal(((const gbx_record_loss *)record)->cause, GBX_LOSS_DEVICE);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_SKIPPED), 1);
    assert_null(gbx_reader_list_at(reader, GBX_LIST_SKIPPED, 0, &record));
    assert_int_equal(((const gbx_record_skipped *)record)->reason, GBX_SKIP_MISMATCH);
    gbx_reader_close(reader);
}

/* --- broken journals --- */

/* Where each block of a good journal ends, the header's end first. */
static size_t block_ends(const builder *b, size_t ends[16]) {
    size_t count = 0;
    ends[0] = 64;
    while (ends[count] < b->size) {
        uint32_t bytes;
        memcpy(&bytes, b->bytes + ends[count] + 4, 4);
        ends[count + 1] = ends[count] + 32 + bytes;
        ++count;
    }
    return count;
}

/* Every record that the reader returns equals the original's at its offset, byte for byte. */
static void check_records(gbx_reader *reader, const builder *original, uint64_t expected_count) {
    uint64_t count = 0;
    for (int pass = 0; pass < 2; ++pass, gbx_reader_rewind(reader)) {
        const gbx_record *record = NULL;
        uint64_t offset = 0;
        for (count = 0;; ++count) {
            assert_null(gbx_reader_next(reader, &record, &offset));
            if (!record)
                break;
            assert_true(offset + (uint64_t)record->words * 8 <= original->size);
            assert_memory_equal(record, original->bytes + offset, (size_t)record->words * 8);
        }
        assert_int_equal(count, expected_count);
    }
    const gbx_record *record = NULL;
    for (uint64_t i = 0; i < gbx_reader_count(reader); ++i)
        assert_null(gbx_reader_at(reader, i, &record));
}

static const uint64_t records_up_to[] = {0, 3, 9, 19};

/* The first `whole` blocks can be read; reading stopped at the next block, with reason `stop`. */
static void check_broken(const fixture *f, size_t whole, const size_t ends[16],
                         gbx_reader_stop stop) {
    gbx_reader *reader = NULL;
    gbx_status status = gbx_reader_open(f->d.directory, everything, &reader);
    if (whole == 0) {
        bool is_newer = f->version > 2;
        assert_int_equal(gbx_status_code(status), is_newer ? GBX_UNSUPPORTED : GBX_BAD_FORMAT);
        gbx_status_free(status);
        return;
    }
    assert_null(status);
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    assert_int_equal(extent->block_count, whole);
    assert_int_equal(extent->record_count, records_up_to[whole]);
    assert_int_equal(extent->good_bytes, ends[whole]);
    assert_int_equal(extent->stop_offset, ends[whole]);
    assert_int_equal(extent->stop, stop);
    assert_int_equal(extent->stop_text[0] != '\0', extent->stop != GBX_STOP_END);
    assert_int_equal(gbx_reader_end(reader) != NULL, whole == 3);
    assert_int_equal(gbx_reader_is_complete(reader), whole == 3 && stop == GBX_STOP_END);
    check_records(reader, &f->b, records_up_to[whole]);
    gbx_reader_close(reader);
}

static void every_truncation_leaves_the_complete_blocks(void **state) {
    fixture *f = *state;
    size_t ends[16];
    assert_int_equal(block_ends(&f->b, ends), 3);
    for (size_t size = 0; size <= f->b.size; ++size) {
        write_journal(&f->d, f->b.bytes, size);
        size_t whole = 0;
        while (whole < 3 && ends[whole + 1] <= size)
            ++whole;
        check_broken(f, whole, ends, size == ends[whole] ? GBX_STOP_END : GBX_STOP_CUT);
    }
}

static void every_flipped_bit_is_found(void **state) {
    fixture *f = *state;
    size_t ends[16];
    block_ends(&f->b, ends);
    for (size_t bit = 0; bit < f->b.size * 8; ++bit) {
        size_t at = bit / 8;
        f->b.bytes[at] ^= (unsigned char)(1u << bit % 8);
        write_journal(&f->d, f->b.bytes, f->b.size);
        memcpy(&f->version, f->b.bytes + 8, sizeof f->version);
        f->b.bytes[at] ^= (unsigned char)(1u << bit % 8);
        if (at < 64) { /* the reserved words of the header are ignored */
            check_broken(f, at < 16 ? 0 : 3, ends, GBX_STOP_END);
            continue;
        }
        size_t whole = 0;
        while (ends[whole + 1] <= at)
            ++whole;
        bool is_magic = at < ends[whole] + 4;
        check_broken(f, whole, ends, is_magic ? GBX_STOP_BAD_MAGIC : GBX_STOP_BAD_CHECKSUM);
    }
}

static void what_follows_is_distinguished(void **state) {
    fixture *f = *state;
    size_t ends[16];
    block_ends(&f->b, ends);
    builder longer = {0};
    put_bytes(&longer, f->b.bytes, f->b.size);
    for (int i = 0; i < 10; ++i)
        put_u64(&longer, 0);
    write_journal(&f->d, longer.bytes, longer.size);
    check_broken(f, 3, ends, GBX_STOP_CUT);
    longer.size = f->b.size;
    put_bytes(&longer, "not a block, surely, of 32 bytes", 32);
    write_journal(&f->d, longer.bytes, longer.size);
    check_broken(f, 3, ends, GBX_STOP_BAD_MAGIC);
    longer.size = f->b.size;
    put_bytes(&longer, f->b.bytes + ends[1], ends[2] - ends[1]); /* a block once more */
    write_journal(&f->d, longer.bytes, longer.size);
    check_broken(f, 3, ends, GBX_STOP_BAD_SEQUENCE);
    free(longer.bytes);
}

/* A journal of a valid RUN block and one record, with valid checksums. */
static void check_refused(const dump *d, builder *b, const char *expected) {
    finish_journal(b, d);
    gbx_reader *reader = open_all(d, everything);
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    assert_int_equal(extent->block_count, 1);
    assert_int_equal(extent->stop, GBX_STOP_BAD_RECORD);
    assert_true(extent->stop_offset > extent->good_bytes);
    assert_non_null(strstr(extent->stop_text, expected));
    gbx_reader_close(reader);
    free(b->bytes);
}

static void begin_with_run(builder *b) {
    begin_journal(b);
    add_run(b, run_json);
    end_block(b);
}

static void records_without_sense_are_refused(void **state) {
    fixture *f = *state;
    builder b;
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = GBX_DTYPE_COUNT}, 1);
    check_refused(&f->d, &b, "dtype");
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = 1, .stage = 2}, 1);
    check_refused(&f->d, &b, "stage");
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = 1, .role = 3}, 1);
    check_refused(&f->d, &b, "role");
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = 1, .arg_index = 64}, 1);
    check_refused(&f->d, &b, "arg_index");
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = 1, .task = UINT64_C(1) << 44}, 1);
    check_refused(&f->d, &b, "task number");
    begin_with_run(&b);
    add_tensor(&b, (head){.dtype = 1, .flags = 4}, (tensor_fields){0}); /* no statistics follow */
    check_refused(&f->d, &b, "too short");
    static const int64_t negative[] = {-1, 1};
    begin_with_run(&b);
    add_tensor(&b, (head){.dtype = 1, .ndims = 1},
               (tensor_fields){.shape = negative, .strides = negative});
    check_refused(&f->d, &b, "negative");
    static const int64_t nine[9];
    begin_with_run(&b);
    add_tensor(&b, (head){.dtype = 1, .ndims = 9}, (tensor_fields){.shape = nine, .strides = nine});
    check_refused(&f->d, &b, "8 dimensions");
    begin_with_run(&b);
    add_loss(&b, (head){0}, 5, 1);
    check_refused(&f->d, &b, "cause");
    begin_with_run(&b);
    add_skipped(&b, (head){0}, 2, 1);
    check_refused(&f->d, &b, "reason");
    begin_with_run(&b);
    begin_record(&b, (head){.type = 0});
    check_refused(&f->d, &b, "type is 0");
    begin_with_run(&b);
    begin_record(&b, (head){.type = 4});
    set_number(&b, b.size - 18, 1, 2); /* the word of the tail is missing */
    check_refused(&f->d, &b, "tail is longer");
    begin_with_run(&b);
    begin_record(&b, (head){.type = 6}); /* a scalar that is only a head */
    check_refused(&f->d, &b, "shorter");
    begin_with_run(&b);
    add_scalar(&b, (head){.dtype = 1}, 1);
    add_run(&b, run_json);
    check_refused(&f->d, &b, "there is a second RUN record");
}

static void add_execution(builder *b, uint64_t task, uint64_t start_ns, uint64_t end_ns,
                          uint32_t core_id, uint32_t block_idx, uint32_t subtask) {
    begin_record(b, (head){.type = 12, .task = task, .time_ns = start_ns});
    put_u64(b, end_ns);
    put_u32(b, core_id);
    put_u32(b, block_idx);
    put_u32(b, subtask);
    put_u32(b, 7);
}

static void add_sample(builder *b, uint64_t waited_ns, uint64_t used, uint64_t arena) {
    begin_record(b, (head){.type = 13, .thread = 3, .time_ns = 9});
    put_u64(b, waited_ns);
    put_u64(b, used);
    put_u64(b, arena);
    put_u32(b, 2);
    put_u32(b, 1);
}

static void executions_and_samples_are_found(void **state) {
    fixture *f = *state;
    builder b;
    begin_with_run(&b);
    add_execution(&b, 4, 30, UINT64_MAX, 71, 65535, 2);
    add_dispatch(&b, 4, 1, 0);
    add_sample(&b, 55, 64, 64);
    add_execution(&b, 4, 10, 20, 5, 1, 0);
    add_task(&b, 4, 0x104, mixed, 2);
    add_dispatch(&b, 4, 0, 1);
    add_scalar(&b, (head){.arg_index = 2, .dtype = 9, .task = 4}, 42);
    end_block(&b);
    finish_journal(&b, &f->d);
    gbx_reader *reader = open_all(&f->d, everything | GBX_INDEX_EXECUTIONS | GBX_INDEX_SAMPLES);
    static const uint8_t types[] = {3, 12, 12, 6, 8, 8};
    const gbx_record *record = NULL;
    gbx_record_execution execution = {.core_id = 1};
    bool is_found = true;
    assert_int_equal(gbx_reader_count(reader), sizeof types);
    for (size_t i = 0; i < sizeof types; ++i) {
        assert_null(gbx_reader_at(reader, i, &record));
        assert_int_equal(record->type, types[i]);
        assert_int_equal(gbx_reader_kind(reader, i) == GBX_INDEX_EXECUTIONS, types[i] == 12);
    }
    assert_null(gbx_reader_find_execution(reader, 4, &execution, &is_found)); /* block 0 has none */
    assert_false(is_found);
    assert_null(gbx_reader_find_execution(reader, 5, &execution, &is_found));
    assert_true(is_found && execution.head.time_ns == 10 && execution.end_ns == 20);
    assert_int_equal(execution.core_id, 5);
    assert_int_equal(gbx_reader_get_totals(reader)->executions, 2);
    assert_int_equal(gbx_reader_get_totals(reader)->samples, 1);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_SAMPLES), 1);
    assert_null(gbx_reader_list_at(reader, GBX_LIST_SAMPLES, 0, &record));
    assert_int_equal(((const gbx_record_sample *)record)->waited_ns, 55);
    assert_int_equal(record->thread, 3);
    gbx_reader_close(reader);
    reader = open_all(&f->d, everything);
    assert_int_equal(gbx_reader_count(reader), sizeof types - 2);
    assert_null(gbx_reader_find_execution(reader, 3, &execution, &is_found));
    assert_false(is_found);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_SAMPLES), 0);
    gbx_reader_close(reader);
    free(b.bytes);
    static const struct {
        uint64_t start_ns, end_ns;
        uint32_t core_id, block_idx, subtask;
        const char *wrong;
    } bad[] = {{6, 5, 0, 0, 0, "ends before it starts"},
               {5, 6, 1024, 0, 0, "core_id"},
               {5, 6, 0, 65536, 0, "block_idx"},
               {5, 6, 0, 0, 3, "subtask"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        begin_with_run(&b);
        add_execution(&b, 1, bad[i].start_ns, bad[i].end_ns, bad[i].core_id, bad[i].block_idx,
                      bad[i].subtask);
        check_refused(&f->d, &b, bad[i].wrong);
    }
    begin_with_run(&b);
    add_sample(&b, 1, 65, 64);
    check_refused(&f->d, &b, "arena");
}

static void results_are_found(void **state) {
    fixture *f = *state;
    static const int64_t shape[] = {4}, strides[] = {1};
    static const uint64_t stats[7] = {1, 2, 3, 4, 5, 6, 7};
    static const uint64_t pieces[] = {0, 0x5000, 4, 4, 0x6000, 12};
    tensor_fields fields = {.buffer_addr = 0x5000,
                            .bin_offset = 64,
                            .bin_size = 16,
                            .hash_low = 8,
                            .hash_high = 9,
                            .shape = shape,
                            .strides = strides};
    head h = {.role = 1, .arg_index = 1, .dtype = 1, .ndims = 1, .flags = 1 | 2 | 4 | 32};
    builder b;
    gbx_result result;
    begin_with_run(&b);
    add_result(&b, h, fields, stats, pieces, 2);
    h = (head){.role = 2, .dtype = 1, .ndims = 1, .flags = 1 | 16};
    add_result(&b, h, fields, NULL, pieces, 1);
    add_loss(&b, (head){.stage = 255, .arg_index = 255}, 1, 1);
    put_u64(&b, 0);
    put_u64(&b, 64);
    finish_journal(&b, &f->d);
    gbx_reader *reader = open_all(&f->d, GBX_INDEX_NOTHING);
    assert_int_equal(gbx_reader_result_count(reader), 2);
    assert_null(gbx_reader_result(reader, 0, &result)); /* sorted by argument */
    assert_int_equal(result.arg_index, 0);
    assert_int_equal(result.role, GBX_ROLE_INOUT);
    assert_true(result.is_in_flight);
    assert_int_equal(result.piece_count, 1);
    assert_null(gbx_reader_result(reader, 1, &result));
    assert_int_equal(result.arg_index, 1);
    assert_int_equal(result.role, GBX_ROLE_OUTPUT);
    assert_false(result.is_in_flight);
    assert_int_equal(result.record->bin_offset, 64);
    assert_int_equal(gbx_record_statistics(result.record)->nan_count, 4);
    assert_int_equal(result.piece_count, 2);
    assert_int_equal(result.pieces[1].offset, 4);
    assert_int_equal(result.pieces[1].address, 0x6000);
    assert_int_equal(result.pieces[1].bytes, 12);
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    assert_int_equal(totals->records + totals->payload_bytes + totals->in_flight, 0);
    assert_int_equal(totals->results, 2);
    assert_int_equal(totals->result_payload_bytes, 32);
    assert_int_equal(totals->result_stored_bytes, 16);
    assert_int_equal(totals->payload_end, 80);
    const gbx_record *loss = NULL;
    assert_null(gbx_reader_list_at(reader, GBX_LIST_LOSSES, 0, &loss));
    assert_int_equal(gbx_record_lost_result((const gbx_record_loss *)loss), 63);
    gbx_reader_close(reader);
    free(b.bytes);
}

static void results_without_sense_are_refused(void **state) {
    fixture *f = *state;
    static const int64_t shape[] = {4}, strides[] = {1};
    const tensor_fields fields = {.shape = shape, .strides = strides};
    static const struct {
        unsigned role, arg_index, dtype, flags;
        uint64_t pieces[6];
        uint64_t listed; /* of the pieces, which are 2 */
        const char *wrong;
    } bad[] = {{0, 0, 1, 0, {0}, 0, "role"},
               {3, 0, 1, 0, {0}, 0, "role"},
               {1, 64, 1, 0, {0}, 0, "arg_index"},
               {1, 0, 0, 0, {0}, 0, "dtype"},
               {1, 0, 1, 0, {4, 0x10, 4, 0, 0x20, 4}, 2, "ascending"},
               {1, 0, 1, 0, {0, 0x10, 4, 3, 0x20, 4}, 2, "ascending"},
               {1, 0, 1, 0, {0, 0x10, 4, 4, 0x20, 0}, 2, "ascending"},
               {1, 0, 1, 0, {0, 0x10, 4, 4, UINT64_MAX, 4}, 2, "64 bits"},
               {1, 0, 1, 0, {0, 0x10, 4, UINT64_MAX, 0x20, 4}, 2, "64 bits"},
               {1, 0, 1, 0, {0, 0x10, 4, 4, 0x20, 4}, 3, "too short for its pieces"},
               {1, 0, 1, 0, {0, 0x10, 4, 4, 0x20, 4}, UINT64_MAX, "too short for its pieces"}};
    builder b;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        begin_with_run(&b);
        head h = {.role = bad[i].role,
                  .arg_index = bad[i].arg_index,
                  .dtype = bad[i].dtype,
                  .ndims = 1,
                  .flags = bad[i].flags};
        add_result(&b, h, fields, NULL, bad[i].pieces, 2);
        set_number(&b, b.size - 7 * 8, bad[i].listed, 8);
        check_refused(&f->d, &b, bad[i].wrong);
    }
    begin_with_run(&b);
    add_result(&b, (head){.role = 1, .dtype = 1, .ndims = 1}, fields, NULL, NULL, 0);
    b.size -= 8; /* the number of pieces is missing */
    check_refused(&f->d, &b, "too short");
}

static void nothing_follows_the_end(void **state) {
    fixture *f = *state;
    builder b;
    begin_with_run(&b);
    add_end(&b, 1u << 8, no_counts, "ok");
    end_block(&b);
    add_scalar(&b, (head){.dtype = 1}, 1);
    finish_journal(&b, &f->d);
    gbx_reader *reader = open_all(&f->d, everything);
    assert_int_equal(gbx_reader_get_extent(reader)->block_count, 2);
    assert_int_equal(gbx_reader_get_extent(reader)->stop, GBX_STOP_AFTER_END);
    assert_false(gbx_reader_is_complete(reader));
    gbx_reader_close(reader);
    free(b.bytes);
}

static void check_fails(const dump *d, gbx_code code, const char *expected) {
    gbx_reader *reader = NULL;
    gbx_status status = gbx_reader_open(d->directory, everything, &reader);
    assert_int_equal(gbx_status_code(status), code);
    assert_non_null(strstr(gbx_status_message(status), expected));
    gbx_status_free(status);
}

static void a_journal_without_a_run_is_refused(void **state) {
    fixture *f = *state;
    builder b;
    begin_journal(&b);
    add_scalar(&b, (head){.dtype = 1}, 1);
    finish_journal(&b, &f->d);
    check_fails(&f->d, GBX_BAD_FORMAT, "the first record is not RUN");
    free(b.bytes);
    begin_journal(&b);
    add_run(&b, "{\"generator\": 1}");
    finish_journal(&b, &f->d);
    check_fails(&f->d, GBX_BAD_FORMAT, "generator");
    set_number(&b, 8, 3, 4);
    finish_journal(&b, &f->d);
    check_fails(&f->d, GBX_UNSUPPORTED, "version 3; this glassbox reads versions 1 to 2");
    set_number(&b, 8, 0, 4);
    finish_journal(&b, &f->d);
    check_fails(&f->d, GBX_BAD_FORMAT, "version 0");
    set_number(&b, 8, 1, 4);
    set_number(&b, 12, 72, 4); /* only version 2 may have a longer header */
    finish_journal(&b, &f->d);
    check_fails(&f->d, GBX_BAD_FORMAT, "72 bytes");
    free(b.bytes);
    char path[256];
    path_in(&f->d, "tensor_dump.rec", path);
    assert_int_equal(unlink(path), 0);
    check_fails(&f->d, GBX_NOT_FOUND, "tensor_dump.rec");
}

/* Random bytes in a journal with valid checksums: no read goes out of bounds (this runs under the
 * address sanitizer), and a second reading agrees. */
static void no_byte_harms(void **state) {
    fixture *f = *state;
    size_t ends[16];
    size_t count = block_ends(&f->b, ends);
    uint64_t random = 88172645463325252u;
    builder b = {0};
    int refusals = 0;
    for (int turn = 0; turn < 4000; ++turn) {
        b.size = 0;
        put_bytes(&b, f->b.bytes, f->b.size);
        for (int i = 0; i <= turn % 4; ++i) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size_t block = 1 + (size_t)(random >> 20) % (count - 1);
            size_t begin = ends[block] + 32;
            size_t at = begin + (size_t)(random >> 33) % (ends[block + 1] - begin);
            b.bytes[at] = (unsigned char)(random >> 8);
            set_number(&b, ends[block] + 16, XXH3_64bits(b.bytes + begin, ends[block + 1] - begin),
                       8);
            set_number(&b, ends[block] + 24, XXH3_64bits(b.bytes + ends[block], 24), 8);
        }
        write_journal(&f->d, b.bytes, b.size);
        gbx_reader *reader = NULL;
        gbx_status refused = gbx_reader_open(f->d.directory, everything, &reader);
        if (refused) { /* the byte was a type, and is now one that a reader must know */
            assert_int_equal(gbx_status_code(refused), GBX_UNSUPPORTED);
            gbx_status_free(refused);
            ++refusals;
            continue;
        }
        check_records(reader, &b, gbx_reader_get_extent(reader)->record_count);
        gbx_reader_close(reader);
        if (turn % 4 == 0) {
            gbx_status status = gbx_manifest_write(f->d.directory, true, true);
            assert_true(!status || gbx_status_code(status) == GBX_OUT_OF_RANGE);
            gbx_status_free(status);
        }
    }
    assert_in_range(refusals, 1, 400);
    free(b.bytes);
}

/* The file is replaced under an open reader: it fails or returns checked records, nothing else. */
static void a_file_that_changes_is_noticed(void **state) {
    fixture *f = *state;
    gbx_reader *reader = open_all(&f->d, everything);
    builder b = {0};
    put_bytes(&b, f->b.bytes, f->b.size);
    memset(b.bytes + 64, 0xff, b.size - 64);
    write_journal(&f->d, b.bytes, b.size);
    const gbx_record *record = NULL;
    uint64_t offset = 0;
    gbx_status status = gbx_reader_next(reader, &record, &offset);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    assert_null(record);
    gbx_status_free(status);
    status = gbx_reader_at(reader, 0, &record);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    gbx_status_free(status);
    write_journal(&f->d, b.bytes, 10);
    status = gbx_reader_list_at(reader, GBX_LIST_LOSSES, 0, &record);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    gbx_status_free(status);
    gbx_reader_close(reader);
    free(b.bytes);
}

/* --- journals of newer versions --- */

enum { LONGER_HEADER_BYTES = 96, TAIL_BYTES = 16 };

static void put_newer(builder *b, unsigned type) {
    begin_record(b, (head){.type = type, .stage = 7, .role = 9, .task = UINT64_MAX});
    put_u64(b, 0x1122334455667788);
}

/*
 * The same records as a later version may write them: a longer header, two more words at the end of
 * each record, and a record of an unknown type before each except the first of a block.
 */
static void build_newer(const builder *from, builder *b, unsigned type) {
    memset(b, 0, sizeof *b);
    put_bytes(b, from->bytes, 64);
    set_number(b, 12, LONGER_HEADER_BYTES, 4);
    while (b->size < LONGER_HEADER_BYTES)
        put_u64(b, UINT64_MAX);
    size_t ends[16];
    size_t blocks = block_ends(from, ends);
    for (size_t i = 0; i < blocks; ++i, end_block(b))
        for (size_t at = ends[i] + 32; at < ends[i + 1];) {
            uint32_t words;
            memcpy(&words, from->bytes + at + 8, 4);
            if (at > ends[i] + 32)
                put_newer(b, type);
            begin_record(b, (head){0});
            b->size -= 32;
            put_bytes(b, from->bytes + at, (size_t)words * 8);
            if (from->bytes[at] == GBX_RECORD_EDGES)
                set_number(b, b->record + 14, TAIL_BYTES / 8, 2);
            put_u64(b, 77);
            put_u64(b, 78);
            at += (size_t)words * 8;
        }
}

/* `newer` is `old` with a tail of two words. */
static void check_tail(const gbx_record *old, const gbx_record *newer) {
    uint64_t words = 99;
    size_t rest = ((size_t)old->words - 2) * 8;
    assert_int_equal(newer->words, old->words + 2);
    assert_int_equal(newer->type, old->type);
    assert_memory_equal((const char *)newer + 16, (const char *)old + 16, rest);
    (void)gbx_record_tail(old, &words);
    assert_int_equal(words, 0);
    const uint64_t *tail = gbx_record_tail(newer, &words);
    assert_int_equal(words, old->type == GBX_RECORD_RUN ? 0 : 2);
    if (words > 0) {
        assert_int_equal(tail[0], 77);
        assert_int_equal(tail[1], 78);
    }
}

static void journals_of_newer_versions_are_read(void **state) {
    fixture *f = *state;
    dump later;
    builder b;
    make_dump(&later);
    build_newer(&f->b, &b, 120);
    finish_journal(&b, &later);
    gbx_reader *old = open_all(&f->d, everything);
    gbx_reader *newer = open_all(&later, everything);
    const gbx_reader_extent *extent = gbx_reader_get_extent(newer);
    assert_int_equal(extent->stop, GBX_STOP_END);
    assert_int_equal(extent->record_count, 19);
    assert_int_equal(extent->newer_count, 19 - 3);
    assert_int_equal(gbx_reader_get_extent(old)->newer_count, 0);
    assert_memory_equal(gbx_reader_get_totals(newer), gbx_reader_get_totals(old),
                        sizeof(gbx_reader_totals));
    assert_string_equal(gbx_reader_end_text(newer), "ok");
    assert_true(gbx_reader_is_complete(newer));
    assert_string_equal(gbx_reader_run(newer)->scene, "softmax");
    for (uint64_t i = 0; i < 19; ++i) {
        const gbx_record *a = NULL, *c = NULL;
        uint64_t offset;
        assert_null(gbx_reader_next(old, &a, &offset));
        assert_null(gbx_reader_next(newer, &c, &offset));
        assert_non_null(a);
        assert_non_null(c);
        check_tail(a, c);
    }
    assert_int_equal(gbx_reader_count(newer), gbx_reader_count(old));
    for (uint64_t i = 0; i < gbx_reader_count(old); ++i) {
        const gbx_record *a = NULL, *c = NULL;
        assert_null(gbx_reader_at(old, i, &a));
        assert_null(gbx_reader_at(newer, i, &c));
        check_tail(a, c);
        if (a->type == GBX_RECORD_EDGES) {
            uint64_t count = 0;
            assert_int_equal(gbx_record_edges(c, &count)[1], 3);
            assert_int_equal(count, 2);
        }
    }
    gbx_reader_close(old);
    gbx_reader_close(newer);
    free(b.bytes);
    remove_dump(&later);
}

/* For any type, anywhere in the journal. */
static void a_record_that_has_to_be_understood_is_refused(void **state) {
    fixture *f = *state;
    static const unsigned types[] = {0x80, 0x80 | GBX_RECORD_TENSOR, 0x80 | 12, 0xff};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
        builder b;
        char expected[64];
        build_newer(&f->b, &b, types[i]);
        finish_journal(&b, &f->d);
        snprintf(expected, sizeof expected,
                 "type %u, which this version does not know and must not skip", types[i]);
        check_fails(&f->d, GBX_UNSUPPORTED, expected);
        check_fails(&f->d, GBX_UNSUPPORTED, "needs a newer glassbox");
        free(b.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(totals_are_counted_from_the_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(everything_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_index_is_sorted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_what_was_asked_for_is_indexed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_of_records_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_have_what_is_about_no_argument, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_truncation_leaves_the_complete_blocks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_follows_is_distinguished, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_without_sense_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(executions_and_samples_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_without_sense_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_follows_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_journal_without_a_run_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(journals_of_newer_versions_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_that_has_to_be_understood_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_byte_harms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_changes_is_noticed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
