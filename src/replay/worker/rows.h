/* The elements of views in place: rows at a time, without a copy where rows are long enough. */
#ifndef GBX_REPLAY_WORKER_ROWS_H
#define GBX_REPLAY_WORKER_ROWS_H

#include <stdbool.h>

#include <glassbox/tensor.h>

/*
 * In all of them, a buffer is where tensor->data lies, and `scratch` holds
 * gbx_tensor_payload_bytes of the tensor.
 */

/* Copies the elements from one buffer to another with the same view. */
void gbx_rows_copy(const gbx_tensor *tensor, const void *from, void *to, void *scratch);

/* Whether the elements have the same bytes in two buffers; of 4-bit elements, all bytes from the
 * first to the last. */
bool gbx_rows_same(const gbx_tensor *tensor, const void *one, const void *other);

/* Whether the elements have the bytes of a row-major payload. */
bool gbx_rows_equal(const gbx_tensor *tensor, const void *buffer, const void *payload,
                    void *scratch);

#endif
