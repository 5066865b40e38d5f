/* Raising and passing on a gbx_status. Host code only: device code returns the bare gbx_code. */
#ifndef GBX_BASE_STATUS_H
#define GBX_BASE_STATUS_H

#include <stdarg.h>

#include <glassbox/status.h>

/* Returns early with the status of a call that failed. */
#define GBX_TRY(expression)                                                                        \
    do {                                                                                           \
        gbx_status gbx_try_status_ = (expression);                                                 \
        if (gbx_try_status_)                                                                       \
            return gbx_try_status_;                                                                \
    } while (0)

/* Makes a status with the site of the caller: gbx_fail(GBX_IO, "cannot open %s: %s", ...). */
#define gbx_fail(code, ...)                                                                        \
    gbx_status_never_null(gbx_status_make(__FILE__, __LINE__, (code), __VA_ARGS__))

/*
 * Never NULL: when out of memory, a constant status that says so. `file` must be a string literal.
 * `code` is not GBX_OK.
 */
GBX_MUST_USE gbx_status gbx_status_make(const char *file, int line, gbx_code code,
                                        const char *format, ...) GBX_PRINTF(4, 5);

/* Lets compilers and analyzers know that a failure is never NULL. */
static inline gbx_status gbx_status_never_null(gbx_status status) {
    if (!status)
        __builtin_unreachable();
    return status;
}

/* Consumes `status` and returns it with a sentence in front: "opening chip: no such file". */
GBX_MUST_USE gbx_status gbx_status_annotate(gbx_status status, const char *format, ...)
    GBX_PRINTF(2, 3);

/* Keeps the first of two failures and frees the other, for cleanup on the way out. */
GBX_MUST_USE gbx_status gbx_status_first(gbx_status first, gbx_status second);

/* The exit codes of every command. Where several hold: 2, then 3, then 4, then 1. */
enum {
    GBX_EXIT_OK = 0,
    GBX_EXIT_DIFFERS = 1, /* done, and something differs, or nothing matched */
    GBX_EXIT_USAGE = 2,   /* usage, or an input that cannot be read */
    GBX_EXIT_DEVICE = 3,  /* a kernel crashed or hung, the chip died */
    GBX_EXIT_LOST = 4     /* records were lost, or the disk failed */
};

/* The more severe of two. */
int gbx_exit_worse(int a, int b);

#endif
