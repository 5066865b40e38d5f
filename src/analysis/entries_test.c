#include "journal_test_builder.h"

#include <math.h>

#include <glassbox/kernel.h>

#include "analysis/entries.h"
#include "base/float_bits.h"

enum { NO_TASK_RECORD = 3, PAYLOAD = 1, HAS_STATS = 4, TRUNCATED = 8, CONTIGUOUS = 64 };

static const char run_text[] =
    "{\"generator\":\"test\",\"run\":{\"scene\":\"s\"},\"dump_level\":\"full\",\"kernels\":["
    "{\"func_id\":0,\"name\":\"first\",\"core_type\":\"aic\",\"signature\":[\"in\",\"scalar\"],"
    "\"arg_names\":[null,\"scale\"]},"
    "{\"func_id\":5,\"name\":\"second\",\"core_type\":\"aiv\",\"signature\":[\"in\",\"out\"],"
    "\"arg_names\":[\"x\",\"y\"]}]}";

typedef struct fixture {
    dump dump;
    builder journal;
    unsigned char *payload;
    size_t payload_bytes;
    gbx_reader *reader;
    gbx_entries *entries;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_dump(&f->dump);
    begin_journal(&f->journal);
    add_run(&f->journal, run_text);
    end_block(&f->journal);
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
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f->payload);
    free(f);
    return 0;
}

/* --- making a dump --- */

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

/* Returns the offset of the bytes in the file. */
static uint64_t store(fixture *f, const void *bytes, size_t size) {
    uint64_t offset = (f->payload_bytes + 63) / 64 * 64;
    f->payload = realloc(f->payload, offset + size + 1);
    assert_non_null(f->payload);
    memset(f->payload + f->payload_bytes, 0xee, offset - f->payload_bytes);
    memcpy(f->payload + offset, bytes, size);
    f->payload_bytes = offset + size;
    return offset;
}

