/* Kernels that read buffer_bytes of a tensor: a dump does not have it, and a replay has 0, so that
 * other values than those of the run are no finding. */
#include <stdio.h>

#include "diagnose/internal.h"
#include "text/plain_text.h"

static gbx_status is_sized(const gbx_inquiry *q, gbx_replay_session *session, uint64_t number,
                           char *out_kernel, size_t capacity, bool *out_is) {
    gbx_replay_task task;
    gbx_status status = gbx_replay_task_read(q->request->entries, number, &task);
    *out_is = !status && gbx_sanitize_look(session, &task).reads_buffer_bytes;
    size_t used = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT && *out_is; ++i)
        if (task.func_ids[i] != UINT32_MAX && used < capacity)
            used += (size_t)snprintf(out_kernel + used, capacity - used, "%s%s", used ? "+" : "",
                                     task.kernel_names[i]);
    gbx_text_make_plain(out_kernel);
    gbx_replay_task_free(&task);
    if (!status || !gbx_replay_is_of_task(status))
        return status;
    gbx_status_free(status);
    return NULL;
}

gbx_status gbx_inquiry_drop_sized(gbx_inquiry *q, gbx_replay_session *session) {
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_REPLAY];
    uint64_t last = GBX_DIAGNOSIS_NOBODY;
    size_t kept = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        char kernel[256] = "";
        bool is_of_run = clue.kind == GBX_DIAGNOSIS_NOT_REPEATED && !clue.is_assigned;
        bool is_dropped = false;
        if (is_of_run)
            GBX_TRY(is_sized(q, session, clue.task, kernel, sizeof kernel, &is_dropped));
        if (!is_dropped) {
            q->clues[kept++] = clue;
            continue;
        }
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                                 "kernel %s reads buffer_bytes of a tensor, which the dump does "
                                 "not have, and leaves other values without it",
                                 kernel));
        asked->findings--;
        asked->tasks -= clue.task != last;
        asked->not_asked += clue.task != last;
        last = clue.task;
    }
    q->clue_count = kept;
    return NULL;
}
