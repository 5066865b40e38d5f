/* Rings against a list of the pieces that are alive. */
#include "runtime/tensormap_and_ringbuffer/ring.h"

#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { MAX_PIECES = 512 };
#define BASE UINT64_C(0x7e9000000000)

typedef struct piece {
    uint64_t address;
    uint64_t bytes;
    uint64_t end; /* position that the tail gets when it is given back */
} piece;

/* Oldest first. */
typedef struct pieces {
    piece all[MAX_PIECES];
    uint32_t first;
    uint32_t count;
} pieces;

static piece *nth(pieces *p, uint32_t n) {
    return &p->all[(p->first + n) % MAX_PIECES];
}

static void give_oldest(gbx_ring *ring, pieces *p) {
    gbx_ring_give(ring, nth(p, 0)->end);
    ++p->first;
    --p->count;
}

static void check_apart(const gbx_ring *ring, pieces *p, uint64_t address, uint64_t bytes) {
    assert_true(address >= ring->base && address + bytes <= ring->base + ring->bytes);
    for (uint32_t i = 0; i < p->count; ++i)
        assert_true(address + bytes <= nth(p, i)->address ||
                    nth(p, i)->address + nth(p, i)->bytes <= address);
}

static void take(gbx_ring *ring, pieces *p, uint64_t bytes) {
    uint64_t address = gbx_ring_take(ring, bytes);
    check_apart(ring, p, address, bytes);
    *nth(p, p->count++) = (piece){address, bytes, ring->head};
}

static void run_random(uint64_t bytes, uint64_t soft_bytes, uint64_t unit, uint64_t most) {
    gbx_ring ring = {.base = BASE, .bytes = bytes, .soft_bytes = soft_bytes};
    pieces alive = {.count = 0};
    for (uint32_t round = 0; round < 3000; ++round) {
        ring.is_kept = rand() % 4 == 0;
        uint64_t wanted = unit * (1 + (uint64_t)rand() % (most / unit));
        while (alive.count > 0 && (alive.count == MAX_PIECES || !gbx_ring_has_room(&ring, wanted)))
            give_oldest(&ring, &alive);
        /* At the latest once it is empty. */
        assert_true(gbx_ring_has_room(&ring, wanted));
        take(&ring, &alive, wanted);
        while (alive.count > 0 && rand() % 3 == 0)
            give_oldest(&ring, &alive);
    }
}

static void test_pieces_never_overlap(void **state) {
    (void)state;
    static const uint64_t sizes[] = {64, 256, 320, 4096, 1 << 16};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        for (uint64_t unit = 1; unit <= 64; unit *= 64) {
            for (uint32_t k = 0; k < 6; ++k) {
                uint64_t soft = k == 0 ? sizes[i] : (uint64_t)rand() % sizes[i];
                run_random(sizes[i], soft, unit, k % 2 ? sizes[i] : (sizes[i] + 7) / 8 + unit);
            }
        }
    }
}

/* While there is room before the soft end, the ring uses no more than that and one piece. */
static void test_soft_end_keeps_memory_warm(void **state) {
    (void)state;
    gbx_ring ring = {.base = BASE, .bytes = 1 << 20, .soft_bytes = 4096};
    pieces alive = {.count = 0};
    for (uint32_t i = 0; i < 10000; ++i) {
        take(&ring, &alive, 64);
        if (alive.count > 10)
            give_oldest(&ring, &alive);
        assert_true(nth(&alive, alive.count - 1)->address < BASE + 4096 + 64);
    }
}

/* While the pieces at the beginning are alive, it continues past the soft end to the last byte. */
static void test_soft_end_gives_way(void **state) {
    (void)state;
    gbx_ring ring = {.base = BASE, .bytes = 4096, .soft_bytes = 1024};
    pieces alive = {.count = 0};
    for (uint32_t i = 0; i < 64; ++i) {
        assert_true(gbx_ring_has_room(&ring, 64));
        take(&ring, &alive, 64);
    }
    assert_false(gbx_ring_has_room(&ring, 64));
    assert_false(gbx_ring_has_room(&ring, 1));
    give_oldest(&ring, &alive);
    assert_true(gbx_ring_has_room(&ring, 64));
    assert_false(gbx_ring_has_room(&ring, 65));
}

/* A piece as large as the ring fits when the ring is empty, at any position; a larger one never. */
static void test_complete_ring(void **state) {
    (void)state;
    gbx_ring ring = {.base = BASE, .bytes = 4096, .soft_bytes = 4096};
    pieces alive = {.count = 0};
    assert_false(gbx_ring_has_room(&ring, 4097));
    assert_true(gbx_ring_has_room(&ring, 4096));
    for (uint64_t bytes = 4096; bytes > 0; bytes -= 64) {
        assert_true(gbx_ring_has_room(&ring, 4096));
        take(&ring, &alive, 4096);
        assert_false(gbx_ring_has_room(&ring, 1));
        give_oldest(&ring, &alive);
        assert_true(gbx_ring_has_room(&ring, bytes));
        take(&ring, &alive, bytes);
        give_oldest(&ring, &alive);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_never_overlap),
        cmocka_unit_test(test_soft_end_keeps_memory_warm),
        cmocka_unit_test(test_soft_end_gives_way),
        cmocka_unit_test(test_complete_ring),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
