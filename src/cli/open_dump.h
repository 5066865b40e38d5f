/* Opens the dump that a command is about, and refuses what cannot be read as a whole. */
#ifndef GBX_CLI_OPEN_DUMP_H
#define GBX_CLI_OPEN_DUMP_H

#include "analysis/entries.h"
#include "base/status.h"
#include "store/reader.h"

typedef struct gbx_opened_dump {
    char *directory;
    gbx_reader *reader;
    gbx_entries *entries;
} gbx_opened_dump;

/*
 * `given` is what the user named, NULL for the latest; `indexed` is what the reader indexes beside
 * arguments, GBX_INDEX_... Records and payload are open and checked to
 * fit. A journal with a broken block fails with GBX_BAD_FORMAT: how many records are readable, and
 * that `glassbox recover` keeps them; one that this version does not understand fails, too, without
 * that advice. Records of newer types that were skipped are counted on stderr. Everything is NULL
 * on failure.
 */
GBX_MUST_USE gbx_status gbx_opened_dump_open(const char *given, unsigned indexed,
                                             gbx_opened_dump *out_dump);
void gbx_opened_dump_close(gbx_opened_dump *dump);

#endif
