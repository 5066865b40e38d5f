/*
 * A kernel with wild stores: finds the memory of the dump (src/dump/abi.h) in global memory and
 * overwrites it as its first tensor says. Before that, it adds 1 to every byte of its second
 * tensor, an inout.
 */
#include "dump_damage.h"

#include <glassbox/kernel.h>

#define DUMP_MAGIC UINT64_C(0x31504d5544584247) /* "GBXDUMP1" */
enum { PAGE_BYTES = 4096, BUFFER_WORDS = 8192 };
enum { COUNTS_WORD = 2, LANES_WORD = 3, BUFFERS_WORD = 4, ARENAS_WORD = 5 };

/* The setup begins a page, and holds the address of its lanes, which follow it. */
static const uint64_t *find_setup(const gbx_global_context *global) {
    uint64_t end = global->gm_base + global->gm_bytes;
    for (uint64_t at = global->gm_base; at < end; at += PAGE_BYTES) {
        const uint64_t *words = (const uint64_t *)(uintptr_t)at;
        if (words[0] == DUMP_MAGIC && words[LANES_WORD] > at && words[LANES_WORD] < end)
            return words;
    }
    __builtin_trap();
}

static uint64_t start_of(const uint64_t *args, const uint64_t *setup, uint64_t part) {
    switch (part) {
    case DAMAGE_SETUP:
        return (uint64_t)(uintptr_t)setup;
    case DAMAGE_LANES:
        return setup[LANES_WORD];
    case DAMAGE_BUFFERS:
        return setup[BUFFERS_WORD];
    case DAMAGE_ARENAS:
        return setup[ARENAS_WORD];
    case DAMAGE_DESCRIPTION:
        return args[1];
    default:
        return gbx_global(args)->gm_base;
    }
}

static uint64_t damaged(const damage *how, uint64_t word, uint64_t random) {
    switch (how->way) {
    case DAMAGE_FLIP:
        return word ^ how->value;
    case DAMAGE_ADD:
        return word + how->value;
    case DAMAGE_RANDOM:
        return random ^ random >> 29;
    default:
        return how->value;
    }
}

/* The index of the buffer that the device is filling. */
static uint64_t open_buffer(const uint64_t *setup, const damage *how, uint64_t lane) {
    uint64_t place = setup[LANES_WORD] + lane * how->lane_bytes + how->open_item_offset;
    uint64_t item = *(const volatile uint64_t *)(uintptr_t)place;
    return item == UINT64_MAX ? UINT64_MAX : item & 0xffff;
}

static int is_spared(const uint64_t *setup, const damage *how, uint64_t index) {
    uint64_t buffer_count = setup[COUNTS_WORD] >> 32;
    uint64_t buffer = index / BUFFER_WORDS;
    return how->part == DAMAGE_BUFFERS && how->open_item_offset &&
           open_buffer(setup, how, buffer / buffer_count) == buffer % buffer_count;
}

static void damage_open_buffers(const uint64_t *args, const damage *how) {
    const uint64_t *setup = find_setup(gbx_global(args));
    uint64_t buffer_count = setup[COUNTS_WORD] >> 32;
    for (uint64_t lane = 0; lane < (setup[COUNTS_WORD] & UINT32_MAX); ++lane) {
        uint64_t buffer = open_buffer(setup, how, lane);
        uint64_t first = (lane * buffer_count + buffer) * BUFFER_WORDS + how->offset / 8;
        volatile uint64_t *word = (volatile uint64_t *)(uintptr_t)setup[BUFFERS_WORD] + first;
        if (buffer < buffer_count)
            *word = damaged(how, *word, how->value);
    }
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* 4 KiB of any part of global memory that is used, and sometimes of the rest. */
static void damage_page(const uint64_t *args, const damage *how) {
    const gbx_global_context *global = gbx_global(args);
    const uint64_t *setup = find_setup(global);
    uint64_t random = how->value * 7919 + 1, bytes = how->count * 8;
    next_random(&random);
    struct {
        uint64_t first, bytes;
    } parts[] = {
        {global->gm_base, 1 << 20},
        {global->gm_base, global->gm_bytes},
        {args[1] - (64 << 10), 128 << 10}, /* arguments and descriptions */
        {(uint64_t)(uintptr_t)setup, setup[LANES_WORD] - (uint64_t)(uintptr_t)setup},
        {setup[LANES_WORD], setup[BUFFERS_WORD] - setup[LANES_WORD]},
        {setup[BUFFERS_WORD], BUFFER_WORDS * 8},
        {setup[BUFFERS_WORD], setup[ARENAS_WORD] - setup[BUFFERS_WORD]},
        {setup[ARENAS_WORD], 64 << 10},
        {gbx_arg_tensor(args, 1)->data - (16 << 10), 32 << 10},
    };
    uint64_t part = next_random(&random) % (sizeof parts / sizeof parts[0]);
    uint64_t first = parts[part].first + next_random(&random) % parts[part].bytes / 8 * 8;
    if (first < global->gm_base)
        first = global->gm_base;
    if (first > global->gm_base + global->gm_bytes - bytes)
        first = global->gm_base + global->gm_bytes - bytes;
    for (uint64_t i = 0; i < how->count; ++i) {
        uint64_t word = next_random(&random);
        ((volatile uint64_t *)(uintptr_t)first)[i] = how->way == DAMAGE_SET ? 0 : word << 20 ^ word;
    }
}

static void do_damage(const uint64_t *args, const damage *how) {
    const uint64_t *setup = find_setup(gbx_global(args));
    uint64_t start = start_of(args, setup, how->part) + how->offset;
    uint64_t random = how->value | 1;
    for (uint64_t i = 0; i < how->count; ++i) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t index = how->part == DAMAGE_ANYWHERE ? (random >> 20) % how->step : i * how->step;
        volatile uint64_t *word = (volatile uint64_t *)(uintptr_t)start + index;
        if (!is_spared(setup, how, index))
            *word = damaged(how, *word, random);
    }
}

void kernel_entry(const uint64_t *args) {
    const damage how = *(const damage *)gbx_tensor_origin(gbx_arg_tensor(args, 0), 8);
    const gbx_tensor *state = gbx_arg_tensor(args, 1);
    unsigned char *bytes = (unsigned char *)gbx_tensor_origin(state, 1);
    for (int64_t i = 0; i < gbx_tensor_numel(state); ++i)
        ++bytes[i];
    if (how.part == DAMAGE_OPEN_BUFFERS)
        damage_open_buffers(args, &how);
    else if (how.part == DAMAGE_PAGE)
        damage_page(args, &how);
    else if (how.part != DAMAGE_NOTHING)
        do_damage(args, &how);
}
