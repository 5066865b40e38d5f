/*
 * Which tasks in flight a new task depends on, by the bytes that tasks read and write. A read
 * depends on the earlier writes that it overlaps, a write on the earlier reads and writes. As exact
 * as gbx_tensor_overlaps: no common byte is missed, and disjoint views make no dependency.
 *
 * Views are kept by buffer and, in a buffer, by form (region.h). A tile that was read or written
 * before is found by one hash lookup; a view of another form looks up the tiles that it touches, or
 * goes through the tiles in flight where they are fewer. A view that does not lie in one buffer is
 * a stray: it is compared with everything.
 *
 * An access that a later write covers completely (the same region, or one run of bytes around it)
 * is forgotten: later tasks depend on it through that write.
 *
 * Device code, used by one thread; the memory is handed in and nothing is allocated.
 */
#ifndef GBX_RUNTIME_TENSOR_MAP_H
#define GBX_RUNTIME_TENSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/orchestration.h>

/* Buffers outside the heap: enough for the arguments of a run. */
#define GBX_TENSOR_MAP_MAX_BUFFERS GBX_MAX_RUN_TENSORS

typedef struct gbx_tensor_map gbx_tensor_map;

/* Called for every dependency; the same task may come several times. Must not call the map. */
typedef void gbx_tensor_map_found(void *context, uint64_t task);

/*
 * `access_capacity`: tensors of all tasks in flight, at least GBX_MAX_TENSOR_ARGS.
 * `heap_capacity`: allocations of the heap alive at a time; may be 0. About 360 bytes per access;
 * pages are touched only as they are needed.
 */
size_t gbx_tensor_map_bytes(uint32_t access_capacity, uint32_t heap_capacity);

/* Makes an empty map in zeroed memory that is aligned to 64 bytes. */
gbx_tensor_map *gbx_tensor_map_init(void *memory, uint32_t access_capacity, uint32_t heap_capacity);

/* --- buffers: never overlap each other --- */

/* False when there are too many: views of the buffer are then strays, which is slow but correct. */
bool gbx_tensor_map_add_buffer(gbx_tensor_map *map, uint64_t base, uint64_t bytes);

/* Where the heap lies, before the first push. */
void gbx_tensor_map_set_heap(gbx_tensor_map *map, uint64_t base, uint64_t bytes);

/* A new allocation of the heap: addresses ascend, and start over at the heap's base. False, and
 * nothing is done, when heap_capacity are alive. */
bool gbx_tensor_map_heap_push(gbx_tensor_map *map, uint64_t address, uint64_t bytes);

/* Forgets the oldest allocation, if any, and all accesses to it: the tasks that use it are done. */
void gbx_tensor_map_heap_pop(gbx_tensor_map *map);

/* The oldest allocation, as one run of bytes. There is at least one. */
gbx_tensor gbx_tensor_map_heap_oldest(const gbx_tensor_map *map);

/* --- tasks --- */

/* How many more tensors fit. A task with more must wait until others are retired. */
uint32_t gbx_tensor_map_room(const gbx_tensor_map *map);

/*
 * Reports what a new task depends on, then keeps what it reads and writes. Tensors are valid
 * (gbx_tensor_validate), borrowed for the call, and at most GBX_MAX_TENSOR_ARGS; they may overlap
 * each other, which makes no dependency. `roles` are gbx_role, one per tensor: all but
 * GBX_ROLE_INPUT write. There is room for `count`; no other task in flight has the number `task`.
 */
void gbx_tensor_map_add_task(gbx_tensor_map *map, uint64_t task, const gbx_tensor *const *tensors,
                             const uint8_t *roles, uint32_t count, gbx_tensor_map_found *found,
                             void *context);

/* Reports what a task with only this tensor would depend on, for a reader the tasks that write it.
 * Changes nothing. */
void gbx_tensor_map_find(gbx_tensor_map *map, const gbx_tensor *tensor, bool is_write,
                         gbx_tensor_map_found *found, void *context);

/* Forgets a task. Tasks with tensors are retired in the order they were added. */
void gbx_tensor_map_retire(gbx_tensor_map *map, uint64_t task);

#endif
