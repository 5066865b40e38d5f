/* One JSON document on stdout, for --json. */
#ifndef GBX_CLI_JSON_OUTPUT_H
#define GBX_CLI_JSON_OUTPUT_H

#include <stdint.h>

#include "text/json_writer.h"

/* A sink that writes to stdout. `context` is not used. */
gbx_status gbx_json_to_stdout(void *context, const void *bytes, size_t size);

/* An element, raw bits of `dtype`, as the manifest has values of scalars: integers of 64 bits as
 * text. */
void gbx_json_value(gbx_json_writer *json, uint32_t dtype, uint64_t bits);

/* Its key, then the element. */
void gbx_json_put_value(gbx_json_writer *json, const char *key, uint32_t dtype, uint64_t bits);

#endif
