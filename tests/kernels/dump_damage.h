/* What dump_damage.c writes over, as dump_damage_test.c tells it. */
#ifndef DUMP_DAMAGE_H
#define DUMP_DAMAGE_H

#include <stdint.h>

typedef enum damage_part {
    DAMAGE_NOTHING,
    DAMAGE_SETUP,
    DAMAGE_LANES,
    DAMAGE_BUFFERS,
    DAMAGE_ARENAS,
    DAMAGE_OPEN_BUFFERS, /* of each lane that one that the device is filling */
    DAMAGE_DESCRIPTION,  /* of the task's own argument 1 */
    DAMAGE_ANYWHERE      /* random ones of the first `step` words of global memory */
} damage_part;

typedef enum damage_way { DAMAGE_SET, DAMAGE_FLIP, DAMAGE_ADD, DAMAGE_RANDOM } damage_way;

/* `count` words from `offset` bytes after the start of the part, `step` words from one to the next.
 */
typedef struct damage {
    uint64_t part;
    uint64_t way;
    uint64_t offset;
    uint64_t count;
    uint64_t step;
    uint64_t value; /* or the seed */
    /* Of buffers: those that the device is filling are spared, where the lanes have these sizes. Of
     * those that it is filling: where they are. */
    uint64_t lane_bytes;
    uint64_t open_item_offset; /* 0: nothing is spared */
} damage;

enum { DAMAGE_WORDS = sizeof(damage) / sizeof(uint64_t) };

#endif
