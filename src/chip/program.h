/*
 * What runs on the chip between the start of a launch and its end. The chip owns the threads, the
 * kernels and the faults; a program decides what they do. Programs are above the chip, which does
 * not link with them: whoever starts a device passes them to gbx_device_main.
 */
#ifndef GBX_CHIP_PROGRAM_H
#define GBX_CHIP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/status.h>

typedef struct gbx_device gbx_device;

typedef struct gbx_program {
    /*
     * Control thread: starts a launch with a copy of its payload. Anything but GBX_OK ends the
     * launch at once; else the program calls gbx_device_finish when it is done.
     */
    gbx_code (*start)(gbx_device *device, const void *payload, uint64_t bytes);
    /* A woken worker; returns when it has nothing to do. */
    void (*work)(gbx_device *device, uint32_t worker);
    /* The orchestrator thread, after gbx_orchestrator_call. */
    void (*orchestrate)(gbx_device *device);
    /* Grows as long as the program makes progress; the watchdog watches it. Any thread. */
    uint64_t (*progress)(gbx_device *device);
    uint64_t (*tasks_completed)(gbx_device *device);
    /* Starts no further kernel. Any thread, signal handlers too. */
    void (*cancel)(gbx_device *device);
    /* How many workers are awake. Any thread. */
    uint32_t (*awake)(gbx_device *device);
    /* Control thread, after a fault, when all of the program that can end has ended. */
    void (*report_fault)(gbx_device *device, uint32_t core_id);
} gbx_program;

/* The programs of a device, and the memory that they share. */
typedef struct gbx_program_set {
    /* The program of a launch's entry; NULL where there is none. */
    const gbx_program *(*find)(uint32_t entry);
    /* The memory of all programs inside a device, zero at its start. */
    uint64_t state_bytes;
    /* Once, before any worker starts; and once when all have ended (`state` may then be NULL). */
    void (*init)(void *state, uint32_t worker_count, const void *context);
    void (*destroy)(void *state);
    /* A worker before its first sleep, and whether it has not been woken since. */
    void (*park_first)(void *state, uint32_t worker);
    bool (*is_parked)(void *state, uint32_t worker);
    const void *context; /* passed to init; outlives the device */
} gbx_program_set;

#endif
