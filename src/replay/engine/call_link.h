/* What travels between an engine and the glassbox-call that it has started. */
#ifndef GBX_REPLAY_ENGINE_CALL_LINK_H
#define GBX_REPLAY_ENGINE_CALL_LINK_H

#include "replay/engine/call_file.h"

/* Descriptors of the child; it has these and the standard streams. */
enum {
    GBX_CALL_SOCKET_FD = 3, /* sequenced packets; the child ends when it is closed */
    GBX_CALL_GM_FD = 4,     /* global memory */
    GBX_CALL_FILE_FD = 5,   /* the call to make, as in call_file.h, without extents */
    GBX_CALL_BOARD_FD = 6   /* gbx_call_board */
};

/* How it is told to serve an engine: in the place of the path of a file. */
#define GBX_CALL_SERVE "--serve"

#define GBX_CALL_LINK_MAGIC UINT32_C(0x4b4c4347)

/* Parent to child: make the call that the file holds now. */
typedef struct gbx_call_order {
    uint32_t magic;
    uint32_t reserved;
    uint64_t number; /* counts up */
} gbx_call_order;

typedef enum gbx_call_answer_code {
    GBX_CALL_DONE = 0,
    GBX_CALL_NOT_LOADED = 1, /* a kernel cannot be loaded */
    GBX_CALL_NOT_MADE = 2    /* the system refused something else */
} gbx_call_answer_code;

/* Child to parent. */
typedef struct gbx_call_answer {
    uint32_t magic;
    uint32_t code; /* gbx_call_answer_code */
    uint64_t number;
    uint64_t ns;
    char error[GBX_CALL_ERROR_BYTES];
} gbx_call_answer;

/* Both have it mapped. A wild kernel may scribble on it: the parent checks what it says. */
typedef struct gbx_call_board {
    gbx_call_fault fault;
    _Atomic uint32_t is_loading; /* kernels are being loaded: their constructors run */
    _Atomic uint32_t states[GBX_CALL_MAX_DISPATCHES];
} gbx_call_board;

#endif
