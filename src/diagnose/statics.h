/* Variables of a kernel that live from one task to the next. */
#ifndef GBX_DIAGNOSE_STATICS_H
#define GBX_DIAGNOSE_STATICS_H

#include <stdint.h>

#include "base/status.h"

enum { GBX_STATIC_NAME_BYTES = 128 };

/* The first of them that can be written. */
typedef struct gbx_static {
    char name[GBX_STATIC_NAME_BYTES]; /* "" if there is none */
    uint32_t line;                    /* of the source, if it declares it there; 0: unknown */
} gbx_static;

/* Reads the symbols of a shared object, which is untrusted, and looks for the declaration in its
 * source. An object without symbols has none that are known. */
GBX_MUST_USE gbx_status gbx_static_find(const char *object, const char *source,
                                        gbx_static *out_static);

#endif
