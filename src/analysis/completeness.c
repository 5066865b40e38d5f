#include "analysis/completeness.h"

#include <string.h>

#include <glassbox/chip.h>
#include <glassbox/dump.h>

#include "text/names.h"

/* Whether a filter of the run ("kernel=softmax*,stage=after") picks tasks as a whole. */
static bool picks_tasks(const char *filter) {
    static const char *const keys[] = {"kernel=", "func=", "task="};
    for (const char *at = filter; at; at = strchr(at, ',')) {
        bool is_of_tasks = false;
        at += *at == ',';
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
            is_of_tasks |= strncmp(at, keys[i], strlen(keys[i])) == 0;
        if (!is_of_tasks)
            return false;
    }
    return true;
}

static bool has_skipped_arguments(gbx_reader *reader) {
    uint64_t count = gbx_reader_list_count(reader, GBX_LIST_SKIPPED);
    bool is_found = false;
    for (uint64_t i = 0; i < count && !is_found; ++i) {
        const gbx_record *record;
        gbx_status status = gbx_reader_list_at(reader, GBX_LIST_SKIPPED, i, &record);
        is_found = status || record->arg_index != GBX_ARG_NONE;
        gbx_status_free(status);
    }
    return is_found;
}

bool gbx_run_has_all_metadata(const gbx_run_info *run) {
    uint32_t level;
    if (!run->dump_level || !gbx_name_find(&gbx_dump_levels, run->dump_level, &level))
        return false;
    return level == GBX_DUMP_HYBRID || level == GBX_DUMP_STATS ||
           (level == GBX_DUMP_FULL && run->filter_count == 0);
}

bool gbx_dump_has_whole_tasks(gbx_reader *reader) {
    const gbx_run_info *run = gbx_reader_run(reader);
    if (!run->dump_level || !gbx_reader_is_complete(reader) || has_skipped_arguments(reader) ||
        gbx_reader_get_totals(reader)->dropped > 0)
        return false;
    if (gbx_run_has_all_metadata(run))
        return true;
    bool is_whole = run->filter_count > 0;
    for (size_t i = 0; i < run->filter_count; ++i)
        is_whole &= picks_tasks(run->filters[i]);
    return is_whole;
}

bool gbx_dump_has_whole_graph(gbx_reader *reader) {
    return gbx_dump_has_whole_tasks(reader) && gbx_run_has_all_metadata(gbx_reader_run(reader)) &&
           gbx_reader_list_count(reader, GBX_LIST_SKIPPED) == 0;
}
