/* Dependencies against the sets of bytes that tasks read and write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

/* After orchestration.h, which defines a macro named `fail`. */
#include <cmocka.h>

#define BASE UINT64_C(0x7e9000000000)
#define SPACE_BYTES 4096
#define SPACE_WORDS (SPACE_BYTES / 64)
#define IN_FLIGHT 48 /* at most 64: sets of tasks are bits of a word */
#define MAX_ALLOCATIONS 12

static uint64_t random_state = 1;

static int64_t random_between(int64_t least, int64_t most) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    uint64_t mixed = random_state * UINT64_C(2685821657736338717);
    return least + (int64_t)((mixed >> 11) % (uint64_t)(most - least + 1));
}

static bool one_in(int64_t n) {
    return random_between(1, n) == 1;
}

static int stress(void) {
    return getenv("GLASSBOX_STRESS") ? 50 : 1;
}

static gbx_tensor_map *new_map(uint32_t access_capacity, uint32_t heap_capacity) {
    size_t bytes = gbx_tensor_map_bytes(access_capacity, heap_capacity);
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return gbx_tensor_map_init(memory, access_capacity, heap_capacity);
}

/* --- what a call reports --- */

typedef struct reports {
    uint32_t count;
    uint64_t tasks[20000];
} reports;

static reports reported;

static void on_found(void *context, uint64_t task) {
    reports *to = context;
    assert_true(to->count < 20000);
    to->tasks[to->count++] = task;
}

static uint32_t add_task(gbx_tensor_map *map, uint64_t task, uint32_t count,
                         const gbx_tensor *tensors, const uint8_t *roles) {
    const gbx_tensor *pointers[GBX_MAX_TENSOR_ARGS];
    for (uint32_t k = 0; k < count; ++k)
        pointers[k] = &tensors[k];
    reported.count = 0;
    gbx_tensor_map_add_task(map, task, pointers, roles, count, on_found, &reported);
    return reported.count;
}

static uint32_t add_read(gbx_tensor_map *map, uint64_t task, gbx_tensor tensor) {
    return add_task(map, task, 1, &tensor, (uint8_t[]){GBX_ROLE_INPUT});
}

static uint32_t add_write(gbx_tensor_map *map, uint64_t task, gbx_tensor tensor) {
    return add_task(map, task, 1, &tensor, (uint8_t[]){GBX_ROLE_INOUT});
}

/* --- the model: the bytes of every task in flight --- */

typedef struct byte_set {
    uint64_t words[SPACE_WORDS];
} byte_set;

typedef struct model_task {
    byte_set reads, writes;
    uint64_t needed;  /* tasks in flight that it must follow, directly or not; by number % 64 */
    uint64_t reached; /* those that it follows according to the reports */
} model_task;

typedef struct model {
    gbx_tensor_map *map;
    uint64_t oldest, next; /* numbers of tasks in flight */
    model_task tasks[64];
    uint32_t allocation_count, heap_end;
    struct {
        uint32_t at, bytes;
    } allocations[MAX_ALLOCATIONS];
} model;

/* Buffers as offsets from BASE: the heap is a ring, two are fixed, the rest belongs to none. */
enum { A_AT = 256, A_BYTES = 640, B_AT = 960, B_BYTES = 512, HEAP_AT = 2048, HEAP_BYTES = 1024 };

static void mark_bytes(const gbx_tensor *tensor, byte_set *set) {
    uint64_t total = (uint64_t)gbx_tensor_numel(tensor);
    for (uint64_t n = 0; n < total; ++n) {
        uint64_t number = n;
        int64_t position = tensor->start_offset;
        for (int d = (int)tensor->ndims - 1; d >= 0; --d) {
            position += (int64_t)(number % (uint64_t)tensor->shape[d]) * tensor->strides[d];
            number /= (uint64_t)tensor->shape[d];
        }
        int64_t bits = gbx_dtype_bits(tensor->dtype);
        int64_t at = (int64_t)(tensor->data - BASE) + position * bits / 8;
        for (int64_t b = at; b < at + (bits + 7) / 8; ++b) {
            assert_true(b >= 0 && b < SPACE_BYTES);
            set->words[b / 64] |= UINT64_C(1) << b % 64;
        }
    }
}

static bool has_conflict(const model_task *a, const model_task *b) {
    for (uint32_t w = 0; w < SPACE_WORDS; ++w) {
        uint64_t of_a = a->writes.words[w], of_b = b->writes.words[w];
        if ((of_a & (of_b | b->reads.words[w])) | (a->reads.words[w] & of_b))
            return true;
    }
    return false;
}

