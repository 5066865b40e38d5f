/* The host's side of a chip: its platform, its control block, the kernels it knows. */
#ifndef GBX_CHIP_HOST_CHIP_H
#define GBX_CHIP_HOST_CHIP_H

#include "chip/abi.h"
#include "hal/hal.h"
#include "tensor/final_tensor.h"

typedef struct gbx_kernel_entry {
    char name[GBX_MAX_KERNEL_NAME + 1]; /* empty: not registered */
    gbx_core_type core;
    /* As in gbx_kernel; each may be NULL. */
    char *signature;
    char *arg_names;
    char *object_path; /* absolute; NULL for a function */
    char *origin;      /* the source of the object */
    char *compile_flags;
    char *link_flags;
} gbx_kernel_entry;

/* What ran where. */
typedef struct gbx_chip_place {
    uint64_t task_id;
    uint32_t func_id; /* GBX_NO_KERNEL: no kernel is known */
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t block_num;
} gbx_chip_place;

/* How a launch failed, beside the code and the message of its status. The numbers of a place are
 * those that the chip reported, unchecked. */
typedef struct gbx_chip_fault {
    gbx_fault_kind kind; /* GBX_FAULT_NONE: unknown */
    uint32_t signal;     /* raised, or what killed the chip's process; 0: none */
    gbx_address_kind address_kind;
    uint64_t address;
    gbx_chip_place place;
} gbx_chip_fault;

struct gbx_chip {
    gbx_hal *hal;
    gbx_device_mode device;
    uint32_t blocks;
    uint32_t aicpu_threads;
    uint64_t control;     /* device address of the gbx_control_block */
    uint64_t scratch;     /* device address of the payload of a launch */
    uint64_t launches;    /* how many there were so far */
    gbx_code failure;     /* why the chip takes no more launches; GBX_OK while it does */
    gbx_chip_fault fault; /* of the last launch */
    gbx_kernel_entry kernels[GBX_MAX_KERNELS];
    gbx_signature signatures[GBX_MAX_KERNELS];
};

/* --- chip.c --- */

/* The operations on the chip's platform: gbx_chip_ops(chip)->alloc(chip->hal, ...). */
static inline const gbx_hal_ops *gbx_chip_ops(const gbx_chip *chip) {
    return chip->hal->ops;
}

/* Runs a chip inside this process until the host closes the link, as gbx_device_main. */
typedef bool (*gbx_device_function)(int link_socket);

/* gbx_chip_open; device_main is the chip where it runs on a thread. */
GBX_MUST_USE gbx_status gbx_chip_open_with(const gbx_chip_config *config,
                                           gbx_device_function device_main, gbx_chip **out_chip);

/* gbx_gm_alloc for another use than a buffer of kernels, with its alignment. */
GBX_MUST_USE gbx_status gbx_chip_alloc(gbx_chip *chip, gbx_hal_memory *wanted,
                                       uint64_t *out_address);

/* Fails for a chip that has failed; `doing` begins the message. */
GBX_MUST_USE gbx_status gbx_chip_check_alive(const gbx_chip *chip, const char *doing);

/* --- launch.c --- */

/* What the host does for a dump and a guard while a run lasts. */
typedef struct gbx_chip_listener {
    void *context;
    uint64_t dump_data_base; /* passed with the launch, as are the flags */
    uint32_t dump_flags;
    uint64_t guard_data_base; /* the same */
    bool has_zones;           /* buffers that the chip allocates get zones: leave room */
    /* The chip has rung, or some time has passed. On the thread that waits for the launch. */
    void (*attend)(void *context);
    /* The arguments of the orchestration, before it is called. A failure ends the run. */
    gbx_status (*receive)(void *context, const gbx_run_args *run);
    /* The output and in-out tensors of the run after the launch has ended in any way, while their
     * memory is still there; `is_in_flight`: it failed. */
    void (*conclude)(void *context, const gbx_final_tensor *tensors, size_t count,
                     bool is_in_flight);
    /* The orchestration copies between the host's memory and the chip's. */
    void (*note_copy)(void *context, uint64_t device_address, const void *host_pointer);
    /* All memory of the run is allocated; the launch is next. A failure ends the run. */
    gbx_status (*prepare)(void *context);
} gbx_chip_listener;

/* One entry of the chip, with a payload of up to GBX_MAX_PAYLOAD_BYTES, which is copied in. */
typedef struct gbx_chip_launch_config {
    uint32_t entry;
    uint32_t timeout_ms;
    const void *payload;
    uint64_t payload_bytes;
    void (*progress)(void *context, uint64_t tasks_completed); /* may be NULL */
    void *progress_context;
    const gbx_chip_listener *listener; /* NULL: no dump */
} gbx_chip_launch_config;

/*
 * Runs it and waits for its end. The status says how it failed; for GBX_BAD_GRAPH the details are
 * in gbx_chip_read_message. `out_result` may be NULL.
 */
GBX_MUST_USE gbx_status gbx_chip_launch(gbx_chip *chip, const gbx_chip_launch_config *config,
                                        gbx_call_result *out_result);

/* The first bytes of the chip's message. Trust nothing in it. */
GBX_MUST_USE gbx_status gbx_chip_read_message(gbx_chip *chip, void *to, size_t bytes);

/* --- kernel.c --- */

/* Fails where the kernel cannot be registered, before anything is compiled. */
GBX_MUST_USE gbx_status gbx_chip_check_kernel(const gbx_chip *chip, const gbx_kernel *kernel);

/* Loads a kernel that was checked: `path` is absolute, or NULL with a function. */
GBX_MUST_USE gbx_status gbx_chip_load_kernel(gbx_chip *chip, const gbx_kernel *kernel,
                                             const char *path);

/* "argument 2 (scale)" of a kernel, or "argument 2" where it has no name. Takes any numbers. */
enum { GBX_ARGUMENT_BYTES = 96 };
void gbx_chip_describe_argument(const gbx_chip *chip, uint32_t func_id, uint32_t slot,
                                char out_text[GBX_ARGUMENT_BYTES]);

/* Frees what the chip keeps of its kernels. */
void gbx_chip_forget_kernels(gbx_chip *chip);

#endif
