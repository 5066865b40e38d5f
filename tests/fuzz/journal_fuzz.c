/*
 * The journal of a dump: the input is tensor_dump.rec, beside a fixed payload. All that can be read
 * is walked.
 */
#include "dump_walk.h"
#include "target.h"

/* Each RANGE may be false: this does not see the same records as a reader of all tasks. */
static void read_some_tasks(void) {
    enum { FIRST = 1, LAST = 2 };
    gbx_reader *reader = NULL;
    uint64_t last = FIRST;
    gbx_status failure =
        gbx_reader_open_tasks(fuzz_directory(), FUZZ_INDEX_ALL, FIRST, LAST, &reader);
    if (failure) {
        fuzz_check_failure(failure);
        return;
    }
    for (uint64_t i = 0; i < gbx_reader_count(reader); ++i) {
        const gbx_record *record = NULL;
        FUZZ_CHECK(!gbx_reader_at(reader, i, &record));
        FUZZ_CHECK(record->task >= last && record->task <= LAST);
        last = record->task;
    }
    gbx_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_prepare_dump();
    int descriptor = fuzz_next_descriptor();
    fuzz_write_file("tensor_dump/tensor_dump.rec", data, size);
    gbx_reader *reader = NULL;
    gbx_status failure = gbx_reader_open(fuzz_directory(), FUZZ_INDEX_ALL, &reader);
    if (failure) {
        fuzz_check_failure(failure);
    } else {
        fuzz_walk_dump(reader);
        gbx_reader_close(reader);
        read_some_tasks();
    }
    FUZZ_CHECK(fuzz_next_descriptor() == descriptor);
    return 0;
}