static bool touches(const model_task *task, uint32_t at, uint32_t bytes) {
    for (uint32_t b = at; b < at + bytes; ++b)
        if ((task->reads.words[b / 64] | task->writes.words[b / 64]) >> b % 64 & 1)
            return true;
    return false;
}

static void model_retire(model *m) {
    gbx_tensor_map_retire(m->map, m->oldest);
    uint64_t gone = ~(UINT64_C(1) << m->oldest++ % 64);
    for (int k = 0; k < 64; ++k) {
        m->tasks[k].needed &= gone;
        m->tasks[k].reached &= gone;
    }
}

static void model_pop(model *m) {
    for (uint64_t t = m->next; t-- > m->oldest;)
        if (touches(&m->tasks[t % 64], m->allocations[0].at, m->allocations[0].bytes))
            while (m->oldest <= t)
                model_retire(m);
    gbx_tensor_map_heap_pop(m->map);
    memmove(&m->allocations[0], &m->allocations[1],
            --m->allocation_count * sizeof m->allocations[0]);
}

static bool is_allocated(const model *m, uint32_t at, uint32_t bytes) {
    for (uint32_t k = 0; k < m->allocation_count; ++k)
        if (at < m->allocations[k].at + m->allocations[k].bytes &&
            m->allocations[k].at < at + bytes)
            return true;
    return false;
}

static void model_push(model *m) {
    uint32_t bytes = 16 * (uint32_t)random_between(1, 20);
    if (m->allocation_count == MAX_ALLOCATIONS)
        model_pop(m);
    if (m->heap_end + bytes > HEAP_AT + HEAP_BYTES)
        m->heap_end = HEAP_AT;
    while (is_allocated(m, m->heap_end, bytes))
        model_pop(m);
    assert_true(gbx_tensor_map_heap_push(m->map, BASE + m->heap_end, bytes));
    m->allocations[m->allocation_count].at = m->heap_end;
    m->allocations[m->allocation_count++].bytes = bytes;
    m->heap_end += bytes;
}

static void model_add(model *m, uint32_t count, const gbx_tensor *tensors, const uint8_t *roles) {
    model_task *task = &m->tasks[m->next % 64];
    memset(task, 0, sizeof *task);
    for (uint32_t k = 0; k < count; ++k)
        mark_bytes(&tensors[k], roles[k] == GBX_ROLE_INPUT ? &task->reads : &task->writes);
    for (uint64_t t = m->oldest; t < m->next; ++t)
        if (has_conflict(task, &m->tasks[t % 64]))
            task->needed |= m->tasks[t % 64].needed | UINT64_C(1) << t % 64;
    add_task(m->map, m->next, count, tensors, roles);
    for (uint32_t k = 0; k < reported.count; ++k) {
        uint64_t t = reported.tasks[k];
        assert_true(t >= m->oldest && t < m->next);
        assert_true(has_conflict(task, &m->tasks[t % 64]));
        task->reached |= m->tasks[t % 64].reached | UINT64_C(1) << t % 64;
    }
    assert_int_equal(task->reached, task->needed);
    ++m->next;
}

/* --- random views --- */

static const uint32_t dtypes[] = {GBX_INT4, GBX_UINT8, GBX_FLOAT16, GBX_FLOAT32, GBX_FLOAT64};

static bool is_inside(const gbx_tensor *tensor, uint64_t bytes) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    return first >= 0 && (uint64_t)end <= bytes;
}

/* Tiles of rows and columns on one of a few pitches, mostly aligned; sometimes transposed or
 * turned round. */
static gbx_tensor random_tile(uint64_t data, int64_t bytes) {
    uint32_t dtype = dtypes[one_in(6) ? random_between(0, 4) : 3];
    int64_t pitch = (one_in(4) ? 48 : 32) * 8 / (int64_t)gbx_dtype_bits(dtype);
    int64_t columns = one_in(3) ? pitch : pitch / (2 << random_between(0, 1));
    int64_t rows = 1 << random_between(0, 2);
    int64_t row = random_between(0, bytes / 32) / rows * rows;
    int64_t column = random_between(0, pitch / columns - 1) * columns;
    gbx_tensor tile = {.data = data,
                       .dtype = dtype,
                       .ndims = 2,
                       .start_offset =
                           row * pitch + column + (one_in(8) ? random_between(0, 5) : 0),
                       .shape = {rows, columns},
                       .strides = {pitch, 1}};
    if (one_in(8)) {
        tile.start_offset += (rows - 1) * pitch;
        tile.strides[0] = -pitch;
    }
    return one_in(5) ? gbx_view_transpose(&tile, 0, 1) : tile;
}

