/* The kernels in plain C: the fallback of every level, and the whole of it on other processors. */
#include "tensor/strided_copy.h"

#include <string.h>

/* Elements a block of a transposition has on each side where no tile kernel fits. */
#define BLOCK 64

/* Rows of src that a band of tiles runs along at least: short enough for the translation buffer to
 * hold a page of each, long enough for dst to be written in runs. */
#define BAND_ROWS 32

/* Where rows of dst do not start at lines, tiles are collected here until they make rows that do.
 */
#define STAGE_BYTES 32768

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

/* The part of a plane that starts at (outer, inner). */
static gbx_copy_plane sub_plane(const gbx_copy_plane *plane, int64_t outer, int64_t outer_count,
                                int64_t inner, int64_t inner_count) {
    gbx_copy_plane part = *plane;
    part.dst += outer * plane->outer_dst + inner * plane->inner_dst;
    part.src += outer * plane->outer_src + inner * plane->inner_src;
    part.outer_count = outer_count;
    part.inner_count = inner_count;
    return part;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Whatever no tile covers: small blocks, element by element. */
static void transpose_blocks(const gbx_copy_plane *plane) {
    for (int64_t inner = 0; inner < plane->inner_count; inner += BLOCK)
        for (int64_t outer = 0; outer < plane->outer_count; outer += BLOCK) {
            gbx_copy_plane part =
                sub_plane(plane, outer, smaller(BLOCK, plane->outer_count - outer), inner,
                          smaller(BLOCK, plane->inner_count - inner));
            plain_step(&part);
        }
}

/* Tile by tile, straight to dst. */
static void transpose_tiles(const gbx_copy_plane *plane, gbx_copy_tile *tile, bool is_streaming) {
    int64_t side = GBX_LINE_BYTES / (int64_t)plane->element_bytes;
    int64_t rows = side < BAND_ROWS ? BAND_ROWS : side;
    for (int64_t band = 0; band < plane->inner_count; band += rows) {
        int64_t band_end = smaller(band + rows, plane->inner_count);
        for (int64_t outer = 0; outer < plane->outer_count; outer += side)
            for (int64_t inner = band; inner < band_end; inner += side)
                tile(plane->dst + outer * plane->outer_dst + inner * plane->inner_dst,
                     plane->outer_dst,
                     plane->src + outer * plane->outer_src + inner * plane->inner_src,
                     plane->inner_src, is_streaming);
    }
}

/* One line of each row, to be loaded two tiles later: a run has more rows than the processor
 * follows by itself. */
static void fetch_lines(const unsigned char *src, int64_t src_row, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row)
        __builtin_prefetch(src + row * src_row, 0, 2);
}

/* The same through a stage: dst is written in runs long enough to consist of whole lines. */
static void transpose_staged(const gbx_copy_plane *plane, gbx_copy_tile *tile,
                             const gbx_copy_ops *ops) {
    _Alignas(GBX_LINE_BYTES) unsigned char stage[STAGE_BYTES];
    int64_t side = GBX_LINE_BYTES / (int64_t)plane->element_bytes;
    int64_t pitch = STAGE_BYTES / side;
    int64_t run = pitch / (int64_t)plane->element_bytes;
    for (int64_t band = 0; band < plane->inner_count; band += run) {
        int64_t count = smaller(run, plane->inner_count - band);
        for (int64_t outer = 0; outer < plane->outer_count; outer += side) {
            gbx_copy_plane part = sub_plane(plane, outer, side, band, count);
            for (int64_t inner = 0; inner < count; inner += side) {
                const unsigned char *src = part.src + inner * part.inner_src;
                fetch_lines(src + 2 * GBX_LINE_BYTES, part.inner_src, side);
                tile(stage + inner * plane->inner_dst, pitch, src, part.inner_src, false);
            }
            part.src = stage;
            part.outer_src = pitch;
            part.inner_src = part.element_bytes;
            ops->rows(&part);
        }
    }
}

/* Elements of a row of dst before its first whole line; the same for every row, or 0. */
static int64_t elements_before_line(const gbx_copy_plane *plane) {
    uint64_t before = -(uint64_t)(uintptr_t)plane->dst % GBX_LINE_BYTES;
    return before % plane->element_bytes == 0 ? (int64_t)(before / plane->element_bytes) : 0;
}

/* A plane whose counts are multiples of a tile's side. */
static void transpose_body(const gbx_copy_plane *body, gbx_copy_tile *tile,
                           const gbx_copy_ops *ops) {
    bool has_lines =
        body->outer_dst % GBX_LINE_BYTES == 0 && (uintptr_t)body->dst % GBX_LINE_BYTES == 0;
    if (body->is_streaming && !has_lines)
        transpose_staged(body, tile, ops);
    else
        transpose_tiles(body, tile, body->is_streaming);
}

void gbx_copy_transpose(const gbx_copy_plane *plane, const gbx_copy_ops *ops) {
    gbx_copy_tile *tile = NULL;
    if (plane->inner_dst == plane->element_bytes && plane->outer_src == plane->element_bytes)
        tile = ops->tiles[__builtin_ctz(plane->element_bytes)];
    if (!tile) {
        transpose_blocks(plane);
        return;
    }
    int64_t side = GBX_LINE_BYTES / (int64_t)plane->element_bytes;
    int64_t head = smaller(elements_before_line(plane), plane->inner_count);
    int64_t inner = (plane->inner_count - head) / side * side;
    int64_t outer = plane->outer_count / side * side;
    gbx_copy_plane body = sub_plane(plane, 0, outer, head, inner);
    transpose_body(&body, tile, ops);
    gbx_copy_plane before = sub_plane(plane, 0, plane->outer_count, 0, head);
    transpose_blocks(&before);
    gbx_copy_plane after =
        sub_plane(plane, 0, plane->outer_count, head + inner, plane->inner_count - head - inner);
    transpose_blocks(&after);
    gbx_copy_plane below = sub_plane(plane, outer, plane->outer_count - outer, head, inner);
    transpose_blocks(&below);
}
