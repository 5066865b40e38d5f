/* One run of a graph on a chip, in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture.h"
#include "toolchain/kernel_compiler.h"

/* The texts of kernel.c and orchestration.c. */
extern const char bench_capture_kernel[];
extern const char bench_capture_orchestration[];

enum { NO_OP = 0, PAUSE = 1, PAGE = 4096 };

static gbx_status write_source(const setting *how, const char *name, const char *text,
                               char path[PATH_BYTES]) {
    int length = snprintf(path, PATH_BYTES, "%s/%s", how->work, name);
    FILE *file = length < PATH_BYTES ? fopen(path, "we") : NULL;
    if (!file)
        return gbx_fail(GBX_IO, "cannot write %s", path);
    int written = fputs(text, file);
    if (fclose(file) != 0 || written < 0)
        return gbx_fail(GBX_IO, "cannot write %s", path);
    return NULL;
}

static gbx_status register_kernels(const setting *how, gbx_chip *chip) {
    char path[PATH_BYTES];
    GBX_TRY(write_source(how, "kernel.c", bench_capture_kernel, path));
    gbx_kernel no_op = {.func_id = NO_OP, .name = "no_op", .core = GBX_CORE_AIV, .source = path};
    gbx_kernel pause = {.func_id = PAUSE,
                        .name = "pause",
                        .core = GBX_CORE_AIV,
                        .source = path,
                        .compile_flags = "-DTAKES_TIME"};
    GBX_TRY(gbx_kernel_register(chip, &no_op));
    return gbx_kernel_register(chip, &pause);
}

/* The source on the chip; windows reach a little beyond it. */
static gbx_status put_source(const setting *how, gbx_chip *chip, uint64_t *out_address) {
    uint64_t bytes = how->source_bytes + PAGE;
    GBX_TRY(gbx_gm_alloc(chip, bytes, out_address));
    return gbx_gm_copy_in(chip, *out_address, how->source, bytes);
}

static gbx_status check_result(const plan *what, const gbx_dump_totals *totals) {
    bool is_result = what->level && what->final_role != GBX_ROLE_INPUT;
    uint64_t kept = is_result && what->level == GBX_DUMP_FULL ? what->final_bytes : 0;
    if (totals->results == is_result && totals->result_stored_bytes == kept)
        return NULL;
    return gbx_fail(GBX_INTERNAL, "the dump has %lu results with %lu bytes", totals->results,
                    totals->result_stored_bytes);
}

/* The first call loads the orchestration and wakes what sleeps; the second one counts. */
static gbx_status run_graph(const setting *how, const plan *what, gbx_chip *chip, gbx_run *run,
                            uint64_t *scalars, outcome *out_outcome) {
    uint64_t count = scalars[0];
    char directory[PATH_BYTES + 16];
    snprintf(directory, sizeof directory, "%s/dump", how->work);
    gbx_call_config config = {.enable_dump_tensor = what->level, .dump = {.directory = directory}};
    gbx_call_result result;
    scalars[0] = MAX_TENSORS_A_TASK;
    GBX_TRY(gbx_chip_run(chip, run, NULL, NULL));
    scalars[0] = count;
    memory_watch *watch = memory_watch_start();
    int64_t start_ns = gbx_clock_ns();
    gbx_status status = gbx_chip_run(chip, run, &config, &result);
    out_outcome->whole_s = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    out_outcome->peak_bytes = memory_watch_stop(watch);
    if (status)
        return status;
    out_outcome->device_s = (double)result.device_ns * 1e-9;
    out_outcome->totals = result.dump;
    if (what->final_bytes)
        return check_result(what, &result.dump);
    return what->level ? check_dump(how, what, directory) : NULL;
}

static gbx_status run_on(const setting *how, const plan *what, gbx_chip *chip,
                         outcome *out_outcome) {
    char path[PATH_BYTES];
    char *object = NULL;
    gbx_status status = NULL;
    uint64_t scalars[7] = {how->scalar_records / SCALARS_A_TASK, SCALARS_A_TASK};
    GBX_TRY(register_kernels(how, chip));
    GBX_TRY(write_source(how, "orchestration.c", bench_capture_orchestration, path));
    if (what->tensor_bytes) {
        scalars[0] = what->total_bytes / what->tensor_bytes;
        scalars[1] = what->tensor_bytes;
        GBX_TRY(put_source(how, chip, &scalars[2]));
        scalars[3] = how->source_bytes;
        scalars[4] = SHIFT_BYTES;
        scalars[5] = tensors_a_task(what);
        scalars[6] = what->kernel_ns;
    }
    /* Compiled before the run, which would otherwise look it up in the cache. */
    GBX_TRY(gbx_kernel_compile(path, NULL, NULL, &object));
    gbx_run run = {.shared_object = object,
                   .entry = what->tensor_bytes ? "orchestrate_tensors" : "orchestrate_scalars",
                   .scalars = scalars,
                   .scalar_count = 7};
    gbx_run_tensor final = {.name = "final", .role = what->final_role};
    if (what->final_bytes) {
        int64_t shape = (int64_t)(what->final_bytes / sizeof(float));
        status = gbx_tensor_contiguous((uint64_t)(uintptr_t)how->source, GBX_FLOAT32, 1, &shape,
                                       &final.tensor);
        run.tensors = &final;
        run.tensor_count = 1;
        scalars[0] = 1;
    }
    if (!status)
        status = run_graph(how, what, chip, &run, scalars, out_outcome);
    free(object);
    return status;
}

static bool run_here(const setting *how, const plan *what, outcome *out_outcome) {
    gbx_chip_config config = {.platform = what->platform,
                              .aicpu_threads = what->threads,
                              .gm_bytes = how->source_bytes + GIB};
    gbx_chip *chip = NULL;
    gbx_status status = gbx_chip_open(&config, &chip);
    if (!status)
        status = run_on(how, what, chip, out_outcome);
    gbx_chip_close(chip);
    bool is_right = !status;
    if (status)
        fprintf(stderr, "bench_capture: %s\n", gbx_status_message(status));
    gbx_status_free(status);
    return is_right;
}

/* True when the child has ended with exit code 0; ends it when this process must end. */
static bool wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) != pid) {
        if (errno != EINTR)
            return false;
        kill(pid, SIGKILL);
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "bench_capture: a run was killed by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool run_apart(const setting *how, const plan *what, outcome *out_outcome) {
    outcome *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    fflush(stdout); /* else the child would print it, too */
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run_here(how, what, shared) ? 0 : 1);
    }
    bool is_done = pid > 0 && wait_for(pid);
    *out_outcome = *shared;
    munmap(shared, sizeof *shared);
    empty_work(how);
    return is_done;
}
