/*
 * c = a + b on every platform, through the public C API: opens a chip, copies two vectors to it,
 * calls a kernel on all blocks, copies the result back and compares it with the host's own.
 * usage: vector_add [add.c]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <glassbox/glassbox.h>

enum { COUNT = 4 * 1024 * 1024, BLOCKS = 8 };

#define TRY(expression)                                                                            \
    do {                                                                                           \
        gbx_status try_status = (expression);                                                      \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef struct vectors {
    float a[COUNT];
    float b[COUNT];
    float c[COUNT];
} vectors;

typedef struct timing {
    double open_ms;
    double copy_in_ms;
    double kernel_ms;
    double copy_out_ms;
} timing;

static gbx_status add(gbx_chip *chip, vectors *v, timing *out_timing) {
    const int64_t shape[] = {COUNT};
    uint64_t address[3];
    gbx_tensor tensors[3];
    for (int i = 0; i < 3; ++i) {
        TRY(gbx_gm_alloc(chip, sizeof v->a, &address[i]));
        TRY(gbx_tensor_contiguous(address[i], GBX_FLOAT32, 1, shape, &tensors[i]));
    }
    double start = seconds();
    TRY(gbx_gm_copy_in(chip, address[0], v->a, sizeof v->a));
    TRY(gbx_gm_copy_in(chip, address[1], v->b, sizeof v->b));
    out_timing->copy_in_ms = (seconds() - start) * 1e3;

    gbx_call call = gbx_call_aiv(0);
    call.block_num = BLOCKS;
    call.tensors = tensors;
    call.tensor_count = 3;
    gbx_call_result result;
    TRY(gbx_chip_call(chip, &call, NULL, &result));
    out_timing->kernel_ms = (double)result.device_ns * 1e-6;

    start = seconds();
    TRY(gbx_gm_copy_out(chip, v->c, address[2], sizeof v->c));
    out_timing->copy_out_ms = (seconds() - start) * 1e3;
    for (int i = 0; i < 3; ++i)
        TRY(gbx_gm_free(chip, address[i]));
    return NULL;
}

static gbx_status run_platform(const char *platform, const char *source, vectors *v,
                               timing *out_timing) {
    gbx_chip_config config = {.platform = platform, .blocks = BLOCKS};
    gbx_kernel kernel = {.func_id = 0, .name = "add", .core = GBX_CORE_AIV, .source = source};
    gbx_chip *chip;
    double start = seconds();
    TRY(gbx_chip_open(&config, &chip));
    out_timing->open_ms = (seconds() - start) * 1e3;
    gbx_status status = gbx_kernel_register(chip, &kernel);
    if (!status)
        status = add(chip, v, out_timing);
    gbx_chip_close(chip);
    return status;
}

static int count_wrong(const vectors *v) {
    int wrong = 0;
    for (int i = 0; i < COUNT; ++i)
        wrong += v->c[i] != v->a[i] + v->b[i];
    return wrong;
}

int main(int argc, char **argv) {
    const char *source = argc > 1 ? argv[1] : "examples/vector_add/add.c";
    vectors *v = malloc(sizeof *v);
    if (!v)
        return 2;
    printf(
        "glassbox %s: c = a + b, %d float32, on %d vector cores of a chip in its own process\n\n",
        gbx_version(), COUNT, BLOCKS);
    printf("platform   open ms  copy in ms  kernel ms  copy out ms     c[1]    c[last]  wrong\n");
    int exit_code = 0;
    for (uint32_t p = 0; gbx_platform_name(p); ++p) {
        for (int i = 0; i < COUNT; ++i) {
            v->a[i] = (float)i;
            v->b[i] = 0.5f * (float)(i % 1000);
            v->c[i] = -1.0f;
        }
        timing t = {0};
        gbx_status status = run_platform(gbx_platform_name(p), source, v, &t);
        if (status) {
            fprintf(stderr, "vector_add: %s: %s\n", gbx_platform_name(p),
                    gbx_status_message(status));
            exit_code = gbx_code_exit(gbx_status_code(status));
            gbx_status_free(status);
            break;
        }
        int wrong = count_wrong(v);
        printf("%-9s %8.1f  %10.1f  %9.1f  %11.1f  %7.1f  %9.1f  %5d\n", gbx_platform_name(p),
               t.open_ms, t.copy_in_ms, t.kernel_ms, t.copy_out_ms, v->c[1], v->c[COUNT - 1],
               wrong);
        if (wrong)
            exit_code = 1;
    }
    free(v);
    return exit_code;
}
