#include <libsmartcols/libsmartcols.h>

#include <glassbox/glassbox.h>

#include "cli/internal.h"

enum { KEY_JSON = 0x100 }; /* no letter: the long name alone */

static error_t parse(int key, char *argument, struct argp_state *state) {
    bool *as_json = state->input;
    if (key != KEY_JSON)
        return gbx_command_reject(key, argument, state);
    *as_json = true;
    return 0;
}

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON document", 0}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .doc = "Lists the platforms a chip can be of; the first is the default."
           "\vexit codes: 0 done; 2 usage, or the output cannot be written.\n\n"
           "examples:\n  glassbox platforms\n  glassbox platforms --json",
};

static int print_table(void) {
    struct libscols_table *table = scols_new_table();
    if (!table || !scols_table_new_column(table, "PLATFORM", 0, 0) ||
        !scols_table_new_column(table, "HOST MAPS MEMORY", 0, 0) ||
        !scols_table_new_column(table, "DESCRIPTION", 0, SCOLS_FL_WRAP)) {
        scols_unref_table(table);
        return GBX_EXIT_USAGE;
    }
    int failures = 0;
    for (uint32_t i = 0; gbx_platform_name(i); ++i) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        failures += !line || scols_line_set_data(line, 0, gbx_platform_name(i)) ||
                    scols_line_set_data(line, 1, gbx_platform_maps_memory(i) ? "yes" : "no") ||
                    scols_line_set_data(line, 2, gbx_platform_description(i));
    }
    failures += scols_print_table(table) != 0;
    scols_unref_table(table);
    return failures ? GBX_EXIT_USAGE : GBX_EXIT_OK;
}

static gbx_status print_json(void) {
    static gbx_json_writer json; /* too large for a stack */
    gbx_json_start_stdout(&json);
    gbx_json_key(&json, "platforms");
    gbx_json_begin_array(&json);
    for (uint32_t i = 0; gbx_platform_name(i); ++i) {
        gbx_json_begin_object(&json);
        gbx_json_put_string(&json, "name", gbx_platform_name(i));
        gbx_json_put_bool(&json, "host_maps_memory", gbx_platform_maps_memory(i));
        gbx_json_put_string(&json, "description", gbx_platform_description(i));
        gbx_json_end_object(&json);
    }
    gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, NULL);
}

int gbx_command_platforms(int argc, char **argv) {
    bool as_json = false;
    gbx_command_parse(&parser, "platforms", argc, argv, &as_json);
    return as_json ? gbx_command_end("platforms", print_json(), GBX_EXIT_OK) : print_table();
}
