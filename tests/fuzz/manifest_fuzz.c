/*
 * The manifest of a dump without a journal, ours or another tool's: the input is its JSON, in the
 * file that belongs to its array. Beside it is a payload of 4 KiB, under both names. All that can
 * be read is walked and verified.
 */
#include <string.h>

#include "dump_walk.h"
#include "store/verify/verify.h"
#include "target.h"

static const char *name_of(const uint8_t *data, size_t size) {
    static const char array[] = "\"tensors\"";
    return memmem(data, size, array, sizeof array - 1) ? "tensor_dump/tensor_dump.json"
                                                       : "tensor_dump/args_dump.json";
}

static void check_verify(void) {
    gbx_verification verification;
    gbx_status failure = gbx_dump_verify(fuzz_directory(), NULL, &verification);
    if (failure)
        fuzz_check_failure(failure);
    else
        gbx_verification_free(&verification);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_prepare_dump();
    int descriptor = fuzz_next_descriptor();
    const char *name = name_of(data, size);
    fuzz_write_file(name, data, size);
    gbx_reader *reader = NULL;
    gbx_status failure = gbx_reader_open(fuzz_directory(), FUZZ_INDEX_ALL, &reader);
    if (failure) {
        fuzz_check_failure(failure);
    } else {
        FUZZ_CHECK(!gbx_reader_get_origin(reader)->is_journal);
        fuzz_walk_dump(reader);
        gbx_reader_close(reader);
        check_verify();
    }
    fuzz_remove_file(name);
    FUZZ_CHECK(fuzz_next_descriptor() == descriptor);
    return 0;
}
