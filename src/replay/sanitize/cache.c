#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "replay/sanitize/internal.h"
#include "text/plain_text.h"

static const char doing[] = "building kernels with a sanitizer";

/* A kernel that is built, or why it is not. */
typedef struct kernel {
    uint32_t func_id;
    char *object;
    gbx_sanitize_roots roots;
    gbx_code code; /* GBX_OK: it is built */
    char *failure;
    struct kernel *next;
} kernel;

/* Of one sanitizer: only one thread at a time uses it. */
typedef struct tools {
    gbx_sanitize_compiler with; /* words NULL: not chosen yet */
    char *program;              /* NULL: not built yet, or it cannot be */
    gbx_code code;
    char *failure;
    char *symbolizer;
    kernel *kernels;
} tools;

struct gbx_sanitize_cache {
    tools of[GBX_SANITIZER_COUNT];
};

/* xxhash chooses its functions at the first hash of more than 240 bytes, without a lock: here,
 * before there are threads. */
gbx_status gbx_sanitize_cache_open(gbx_replay_session *session) {
    static const char zeros[256];
    (void)gbx_hash_bytes(zeros, sizeof zeros);
    if (!session->sanitized)
        session->sanitized = calloc(1, sizeof *session->sanitized);
    return session->sanitized ? NULL : gbx_fail_memory("%s", doing);
}

static void free_kernel(kernel *k) {
    free(k->object);
    free(k->roots.compiled);
    free(k->roots.own);
    free(k->failure);
    free(k);
}

void gbx_sanitize_cache_free(gbx_sanitize_cache *cache) {
    for (int i = 0; cache && i < GBX_SANITIZER_COUNT; ++i) {
        tools *t = &cache->of[i];
        while (t->kernels) {
            kernel *first = t->kernels;
            t->kernels = first->next;
            free_kernel(first);
        }
        free(t->program);
        free(t->failure);
        free(t->symbolizer);
    }
    free(cache);
}

/* --- failures --- */

/* What is of the machine now, and not of what is built, is not remembered. */
static void remember(const gbx_status status, gbx_code *code, char **failure) {
    gbx_code of = gbx_status_code(status);
    if (!status || of == GBX_IO || of == GBX_EXHAUSTED)
        return;
    *failure = strdup(gbx_status_message(status));
    *code = *failure ? of : GBX_OK;
}

static gbx_status again(gbx_code code, const char *failure) {
    return gbx_fail(code, "%s", failure);
}

/* --- kernels --- */

static gbx_status build(const gbx_replay_session *session, const gbx_replay_task *task,
                        size_t subtask, gbx_sanitizer sanitizer, pthread_mutex_t *gate, kernel *k) {
    const gbx_sanitize_compiler *with = &session->sanitized->of[sanitizer].with;
    char name[128];
    gbx_replay_source source;
    bool has_fences = false;
    snprintf(name, sizeof name, "%s", task->kernel_names[subtask]);
    gbx_text_make_plain(name);
    pthread_mutex_lock(gate);
    gbx_status status = gbx_replay_source_find(session->kernels, task, subtask, &source);
    pthread_mutex_unlock(gate);
    if (status)
        return status;
    status = gbx_sanitize_find_roots(&source, &k->roots);
    if (!status)
        status = gbx_sanitize_check_source(sanitizer, &source, name, &has_fences);
    if (!status)
        status = gbx_sanitize_build_kernel(with, sanitizer, &source, name, has_fences, &k->object);
    gbx_replay_source_free(&source);
    return status;
}

static gbx_status add_kernel(const gbx_replay_session *session, const gbx_replay_task *task,
                             size_t subtask, gbx_sanitizer sanitizer, pthread_mutex_t *gate,
                             kernel **out_kernel) {
    tools *t = &session->sanitized->of[sanitizer];
    kernel *k = calloc(1, sizeof *k);
    if (!k)
        return gbx_fail_memory("%s", doing);
    k->func_id = task->func_ids[subtask];
    gbx_status status = build(session, task, subtask, sanitizer, gate, k);
    remember(status, &k->code, &k->failure);
    if (status && !k->code) {
        free_kernel(k);
        return status;
    }
    k->next = t->kernels;
    t->kernels = *out_kernel = k;
    return status;
}

static gbx_status find_kernel(const gbx_replay_session *session, const gbx_replay_task *task,
                              size_t subtask, gbx_sanitizer sanitizer, pthread_mutex_t *gate,
                              kernel **out_kernel) {
    for (kernel *k = session->sanitized->of[sanitizer].kernels; k; k = k->next)
        if (k->func_id == task->func_ids[subtask]) {
            *out_kernel = k;
            return k->code ? again(k->code, k->failure) : NULL;
        }
    return add_kernel(session, task, subtask, sanitizer, gate, out_kernel);
}

/* --- all that a task needs --- */

static gbx_status find_program(tools *t, gbx_sanitizer sanitizer) {
    if (t->program)
        return NULL;
    if (t->code)
        return again(t->code, t->failure);
    if (t->with.is_clang && !t->symbolizer)
        t->symbolizer = gbx_sanitize_find_symbolizer(t->with.words);
    gbx_status status = gbx_sanitize_build_program(&t->with, sanitizer, &t->program);
    remember(status, &t->code, &t->failure);
    return status;
}

gbx_status gbx_sanitize_build(const gbx_replay_session *session, const gbx_replay_task *task,
                              gbx_sanitizer sanitizer, pthread_mutex_t *gate,
                              gbx_sanitize_built *out_built) {
    tools *t = &session->sanitized->of[sanitizer];
    *out_built = (gbx_sanitize_built){0};
    if (!t->with.words)
        GBX_TRY(gbx_sanitize_choose_compiler(sanitizer, &t->with));
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        kernel *k;
        if (task->func_ids[i] == UINT32_MAX)
            continue;
        GBX_TRY(find_kernel(session, task, i, sanitizer, gate, &k));
        out_built->objects[i] = k->object;
        out_built->roots[i] = &k->roots;
    }
    GBX_TRY(find_program(t, sanitizer));
    out_built->program = t->program;
    out_built->symbolizer = t->symbolizer;
    return NULL;
}
