/* Which of some names a mistyped one is most like, for messages. */
#ifndef GBX_TEXT_NEAR_NAMES_H
#define GBX_TEXT_NEAR_NAMES_H

#include <stddef.h>

enum { GBX_NEAR_BYTES = 64 }; /* of a name; the rest does not count */

/* How far a name is from what was typed: 2 for each letter to insert, remove, replace or swap with
 * its neighbour, 1 if the name only goes on after that. */
size_t gbx_near_distance(const char *wanted, const char *name);

/* Fills `out_order` with the numbers of the names, the nearest to `wanted` first; those that are
 * equally near stay in their order. `count` is at most a few thousand. */
void gbx_near_sort(const char *wanted, const char *const *names, size_t count, size_t *out_order);

#endif