static void tensor_at(fixture *f, head h, const int64_t *shape, uint64_t offset, uint64_t bytes) {
    static const int64_t strides[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    add_tensor(&f->journal, h,
               (tensor_fields){
                   .bin_offset = offset, .bin_size = bytes, .shape = shape, .strides = strides});
}

static void add_stored(fixture *f, head h, const int64_t *shape, const void *bytes, size_t size) {
    h.flags |= PAYLOAD | CONTIGUOUS;
    tensor_at(f, h, shape, store(f, bytes, size), size);
}

static void open_entries(fixture *f) {
    char path[256];
    finish_journal(&f->journal, &f->dump);
    path_in(&f->dump, "tensor_dump.bin", path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (f->payload)
        assert_int_equal(fwrite(f->payload, 1, f->payload_bytes, file), f->payload_bytes);
    assert_int_equal(fclose(file), 0);
    check_good(gbx_reader_open(f->dump.directory, GBX_INDEX_ARGUMENTS, &f->reader));
    check_good(gbx_reader_open_payload(f->reader));
    check_good(gbx_entries_create(f->reader, &f->entries));
}

static gbx_entry entry_at(fixture *f, uint64_t index) {
    gbx_entry entry;
    check_good(gbx_entries_at(f->entries, index, &entry));
    assert_int_equal(entry.index, index);
    return entry;
}

static void expect_bad(gbx_status status, const char *part) {
    assert_non_null(status);
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    if (!strstr(gbx_status_message(status), part))
        fail_msg("\"%s\" is not in: %s", part, gbx_status_message(status));
    gbx_status_free(status);
}

/* --- entries --- */

/* Tasks and arguments in any order, as threads write them. */
static void add_mixed_up(fixture *f) {
    static const uint32_t mix[3] = {0, 5, UINT32_MAX}, second[3] = {UINT32_MAX, 5, UINT32_MAX};
    static const int64_t shape[2] = {2, 3};
    builder *b = &f->journal;
    float values[6] = {1, 2, 3, 4, 5, 6};
    add_stored(
        f,
        (head){.task = 7, .stage = 1, .arg_index = 1, .role = 1, .dtype = GBX_FLOAT32, .ndims = 2},
        shape, values, sizeof values);
    add_scalar(b, (head){.task = 2, .arg_index = 1, .dtype = GBX_FLOAT32}, 0x3f800000);
    add_task(b, 7, 0x77, second, 1);
    end_block(b);
    add_scalar(b, (head){.task = NO_TASK_RECORD, .arg_index = 9}, 12);
    add_stored(f, (head){.task = 7, .arg_index = 0, .dtype = GBX_FLOAT32, .ndims = 2}, shape,
               values, sizeof values);
    add_task(b, 2, 0x22, mix, 4);
    add_stored(f, (head){.task = 2, .arg_index = 0, .dtype = GBX_INT8, .ndims = 2}, shape, values,
               6);
}

/* The expected entries, in the order of the manifest. */
static const struct {
    uint64_t task, task_id;
    const char *arg_name;
    uint32_t dtype;
    uint8_t arg_index, stage;
    bool is_tensor;
} expected[] = {{2, 0x22, "x", GBX_INT8, 0, 0, true},
                {2, 0x22, "scale", GBX_FLOAT32, 1, 0, false},
                {NO_TASK_RECORD, 0, NULL, GBX_DTYPE_NONE, 9, 0, false},
                {7, 0x77, "x", GBX_FLOAT32, 0, 0, true},
                {7, 0x77, "y", GBX_FLOAT32, 1, 1, true}};
enum { EXPECTED_COUNT = sizeof expected / sizeof expected[0] };

static void check_entry(fixture *f, uint64_t i) {
    gbx_entry entry = entry_at(f, i);
    const gbx_record *record = NULL;
    assert_int_equal(entry.head->task, expected[i].task);
    assert_int_equal(entry.head->arg_index, expected[i].arg_index);
    assert_int_equal(entry.head->stage, expected[i].stage);
    assert_int_equal(entry.dtype, expected[i].dtype);
    assert_int_equal(entry.tensor != NULL, expected[i].is_tensor);
    assert_int_equal(entry.scalar != NULL, !expected[i].is_tensor);
    assert_int_equal(entry.task ? entry.task->task_id : 0, expected[i].task_id);
    if (expected[i].arg_name)
        assert_string_equal(entry.arg_name, expected[i].arg_name);
    else
        assert_null(entry.arg_name);
    check_good(gbx_reader_at(f->reader, gbx_entries_position(f->entries, i), &record));
    assert_int_equal(record->task, expected[i].task);
    assert_int_equal(record->arg_index, expected[i].arg_index);
}

static void entries_are_numbered_as_in_the_manifest(void **state) {
    fixture *f = *state;
    add_mixed_up(f);
    open_entries(f);
    assert_int_equal(gbx_entries_count(f->entries), EXPECTED_COUNT);
    assert_ptr_equal(gbx_entries_reader(f->entries), f->reader);
    for (uint64_t i = 0; i < EXPECTED_COUNT; ++i)
        check_entry(f, i);
    for (uint64_t i = EXPECTED_COUNT; i-- > 0;)
        check_entry(f, i);
    for (uint64_t i = 0; i < 4 * EXPECTED_COUNT; ++i)
        check_entry(f, i * 3 % EXPECTED_COUNT);
}

static void the_entries_of_a_task_are_found(void **state) {
    fixture *f = *state;
    static const uint64_t cases[][2] = {{0, 0}, {2, 0}, {3, 2}, {4, 3}, {7, 3}, {8, 5}};
    add_mixed_up(f);
    open_entries(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        assert_int_equal(gbx_entries_find(f->entries, cases[i][0]), cases[i][1]);
    assert_int_equal(gbx_entries_find(f->entries, UINT64_MAX), EXPECTED_COUNT);
}

static void a_dump_may_have_no_entries(void **state) {
    fixture *f = *state;
    static const uint32_t none[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    add_task(&f->journal, 1, 1, none, 1);
    open_entries(f);
    assert_int_equal(gbx_entries_count(f->entries), 0);
    assert_int_equal(gbx_entries_find(f->entries, 1), 0);
    gbx_entries_destroy(NULL);
}

static void sizes_are_of_the_shape(void **state) {
    fixture *f = *state;
    static const int64_t shapes[][8] = {
        {3, 5}, {0, INT64_MAX}, {INT64_MAX, 0, INT64_MAX}, {INT64_MAX, 3}, {INT64_C(1) << 32, 4}};
    static const unsigned ndims[] = {2, 2, 3, 2, 2};
    static const uint64_t numels[] = {15, 0, 0, UINT64_MAX, UINT64_C(1) << 34};
    for (unsigned i = 0; i < 5; ++i)
        tensor_at(f, (head){.task = i, .dtype = GBX_UINT8, .ndims = ndims[i]}, shapes[i], 0, 99);
    tensor_at(f, (head){.task = 5, .dtype = GBX_FLOAT64, .flags = PAYLOAD}, NULL,
              store(f, &(double){3}, 8), 8);
    add_scalar(&f->journal, (head){.task = 6}, 1);
    open_entries(f);
    for (uint64_t i = 0; i < 5; ++i) {
        gbx_entry entry = entry_at(f, i);
        assert_true(gbx_entry_numel(&entry) == numels[i]);
        assert_int_equal(gbx_entry_stored_bytes(&entry), 0); /* without the flag */
        assert_false(gbx_entry_has_values(&entry));
    }
    gbx_entry zero_dims = entry_at(f, 5);
    assert_int_equal(gbx_entry_numel(&zero_dims), 1);
    assert_int_equal(gbx_entry_stored_bytes(&zero_dims), 8);
    assert_true(gbx_entry_has_values(&zero_dims));
    gbx_entry scalar = entry_at(f, 6);
    assert_int_equal(gbx_entry_numel(&scalar), 1);
    assert_int_equal(gbx_entry_stored_bytes(&scalar), 0);
    assert_true(gbx_entry_has_values(&scalar));
}

/* It has bytes, but they are not its values. */
static void one_that_was_overwritten_has_no_values(void **state) {
    fixture *f = *state;
    gbx_statistics statistics;
    bool is_there = true;
    tensor_at(f, (head){.dtype = GBX_FLOAT64, .flags = PAYLOAD | GBX_FLAG_OVERWRITTEN}, NULL,
              store(f, &(double){3}, 8), 8);
    add_scalar(&f->journal, (head){.task = 1, .flags = GBX_FLAG_OVERWRITTEN}, 1);
    open_entries(f);
    gbx_entry entry = entry_at(f, 0);
    assert_true(gbx_entry_is_overwritten(&entry));
    assert_false(gbx_entry_has_values(&entry));
    assert_int_equal(gbx_entry_stored_bytes(&entry), 8);
    check_good(
        gbx_entry_statistics(&entry, gbx_entries_reader(f->entries), &statistics, &is_there));
    assert_false(is_there);
    gbx_entry scalar = entry_at(f, 1); /* its value was never in a buffer */
    assert_false(gbx_entry_is_overwritten(&scalar));
    assert_true(gbx_entry_has_values(&scalar));
}

/* --- values --- */

enum { LONG = 5000 }; /* elements: more than are read at a time */

static void values_are_read_from_anywhere(void **state) {
    fixture *f = *state;
    static const int64_t shape[2] = {50, 100};
    uint16_t *values = malloc(LONG * sizeof *values);
    uint64_t *bits = malloc(LONG * sizeof *bits);
    assert_true(values && bits);
    for (size_t i = 0; i < LONG; ++i)
        values[i] = (uint16_t)(i * 40503 + 11);
    add_stored(f, (head){.task = 1, .dtype = GBX_BFLOAT16, .ndims = 2}, shape, values,
               LONG * sizeof *values);
    add_scalar(&f->journal, (head){.task = 2, .dtype = GBX_INT16}, UINT64_C(0xabcd1234));
    open_entries(f);
    gbx_entry entry = entry_at(f, 0);
    gbx_entry_values opened, scalar;
    check_good(gbx_entry_values_open(&entry, f->reader, &opened));
    entry = entry_at(f, 1); /* does not affect the opened values */
    check_good(gbx_entry_values_open(&entry, f->reader, &scalar));
    assert_int_equal(opened.elements.count, LONG);
    assert_int_equal(opened.elements.stored, LONG);
    assert_int_equal(opened.elements.ndims, 2);
    assert_int_equal(opened.elements.shape[1], 100);
    for (size_t first = 0; first < LONG; first = first * 2 + 1) {
        check_good(gbx_elements_read(&opened.elements, first, LONG - first, bits));
        for (size_t i = first; i < LONG; ++i)
            assert_int_equal(bits[i - first], values[i]);
    }
    check_good(gbx_elements_read(&opened.elements, LONG, 0, bits));
    check_good(gbx_elements_read(&scalar.elements, 0, 1, bits));
    assert_int_equal(bits[0] & 0xffff, 0x1234);
    assert_int_equal(scalar.elements.count, 1);
    assert_int_equal(scalar.elements.ndims, 0);
    free(values);
    free(bits);
}

/* Element i of rows of 5: 3 bytes per row, the last with only one element. */
static unsigned half_byte(const unsigned char *bytes, size_t i) {
    unsigned byte = bytes[i / 5 * 3 + i % 5 / 2];
    return i % 5 % 2 ? byte >> 4 : byte & 0xf;
}

static void rows_of_int4_begin_with_a_byte(void **state) {
    fixture *f = *state;
    enum { ROWS = 3000, COUNT = ROWS * 5 };
    static const int64_t shape[2] = {ROWS, 5};
    unsigned char *bytes = malloc(ROWS * 3);
    uint64_t *bits = malloc(COUNT * sizeof *bits);
    assert_true(bytes && bits);
    for (size_t i = 0; i < ROWS * 3; ++i)
        bytes[i] = (unsigned char)(i * 151 + 3);
    add_stored(f, (head){.dtype = GBX_INT4, .ndims = 2}, shape, bytes, ROWS * 3);
    open_entries(f);
    gbx_entry entry = entry_at(f, 0);
    gbx_entry_values opened;
    check_good(gbx_entry_values_open(&entry, f->reader, &opened));
    for (size_t first = 0; first < 12; ++first) {
        check_good(gbx_elements_read(&opened.elements, first, COUNT - first, bits));
        for (size_t i = first; i < COUNT; ++i)
            assert_int_equal(bits[i - first], half_byte(bytes, i));
    }
    free(bytes);
    free(bits);
}

static uint64_t stored_of(fixture *f, uint64_t index) {
    gbx_entry entry = entry_at(f, index);
    gbx_entry_values opened;
    check_good(gbx_entry_values_open(&entry, f->reader, &opened));
    return opened.elements.stored;
}

static void truncated_tensors_have_their_complete_elements(void **state) {
    fixture *f = *state;
    static const int64_t wide[2] = {4, 5}, empty[2] = {0, 5};
    static const unsigned char bytes[160] = {0};
    static const struct {
        unsigned dtype, bytes;
        uint64_t stored;
    } cases[] = {{GBX_FLOAT64, 160, 20}, {GBX_FLOAT64, 159, 19}, {GBX_FLOAT64, 7, 0},
                 {GBX_FLOAT64, 0, 0},    {GBX_INT8, 13, 13},     {GBX_INT4, 12, 20},
                 {GBX_INT4, 11, 19},     {GBX_INT4, 10, 17},     {GBX_INT4, 9, 15},
                 {GBX_INT4, 1, 2},       {GBX_INT4, 0, 0}};
    enum { COUNT = sizeof cases / sizeof cases[0] };
    for (unsigned i = 0; i < COUNT; ++i)
        add_stored(f, (head){.task = i, .dtype = cases[i].dtype, .ndims = 2, .flags = TRUNCATED},
                   wide, bytes, cases[i].bytes);
    add_stored(f, (head){.task = COUNT, .dtype = GBX_INT4, .ndims = 2}, empty, bytes, 0);
    open_entries(f);
    for (uint64_t i = 0; i < COUNT; ++i)
        assert_int_equal(stored_of(f, i), cases[i].stored);
    assert_int_equal(stored_of(f, COUNT), 0);
}

static void sizes_that_do_not_fit_are_refused(void **state) {
    fixture *f = *state;
    static const int64_t shape[2] = {2, 3}, huge[2] = {INT64_MAX, 3}, large[1] = {INT64_MAX};
    static const unsigned char bytes[64] = {0};
    const head h = {.dtype = GBX_FLOAT32, .ndims = 2};
    head other = h;
    add_stored(f, h, shape, bytes, 23);
    other.task = 1;
    add_stored(f, other, shape, bytes, 25);
    other.task = 2;
    other.flags = TRUNCATED;
    add_stored(f, other, shape, bytes, 25);
    other.task = 3;
    other.flags = 0;
    add_stored(f, other, huge, bytes, 8);
    other.task = 4;
    other.ndims = 1;
    add_stored(f, other, large, bytes, 8);
    open_entries(f);
    static const char *const parts[] = {
        "entry 0 of the dump: it has 23 bytes of payload, but its shape and dtype need 24",
        "entry 1 of the dump: it has 25 bytes", "payload, but its shape and dtype need at most 24",
        "entry 3 of the dump", "entry 4 of the dump"};
    for (uint64_t i = 0; i < 5; ++i) {
        gbx_entry entry = entry_at(f, i);
        gbx_entry_values opened;
        gbx_statistics statistics;
        bool is_there;
        expect_bad(gbx_entry_values_open(&entry, f->reader, &opened), parts[i]);
        expect_bad(gbx_entry_statistics(&entry, f->reader, &statistics, &is_there), parts[i]);
    }
}

/* --- statistics --- */

static gbx_statistics statistics_of(fixture *f, uint64_t index) {
    gbx_entry entry = entry_at(f, index);
    gbx_statistics statistics;
    bool is_there = false;
    check_good(gbx_entry_statistics(&entry, f->reader, &statistics, &is_there));
    assert_true(is_there);
    return statistics;
}

static void check_statistics(const gbx_statistics *s, double min, double max, double mean,
                             uint64_t nans, uint64_t zeros) {
    assert_true(gbx_f64_of_bits(s->min_bits) == min);
    assert_true(gbx_f64_of_bits(s->max_bits) == max);
    assert_true(s->mean == mean);
    assert_int_equal(s->nan_count, nans);
    assert_int_equal(s->inf_count, 0);
    assert_int_equal(s->zero_count, zeros);
    assert_int_equal(s->subnormal_count, 0);
}

static void statistics_are_recorded_or_computed(void **state) {
    fixture *f = *state;
    enum { COUNT = 100001 }; /* floats: more than are read at a time */
    static const int64_t shape[1] = {COUNT}, four[1] = {4};
    static const float some[4] = {2, NAN, -6, 0};
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < COUNT; ++i)
        values[i] = (float)(i % 2 ? 1 : 3);
    values[COUNT - 1] = -8; /* the 50000 before it and the 50000 others add up to 200000 */
    add_stored(f, (head){.task = 0, .dtype = GBX_FLOAT32, .ndims = 1}, shape, values,
               COUNT * sizeof *values);
    add_stored(f, (head){.task = 1, .dtype = GBX_FLOAT32, .ndims = 1}, four, some, sizeof some);
    tensor_at(f, (head){.task = 2, .dtype = GBX_FLOAT32, .ndims = 1, .flags = HAS_STATS}, four, 0,
              0);
    put_double(&f->journal, -1);
    put_double(&f->journal, 5);
    put_double(&f->journal, 0.25);
    for (uint64_t i = 0; i < 4; ++i)
        put_u64(&f->journal, i == 0 ? 3 : i == 2 ? 1 : 0);
    tensor_at(f, (head){.task = 3, .dtype = GBX_FLOAT32, .ndims = 1}, four, 0, 0);
    add_scalar(&f->journal, (head){.task = 4, .dtype = GBX_FLOAT32}, UINT64_C(0xdeadbeef40400000));
    add_stored(f, (head){.task = 5, .dtype = GBX_FLOAT32, .ndims = 1, .flags = TRUNCATED}, four,
               some, 15);
    open_entries(f);
    gbx_statistics s = statistics_of(f, 0);
    check_statistics(&s, -8, 3, (200000.0 - 8) / COUNT, 0, 0);
    s = statistics_of(f, 1);
    check_statistics(&s, -6, 2, -4.0 / 3, 1, 1);
    s = statistics_of(f, 2);
    check_statistics(&s, -1, 5, 0.25, 3, 1);
    s = statistics_of(f, 4);
    check_statistics(&s, 3, 3, 3, 0, 0);
    s = statistics_of(f, 5);
    check_statistics(&s, -6, 2, -2, 1, 0);
    gbx_entry bare = entry_at(f, 3);
    bool is_there = true;
    check_good(gbx_entry_statistics(&bare, f->reader, &s, &is_there));
    assert_false(is_there);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_are_numbered_as_in_the_manifest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_entries_of_a_task_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dump_may_have_no_entries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sizes_are_of_the_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_overwritten_has_no_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(values_are_read_from_anywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_of_int4_begin_with_a_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(truncated_tensors_have_their_complete_elements, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sizes_that_do_not_fit_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(statistics_are_recorded_or_computed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
