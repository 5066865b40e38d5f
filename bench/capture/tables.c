/* Dumps of tensors and of records, against their goals. */
#include <stdio.h>
#include <stdlib.h>

#include "capture.h"

enum { MAX_REPEATS = 5 };

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double median(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void name_size(uint64_t bytes, char text[32]) {
    if (bytes >= MIB)
        snprintf(text, 32, "%llu MiB", (unsigned long long)(bytes / MIB));
    else
        snprintf(text, 32, "%llu KiB", (unsigned long long)(bytes / KIB));
}

/* --- payload --- */

typedef struct tensor_goal {
    const char *platform;
    uint32_t threads;
    uint64_t tensor_bytes;
    double goal; /* relative to direct writes */
} tensor_goal;

static const tensor_goal tensor_goals[] = {
    {"a2a3sim", 1, 4 * KIB, 0.5},   {"a2a3sim", 1, 64 * KIB, 0.85}, {"a2a3sim", 1, MIB, 0.85},
    {"a2a3sim", 1, 16 * MIB, 0.85}, {"a2a3sim", 2, 4 * KIB, 0.5},   {"a2a3sim", 2, 64 * KIB, 0.85},
    {"a2a3sim", 2, MIB, 0.85},      {"a2a3sim", 2, 16 * MIB, 0.85}, {"a5sim", 2, 64 * KIB, 0.5},
    {"a5sim", 2, MIB, 0.5},         {"a5sim", 2, 16 * MIB, 0.5},
};

/* The most of all runs. */
typedef struct worst {
    double peak_mib;
    double capture_ms;
} worst;

/* The disk's speed changes from minute to minute: it is measured before each run. */
static bool print_tensor_goal(const setting *how, const tensor_goal *goal, uint32_t repeats,
                              worst *all) {
    plan what = {.platform = goal->platform,
                 .threads = goal->threads,
                 .tensor_bytes = goal->tensor_bytes,
                 .total_bytes = how->total_bytes,
                 .level = GBX_DUMP_FULL};
    double limits[MAX_REPEATS], whole[MAX_REPEATS], device[MAX_REPEATS], ratios[MAX_REPEATS];
    outcome of = {0};
    for (uint32_t i = 0; i < repeats; ++i) {
        limits[i] = measure_disk(how);
        if (limits[i] == 0 || !run_apart(how, &what, &of))
            return false;
        whole[i] = (double)how->total_bytes * 1e-9 / of.whole_s;
        device[i] = (double)how->total_bytes * 1e-9 / of.device_s;
        ratios[i] = whole[i] / limits[i];
        double peak_mib = (double)of.peak_bytes / (double)MIB;
        double capture_ms = (double)of.totals.longest_capture_ns * 1e-6;
        all->peak_mib = peak_mib > all->peak_mib ? peak_mib : all->peak_mib;
        all->capture_ms = capture_ms > all->capture_ms ? capture_ms : all->capture_ms;
    }
    char size[32];
    double ratio = median(ratios, repeats);
    name_size(goal->tensor_bytes, size);
    printf("%-8s %7u %8s %8.2f %8.2f %8.2f %8.2f %6.2f  %-6s %9.1f %9.1f\n", goal->platform,
           goal->threads, size, median(limits, repeats), median(device, repeats),
           median(whole, repeats), ratio, goal->goal, ratio >= goal->goal ? "ok" : "BELOW",
           (double)of.totals.longest_capture_ns * 1e-6, (double)of.peak_bytes / (double)MIB);
    fflush(stdout);
    return true;
}

bool print_tensor_table(const setting *how, uint32_t repeats) {
    bool is_right = true;
    worst all = {0};
    printf("full dumps of %.1f GiB of unique tensors, 4 a task, GB/s, medians of %u; memcpy here: "
           "%.2f\n"
           "limit: O_DIRECT writes of 1 or 8 MiB and fsync, the better, before each run\n"
           "device: until the last task is done; total: until the manifest is on disk\n"
           "%-8s %7s %8s %8s %8s %8s %8s %6s  %-6s %9s %9s\n",
           (double)how->total_bytes / (double)GIB, repeats, measure_memcpy(how), "platform",
           "threads", "tensors", "limit", "device", "total", "/limit", "goal", "", "longest ms",
           "host MiB");
    for (size_t i = 0; i < sizeof tensor_goals / sizeof tensor_goals[0]; ++i)
        is_right &= print_tensor_goal(how, &tensor_goals[i], repeats, &all);
    print_goal("peak memory of the host beyond global memory", all.peak_mib, false, 64, "MiB");
    printf("longest time that a capture held a thread, disk at its limit: %.1f ms\n\n",
           all.capture_ms);
    return is_right;
}

/* --- the longest capture while the disk keeps up --- */

/* Kernels take so long that the disk is used at half its speed. */
bool print_holding_table(const setting *how) {
    static const uint64_t sizes[] = {64 * KIB, MIB, 16 * MIB};
    double disk = measure_disk(how);
    if (disk == 0)
        return false;
    printf(
        "one tensor a task, kernels so slow that the disk (%.2f GB/s) is used at half its speed\n",
        disk);
    for (uint32_t threads = 1; threads <= 2; ++threads)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            /* Two tasks at a time, one tensor each. */
            double task_bytes = 2.0 * (double)sizes[i];
            plan what = {.platform = "a2a3sim",
                         .threads = threads,
                         .tensor_bytes = sizes[i],
                         .total_bytes = how->total_bytes / 4,
                         .kernel_ns = (uint64_t)(task_bytes / (0.5 * disk)),
                         .level = GBX_DUMP_FULL};
            outcome of;
            char size[32], name[96];
            if (!run_apart(how, &what, &of))
                return false;
            name_size(sizes[i], size);
            snprintf(name, sizeof name, "longest capture, %s, %u threads, at %.2f of the limit",
                     size, threads, (double)what.total_bytes * 1e-9 / of.device_s / disk);
            print_goal(name, (double)of.totals.longest_capture_ns * 1e-6, false, 20, "ms");
        }
    printf("\n");
    return true;
}

