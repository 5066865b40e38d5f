/* For tests of all layers: checks of a status, and of the resources that a process holds. */
#ifndef GBX_TESTS_CHECKS_H
#define GBX_TESTS_CHECKS_H

/* cmocka requires these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include <glassbox/status.h>

/* The status must be a success; prints the message of a failure. Consumes it. */
#define assert_ok(status) check_ok((status), __FILE__, __LINE__)
void check_ok(gbx_status status, const char *file, int line);

/* The status must fail with the code, and its message must contain all texts. Consumes it. */
#define assert_fails(status, code, ...)                                                            \
    check_fails((status), (code), (const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)
void check_fails(gbx_status status, gbx_code code, const char *const *texts, const char *file,
                 int line);

/* Thread sanitizer makes everything many times slower: tests that repeat the same with other
 * numbers then run only a sample. */
bool is_thread_sanitized(void);

/* Hang timeouts to try one after the other until the message names what hangs: on a machine that
 * stalls for a moment, it may name something else. */
enum { HANG_TIMEOUTS = 3 };
extern const uint32_t hang_timeouts_ms[HANG_TIMEOUTS];

/* The resources of the process, to check that none is left behind. */
size_t count_open_files(void);
size_t count_mappings_of(const char *name);
bool has_children(void);

#endif