static gbx_tensor random_run(uint64_t data, int64_t bytes) {
    int64_t length = one_in(6) ? bytes : one_in(2) ? 16 : random_between(1, bytes);
    int64_t start = random_between(0, bytes - length);
    gbx_tensor run = {.data = data + (uint64_t)(length == 16 ? start / 16 * 16 : start),
                      .dtype = GBX_UINT8,
                      .ndims = 1,
                      .shape = {length},
                      .strides = {1}};
    return run;
}

static gbx_tensor random_view(uint64_t data, int64_t bytes) {
    gbx_tensor tensor = {.data = data,
                         .dtype = dtypes[random_between(0, 4)],
                         .ndims = (uint32_t)random_between(0, 4)};
    for (uint32_t d = 0; d < tensor.ndims; ++d) {
        tensor.shape[d] = one_in(40) ? 0 : random_between(1, 4);
        tensor.strides[d] = random_between(-9, 20);
        if (tensor.strides[d] < 0 && tensor.shape[d] > 0)
            tensor.start_offset -= (tensor.shape[d] - 1) * tensor.strides[d];
    }
    tensor.start_offset += random_between(0, bytes / 8);
    return tensor;
}

static gbx_tensor random_access(const model *m, int64_t wildness) {
    for (;;) {
        uint64_t at = 0;
        int64_t bytes = SPACE_BYTES, where = random_between(0, 9);
        if (where < 4 || (where >= 7 && !one_in(wildness))) {
            at = A_AT;
            bytes = A_BYTES;
        } else if (where < 5) {
            at = B_AT;
            bytes = B_BYTES;
        } else if (where < 7 && m->allocation_count > 0) {
            int64_t k = random_between(0, m->allocation_count - 1);
            at = m->allocations[k].at;
            bytes = m->allocations[k].bytes;
        }
        gbx_tensor tensor = one_in(wildness) ? random_view(BASE + at, bytes)
                            : one_in(3)      ? random_run(BASE + at, bytes)
                                             : random_tile(BASE + at, bytes);
        if (gbx_tensor_numel(&tensor) == 0 ||
            is_inside(&tensor, (uint64_t)bytes - (tensor.data - BASE - at)))
            return tensor;
    }
}

static void random_sequence(int64_t wildness, int task_count) {
    model m = {.map = new_map(IN_FLIGHT * 5, MAX_ALLOCATIONS), .heap_end = HEAP_AT};
    assert_true(gbx_tensor_map_add_buffer(m.map, BASE + B_AT, B_BYTES));
    assert_true(gbx_tensor_map_add_buffer(m.map, BASE + A_AT, A_BYTES));
    gbx_tensor_map_set_heap(m.map, BASE + HEAP_AT, HEAP_BYTES);
    for (int k = 0; k < task_count; ++k) {
        gbx_tensor tensors[5];
        uint8_t roles[5];
        uint32_t count = (uint32_t)random_between(0, 5);
        if (one_in(4))
            model_push(&m);
        while (m.next - m.oldest >= IN_FLIGHT || gbx_tensor_map_room(m.map) < count ||
               (m.next > m.oldest && one_in(3)))
            model_retire(&m);
        for (uint32_t a = 0; a < count; ++a) {
            tensors[a] = a > 0 && one_in(6) ? tensors[a - 1] : random_access(&m, wildness);
            roles[a] = (uint8_t)(one_in(2) ? GBX_ROLE_INPUT : random_between(0, 2));
        }
        model_add(&m, count, tensors, roles);
    }
    while (m.oldest < m.next)
        model_retire(&m);
    assert_int_equal(gbx_tensor_map_room(m.map), IN_FLIGHT * 5);
    free(m.map);
}

static void random_tasks_against_their_bytes(void **state) {
    (void)state;
    random_state = 20202;
    for (int k = 0; k < 300 * stress(); ++k)
        random_sequence(k % 3 == 0 ? 2 : k % 3 == 1 ? 6 : 100, 300);
}

/* Only tiles, many in flight: lookups use the tiles, not the lists. */
static void random_tiles_in_one_buffer(void **state) {
    (void)state;
    random_state = 30303;
    for (int k = 0; k < 250 * stress(); ++k) {
        model m = {.map = new_map(IN_FLIGHT * 4, 0)};
        gbx_tensor_map_add_buffer(m.map, BASE + 8, SPACE_BYTES - 8);
        for (int t = 0; t < 400; ++t) {
            gbx_tensor tensors[4];
            uint8_t roles[4];
            uint32_t count = (uint32_t)random_between(1, 4);
            for (uint32_t a = 0; a < count; ++a) {
                do
                    tensors[a] = random_tile(BASE + 8, 1024);
                while (!is_inside(&tensors[a], SPACE_BYTES - 8));
                roles[a] = one_in(3) ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT;
            }
            if (m.next - m.oldest == IN_FLIGHT)
                model_retire(&m);
            model_add(&m, count, tensors, roles);
        }
        free(m.map);
    }
}

