#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/internal.h"
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
                    gbx_text_plural(readable), readable == 1 ? "is" : "are", dump->directory,
                    readable == 1 ? "it" : "them");
}

static gbx_status open_all(const char *given, unsigned indexed, gbx_opened_dump *dump) {
    GBX_TRY(gbx_dump_path_find(given, &dump->directory));
    GBX_TRY(gbx_reader_open(dump->directory, GBX_INDEX_ARGUMENTS | indexed, &dump->reader));
    GBX_TRY(check_extent(dump));
    GBX_TRY(gbx_reader_open_payload(dump->reader));
    GBX_TRY(gbx_entries_create(dump->reader, &dump->entries));
    uint64_t newer = gbx_reader_get_extent(dump->reader)->newer_count;
    char count[GBX_COUNT_TEXT_BYTES], directory[4 * PATH_MAX];
    if (newer == 0)
        return NULL;
    gbx_terminal_escape(dump->directory, directory, sizeof directory);
    fprintf(stderr, "glassbox: %s: skipped %s record%s of types newer than this version\n",
            directory, gbx_text_count(newer, count), gbx_text_plural(newer));
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

/* --- the command that replays a task of it --- */

/* Where a link called latest points to now: after the next run it points elsewhere. NULL where it
 * is no such link. */
static char *follow_latest(const char *directory) {
    static const char latest[] = "latest";
    char link[PATH_MAX], target[PATH_MAX];
    char *path;
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        --length;
    if (length < sizeof latest - 1 || length >= sizeof link)
        return NULL;
    size_t parent = length - (sizeof latest - 1);
    if (strncmp(directory + parent, latest, length - parent) != 0)
        return NULL;
    snprintf(link, sizeof link, "%.*s", (int)length, directory);
    ssize_t bytes = readlink(link, target, sizeof target - 1);
    if (bytes <= 0 || (parent > 0 && directory[parent - 1] != '/'))
        return NULL;
    target[bytes] = '\0';
    int kept = target[0] == '/' ? 0 : (int)parent;
    return asprintf(&path, "%.*s%s", kept, directory, target) < 0 ? NULL : path;
}

/* As the user named it, so that the line is short and works in the same directory. */
static char *dump_name(const gbx_opened_dump *dump, const char *given) {
    const char *directory = dump->directory;
    char *followed = follow_latest(directory);
    if (followed)
        return followed;
    /* Around a tensor_dump that was named, the directory is known by its whole path. */
    if (given && given[0] != '/' && directory[0] == '/')
        directory = given;
    char *name;
    return asprintf(&name, "%s%s", directory[0] == '-' ? "./" : "", directory) < 0 ? NULL : name;
}

gbx_status gbx_replay_line(const gbx_opened_dump *dump, const char *given, const char *task,
                           char **out_text) {
    char *name = dump_name(dump, given);
    char *quoted = name ? gbx_shell_quote(name, true) : NULL;
    int length = quoted ? asprintf(out_text, "glassbox replay %s --task %s", quoted, task) : -1;
    free(name);
    free(quoted);
    if (length >= 0)
        return NULL;
    *out_text = NULL;
    return gbx_fail_memory("printing results");
}
