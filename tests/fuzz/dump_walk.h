/*
 * Asks a reader for all that it has, and checks that the answers agree with each other: whatever
 * the dump is, a reader that opened it keeps what reader.h promises.
 */
#ifndef GBX_TEST_FUZZ_DUMP_WALK_H
#define GBX_TEST_FUZZ_DUMP_WALK_H

#include "store/reader.h"

enum {
    FUZZ_INDEX_ALL = GBX_INDEX_ARGUMENTS | GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH |
                     GBX_INDEX_EXECUTIONS | GBX_INDEX_SAMPLES
};

/* Makes tensor_dump/ of fuzz_directory with payload files of 4 KiB, tensor_dump.bin and args.bin;
 * once is enough. */
void fuzz_prepare_dump(void);

/* With an index of everything. Opens the payload, which every record has to lie inside of unless
 * that fails. */
void fuzz_walk_dump(gbx_reader *reader);

#endif
