/*
 * What a dump must hold: the sequential model runs the same graph, and the dump is compared with it
 * record by record: every field that can be known, every byte of payload.
 *
 *     dump_expectation *expected = dump_expect_begin(&files, &rules);
 *     sequential_observer observer = dump_expect_observer(expected);
 *     ... run the graph on the model ...
 *     dump_expect_end(expected);      fails if the dump has unexpected records
 */
#ifndef GBX_TESTS_DUMP_EXPECT_H
#define GBX_TESTS_DUMP_EXPECT_H

#include "dump_files.h"
#include "sequential.h"

enum { DUMP_NAME_BYTES = 64 };

/* The kernels by func_id: their descriptions, and their functions for the model. */
typedef struct dump_kernels {
    gbx_kernel facts[GBX_MAX_KERNELS]; /* name, core, signature, arg_names */
    gbx_kernel_function functions[GBX_MAX_KERNELS];
} dump_kernels;

/* Which records to expect, by the rules of DESIGN.md 7.2. With only kernels and level set: a full
 * dump of a successful run. */
typedef struct dump_rules {
    const dump_kernels *kernels;
    gbx_dump_level level;
    /* What the filters of the run match; NULL without filters, when marks count. */
    bool (*matches)(const sequential_task *task, uint32_t arg_index, bool is_after);
    bool has_stats;
    uint64_t max_tensor_bytes;
    /* The task that crashed or hung in its kernel: its outputs are in flight, and later tasks never
     * ran. */
    bool has_fault;
    uint64_t fault_task;
    bool is_device_lost; /* the chip ended with it, so its outputs were not captured */
    /* host_build_graph: whether an argument is misdescribed, and therefore skipped. */
    bool (*is_mismatched)(const sequential_task *task, uint32_t arg_index);
} dump_rules;

typedef struct dump_expectation dump_expectation;

/* Both are borrowed until the end. */
dump_expectation *dump_expect_begin(const dump_files *files, const dump_rules *rules);
sequential_observer dump_expect_observer(dump_expectation *expected);

/* How many records were expected, apart from those in flight. */
uint64_t dump_expect_count(const dump_expectation *expected);

/* Fails if the dump has more records than expected. Frees it. */
void dump_expect_end(dump_expectation *expected);

/* --- by plain loops over elements --- */

/* The row-major payload of a tensor in this process's memory; the caller frees it. */
uint8_t *dump_gather(const gbx_tensor *tensor, size_t *out_bytes);
uint32_t dump_element_bits(uint32_t dtype);
const char *dump_dtype_name(uint32_t dtype);
bool dump_is_contiguous(const gbx_tensor *tensor);

/* The value of raw bits, and whether a JSON value of an entry equals it by the rules of DESIGN.md
 * 7.5. */
double dump_value_of(uint32_t dtype, uint64_t bits);
bool dump_value_is(const json_t *value, uint32_t dtype, uint64_t bits);

/* The name of a slot, and the dtype of a scalar, as the kernels of a task declare them; false if
 * there is no name. */
bool dump_slot_name(const dump_kernels *kernels, const sequential_task *task, uint32_t slot,
                    char out_name[DUMP_NAME_BYTES]);
uint32_t dump_scalar_dtype(const dump_kernels *kernels, const sequential_task *task, uint32_t slot);

#endif
