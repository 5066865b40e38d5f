/* The kernels in plain C: the fallback of every level, and all there is on other processors. */
#include "tensor/copy/strided_copy.h"

#include <string.h>

/* A row shorter than a call of memcpy is worth: two loads and stores that may overlap. */
static inline void copy_short(unsigned char *dst, const unsigned char *src, size_t size) {
    if (size >= 16) {
        for (size_t at = 0; at + 16 <= size; at += 16)
            memcpy(dst + at, src + at, 16);
        memcpy(dst + size - 16, src + size - 16, 16);
    } else if (size >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + size - 8, src + size - 8, 8);
    } else if (size >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + size - 4, src + size - 4, 4);
    } else {
        for (size_t at = 0; at < size; ++at)
            dst[at] = src[at];
    }
}

static void plain_rows(const gbx_copy_plane *plane) {
    size_t size = (size_t)plane->inner_count * plane->element_bytes;
    unsigned char *dst = plane->dst;
    const unsigned char *src = plane->src;
    for (int64_t row = 0; row < plane->outer_count; ++row) {
        if (size <= 128)
            copy_short(dst, src, size);
        else
            memcpy(dst, src, size);
        dst += plane->outer_dst;
        src += plane->outer_src;
    }
}

/* `bytes` is a constant wherever this is inlined, so that an element is one load and one store. */
static inline void step_row(unsigned char *dst, int64_t dst_step, const unsigned char *src,
                            int64_t src_step, int64_t count, uint32_t bytes) {
    for (; count >= 4; count -= 4) {
        gbx_copy_element(dst, src, bytes);
        gbx_copy_element(dst + dst_step, src + src_step, bytes);
        gbx_copy_element(dst + 2 * dst_step, src + 2 * src_step, bytes);
        gbx_copy_element(dst + 3 * dst_step, src + 3 * src_step, bytes);
        dst += 4 * dst_step;
        src += 4 * src_step;
    }
    for (; count > 0; --count) {
        gbx_copy_element(dst, src, bytes);
        dst += dst_step;
        src += src_step;
    }
}

static inline void step_rows(const gbx_copy_plane *plane, uint32_t bytes) {
    for (int64_t row = 0; row < plane->outer_count; ++row)
        step_row(plane->dst + row * plane->outer_dst, plane->inner_dst,
                 plane->src + row * plane->outer_src, plane->inner_src, plane->inner_count, bytes);
}

static void plain_step(const gbx_copy_plane *plane) {
    switch (plane->element_bytes) {
    case 1:
        step_rows(plane, 1);
        break;
    case 2:
        step_rows(plane, 2);
        break;
    case 4:
        step_rows(plane, 4);
        break;
    default:
        step_rows(plane, 8);
    }
}

const gbx_copy_ops gbx_copy_plain = {.rows = plain_rows, .step = plain_step};
