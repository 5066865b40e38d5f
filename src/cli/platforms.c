#include <glassbox/glassbox.h>

#include "cli/command.h"
#include "report/table.h"

enum { PLATFORMS_MAX = 16 };

typedef struct command_line {
    bool as_json;
} command_line;

typedef struct platform {
    const char *name;
    bool maps_memory;
    const char *description;
} platform;

static const gbx_field fields[] = {
    GBX_FIELD(platform, name, STRING, "name", "PLATFORM"),
    GBX_FIELD(platform, maps_memory, BOOL, "host_maps_memory", "HOST MAPS MEMORY"),
    GBX_FIELD(platform, description, STRING, "description", "DESCRIPTION", .narrowest = 12)};

static gbx_status list_platforms(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    platform platforms[PLATFORMS_MAX];
    uint32_t count = 0;
    for (; count < PLATFORMS_MAX && gbx_platform_name(count); ++count)
        platforms[count] = (platform){gbx_platform_name(count), gbx_platform_maps_memory(count),
                                      gbx_platform_description(count)};
    const gbx_rows *rows = GBX_ROWS(fields, platforms, count);
    if (!line->as_json)
        return gbx_rows_print(invocation->sink, rows, 1);
    gbx_json_put_rows(gbx_sink_json_begin(invocation->sink), "platforms", rows);
    return gbx_sink_json_end(invocation->sink, NULL);
}

static const gbx_option options[] = {
    {"json", .help = "Print one JSON document", GBX_STORE(FLAG, command_line, as_json)}, {0}};

const gbx_command gbx_command_platforms = {
    .name = "platforms",
    .summary = "list available platforms",
    .takes = "no arguments",
    .line_bytes = sizeof(command_line),
    .groups = {{NULL, options, 0}},
    .description = "List the available platforms; the first is the default.",
    .examples = "glassbox platforms\nglassbox platforms --json\n",
    .exits = {{GBX_EXIT_OK, "done"}, {GBX_EXIT_USAGE, "usage, or the output cannot be written"}},
    .run = list_platforms,
};
