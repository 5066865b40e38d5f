/*
 * What a chip costs on every platform: opening and closing it, one call of a kernel that does
 * nothing, and copies compared with memcpy of the same bytes. Medians; no targets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/glassbox.h>

#include "base/clock.h"
#include "base/status.h"

enum { OPENS = 15, CALLS = 2000, COPIES = 15, COPY_BYTES = 16 << 20 };

static const char no_op_source[] = "#include <glassbox/kernel.h>\n"
                                   "void kernel_entry(const uint64_t *args) { (void)args; }\n";

static int compare(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double median_us(int64_t *times_ns, size_t count) {
    qsort(times_ns, count, sizeof *times_ns, compare);
    size_t middle = count / 2;
    return (double)times_ns[middle] * 1e-3;
}

static gbx_status measure_open(const char *platform, double *out_ms) {
    int64_t times_ns[OPENS];
    gbx_chip_config config = {.platform = platform, .blocks = GBX_MAX_BLOCKS};
    for (int i = 0; i < OPENS; ++i) {
        gbx_chip *chip;
        int64_t start_ns = gbx_clock_ns();
        GBX_TRY(gbx_chip_open(&config, &chip));
        gbx_chip_close(chip);
        times_ns[i] = gbx_clock_ns() - start_ns;
    }
    *out_ms = median_us(times_ns, OPENS) * 1e-3;
    return NULL;
}

static gbx_status measure_call(gbx_chip *chip, uint32_t block_num, double *out_us) {
    static int64_t times_ns[CALLS];
    gbx_call call = gbx_call_aiv(0);
    call.block_num = block_num;
    for (int i = 0; i < CALLS; ++i) {
        int64_t start_ns = gbx_clock_ns();
        GBX_TRY(gbx_chip_call(chip, &call, NULL, NULL));
        times_ns[i] = gbx_clock_ns() - start_ns;
    }
    *out_us = median_us(times_ns, CALLS);
    return NULL;
}

/* GB/s of copies in and out, of memory that was touched before. */
static gbx_status measure_copy(gbx_chip *chip, double *out_in, double *out_out,
                               double *out_memcpy) {
    static unsigned char host[COPY_BYTES];
    static unsigned char other[COPY_BYTES];
    int64_t in_ns[COPIES];
    int64_t out_ns[COPIES];
    int64_t memcpy_ns[COPIES];
    uint64_t address;
    GBX_TRY(gbx_gm_alloc(chip, COPY_BYTES, &address));
    memset(host, 1, sizeof host);
    memset(other, 2, sizeof other);
    GBX_TRY(gbx_gm_copy_in(chip, address, host, sizeof host));
    for (int i = 0; i < COPIES; ++i) {
        int64_t start_ns = gbx_clock_ns();
        GBX_TRY(gbx_gm_copy_in(chip, address, host, sizeof host));
        int64_t in_end_ns = gbx_clock_ns();
        GBX_TRY(gbx_gm_copy_out(chip, other, address, sizeof other));
        int64_t out_end_ns = gbx_clock_ns();
        memcpy(host, other, sizeof host);
        memcpy_ns[i] = gbx_clock_ns() - out_end_ns;
        in_ns[i] = in_end_ns - start_ns;
        out_ns[i] = out_end_ns - in_end_ns;
    }
    *out_in = COPY_BYTES / median_us(in_ns, COPIES) * 1e-3;
    *out_out = COPY_BYTES / median_us(out_ns, COPIES) * 1e-3;
    *out_memcpy = COPY_BYTES / median_us(memcpy_ns, COPIES) * 1e-3;
    return gbx_gm_free(chip, address);
}

static gbx_status measure(const char *platform, const char *source) {
    gbx_chip_config config = {.platform = platform};
    gbx_kernel kernel = {.name = "no_op", .core = GBX_CORE_AIV, .source = source};
    gbx_chip *chip;
    double open_ms = 0;
    double one_us = 0;
    double eight_us = 0;
    double in = 0;
    double out = 0;
    double plain = 0;
    GBX_TRY(measure_open(platform, &open_ms));
    GBX_TRY(gbx_chip_open(&config, &chip));
    gbx_status status = gbx_kernel_register(chip, &kernel);
    if (!status)
        status = measure_call(chip, 1, &one_us);
    if (!status)
        status = measure_call(chip, 8, &eight_us);
    if (!status)
        status = measure_copy(chip, &in, &out, &plain);
    gbx_chip_close(chip);
    if (!status)
        printf("%-9s %14.1f %15.1f %15.1f %10.2f %10.2f %10.2f\n", platform, open_ms, one_us,
               eight_us, in, out, plain);
    return status;
}

int main(void) {
    char source[] = "/tmp/glassbox-no-op-XXXXXX";
    int fd = mkstemp(source);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file || fputs(no_op_source, file) < 0 || fclose(file) != 0)
        return 2;
    printf("a chip: open and close with %d blocks; a call that does nothing; copies of %d MiB\n"
           "%-9s %14s %15s %15s %10s %10s %10s\n",
           GBX_MAX_BLOCKS, COPY_BYTES >> 20, "platform", "open+close ms", "call, 1 blk us",
           "8 blocks us", "in GB/s", "out GB/s", "memcpy");
    gbx_status status = NULL;
    for (uint32_t i = 0; !status && gbx_platform_name(i); ++i)
        status = measure(gbx_platform_name(i), source);
    int exit_code = gbx_code_exit(gbx_status_code(status));
    if (status)
        fprintf(stderr, "bench_chip: %s\n", gbx_status_message(status));
    gbx_status_free(status);
    remove(source);
    return exit_code;
}
