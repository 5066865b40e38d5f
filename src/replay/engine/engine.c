#include "replay/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "replay/engine/internal.h"

enum { DEFAULT_TIMEOUT_MS = 10000, DEFAULT_BLOCKS = 8 };
#define DEFAULT_GM_BYTES (UINT64_C(8) << 30)
#define LARGE_BYTES (UINT64_C(64) << 20)

const gbx_replay_settings *gbx_replay_engine_settings(const gbx_replay_engine *engine) {
    return &engine->settings;
}

/* --- opening --- */

static gbx_status configure(gbx_replay_engine *engine, const gbx_replay_engine_config *config) {
    gbx_replay_settings *settings = &engine->settings;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    engine->timeout_ns =
        (config->timeout_ms ? config->timeout_ms : DEFAULT_TIMEOUT_MS) * GBX_NS_PER_MS;
    settings->chip_blocks = config->chip_blocks ? config->chip_blocks : DEFAULT_BLOCKS;
    settings->gm_bytes = config->gm_bytes ? config->gm_bytes : DEFAULT_GM_BYTES;
    if (settings->chip_blocks > GBX_MAX_BLOCKS || settings->gm_bytes > GBX_MAX_GM_BYTES)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling kernels again: a chip cannot have %" PRIu32 " blocks and %" PRIu64
                        " bytes of memory; the maximum is %d and %" PRIu64,
                        settings->chip_blocks, settings->gm_bytes, GBX_MAX_BLOCKS,
                        GBX_MAX_GM_BYTES);
    engine->worker_count = config->jobs ? config->jobs : processors > 0 ? (uint32_t)processors : 1;
    if (engine->worker_count > GBX_REPLAY_MAX_JOBS)
        engine->worker_count = GBX_REPLAY_MAX_JOBS;
    engine->workers = calloc(engine->worker_count, sizeof *engine->workers);
    if (config->child_program)
        engine->child_program = strdup(config->child_program);
    if (!engine->workers || (config->child_program && !engine->child_program))
        return gbx_fail_memory("calling kernels again");
    for (uint32_t i = 0; i < engine->worker_count; ++i) {
        engine->workers[i].child = gbx_replay_no_child;
        engine->workers[i].child.is_silent = config->is_silent;
    }
    return NULL;
}

/* A dump without payload has an empty file instead. */
static gbx_status open_payload(gbx_replay_engine *engine, const char *path) {
    struct stat about;
    bool has_path = path && path[0];
    engine->payload_fd = gbx_above_standard_streams(
        has_path ? open(path, O_RDONLY | O_CLOEXEC) : memfd_create("glassbox-none", MFD_CLOEXEC));
    if (engine->payload_fd < 0 && has_path && errno == ENOENT)
        return open_payload(engine, NULL);
    if (engine->payload_fd < 0 || fstat(engine->payload_fd, &about) != 0)
        return gbx_fail(GBX_IO, "opening %s: %s", has_path ? path : "an empty file",
                        strerror(errno));
    engine->payload_bytes = (uint64_t)about.st_size;
    return NULL;
}

gbx_status gbx_replay_engine_open(const gbx_replay_engine_config *config,
                                  gbx_replay_engine **out_engine) {
    gbx_replay_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return gbx_fail_memory("calling kernels again");
    engine->payload_fd = -1;
    gbx_status status = configure(engine, config);
    if (!status)
        status = open_payload(engine, config->payload_path);
    if (status)
        gbx_replay_engine_close(engine);
    else
        *out_engine = engine;
    return status;
}

static void free_pending(gbx_replay_pending *pending) {
    gbx_replay_outcome_free(&pending->outcome);
    gbx_status_free(pending->status);
    free(pending);
}

void gbx_replay_engine_close(gbx_replay_engine *engine) {
    if (!engine)
        return;
    for (uint32_t i = 0; engine->workers && i < engine->worker_count; ++i)
        gbx_replay_child_close(&engine->workers[i].child);
    for (; engine->count > 0;
         --engine->count, engine->first = (engine->first + 1) % GBX_REPLAY_PENDING)
        free_pending(engine->pendings[engine->first]);
    if (engine->payload)
        munmap((void *)(uintptr_t)engine->payload, engine->payload_bytes);
    if (engine->payload_fd >= 0)
        close(engine->payload_fd);
    free(engine->workers);
    free(engine->child_program);
    free(engine);
}

const unsigned char *gbx_replay_engine_payload(gbx_replay_engine *engine, uint64_t *out_bytes) {
    if (!engine->payload && engine->payload_bytes > 0) {
        void *mapped =
            mmap(NULL, engine->payload_bytes, PROT_READ, MAP_SHARED, engine->payload_fd, 0);
        engine->payload = mapped == MAP_FAILED ? NULL : mapped;
    }
    *out_bytes = engine->payload ? engine->payload_bytes : 0;
    return engine->payload;
}

void gbx_replay_outcome_free(gbx_replay_outcome *outcome) {
    free(outcome->fault);
    free(outcome->answer);
    *outcome = (gbx_replay_outcome){0};
}

gbx_status gbx_replay_with_title(gbx_status status) {
    gbx_code code = gbx_status_code(status);
    bool is_refusal = code == GBX_OUT_OF_RANGE || code == GBX_EXHAUSTED;
    return is_refusal ? gbx_status_annotate(status, "calling the task again") : status;
}

/* --- tasks --- */

