#include "tensor/final_tensor.h"

#include <stdlib.h>

#include "base/memory.h"

/* A copy, and its place in the series. */
typedef struct ranked {
    gbx_tensor_piece copy;
    size_t rank;
} ranked;

static uint64_t end_of(const gbx_tensor_piece *piece) {
    return piece->offset + piece->bytes;
}

static int by_offset(const void *left, const void *right) {
    uint64_t a = ((const ranked *)left)->copy.offset;
    uint64_t b = ((const ranked *)right)->copy.offset;
    return (a > b) - (a < b);
}

typedef struct sweep {
    ranked *sorted;
    size_t count;
    size_t next;   /* of `sorted` */
    size_t *begun; /* places in `sorted` of those that began and may not have ended */
    size_t begun_count;
    gbx_tensor_piece *pieces;
    size_t piece_count;
} sweep;

/* The last copy of the series that covers a byte; NULL for none. */
static const ranked *copy_at(sweep *s, uint64_t at) {
    const ranked *last = NULL;
    size_t kept = 0;
    while (s->next < s->count && s->sorted[s->next].copy.offset <= at)
        s->begun[s->begun_count++] = s->next++;
    for (size_t i = 0; i < s->begun_count; ++i) {
        const ranked *copy = &s->sorted[s->begun[i]];
        if (end_of(&copy->copy) <= at)
            continue;
        s->begun[kept++] = s->begun[i];
        last = !last || copy->rank > last->rank ? copy : last;
    }
    s->begun_count = kept;
    return last;
}

static void add_piece(sweep *s, const gbx_tensor_piece *from, uint64_t first, uint64_t end) {
    gbx_tensor_piece *next = &s->pieces[s->piece_count];
    uint64_t address = from->address + (first - from->offset);
    if (s->piece_count && end_of(next - 1) == first &&
        next[-1].address + next[-1].bytes == address) {
        next[-1].bytes += end - first;
        return;
    }
    *next = (gbx_tensor_piece){first, address, end - first};
    ++s->piece_count;
}

/* From one place where copies begin or end to the next. */
static void sweep_all(sweep *s) {
    uint64_t at = 0;
    for (;;) {
        const ranked *copy = copy_at(s, at);
        uint64_t next = s->next < s->count ? s->sorted[s->next].copy.offset : UINT64_MAX;
        if (!copy && next == UINT64_MAX)
            return;
        uint64_t end = copy && end_of(&copy->copy) < next ? end_of(&copy->copy) : next;
        if (copy)
            add_piece(s, &copy->copy, at, end);
        at = end;
    }
}

gbx_status gbx_tensor_pieces_of(const gbx_tensor_piece *copies, size_t count,
                                gbx_tensor_piece **out_pieces, size_t *out_piece_count) {
    *out_pieces = NULL;
    *out_piece_count = 0;
    if (count == 0)
        return NULL;
    /* Each copy begins one piece at most, and ends one that a hidden copy continues. */
    sweep s = {.sorted = calloc(count, sizeof(ranked)),
               .count = count,
               .begun = calloc(count, sizeof(size_t)),
               .pieces = calloc(2 * count, sizeof(gbx_tensor_piece))};
    if (!s.sorted || !s.begun || !s.pieces) {
        free(s.sorted);
        free(s.begun);
        free(s.pieces);
        return gbx_fail_memory("listing %zu copies of a tensor", count);
    }
    for (size_t i = 0; i < count; ++i)
        s.sorted[i] = (ranked){copies[i], i};
    qsort(s.sorted, count, sizeof *s.sorted, by_offset);
    sweep_all(&s);
    free(s.sorted);
    free(s.begun);
    *out_pieces = s.pieces;
    *out_piece_count = s.piece_count;
    return NULL;
}
