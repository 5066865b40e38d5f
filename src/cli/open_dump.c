#include "cli/open_dump.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/dump_text.h"
#include "cli/terminal.h"
#include "store/dump_path.h"

static gbx_status check_extent(const gbx_opened_dump *dump) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(dump->reader);
    const gbx_reader_totals *totals = gbx_reader_get_totals(dump->reader);
    char count[GBX_COUNT_TEXT_BYTES];
    if (extent->stop == GBX_STOP_END)
        return NULL;
    uint64_t readable = totals->records + totals->in_flight;
    if (!gbx_reader_stop_is_damage(extent->stop))
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading %s: at offset %" PRIu64 " of %" PRIu64 ", %s; the block has its "
                        "checksum, so it was written like this: a newer glassbox may read it",
                        gbx_reader_get_origin(dump->reader)->records_path, extent->stop_offset,
                        extent->file_bytes, extent->stop_text);
    return gbx_fail(GBX_BAD_FORMAT,
                    "reading %s: at offset %" PRIu64 " of %" PRIu64 ", %s; the %s record%s before "
                    "it %s readable: glassbox recover %s keeps %s",
                    gbx_reader_get_origin(dump->reader)->records_path, extent->stop_offset,
                    extent->file_bytes, extent->stop_text, gbx_text_count(readable, count),
                    readable == 1 ? "" : "s", readable == 1 ? "is" : "are", dump->directory,
                    readable == 1 ? "it" : "them");
}

static void say_newer(const gbx_opened_dump *dump) {
    uint64_t newer = gbx_reader_get_extent(dump->reader)->newer_count;
    char count[GBX_COUNT_TEXT_BYTES], directory[4 * PATH_MAX];
    if (newer == 0)
        return;
    gbx_terminal_escape(dump->directory, directory, sizeof directory);
    fprintf(stderr, "glassbox: %s: skipped %s record%s of types newer than this version\n",
            directory, gbx_text_count(newer, count), gbx_text_plural(newer));
}

static gbx_status open_all(const char *given, unsigned indexed, gbx_opened_dump *dump) {
    GBX_TRY(gbx_dump_path_find(given, &dump->directory));
    GBX_TRY(gbx_reader_open(dump->directory, GBX_INDEX_ARGUMENTS | indexed, &dump->reader));
    GBX_TRY(check_extent(dump));
    GBX_TRY(gbx_reader_open_payload(dump->reader));
    GBX_TRY(gbx_entries_create(dump->reader, &dump->entries));
    say_newer(dump);
    return NULL;
}

gbx_status gbx_opened_dump_open(const char *given, unsigned indexed, gbx_opened_dump *out_dump) {
    *out_dump = (gbx_opened_dump){0};
    gbx_status status = open_all(given, indexed, out_dump);
    if (status)
        gbx_opened_dump_close(out_dump);
    return status;
}

void gbx_opened_dump_close(gbx_opened_dump *dump) {
    gbx_entries_destroy(dump->entries);
    gbx_reader_close(dump->reader);
    free(dump->directory);
    *dump = (gbx_opened_dump){0};
}
