/*
 * Filters as a user writes them, parsed into the form that goes to the device (dump/select.h):
 *
 *     kernel=softmax*,stage=after_completion
 *     task=10..20,task=0x2a,role=output,dtype=float32
 *
 * Every given key must match; of several values for one key, any may match. `kernel` and `func`
 * together mean kernels that match both.
 */
#ifndef GBX_DUMP_HOST_FILTER_H
#define GBX_DUMP_HOST_FILTER_H

#include "dump/select.h"

/*
 * Uses only func_id (below GBX_MAX_KERNELS) and name of `kernels`. Fails with GBX_INVALID_ARGUMENT
 * and a message that quotes `text` when a key is unknown, a value is not valid for its key, there
 * are more than GBX_FILTER_RANGES tasks, or no kernel matches; *out_filter is unspecified then.
 */
GBX_MUST_USE gbx_status gbx_dump_filter_parse(const char *text, const gbx_kernel *kernels,
                                              size_t kernel_count, gbx_dump_filter *out_filter);

#endif
