/* How commands that read dumps print counts, sizes and what is wrong. */
#ifndef GBX_CLI_DUMP_TEXT_H
#define GBX_CLI_DUMP_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "store/verify/findings.h"
#include "text/json_writer.h"

enum { GBX_COUNT_TEXT_BYTES = 32, GBX_TIME_TEXT_BYTES = 32 };

/* "1,024"; the text is `out_text`. */
const char *gbx_text_count(uint64_t count, char out_text[GBX_COUNT_TEXT_BYTES]);

/* What a word ends with: "" of one, "s" of others. */
const char *gbx_text_plural(uint64_t count);

/* "17 bytes", "3.2 MiB"; the text is `out_text`. */
const char *gbx_text_bytes(uint64_t bytes, char out_text[GBX_COUNT_TEXT_BYTES]);

/* "412 ns", "1.25 ms", "83.20 s"; the text is `out_text`. */
const char *gbx_text_ns(uint64_t ns, char out_text[GBX_TIME_TEXT_BYTES]);

/* One line each, indented; at most 20, then how many more there are and `more`, where they are. */
void gbx_text_findings(const gbx_findings *findings, const char *more);

/* An array of objects. */
void gbx_json_findings(gbx_json_writer *json, const gbx_findings *findings);

#endif
