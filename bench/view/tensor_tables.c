/* One of many large tensors, and the statistics of all: what must be printed, and how fast. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "view.h"

#define ONE_TENSOR_MS 50.0
#define STATISTICS_SHARE 0.5 /* of the speed of memcpy */

/* --- one of many --- */

/* The first and the last row as the tensor is printed, which has edges of three. */
static bool check_values(const char *text, uint64_t tensor) {
    char row[96];
    bool is_right = true;
    for (uint64_t i = 0; i < 2; ++i) {
        uint64_t first = i == 0 ? 0 : (uint64_t)(SPARSE_ROWS - 1) * SPARSE_COLUMNS;
        uint64_t last = first + SPARSE_COLUMNS - 3;
        snprintf(row, sizeof row, "%.0f. %.0f. %.0f. ... %.0f. %.0f. %.0f.",
                 (double)sparse_value(tensor, first), (double)sparse_value(tensor, first + 1),
                 (double)sparse_value(tensor, first + 2), (double)sparse_value(tensor, last),
                 (double)sparse_value(tensor, last + 1), (double)sparse_value(tensor, last + 2));
        is_right &= expect(strstr(text, row) != NULL, row);
    }
    return is_right;
}

/* Runs of blanks become one. */
static void squeeze(char *text) {
    char *to = text;
    for (const char *from = text; *from; ++from)
        if (*from != ' ' || to == text || to[-1] != ' ')
            *to++ = *from;
    *to = '\0';
}

static bool ask_tensor(const setting *how, const char *directory, uint64_t tensor,
                       bool is_filtered) {
    char number[32], name[96], output[PATH_BYTES];
    snprintf(number, sizeof number, "%llu", (unsigned long long)tensor);
    const char *const options[] = {is_filtered ? "--task" : "--index", number, NULL};
    outcome of;
    set_path(how, "answer", output);
    if (!measure_view(how, directory, options, output, &of))
        return false;
    char *text = read_file(output);
    if (text)
        squeeze(text);
    bool is_right = text && check_values(text, tensor);
    free(text);
    snprintf(name, sizeof name, "view %s %s, %.1f ms of the processor", options[0], number,
             of.processor_s * 1e3);
    print_goal(name, of.seconds * 1e3, false, ONE_TENSOR_MS, "ms");
    return is_right;
}

bool print_sparse(const setting *how) {
    char directory[PATH_BYTES];
    bool is_right = true;
    set_path(how, "sparse", directory);
    if (!succeeded(make_sparse_dump(how, directory)))
        return false;
    printf("a dump of %.0f GiB, %llu tensors of 1 MiB, mostly holes; medians of %u\n",
           (double)how->sparse_count * (double)MIB / (double)GIB,
           (unsigned long long)how->sparse_count, how->repeats);
    for (uint64_t i = 0; i < how->sparse_count; ++i)
        if (is_sparse_written(how, i))
            is_right &= ask_tensor(how, directory, i, false) && ask_tensor(how, directory, i, true);
    printf("\n");
    return is_right;
}

/* --- statistics --- */

