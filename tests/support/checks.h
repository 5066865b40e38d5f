/* What tests of all layers share: checks of a status, and of what a process holds. */
#ifndef GBX_TESTS_CHECKS_H
#define GBX_TESTS_CHECKS_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include <glassbox/status.h>

/* The status must be a success; a failure is shown with its message. Consumes it. */
#define assert_ok(status) check_ok((status), __FILE__, __LINE__)
void check_ok(gbx_status status, const char *file, int line);

/* The status must fail with the code, and its message hold every one of the texts. Consumes it. */
#define assert_fails(status, code, ...)                                                            \
    check_fails((status), (code), (const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)
void check_fails(gbx_status status, gbx_code code, const char *const *texts, const char *file,
                 int line);

/* Thread sanitizer makes all of it many times slower: what repeats the same with other numbers is
 * sampled then. */
bool is_thread_sanitized(void);

/* Times after which a hang is found, to be tried one after the other until what hangs is what is
 * named: when a machine stands still for a moment, something else is. */
enum { HANG_TIMEOUTS = 3 };
extern const uint32_t hang_timeouts_ms[HANG_TIMEOUTS];

/* What the process holds, to see that nothing stays behind. */
size_t count_open_files(void);
size_t count_mappings_of(const char *name);
bool has_children(void);

#endif
