/*
 * Shared by the fuzz targets. A target is LLVMFuzzerTestOneInput, the entry of libFuzzer; replay.c
 * calls it for files instead. What a target asserts must hold for every input; if not, the process
 * ends.
 */
#ifndef GBX_TEST_FUZZ_TARGET_H
#define GBX_TEST_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks in all builds. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__FILE__, __LINE__, #condition);                                             \
    } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* A directory of this process, below TMPDIR, made by the first call and removed at the normal end
 * of the process. */
const char *fuzz_directory(void);

/* Creates DIRECTORY/NAME, or replaces its contents. */
void fuzz_write_file(const char *name, const void *bytes, size_t size);
void fuzz_make_directory(const char *name);
void fuzz_remove_file(const char *name); /* it may be missing */

/* One line of plain text: not empty, UTF-8, no control characters. */
void fuzz_check_line(const char *text);

/* Consumes a failure: its message must be one line, and its code one that input can cause. */
void fuzz_check_failure(gbx_status status);

/* The lowest free descriptor: the same before and after, unless one was left open. */
int fuzz_next_descriptor(void);

/* Reads all bytes, so that sanitizers find invalid ones. */
void fuzz_touch(const void *bytes, size_t size);
void fuzz_touch_text(const char *text); /* takes NULL */

#endif
