/*
 * The plane in which dst is contiguous along one dimension and src along the other. Lines of both
 * sides are touched once where there is a tile kernel, and stay in the cache where there is none.
 */
#include "tensor/copy/strided_copy.h"

/* Elements a block of a transposition has on each side where no tile kernel fits. */
#define BLOCK 64

/* Rows of src that a band of tiles runs along at least: short enough for the translation buffer to
 * hold a page of each, long enough for dst to be written in runs. */
#define BAND_ROWS 32

/* Where rows of dst do not start at lines, tiles are collected here until they make rows that do.
 */
#define STAGE_BYTES 32768

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
            gbx_copy_plain.step(&part);
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
