/* One JSON document on stdout, for --json. */
#ifndef GBX_CLI_JSON_OUTPUT_H
#define GBX_CLI_JSON_OUTPUT_H

#include "base/json_writer.h"

/* A sink that writes to stdout. `context` is not used. */
gbx_status gbx_json_to_stdout(void *context, const void *bytes, size_t size);

#endif
