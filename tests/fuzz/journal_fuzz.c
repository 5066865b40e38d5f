/*
 * The journal of a dump: the input is tensor_dump.rec, beside a fixed payload. All that can be read
 * is walked.
 */
#include "dump_walk.h"
#include "target.h"

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
    }
    FUZZ_CHECK(fuzz_next_descriptor() == descriptor);
    return 0;
}
