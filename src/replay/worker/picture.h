/*
 * The memory of a call: the tensors of one task, a page or more around each of them, and nothing
 * else. Everything that is not an input holds a pattern; all other addresses fault.
 */
#ifndef GBX_REPLAY_WORKER_PICTURE_H
#define GBX_REPLAY_WORKER_PICTURE_H

#include <stdbool.h>

#include "replay/worker/order.h"

enum { GBX_PICTURE_PAGE = 4096 };
/* Larger ones have no mirror: only outputs hold a pattern, and stray writes are not looked for. */
#define GBX_PICTURE_MIRRORED (UINT64_C(512) << 20)

/* Pages around tensors that lie close together. */
typedef struct gbx_window {
    uint64_t start;   /* in addresses of the order */
    uint64_t bytes;   /* complete pages */
    uint64_t address; /* where the picture has it */
    uint64_t offset;  /* in the mirror */
    uint32_t flavour; /* gbx_pattern_flavour: of its tensors */
} gbx_window;

typedef struct gbx_picture {
    gbx_window windows[GBX_CALL_SLOTS];
    uint32_t window_count;
    uint64_t bytes;                     /* of all windows */
    unsigned char *mirror;              /* what windows should hold; may be NULL */
    unsigned char *strayed;             /* 1 for each byte that changed; NULL: none did */
    int pattern;                        /* of the last prepare */
    bool is_abandoned;                  /* a kernel has crashed: nothing may be allocated */
    gbx_tensor tensors[GBX_CALL_SLOTS]; /* of arguments, where they lie in the picture */
    int32_t window_of[GBX_CALL_SLOTS];  /* of arguments; -1: no elements */
} gbx_picture;

/* Where payloads are read from and kept. */
typedef struct gbx_payloads {
    const unsigned char *dump;
    uint64_t dump_bytes;
    unsigned char *kept;
    uint64_t kept_bytes;
} gbx_payloads;

/* The payload of an argument before or after the task; NULL if it has none. */
const unsigned char *gbx_payload_before(const gbx_payloads *payloads,
                                        const gbx_order_argument *argument);
const unsigned char *gbx_payload_after(const gbx_payloads *payloads,
                                       const gbx_order_argument *argument);

/* Finds the windows of a task, unmapped, at the addresses of the order; places its tensors. */
void gbx_picture_find_windows(gbx_picture *picture, const gbx_order *order);

/* Places the tensors of a task again, in windows that have got other addresses. */
void gbx_picture_place(gbx_picture *picture, const gbx_order *order);

/* Maps windows at the addresses of the order, with a mirror. 0, or -1 with a sentence. */
int gbx_picture_open(gbx_picture *picture, const gbx_order *order,
                     char out_error[GBX_CALL_ERROR_BYTES]);
void gbx_picture_close(gbx_picture *picture);

/* Maps one window where it has its address. */
int gbx_window_map(const gbx_window *window, char out_error[GBX_CALL_ERROR_BYTES]);

/* The buffer of an argument's tensor in the picture, and in its mirror. */
void *gbx_picture_buffer(const gbx_picture *picture, uint32_t argument);
void *gbx_picture_mirrored(const gbx_picture *picture, uint32_t argument);

/* The mirror as memory should be before the dispatch. */
void gbx_picture_paint(gbx_picture *picture, const gbx_order *order, const gbx_payloads *payloads,
                       int pattern);

/*
 * Everything as before the dispatch: a pattern, then inputs and inouts, which win where views
 * overlap. `scratch` holds the largest payload.
 */
void gbx_picture_prepare(gbx_picture *picture, const gbx_order *order, const gbx_payloads *payloads,
                         int pattern, void *scratch);

/* The payload of an output before the call, from the mirror. */
void gbx_picture_start(const gbx_picture *picture, const gbx_order *order, int pattern,
                       uint32_t argument, void *out_payload);

/* Bytes that changed outside of outputs and inouts, since the picture was opened. */
typedef struct gbx_strays {
    uint64_t bytes;
    uint64_t address; /* of the first, in addresses of the order */
    uint64_t end;     /* one past the last */
} gbx_strays;

/* Adds those of the last call; once after each prepare, because it spoils the mirror. */
void gbx_picture_find_strays(gbx_picture *picture, const gbx_order *order, void *scratch,
                             gbx_strays *strays);

/* All of them as ranges without gaps, the first `capacity` of them; returns how many. */
uint32_t gbx_picture_list_strays(const gbx_picture *picture, gbx_stray_range *out_ranges,
                                 uint32_t capacity);

#endif
