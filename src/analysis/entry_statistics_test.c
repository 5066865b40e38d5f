#include "journal_test_builder.h"

#include <math.h>

#include <glassbox/kernel.h>

#include "analysis/entries.h"
#include "base/float_bits.h"

enum { PAYLOAD = 1, HAS_STATS = 4, CONTIGUOUS = 64, TENSORS = 300, BATCH_MIB = 260 };

static const char run_text[] =
    "{\"generator\":\"test\",\"run\":{\"scene\":\"s\"},\"dump_level\":\"full\",\"kernels\":["
    "{\"func_id\":0,\"name\":\"read\",\"core_type\":\"aic\",\"signature\":[\"in\"]}]}";

typedef struct fixture {
    dump dump;
    builder journal;
    int payload;
    uint64_t payload_bytes;
    gbx_reader *reader;
    gbx_entries *entries;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    char path[256];
    assert_non_null(f);
    make_dump(&f->dump);
    begin_journal(&f->journal);
    add_run(&f->journal, run_text);
    path_in(&f->dump, "tensor_dump.bin", path);
    f->payload = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(f->payload >= 0);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    char path[256];
    gbx_entries_destroy(f->entries);
    gbx_reader_close(f->reader);
    path_in(&f->dump, "tensor_dump.bin", path);
    unlink(path);
    close(f->payload);
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f);
    return 0;
}

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

/* A tensor of one dimension, the only argument of its task; its bytes follow all earlier ones. */
static void add_vector(fixture *f, uint64_t task, unsigned dtype, int64_t count, uint64_t bytes) {
    static const int64_t stride = 1;
    static const uint32_t func_ids[3] = {0, UINT32_MAX, UINT32_MAX};
    add_task(&f->journal, task, task, func_ids, 1);
    add_tensor(&f->journal,
               (head){.task = task, .dtype = dtype, .ndims = 1, .flags = PAYLOAD | CONTIGUOUS},
               (tensor_fields){.bin_offset = f->payload_bytes,
                               .bin_size = bytes,
                               .shape = &count,
                               .strides = &stride});
    f->payload_bytes += (bytes + 63) / 64 * 64;
    end_block(&f->journal);
}

static void open_entries(fixture *f) {
    finish_journal(&f->journal, &f->dump);
    assert_int_equal(ftruncate(f->payload, (off_t)f->payload_bytes), 0);
    check_good(gbx_reader_open(f->dump.directory, GBX_INDEX_ARGUMENTS, &f->reader));
    check_good(gbx_reader_open_payload(f->reader));
    check_good(gbx_entries_create(f->reader, &f->entries));
}

/* --- many tensors of all lengths --- */

static size_t length_of(size_t tensor) {
    return tensor % 7 == 0 ? 0 : tensor % 5 == 0 ? 70000 + tensor : tensor;
}

static float value_of(size_t tensor, size_t element) {
    return (float)((element * 7 + tensor * 3) % 501) - 100;
}

