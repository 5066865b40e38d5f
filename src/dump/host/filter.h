/*
 * Filters as a user writes them, made into the form that travels to the device (dump/select.h):
 *
 *     kernel=softmax*,stage=after_completion
 *     task=10..20,task=0x2a,role=output,dtype=float32
 *
 * Every key that is given must match; of values for the same key, any. `kernel` and `func` together
 * mean one kernel that is both.
 */
#ifndef GBX_DUMP_HOST_FILTER_H
#define GBX_DUMP_HOST_FILTER_H

#include "dump/select.h"

/*
 * Of the kernels, func_id (below GBX_MAX_KERNELS) and name count. Fails with GBX_INVALID_ARGUMENT,
 * in a sentence that quotes `text`, where a key is unknown, a value is not what the key takes,
 * there are more than GBX_FILTER_RANGES tasks, or no kernel of `kernels` is meant; *out_filter is
 * unspecified then.
 */
GBX_MUST_USE gbx_status gbx_dump_filter_parse(const char *text, const gbx_kernel *kernels,
                                              size_t kernel_count, gbx_dump_filter *out_filter);

#endif
