/*
 * What a dump has to hold, said by the sequential model while it runs the same graph, and compared
 * with the dump record by record: every field that can be known, every byte of payload.
 *
 *     dump_expectation *expected = dump_expect_begin(&files, &rules);
 *     sequential_observer observer = dump_expect_observer(expected);
 *     ... run the graph on the model ...
 *     dump_expect_end(expected);      fails where the dump holds what nobody expects
 */
#ifndef GBX_TESTS_DUMP_EXPECT_H
#define GBX_TESTS_DUMP_EXPECT_H

#include "dump_files.h"
#include "sequential.h"

enum { DUMP_NAME_BYTES = 64 };

/* What is registered under a func_id, and its kernels as the model calls them. */
typedef struct dump_kernels {
    gbx_kernel facts[GBX_MAX_KERNELS]; /* name, core, signature, arg_names */
    gbx_kernel_function functions[GBX_MAX_KERNELS];
} dump_kernels;

/* Which records there are, by the rules of DESIGN.md 7.2. All zero but for kernels and level is a
 * full dump of a run that went well. */
typedef struct dump_rules {
    const dump_kernels *kernels;
    gbx_dump_level level;
    /* What the filters of the run match; NULL: there are none, marks count. */
    bool (*matches)(const sequential_task *task, uint32_t arg_index, bool is_after);
    bool has_stats;
    uint64_t max_tensor_bytes;
    /* The task that crashed or hung amid its kernel: its outputs are in flight, and later tasks
     * never ran. */
    bool has_fault;
    uint64_t fault_task;
    bool is_device_lost; /* the chip ended with it: nobody looked at its outputs */
    /* host_build_graph: an argument whose info is not what the kernel gets: skipped. */
    bool (*is_mismatched)(const sequential_task *task, uint32_t arg_index);
} dump_rules;

typedef struct dump_expectation dump_expectation;

/* Both are borrowed until the end. */
dump_expectation *dump_expect_begin(const dump_files *files, const dump_rules *rules);
sequential_observer dump_expect_observer(dump_expectation *expected);

/* How many records were expected, apart from those in flight. */
uint64_t dump_expect_count(const dump_expectation *expected);

/* Fails where the dump has more than was expected. Frees it. */
void dump_expect_end(dump_expectation *expected);

/* --- by plain loops over elements --- */

/* The row-major payload of a tensor in this process's memory; the caller frees it. */
uint8_t *dump_gather(const gbx_tensor *tensor, size_t *out_bytes);
uint32_t dump_element_bits(uint32_t dtype);
const char *dump_dtype_name(uint32_t dtype);
bool dump_is_contiguous(const gbx_tensor *tensor);

/* The value of raw bits, and whether a JSON value of an entry says it, as DESIGN.md 7.5 has it. */
double dump_value_of(uint32_t dtype, uint64_t bits);
bool dump_value_is(const json_t *value, uint32_t dtype, uint64_t bits);

/* The name of a slot, and the dtype of a scalar, by what the kernels of a task declare; false where
 * there is no name. */
bool dump_slot_name(const dump_kernels *kernels, const sequential_task *task, uint32_t slot,
                    char out_name[DUMP_NAME_BYTES]);
uint32_t dump_scalar_dtype(const dump_kernels *kernels, const sequential_task *task, uint32_t slot);

#endif
