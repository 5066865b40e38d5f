/*
 * A first-in, first-out queue of small numbers for many producers and many consumers. Owns neither
 * locks nor storage: the caller gives the cells, a power of two, at least as many as there can be
 * entries at a time, so that a push always finds room.
 *
 * The turn of a cell says which push or pop may use it next, less the cell's index: zeroed cells
 * are an empty queue. While a producer is interrupted between taking its cell and filling it, the
 * queue looks empty.
 */
#ifndef GBX_SCHED_READY_QUEUE_H
#define GBX_SCHED_READY_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gbx_ready_cell {
    _Atomic uint32_t turn;
    uint32_t item;
} gbx_ready_cell;

typedef struct gbx_ready_queue {
    _Alignas(64) _Atomic uint32_t head; /* consumers */
    _Alignas(64) _Atomic uint32_t tail; /* producers */
    _Alignas(64) gbx_ready_cell *cells;
    uint32_t mask;
} gbx_ready_queue;

/* `capacity` is a power of two, at most 2^30; the cells are zero. */
static inline void gbx_ready_queue_init(gbx_ready_queue *queue, gbx_ready_cell *cells,
                                        uint32_t capacity) {
    atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->tail, 0, memory_order_relaxed);
    queue->cells = cells;
    queue->mask = capacity - 1;
}

/* False as soon as a push has begun whose item is not popped yet. */
static inline bool gbx_ready_queue_is_empty(gbx_ready_queue *queue) {
    /* Sequentially consistent, as the count of workers: both decide whether a worker may sleep. */
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_seq_cst);
    return tail == atomic_load_explicit(&queue->head, memory_order_relaxed);
}

/*
 * Whether a pop would find something. Does not read the producers' cache line, which would travel
 * with every look, and does not see a push that has only begun.
 */
static inline bool gbx_ready_queue_has_item(gbx_ready_queue *queue) {
    uint32_t position = atomic_load_explicit(&queue->head, memory_order_relaxed);
    uint32_t index = position & queue->mask;
    uint32_t turn = atomic_load_explicit(&queue->cells[index].turn, memory_order_relaxed) + index;
    return (int32_t)(turn - (position + 1)) >= 0;
}

/* Any thread. */
static inline void gbx_ready_queue_push(gbx_ready_queue *queue, uint32_t item) {
    uint32_t position = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    for (;;) {
        uint32_t index = position & queue->mask;
        gbx_ready_cell *cell = &queue->cells[index];
        /* Pairs with the release of the pop that emptied the cell. */
        uint32_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire) + index;
        if (turn == position &&
            atomic_compare_exchange_weak_explicit(&queue->tail, &position, position + 1,
                                                  memory_order_seq_cst, memory_order_relaxed)) {
            cell->item = item;
            /* Pairs with the acquire of the pop. */
            atomic_store_explicit(&cell->turn, position + 1 - index, memory_order_release);
            return;
        }
        if (turn != position)
            position = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    }
}

/* Any thread; false when there is nothing. */
static inline bool gbx_ready_queue_pop(gbx_ready_queue *queue, uint32_t *out_item) {
    uint32_t position = atomic_load_explicit(&queue->head, memory_order_relaxed);
    for (;;) {
        uint32_t index = position & queue->mask;
        gbx_ready_cell *cell = &queue->cells[index];
        /* Pairs with the release of the push. */
        uint32_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire) + index;
        int32_t ahead = (int32_t)(turn - (position + 1));
        if (ahead < 0)
            return false;
        if (ahead == 0 &&
            atomic_compare_exchange_weak_explicit(&queue->head, &position, position + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *out_item = cell->item;
            /* Pairs with the acquire of the push that uses the cell next. */
            atomic_store_explicit(&cell->turn, position + queue->mask + 1 - index,
                                  memory_order_release);
            return true;
        }
        if (ahead > 0)
            position = atomic_load_explicit(&queue->head, memory_order_relaxed);
    }
}

#endif