static double value_at(uint32_t dtype, uint64_t element) {
    bool is_half = dtype == GBX_BFLOAT16;
    uint32_t word = payload_word(is_half ? element / 2 : element);
    uint32_t bits = !is_half ? word : element % 2 ? word & 0xffff0000u : word << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Statistics of one tensor. */
typedef struct summary {
    double low;
    double high;
    double mean;
} summary;

static summary count_statistics(uint32_t dtype, uint64_t first, uint64_t count) {
    summary s = {INFINITY, -INFINITY, 0};
    for (uint64_t i = first; i < first + count; ++i) {
        double value = value_at(dtype, i);
        s.low = value < s.low ? value : s.low;
        s.high = value > s.high ? value : s.high;
        s.mean += value / (double)count;
    }
    return s;
}

/* As in the JSON; NaN where they are absent. */
static summary read_statistics(const char *text) {
    json_t *document = json_loads(text, 0, NULL);
    json_t *entry = json_array_get(json_object_get(document, "tensors"), 0);
    json_t *stats = json_object_get(entry, "stats");
    summary s = {(double)NAN, (double)NAN, (double)NAN};
    if (stats)
        s = (summary){json_number_value(json_object_get(stats, "min")),
                      json_number_value(json_object_get(stats, "max")),
                      json_number_value(json_object_get(stats, "mean"))};
    json_decref(document);
    return s;
}

/* Compares the printed statistics of the last tensor with those counted here. */
static bool check_statistics(const setting *how, const char *directory, uint32_t dtype,
                             uint64_t tensor_bytes) {
    char number[32], output[PATH_BYTES];
    uint64_t last = how->payload_bytes / tensor_bytes - 1;
    uint64_t elements = tensor_bytes * 8 / gbx_dtype_bits(dtype);
    snprintf(number, sizeof number, "%llu", (unsigned long long)last);
    set_path(how, "answer", output);
    const char *const arguments[] = {how->command, "view",    directory, "--json",
                                     "--stats",    "--index", number,    NULL};
    outcome ignored;
    char *text = run_program(arguments, output, &ignored) ? read_file(output) : NULL;
    if (!text)
        return false;
    summary printed = read_statistics(text);
    summary counted = count_statistics(dtype, last * elements, elements);
    free(text);
    bool is_right = (float)printed.low == (float)counted.low &&
                    (float)printed.high == (float)counted.high &&
                    fabs(printed.mean - counted.mean) < 1e-6;
    return expect(is_right, "statistics are those of the values");
}

static bool ask_statistics(const setting *how, const char *payload, uint32_t dtype,
                           uint64_t tensor_bytes, double copy, double reading) {
    static const char *const options[] = {"--stats", NULL};
    char directory[PATH_BYTES], name[64], size[32];
    outcome of;
    snprintf(size, sizeof size, "%llu KiB", (unsigned long long)(tensor_bytes / KIB));
    snprintf(name, sizeof name, "%s_%llu", gbx_dtype_name(dtype), (unsigned long long)tensor_bytes);
    set_path(how, name, directory);
    if (!succeeded(make_payload_dump(how, directory, payload, dtype, tensor_bytes)) ||
        !check_statistics(how, directory, dtype, tensor_bytes) ||
        !measure_view(how, directory, options, NULL, &of))
        return false;
    double speed = (double)how->payload_bytes * 1e-9 / of.seconds;
    printf("%-10s %10s %9.3f %9.3f %8.2f %9.2f %9.2f  %-6s %8.1f\n", gbx_dtype_name(dtype), size,
           of.seconds, of.processor_s, speed, speed / copy, speed / reading,
           speed / copy >= STATISTICS_SHARE ? "ok" : "BELOW", of.peak_mib);
    fflush(stdout);
    return true;
}

bool print_statistics(const setting *how) {
    static const uint32_t dtypes[] = {GBX_FLOAT32, GBX_BFLOAT16};
    static const uint64_t sizes[] = {4 * KIB, 64 * KIB, MIB, 16 * MIB};
    char payload[PATH_BYTES];
    set_path(how, "payload", payload);
    double copy = measure_copy(how);
    double reading = measure_reading(how);
    if (copy == 0 || reading == 0 || !succeeded(write_payload(how, payload)))
        return false;
    printf("view --stats over %.2f GiB in the page cache; memcpy %.2f GB/s, reading %.2f; goal "
           "%.2f of memcpy; medians of %u\n"
           "%-10s %10s %9s %9s %8s %9s %9s  %-6s %8s\n",
           (double)how->payload_bytes / (double)GIB, copy, reading, STATISTICS_SHARE, how->repeats,
           "dtype", "tensors", "s", "cpu s", "GB/s", "/memcpy", "/reading", "", "MiB");
    bool is_right = true;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; ++j)
            is_right &= ask_statistics(how, payload, dtypes[i], sizes[j], copy, reading);
    printf("\n");
    return is_right;
}