/* --- by hand --- */

static gbx_tensor bytes_at(uint64_t offset, int64_t length) {
    gbx_tensor tensor = {
        .data = BASE + offset, .dtype = GBX_UINT8, .ndims = 1, .shape = {length}, .strides = {1}};
    return tensor;
}

static void a_covered_access_is_forgotten(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(64, 0);
    gbx_tensor_map_add_buffer(map, BASE, 1024);
    for (uint64_t t = 0; t < 8; ++t)
        assert_int_equal(add_write(map, t, bytes_at(t * 16, 16)), 0);
    assert_int_equal(add_read(map, 8, bytes_at(8, 16)), 2);
    assert_int_equal(add_write(map, 9, bytes_at(0, 127)), 9);
    /* Seven tiles and the read are covered; the last tile is not. */
    assert_int_equal(add_write(map, 10, bytes_at(0, 1024)), 2);
    assert_int_equal(reported.tasks[0] + reported.tasks[1], 7 + 9);
    assert_int_equal(add_read(map, 11, bytes_at(100, 300)), 1);
    assert_int_equal(reported.tasks[0], 10);
    free(map);
}

static void finding_changes_nothing(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(64, 0);
    gbx_tensor_map_add_buffer(map, BASE, 1024);
    gbx_tensor tile = bytes_at(16, 16), whole = bytes_at(0, 1024);
    add_write(map, 1, tile);
    add_read(map, 2, tile);
    for (int k = 0; k < 3; ++k) {
        reported.count = 0;
        gbx_tensor_map_find(map, &tile, true, on_found, &reported);
        gbx_tensor_map_find(map, &whole, true, on_found, &reported);
        assert_int_equal(reported.count, 4);
        gbx_tensor_map_find(map, &whole, false, on_found, &reported);
        assert_int_equal(reported.count, 5);
        assert_int_equal(reported.tasks[4], 1);
    }
    assert_int_equal(gbx_tensor_map_room(map), 62);
    free(map);
}

/* A write empties the tile of its readers while another tensor of the task is the group's first. */
static void tiles_of_one_task_in_any_order(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(64, 0);
    gbx_tensor_map_add_buffer(map, BASE, 1024);
    add_read(map, 1, bytes_at(0, 16));
    gbx_tensor both[2] = {bytes_at(512, 16), bytes_at(0, 16)};
    assert_int_equal(add_task(map, 2, 2, both, (uint8_t[]){GBX_ROLE_OUTPUT, GBX_ROLE_OUTPUT}), 1);
    assert_int_equal(add_read(map, 3, bytes_at(0, 8)), 1);
    assert_int_equal(add_read(map, 4, bytes_at(520, 8)), 1);
    free(map);
}

static void many_readers_and_the_ring_wraps(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(1000, 0);
    gbx_tensor_map_add_buffer(map, BASE, 64);
    uint64_t oldest = 0, next = 0;
    for (int round = 0; round < 20; ++round) {
        while (oldest < next)
            gbx_tensor_map_retire(map, oldest++);
        uint64_t writer = next;
        assert_int_equal(add_write(map, next++, bytes_at(0, 64)), 0);
        for (int k = 0; k < 900; ++k) {
            assert_int_equal(add_read(map, next++, bytes_at(0, 64)), 1);
            assert_int_equal(reported.tasks[0], writer);
        }
        for (int k = 0; k < 101; ++k)
            gbx_tensor_map_retire(map, oldest++);
        assert_int_equal(add_write(map, next++, bytes_at(0, 64)), 800);
        assert_int_equal(gbx_tensor_map_room(map), 1000 - 801);
    }
    free(map);
}

static void every_access_may_have_its_own_form(void **state) {
    (void)state;
    enum { COUNT = 1500 };
    gbx_tensor_map *map = new_map(COUNT, 0);
    gbx_tensor_map_add_buffer(map, BASE, 1 << 24);
    uint64_t oldest = 0;
    for (uint64_t t = 0; t < 2 * COUNT; ++t) {
        if (gbx_tensor_map_room(map) == 0)
            gbx_tensor_map_retire(map, oldest++);
        assert_int_equal(add_write(map, t, bytes_at(t * 4096, (int64_t)(t % 2000) + 1)), 0);
    }
    gbx_tensor_map_retire(map, oldest++);
    assert_int_equal(add_read(map, 2 * COUNT, bytes_at(0, 1 << 24)), COUNT - 1);
    free(map);
}

