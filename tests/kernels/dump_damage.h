/* What dump_damage_test.c asks dump_damage.c to overwrite. */
#ifndef DUMP_DAMAGE_H
#define DUMP_DAMAGE_H

#include <stdint.h>

typedef enum damage_part {
    DAMAGE_NOTHING,
    DAMAGE_SETUP,
    DAMAGE_LANES,
    DAMAGE_BUFFERS,
    DAMAGE_ARENAS,
    DAMAGE_OPEN_BUFFERS, /* the buffer of each lane that the device is filling */
    DAMAGE_DESCRIPTION,  /* of the task's own argument 1 */
    DAMAGE_ANYWHERE,     /* random words among the first `step` of global memory */
    DAMAGE_PAGE          /* all of 4 KiB somewhere: `value` is the seed, `count` the words */
} damage_part;

typedef enum damage_way { DAMAGE_SET, DAMAGE_FLIP, DAMAGE_ADD, DAMAGE_RANDOM } damage_way;

/* `count` words, `step` words apart, from `offset` bytes after the start of the part. */
typedef struct damage {
    uint64_t part;
    uint64_t way;
    uint64_t offset;
    uint64_t count;
    uint64_t step;
    uint64_t value; /* or the seed */
    /* The size of a lane, and where a lane has the index of the buffer that the device is filling:
     * DAMAGE_BUFFERS spares that buffer, DAMAGE_OPEN_BUFFERS overwrites it. */
    uint64_t lane_bytes;
    uint64_t open_item_offset; /* 0: nothing is spared */
} damage;

enum { DAMAGE_WORDS = sizeof(damage) / sizeof(uint64_t) };

#endif
