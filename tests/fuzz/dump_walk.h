/*
 * Asks a reader for everything it has, and checks that the answers agree: whatever the dump holds,
 * a reader that opened it keeps the promises of reader.h.
 */
#ifndef GBX_TEST_FUZZ_DUMP_WALK_H
#define GBX_TEST_FUZZ_DUMP_WALK_H

#include "store/reader.h"

enum {
    FUZZ_INDEX_ALL = GBX_INDEX_ARGUMENTS | GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH |
                     GBX_INDEX_EXECUTIONS | GBX_INDEX_SAMPLES
};

/* Makes tensor_dump/ in fuzz_directory, with payload files of 4 KiB, tensor_dump.bin and args.bin.
 * Calling it once is enough. */
void fuzz_prepare_dump(void);

/* Needs an index of everything. Opens the payload; unless that fails, every record must be inside
 * it. */
void fuzz_walk_dump(gbx_reader *reader);

#endif