static void thousands_of_allocations_round_the_heap(void **state) {
    (void)state;
    enum { ALIVE = 4000, BYTES = 256, HEAP = 5000 * BYTES };
    gbx_tensor_map *map = new_map(3 * ALIVE, ALIVE);
    gbx_tensor_map_set_heap(map, BASE, HEAP);
    for (uint64_t t = 0; t < 5 * ALIVE; ++t) {
        if (t >= ALIVE) {
            gbx_tensor_map_retire(map, t - ALIVE);
            gbx_tensor_map_heap_pop(map);
        }
        uint64_t at = t * BYTES % HEAP;
        assert_true(gbx_tensor_map_heap_push(map, BASE + at, BYTES));
        gbx_tensor tensors[3] = {bytes_at(at, BYTES), bytes_at((at + HEAP - BYTES) % HEAP, BYTES),
                                 bytes_at((at + HEAP - 1000 * BYTES) % HEAP + 10, 20)};
        const uint8_t roles[3] = {GBX_ROLE_OUTPUT, GBX_ROLE_INPUT, GBX_ROLE_INPUT};
        uint32_t count = t >= 1000 ? 3 : t >= 1 ? 2 : 1;
        assert_int_equal(add_task(map, t, count, tensors, roles), count - 1);
        for (uint32_t k = 1; k < count; ++k)
            assert_int_equal(reported.tasks[k - 1], k == 1 ? t - 1 : t - 1000);
    }
    assert_false(gbx_tensor_map_heap_push(map, BASE, BYTES));
    free(map);
}

static void an_allocation_goes_before_its_tasks_are_retired(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(64, 4);
    gbx_tensor_map_set_heap(map, BASE, 1024);
    assert_true(gbx_tensor_map_add_buffer(map, BASE + 2048, 64));
    gbx_tensor_map_heap_push(map, BASE, 512);
    for (uint64_t t = 0; t < 10; ++t) {
        gbx_tensor both[2] = {bytes_at(t * 8, 8), bytes_at(2048, (int64_t)t + 1)};
        add_task(map, t, 2, both, (uint8_t[]){GBX_ROLE_OUTPUT, GBX_ROLE_INPUT});
    }
    gbx_tensor_map_heap_pop(map);
    gbx_tensor_map_heap_push(map, BASE, 512);
    assert_int_equal(add_write(map, 10, bytes_at(0, 512)), 0);
    assert_int_equal(add_write(map, 11, bytes_at(2048, 64)), 10);
    for (uint64_t t = 0; t < 11; ++t)
        gbx_tensor_map_retire(map, t);
    assert_int_equal(gbx_tensor_map_room(map), 63);
    assert_int_equal(add_write(map, 12, bytes_at(2050, 1)), 1);
    free(map);
}

static void too_many_buffers_are_still_right(void **state) {
    (void)state;
    gbx_tensor_map *map = new_map(256, 0);
    for (uint64_t k = 0; k < GBX_TENSOR_MAP_MAX_BUFFERS + 20; ++k)
        assert_int_equal(gbx_tensor_map_add_buffer(map, BASE + k * 64, 64) != 0,
                         k < GBX_TENSOR_MAP_MAX_BUFFERS);
    for (uint64_t k = 0; k < GBX_TENSOR_MAP_MAX_BUFFERS + 20; ++k) {
        assert_int_equal(add_write(map, 2 * k, bytes_at(k * 64, 64)), 0);
        assert_int_equal(add_read(map, 2 * k + 1, bytes_at(k * 64 + 32, 32)), 1);
    }
    assert_int_equal(add_write(map, 1000, bytes_at(32, 64 * 80)), 2 * 81 - 1);
    free(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tasks_against_their_bytes),
        cmocka_unit_test(random_tiles_in_one_buffer),
        cmocka_unit_test(a_covered_access_is_forgotten),
        cmocka_unit_test(finding_changes_nothing),
        cmocka_unit_test(tiles_of_one_task_in_any_order),
        cmocka_unit_test(many_readers_and_the_ring_wraps),
        cmocka_unit_test(every_access_may_have_its_own_form),
        cmocka_unit_test(thousands_of_allocations_round_the_heap),
        cmocka_unit_test(an_allocation_goes_before_its_tasks_are_retired),
        cmocka_unit_test(too_many_buffers_are_still_right),
    };
    return cmocka_run_group_tests_name("tensor_map", tests, NULL, NULL);
}