static gbx_status make_pending(gbx_replay_engine *engine, const gbx_replay_request *request,
                               gbx_replay_layout *out_layout, gbx_replay_pending **out_pending) {
    GBX_TRY(gbx_replay_check_request(request));
    GBX_TRY(gbx_replay_layout_make(request->task, engine->settings.gm_bytes, out_layout));
    gbx_replay_pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return gbx_fail_memory("replaying task %" PRIu64, request->task->task);
    pending->request = *request;
    pending->is_large = out_layout->touch_bytes > LARGE_BYTES;
    pending->question = request->tolerances ? GBX_ASK_SCREEN_WANT : GBX_ASK_SCREEN;
    if (gbx_replay_are_together(request, &engine->spinning)) {
        pending->skips = GBX_SKIP_ORDER | GBX_SKIP_FLAGS;
        pending->order = GBX_ORDER_SPINS;
    }
    engine->pendings[(engine->first + engine->count++) % GBX_REPLAY_PENDING] = pending;
    *out_pending = pending;
    return NULL;
}

bool gbx_replay_is_full(const gbx_replay_engine *engine) {
    return engine->count == GBX_REPLAY_PENDING;
}

gbx_status gbx_replay_submit(gbx_replay_engine *engine, const gbx_replay_request *request) {
    gbx_replay_pending *pending;
    gbx_replay_layout layout;
    if (gbx_replay_is_full(engine))
        return gbx_fail(GBX_INTERNAL, "calling tasks again: too many are pending; take some first");
    GBX_TRY(make_pending(engine, request, &layout, &pending));
    if (gbx_replay_has_hung(engine, pending))
        return gbx_replay_end_hung(pending);
    bool is_alone = pending->is_large || request->dispatch >= 0 || request->runs > 1 ||
                    gbx_replay_request_count(request) > 1 || !request->task->did_complete;
    if (is_alone) {
        gbx_replay_ask_alone(engine, pending);
        return gbx_replay_send_waiting(engine);
    }
    gbx_status status = gbx_replay_screen(engine, pending, &layout);
    if (gbx_status_code(status) == GBX_EXHAUSTED) { /* of this task: it is taken like others */
        pending->status = status;
        pending->is_done = true;
        status = NULL;
    }
    return status;
}

gbx_status gbx_replay_take(gbx_replay_engine *engine, bool waits, gbx_replay_taken *out_taken,
                           bool *out_is_there) {
    *out_is_there = false;
    if (engine->count == 0)
        return NULL;
    gbx_replay_pending *pending = engine->pendings[engine->first];
    while (waits && !pending->is_done) {
        GBX_TRY(gbx_replay_flush(engine));
        GBX_TRY(gbx_replay_send_waiting(engine));
        if (!pending->is_done)
            GBX_TRY(gbx_replay_wait(engine));
    }
    if (!pending->is_done)
        return NULL;
    engine->first = (engine->first + 1) % GBX_REPLAY_PENDING;
    engine->count--;
    *out_taken = (gbx_replay_taken){pending->request, pending->outcome, pending->status};
    free(pending);
    *out_is_there = true;
    return NULL;
}

/* --- one task --- */

gbx_status gbx_replay_run(gbx_replay_engine *engine, const gbx_replay_request *request,
                          gbx_replay_outcome *out_outcome) {
    gbx_replay_pending *pending = NULL;
    gbx_replay_taken taken = {0};
    bool is_there;
    *out_outcome = (gbx_replay_outcome){0};
    engine->layout.count = 0; /* no outputs can be read until all succeeds */
    if (engine->count > 0)
        return gbx_fail(GBX_INTERNAL, "calling a task again: others are pending");
    gbx_status status = make_pending(engine, request, &engine->layout, &pending);
    if (status || !pending) {
        engine->layout.count = 0;
        return gbx_replay_with_title(status);
    }
    pending->keeps = true;
    gbx_replay_ask_alone(engine, pending);
    status = gbx_replay_take(engine, true, &taken, &is_there);
    if (!status) {
        *out_outcome = taken.outcome;
        status = taken.status;
    }
    if (status)
        engine->layout.count = 0;
    GBX_TRY(status);
    for (uint32_t i = 0; i < request->task->argument_count; ++i)
        engine->kept[i] = gbx_replay_kept_offset(request->task, i);
    return NULL;
}

const gbx_tensor *gbx_replay_placed_tensor(const gbx_replay_engine *engine, uint32_t argument) {
    const gbx_replay_layout *layout = &engine->layout;
    bool is_there = argument < layout->count && layout->is_tensor[argument];
    return is_there ? &layout->tensors[argument] : NULL;
}

/* All tasks of gbx_replay_run go to the first worker, because no other has something to do. */
gbx_status gbx_replay_output(const gbx_replay_engine *engine, uint32_t argument,
                             gbx_replay_kept which, void *out_payload) {
    const gbx_tensor *tensor = gbx_replay_placed_tensor(engine, argument);
    if (!tensor || engine->layout.roles[argument] == GBX_ROLE_INPUT)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "reading argument %" PRIu32 " of a call: it is not an output", argument);
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    uint64_t offset = engine->kept[argument] + (uint64_t)which * bytes;
    size_t read;
    int error = gbx_pread_all(engine->workers[0].child.kept_fd, out_payload, bytes, offset, &read);
    if (error || read < bytes)
        return gbx_fail(GBX_IO, "reading the outputs of a call: %s",
                        error ? strerror(error) : "they are gone");
    return NULL;
}
