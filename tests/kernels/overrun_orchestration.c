/* A chain of tasks with kernel 0, each with an output of its own that is allocated just before the
 * task is added; on all three runtimes. Task OVERRUN_TASKS / 2 does not keep to its output. */
#include "overrun.h"

#include <glassbox/orchestration.h>

enum { BYTES = OVERRUN_ELEMENTS * 4 };

static const int64_t shape[1] = {OVERRUN_ELEMENTS};

static gbx_task add_on_host(gbx_orchestration *o, const gbx_args *args) {
    uint64_t words[4];
    gbx_tensor_info infos[2];
    for (uint32_t i = 0; i < 2; ++i) {
        words[i] = gbx_device_tensor(o, args->tensors[i]);
        infos[i] = (gbx_tensor_info){i, args->roles[i], *args->tensors[i]};
        words[2 + i] = args->scalars[i];
    }
    return gbx_add_task_with_tensor_info(o, gbx_aiv(0), words, 4, infos, 2);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    uint64_t on = run->scalars[OVERRUN_ON];
    gbx_tensor from = run->tensors[0];
    gbx_task before = GBX_NO_TASK;
    if (on == OVERRUN_ON_HOST) {
        from.data = gbx_device_malloc(o, BYTES);
        gbx_copy_to_device(o, from.data, (const void *)(uintptr_t)run->tensors[0].data, BYTES);
    }
    gbx_tensor to[OVERRUN_TASKS];
    for (uint64_t i = 0; i < OVERRUN_TASKS; ++i) {
        gbx_args args = gbx_args_begin();
        gbx_args_add_input(&args, i ? &to[i - 1] : &from);
        to[i] = gbx_new_tensor(GBX_UINT32, 1, shape);
        if (on != OVERRUN_ON_TENSORMAP)
            to[i] = gbx_tensor_at(gbx_device_malloc(o, BYTES), GBX_UINT32, 1, shape);
        if (on == OVERRUN_ON_TENSORMAP)
            gbx_args_add_new_output(&args, &to[i]);
        else
            gbx_args_add_output(&args, &to[i]);
        gbx_args_add_u64(&args, i);
        gbx_args_add_u64(&args, i == OVERRUN_TASKS / 2 ? run->scalars[OVERRUN_WAY] : OVERRUN_NOT);
        gbx_task task = on == OVERRUN_ON_HOST    ? add_on_host(o, &args)
                        : on == OVERRUN_ON_AICPU ? gbx_add_task_with_args(o, gbx_aiv(0), &args)
                                                 : gbx_submit_task(o, gbx_aiv(0), &args);
        if (on != OVERRUN_ON_TENSORMAP && before != GBX_NO_TASK)
            gbx_add_successor(o, before, task);
        if (on == OVERRUN_ON_AICPU)
            gbx_publish_task(o, task);
        before = task;
    }
    return 0;
}
