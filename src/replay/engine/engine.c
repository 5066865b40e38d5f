#include "replay/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "base/clock.h"
#include "replay/engine/engine_call.h"
#include "replay/engine/engine_child.h"
#include "replay/engine/engine_fault.h"
#include "replay/engine/engine_memory.h"

enum { DEFAULT_TIMEOUT_MS = 10000, DEFAULT_BLOCKS = 8 };
#define DEFAULT_GM_BYTES (UINT64_C(8) << 30)

struct gbx_replay_engine {
    int64_t timeout_ns;
    uint32_t chip_blocks;
    uint64_t gm_bytes;
    char *child_program; /* NULL where it is looked for */
    gbx_replay_memory memory;
    gbx_replay_child child;
    gbx_replay_layout layout;   /* of the last request */
    gbx_replay_request request; /* the one that runs */
};

static gbx_status configure(gbx_replay_engine *engine, const gbx_replay_engine_config *config) {
    engine->timeout_ns =
        (config->timeout_ms ? config->timeout_ms : DEFAULT_TIMEOUT_MS) * GBX_NS_PER_MS;
    engine->chip_blocks = config->chip_blocks ? config->chip_blocks : DEFAULT_BLOCKS;
    engine->gm_bytes = config->gm_bytes ? config->gm_bytes : DEFAULT_GM_BYTES;
    if (engine->chip_blocks > GBX_MAX_BLOCKS || engine->gm_bytes > GBX_MAX_GM_BYTES)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling kernels again: no chip has %" PRIu32 " blocks and %" PRIu64
                        " bytes of memory; the most are %d and %" PRIu64,
                        engine->chip_blocks, engine->gm_bytes, GBX_MAX_BLOCKS, GBX_MAX_GM_BYTES);
    if (!config->child_program)
        return NULL;
    engine->child_program = strdup(config->child_program);
    return engine->child_program ? NULL : gbx_fail(GBX_EXHAUSTED, "no memory for a path");
}

static gbx_status open_parts(gbx_replay_engine *engine, const gbx_replay_engine_config *config) {
    GBX_TRY(configure(engine, config));
    GBX_TRY(gbx_replay_memory_open(&engine->memory));
    return gbx_replay_child_open(&engine->child);
}

gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                  gbx_replay_engine **out_engine) {
    gbx_replay_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return gbx_fail(GBX_EXHAUSTED, "no memory to call kernels again");
    engine->memory.fd = -1;
    engine->child = (gbx_replay_child){.pid_fd = -1, .socket = -1, .file_fd = -1, .board_fd = -1};
    gbx_status status = open_parts(engine, config);
    if (status)
        gbx_replay_engine_close(engine);
    else
        *out_engine = engine;
    return status;
}

void gbx_replay_engine_close(gbx_replay_engine *engine) {
    if (!engine)
        return;
    gbx_replay_child_close(&engine->child);
    gbx_replay_memory_close(&engine->memory);
    free(engine->child_program);
    free(engine);
}

/* --- running --- */

static gbx_status prepare(gbx_replay_engine *engine, const gbx_replay_request *request) {
    gbx_replay_layout layout;
    engine->layout.count = 0; /* nothing is there to be looked at until all is well */
    GBX_TRY(gbx_replay_request_check(request));
    GBX_TRY(gbx_replay_layout_make(request->task, engine->gm_bytes, &layout));
    GBX_TRY(gbx_replay_memory_restore(&engine->memory, &layout, request));
    engine->layout = layout;
    return NULL;
}

static gbx_status take_answer(const gbx_call_answer *answer, gbx_replay_outcome *outcome) {
    if (answer->code != GBX_CALL_DONE)
        return gbx_fail(answer->code == GBX_CALL_NOT_LOADED ? GBX_BAD_KERNEL : GBX_IO,
                        "calling kernels again: %s", answer->error);
    outcome->ns = answer->ns;
    return NULL;
}

gbx_status gbx_replay_begin(gbx_replay_engine *engine, const gbx_replay_request *request) {
    GBX_TRY(prepare(engine, request));
    GBX_TRY(gbx_replay_request_write(request, &engine->layout, engine->chip_blocks, NULL,
                                     engine->child.file_fd));
    engine->request = *request;
    return gbx_replay_child_order(&engine->child, engine->child_program, engine->memory.fd,
                                  gbx_replay_request_count(request));
}

gbx_status gbx_replay_end(gbx_replay_engine *engine, gbx_replay_outcome *out_outcome) {
    gbx_replay_reply reply;
    GBX_TRY(gbx_replay_child_wait(&engine->child, engine->timeout_ns, &reply));
    *out_outcome = (gbx_replay_outcome){.is_relocated = engine->layout.is_relocated};
    if (reply.ending == GBX_REPLAY_ANSWERED)
        GBX_TRY(take_answer(&reply.answer, out_outcome));
    else
        GBX_TRY(gbx_replay_fault_tell(&engine->request, &engine->child, &reply, engine->timeout_ns,
                                      &out_outcome->fault));
    return gbx_replay_memory_find_strays(&engine->memory, &engine->layout, out_outcome);
}

/* What gbx_replay_layout_make refuses, as a sentence of its own. */
static gbx_status with_title(gbx_status status) {
    gbx_code code = gbx_status_code(status);
    bool is_refusal = code == GBX_OUT_OF_RANGE || code == GBX_EXHAUSTED;
    return is_refusal ? gbx_status_annotate(status, "calling the task again") : status;
}

gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                          gbx_replay_outcome *out_outcome) {
    GBX_TRY(with_title(gbx_replay_begin(engine, request)));
    return gbx_replay_end(engine, out_outcome);
}

const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument) {
    const gbx_replay_layout *layout = &engine->layout;
    bool is_there = argument < layout->count && layout->is_tensor[argument];
    return is_there ? &layout->tensors[argument] : NULL;
}

gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                             void *out_payload) {
    const gbx_tensor *tensor = gbx_replay_placed_tensor(engine, argument);
    if (!tensor)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "reading argument %" PRIu32 " of a call: it is no tensor", argument);
    gbx_replay_memory_gather(&engine->memory, &engine->layout, tensor, out_payload);
    return NULL;
}

/* --- for others to run --- */

gbx_status gbx_replay_describe_call(const gbx_replay_engine *engine,
                                    const gbx_replay_request *request, gbx_call_file *out_file,
                                    gbx_call_dispatch **out_dispatches) {
    gbx_replay_layout layout;
    GBX_TRY(gbx_replay_request_check(request));
    GBX_TRY(with_title(gbx_replay_layout_make(request->task, engine->gm_bytes, &layout)));
    return gbx_replay_request_describe(request, &layout, engine->chip_blocks, out_file,
                                       out_dispatches);
}

gbx_status gbx_replay_write_call(gbx_replay_engine *engine, const gbx_replay_request *request,
                                 const char *path) {
    GBX_TRY(with_title(prepare(engine, request)));
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    gbx_status status = gbx_replay_request_write(request, &engine->layout, engine->chip_blocks,
                                                 &engine->memory, fd);
    if (close(fd) != 0 && !status)
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    if (status)
        unlink(path);
    return status;
}