/* --- records without payload --- */

bool print_record_table(const setting *how) {
    bool is_right = true;
    double count = (double)how->scalar_records;
    static const char *const platforms[] = {"a2a3sim", "a5sim"};
    for (int i = 0; i < 2; ++i) {
        plan what = {.platform = platforms[i], .threads = 2, .level = GBX_DUMP_FULL};
        plan off = {.platform = platforms[i], .threads = 2, .level = GBX_DUMP_OFF};
        outcome with, without;
        char name[96];
        if (!run_apart(how, &off, &without) || !run_apart(how, &what, &with))
            return false;
        snprintf(name, sizeof name, "%s: a scalar record, device to manifest", platforms[i]);
        print_goal(name, with.whole_s * 1e6 / count, false, 1.0, "us");
        snprintf(name, sizeof name, "%s: peak memory of the host, %g records", platforms[i], count);
        print_goal(name, (double)with.peak_bytes / (double)MIB, false, 64, "MiB");
        printf("%s: on the chip %.0f ms with the dump, %.0f without: %.1f ns a record, with all "
               "that waits\n",
               platforms[i], with.device_s * 1e3, without.device_s * 1e3,
               (with.device_s - without.device_s) * 1e9 / count);
    }
    double record_ns = measure_record_ns();
    is_right &= record_ns > 0;
    if (record_ns > 0)
        print_goal("a metadata record on the device, only hooks", record_ns, false, 25, "ns");
    double dispatch_ns = measure_dispatch_ns();
    is_right &= dispatch_ns > 0;
    if (dispatch_ns > 0)
        print_goal("a dispatch on the device, its times and its record", dispatch_ns, false, 60,
                   "ns");
    printf("\n");
    return is_right;
}

/* --- results of the run --- */

/* The shortest time of a run with the tensor as an output, less that with it as an input. */
static bool measure_result(const setting *how, const char *platform, gbx_dump_level level,
                           uint32_t repeats, double *out_seconds, double *out_mib) {
    static const gbx_role roles[] = {GBX_ROLE_INPUT, GBX_ROLE_INOUT};
    double best[2] = {1e9, 1e9};
    for (size_t r = 0; r < 2; ++r) {
        for (uint32_t i = 0; i < repeats; ++i) {
            plan what = {.platform = platform,
                         .threads = 2,
                         .level = level,
                         .final_bytes = how->source_bytes,
                         .final_role = roles[r]};
            outcome of;
            if (!run_apart(how, &what, &of))
                return false;
            best[r] = of.whole_s < best[r] ? of.whole_s : best[r];
            *out_mib = (double)of.peak_bytes / (double)MIB;
        }
    }
    *out_seconds = best[1] - best[0];
    return true;
}

/* A run copies its outputs back with or without a dump; the rest is what keeping them costs. */
bool print_result_table(const setting *how, uint32_t repeats) {
    static const char *const platforms[] = {"a2a3sim", "a5sim"};
    double disk = measure_disk(how);
    double bytes = (double)how->source_bytes;
    if (disk == 0)
        return false;
    printf("one final tensor of %.0f MiB that no task wrote; the disk writes %.2f GB/s\n",
           bytes / (double)MIB, disk);
    for (size_t p = 0; p < 2; ++p) {
        double none = 0, full = 0, stats = 0, mib = 0;
        char name[96];
        if (!measure_result(how, platforms[p], GBX_DUMP_OFF, repeats, &none, &mib) ||
            !measure_result(how, platforms[p], GBX_DUMP_STATS, repeats, &stats, &mib) ||
            !measure_result(how, platforms[p], GBX_DUMP_FULL, repeats, &full, &mib))
            return false;
        snprintf(name, sizeof name, "hash and statistics of a result, %s", platforms[p]);
        print_goal(name, bytes * 1e-9 / (stats - none), true, 1, "GB/s");
        snprintf(name, sizeof name, "a result to disk, %s, times the disk's own time",
                 platforms[p]);
        print_goal(name, (full - none) * disk * 1e9 / bytes, false, 1.5, "");
        snprintf(name, sizeof name, "peak memory of the host, %s", platforms[p]);
        print_goal(name, mib, false, 64, "MiB");
    }
    printf("\n");
    return true;
}