static void write_values(fixture *f, size_t tensor) {
    size_t length = length_of(tensor);
    float *values = malloc((length + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < length; ++i)
        values[i] = value_of(tensor, i);
    assert_int_equal(pwrite(f->payload, values, length * sizeof *values, (off_t)f->payload_bytes),
                     (ssize_t)(length * sizeof *values));
    free(values);
}

static void add_vectors(fixture *f) {
    for (size_t i = 0; i < TENSORS; ++i) {
        write_values(f, i);
        add_vector(f, i, GBX_FLOAT32, (int64_t)length_of(i), length_of(i) * sizeof(float));
    }
}

/* Sums of such whole numbers are exact in any order. */
static void check_summary(const gbx_entry_summary *summary, size_t tensor) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    uint64_t zeros = 0;
    size_t length = length_of(tensor);
    for (size_t i = 0; i < length; ++i) {
        double value = (double)value_of(tensor, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
        sum += value;
        zeros += value == 0;
    }
    const gbx_statistics *s = &summary->statistics;
    assert_true(summary->is_there);
    assert_int_equal(s->zero_count, zeros);
    assert_int_equal(s->nan_count, 0);
    if (length == 0) {
        assert_true(isnan(s->mean) && isnan(gbx_f64_of_bits(s->min_bits)));
        return;
    }
    assert_true(gbx_f64_of_bits(s->min_bits) == low);
    assert_true(gbx_f64_of_bits(s->max_bits) == high);
    assert_true(s->mean == sum / (double)length);
}

static void many_are_what_each_is(void **state) {
    fixture *f = *state;
    static gbx_entry_summary summaries[TENSORS];
    uint64_t indices[TENSORS];
    size_t count = 0;
    add_vectors(f);
    open_entries(f);
    for (size_t i = 0; i < TENSORS; ++i)
        indices[i] = TENSORS - 1 - i;
    check_good(gbx_entries_statistics(f->entries, indices, TENSORS, summaries, &count));
    assert_int_equal(count, TENSORS);
    for (size_t i = 0; i < TENSORS; ++i)
        check_summary(&summaries[i], TENSORS - 1 - i);
}

/* Entries that need no payload among entries that do. */
static void scalars_and_recorded_ones_are_among_them(void **state) {
    fixture *f = *state;
    static const int64_t shape = 4, stride = 1;
    gbx_entry_summary summaries[4];
    static const uint64_t indices[4] = {0, 1, 2, 3};
    size_t count = 0;
    write_values(f, 5);
    add_vector(f, 0, GBX_FLOAT32, (int64_t)length_of(5), length_of(5) * sizeof(float));
    add_scalar(&f->journal, (head){.task = 1, .dtype = GBX_INT32}, 42);
    add_tensor(&f->journal, (head){.task = 2, .dtype = GBX_FLOAT32, .ndims = 1, .flags = HAS_STATS},
               (tensor_fields){.shape = &shape, .strides = &stride});
    put_double(&f->journal, -3);
    put_double(&f->journal, 9);
    put_double(&f->journal, 1.25);
    for (uint64_t i = 1; i <= 4; ++i)
        put_u64(&f->journal, i);
    add_tensor(&f->journal, (head){.task = 3, .dtype = GBX_FLOAT32, .ndims = 1},
               (tensor_fields){.shape = &shape, .strides = &stride});
    open_entries(f);
    check_good(gbx_entries_statistics(f->entries, indices, 4, summaries, &count));
    assert_int_equal(count, 4);
    check_summary(&summaries[0], 5);
    assert_true(summaries[1].is_there && summaries[1].statistics.mean == 42);
    assert_int_equal(summaries[1].statistics.min_bits, 42);
    assert_true(summaries[2].is_there && summaries[2].statistics.mean == 1.25);
    assert_int_equal(summaries[2].statistics.subnormal_count, 4);
    assert_false(summaries[3].is_there);
}

static void results_come_before_all_payload_is_read(void **state) {
    fixture *f = *state;
    static const uint64_t indices[3] = {0, 1, 2};
    gbx_entry_summary summaries[3];
    size_t count = 0;
    uint64_t large = (uint64_t)BATCH_MIB << 20;
    unsigned char last = 7;
    add_vector(f, 0, GBX_UINT8, (int64_t)large, large);
    assert_int_equal(pwrite(f->payload, &last, 1, (off_t)large - 1), 1);
    for (size_t i = 1; i < 3; ++i) {
        write_values(f, i);
        add_vector(f, i, GBX_FLOAT32, (int64_t)length_of(i), length_of(i) * sizeof(float));
    }
    open_entries(f);
    check_good(gbx_entries_statistics(f->entries, indices, 3, summaries, &count));
    assert_int_equal(count, 1);
    assert_int_equal(summaries[0].statistics.max_bits, 7);
    assert_int_equal(summaries[0].statistics.zero_count, large - 1);
    check_good(gbx_entries_statistics(f->entries, indices + 1, 2, summaries, &count));
    assert_int_equal(count, 2);
    check_summary(&summaries[0], 1);
    check_summary(&summaries[1], 2);
}

/* Whichever thread fails, the failure of the first entry is reported. */
static void the_first_failure_is_reported(void **state) {
    fixture *f = *state;
    static gbx_entry_summary summaries[TENSORS];
    uint64_t indices[TENSORS];
    char offset[64];
    size_t count = 0;
    gbx_entry entry;
    add_vectors(f);
    open_entries(f);
    for (size_t i = 0; i < TENSORS; ++i)
        indices[i] = i;
    check_good(gbx_entries_at(f->entries, 100, &entry));
    uint64_t end = entry.tensor->bin_offset;
    assert_int_equal(ftruncate(f->payload, (off_t)end), 0);
    gbx_status status = gbx_entries_statistics(f->entries, indices, TENSORS, summaries, &count);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    snprintf(offset, sizeof offset, "at offset %llu of", (unsigned long long)end);
    if (!strstr(gbx_status_message(status), offset))
        fail_msg("\"%s\" is not in: %s", offset, gbx_status_message(status));
    gbx_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_are_what_each_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scalars_and_recorded_ones_are_among_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(results_come_before_all_payload_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_failure_is_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
