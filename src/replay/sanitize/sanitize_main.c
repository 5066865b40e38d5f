/*
 * Calls the kernels of one task under a sanitizer. glassbox compiles this program with the flags of
 * that sanitizer when it is needed, together with call.c and call_file.c:
 *
 *     program CALL PLAN MILLISECONDS
 *
 * CALL is a call file (replay/engine/call_file.h), PLAN says which of its memory belongs to
 * arguments (replay/sanitize/plan.h). After MILLISECONDS
 * it is ended. Everything goes to standard error: reports of the sanitizer,
 * and lines of this program, which begin with GBX_PLAN_MARK.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/engine/call_file.h"
#include "replay/sanitize/foreign.h"
#include "replay/sanitize/hold.h"
#include "replay/sanitize/plan.h"
#include "replay/sanitize/watch.h"

#ifndef __has_feature
#    define __has_feature(feature) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#    define HAS_ADDRESS 1
#    include <sanitizer/asan_interface.h>
#else
#    define HAS_ADDRESS 0
#endif
#if __has_feature(memory_sanitizer)
#    define HAS_MEMORY 1
#    include <sanitizer/msan_interface.h>
#else
#    define HAS_MEMORY 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#    define HAS_THREAD 1
#else
#    define HAS_THREAD 0
#endif

#ifdef GBX_WATCHES /* its parts are linked, and kernels call them */
#    define HAS_ACCESS 1
#else
#    define HAS_ACCESS 0
#endif

/* Frames are larger than without a sanitizer. */
enum { STACK_BYTES = 64 << 20, REPORTED_LINES = 64, ORIGINS = 64 };

static gbx_loaded_call loaded;
static uint64_t limit_ns;
static const gbx_plan_range *ranges;
static size_t range_count;
static void (*entries[GBX_SUBTASK_COUNT])(const uint64_t *args);

/* --- what glassbox reads --- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One write, so that lines of threads do not mix. */
static void say(const char *format, ...) {
    char line[GBX_CALL_ERROR_BYTES + 64] = GBX_PLAN_MARK;
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    used += length < 0 ? 0 : (size_t)length;
    used = used < sizeof line - 1 ? used : sizeof line - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        _exit(GBX_CALL_FAULT_EXIT);
}

static _Noreturn void give_up(const char *why) {
    say("%s %s", GBX_PLAN_FAILED, why);
    _exit(GBX_CALL_FAULT_EXIT);
}

#if HAS_ADDRESS || HAS_MEMORY
static void say_dispatch(void) {
    uint32_t dispatch = gbx_kernel_call_current();
    if (dispatch != GBX_CALL_NO_DISPATCH)
        say("%s %" PRIu32, GBX_PLAN_DISPATCH, dispatch);
}
#endif

static void on_exit_call(void) {
    uint32_t dispatch = gbx_kernel_call_current();
    if (dispatch != GBX_CALL_NO_DISPATCH)
        say("%s %" PRIu32, GBX_PLAN_EXITED, dispatch);
}

/* --- memory --- */

/* Only what the call file has can be accessed, and only arguments without a report. What is watched
 * may be accessed everywhere: the report is enough, and the call goes on. */
static void open_memory(void) {
    gbx_kernel_call *call = &loaded.call;
    if (gbx_kernel_call_map(call, -1))
        give_up(call->error);
    if (HAS_ACCESS)
        return;
    mprotect((void *)(uintptr_t)call->gm_base, call->gm_bytes, PROT_NONE);
    for (uint64_t i = 0; i < loaded.file->extent_count; ++i)
        mprotect((void *)(uintptr_t)loaded.extents[i].address, loaded.extents[i].bytes,
                 PROT_READ | PROT_WRITE);
}

/* What the sanitizer is told of bytes: they are nobody's, they are only memory again, or they are
 * those of an argument. */
#if HAS_ADDRESS
static void guard(const void *bytes, uint64_t count) {
    __asan_poison_memory_region(bytes, count);
}
static void forgive(const void *bytes, uint64_t count) {
    __asan_unpoison_memory_region(bytes, count);
}
/* Of 8 bytes, what lies before the last byte of an argument is not guarded. */
static void declare(const gbx_plan_range *range) {
    __asan_unpoison_memory_region((const void *)(uintptr_t)range->address, range->bytes);
}
#elif HAS_MEMORY
static void guard(const void *bytes, uint64_t count) {
    __msan_poison(bytes, count);
}
static void forgive(const void *bytes, uint64_t count) {
    __msan_unpoison(bytes, count);
}
static void declare(const gbx_plan_range *range) {
    if (range->is_read)
        __msan_unpoison((const void *)(uintptr_t)range->address, range->bytes);
}
#else
static void guard(const void *bytes, uint64_t count) {
    (void)bytes;
    (void)count;
}
static void forgive(const void *bytes, uint64_t count) {
    (void)bytes;
    (void)count;
}
static void declare(const gbx_plan_range *range) {
    (void)range;
}
#endif

static void each_extent(void (*tell)(const void *bytes, uint64_t count)) {
    for (uint64_t i = 0; i < loaded.file->extent_count; ++i)
        tell((const void *)(uintptr_t)loaded.extents[i].address, loaded.extents[i].bytes);
}

/* Everything as before the call. */
static void prepare(int fd) {
    each_extent(forgive);
    if (gbx_loaded_call_fill(&loaded, fd))
        give_up(loaded.call.error);
    each_extent(guard);
    for (size_t i = 0; i < range_count; ++i)
        declare(&ranges[i]);
}

/* --- reports --- */

#if HAS_ADDRESS
/* The runtime calls it before it prints. */
__attribute__((visibility("default"))) void __asan_on_error(void);
void __asan_on_error(void) {
    say_dispatch();
}
#endif

#if HAS_MEMORY
/* What instrumented code calls; kernels are linked with --wrap. */
void __msan_warning_with_origin(uint32_t origin);
__attribute__((visibility("default"))) void __wrap___msan_warning_with_origin(uint32_t origin);

/* The runtime reports each use, as often as a loop runs: here each instruction reports once. */
void __wrap___msan_warning_with_origin(uint32_t origin) {
    static const void *_Atomic known[REPORTED_LINES];
    const void *at = __builtin_return_address(0);
    for (size_t i = 0; i < REPORTED_LINES; ++i) {
        const void *empty = NULL;
        if (atomic_compare_exchange_strong(&known[i], &empty, at)) {
            say_dispatch();
            __msan_warning_with_origin(origin);
            return;
        }
        if (empty == at)
            return;
    }
}

typedef int comparison(const void *a, const void *b);
__attribute__((visibility("default"))) void __wrap_qsort(void *items, size_t count, size_t bytes,
                                                         comparison *compare);

/* The runtime takes all items that are sorted for initialised; before that, they are compared where
 * they are. */
void __wrap_qsort(void *items, size_t count, size_t bytes, comparison *compare) {
    const char *at = items;
    for (size_t i = 1; i < count; ++i, at += bytes) {
        int result = compare(at, at + bytes);
        if (__msan_test_shadow(&result, sizeof result) < 0)
            continue;
        say_dispatch();
        __msan_check_mem_is_initialized(&result, sizeof result);
        break;
    }
    qsort(items, count, bytes, compare);
}

/* Bytes of an output that are not initialised, for the same reason. */
typedef struct stain {
    uint32_t origin; /* 0: nobody has written them */
    uint64_t address;
    uint64_t bytes;
} stain;

/* A reason without a place among `stains` is left out: those that have one come first. */
static void add_stain(stain *stains, size_t *count, uint64_t address) {
    uint32_t origin = __msan_get_origin((const void *)(uintptr_t)address);
    for (size_t i = 0; i < *count; ++i)
        if (stains[i].origin == origin) {
            stains[i].bytes++;
            return;
        }
    if (*count < ORIGINS)
        stains[(*count)++] = (stain){origin, address, 1};
}

static void find_stains(const gbx_plan_range *range, stain *stains, size_t *count) {
    for (uint64_t done = 0; done < range->tested_bytes; ++done) {
        intptr_t next = __msan_test_shadow((const void *)(uintptr_t)(range->address + done),
                                           range->tested_bytes - done);
        if (next < 0)
            return;
        done += (uint64_t)next;
        add_stain(stains, count, range->address + done);
    }
}

static void report_stains(uint32_t slot, const stain *stains, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        say("%s %" PRIu32 " 0x%" PRIx64 " %" PRIu64,
            stains[i].origin ? GBX_PLAN_OUTPUT : GBX_PLAN_UNWRITTEN, slot, stains[i].address,
            stains[i].bytes);
        if (stains[i].origin)
            __msan_check_mem_is_initialized((const void *)(uintptr_t)stains[i].address, 1);
    }
}

static void test_outputs(void) {
    for (size_t first = 0, end; first < range_count; first = end) {
        stain stains[ORIGINS];
        size_t count = 0;
        for (end = first; end < range_count && ranges[end].slot == ranges[first].slot; ++end)
            if (ranges[end].is_written)
                find_stains(&ranges[end], stains, &count);
        report_stains(ranges[first].slot, stains, count);
    }
}
#else
static void test_outputs(void) {}
#endif

/* --- calls --- */

static _Atomic int waits; /* a dispatch that was called alone waits for another */

/* Kernels that wait for each other call it: gbx_flag_wait yields. */
__attribute__((visibility("default"))) int sched_yield(void) {
    if (gbx_kernel_call_current() != GBX_CALL_NO_DISPATCH) {
        atomic_store(&waits, 1);
#if HAS_THREAD
        gbx_hold_wait();
#endif
        gbx_kernel_call_escape(); /* does not return if the dispatch was called alone */
    }
    return (int)syscall(SYS_sched_yield);
}

/* A race names threads: each has the number of its dispatch. */
static void enter(const uint64_t *args) {
    char name[16];
    const gbx_local_context *local =
        (const gbx_local_context *)(uintptr_t)args[GBX_ARG_LOCAL_CONTEXT];
    snprintf(name, sizeof name, "%s %" PRIu32, GBX_PLAN_DISPATCH, gbx_kernel_call_current());
    prctl(PR_SET_NAME, name); /* the thread sanitizer misses pthread_setname_np on some threads */
#if HAS_THREAD
    gbx_hold_enter(gbx_kernel_call_current());
#endif
    entries[local->subtask](args);
#if HAS_THREAD
    gbx_hold_leave();
#endif
}

static void begin_watch(void) {
#if HAS_ACCESS
    const gbx_watch watch = {&loaded.call, ranges, range_count, say};
    if (gbx_watch_begin(&watch))
        give_up("out of memory for the plan");
#endif
}

static void end_watch(void) {
#if HAS_ACCESS
    gbx_watch_end();
#endif
}

#if HAS_THREAD
static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

static void call_all(void) {
    if (gbx_kernel_call_run(&loaded.call))
        give_up(loaded.call.error);
}

#if !HAS_THREAD
/* One after the other, so that reports are the same each time; all at once where they wait. */
static void call_each(int fd) {
    for (uint32_t i = 0; i < loaded.call.dispatch_count && !waits; ++i) {
        say("%s %" PRIu32, GBX_PLAN_DISPATCH, i);
        gbx_kernel_call_alone(&loaded.call, i);
    }
    if (!waits)
        return;
    prepare(fd);
    say(GBX_PLAN_DISPATCH " all");
    call_all();
}
#endif

#if HAS_THREAD
/* On the schedule that happens; then, if dispatches wait for each other, once for each rule of
 * hold.h. A race that shows in one of them is one. */
static void call_held(int fd) {
    const uint64_t start_ns = clock_ns();
    int kept = 0, rules = gbx_hold_open(&loaded.call, limit_ns);
    if (rules < 0)
        give_up("out of memory for the schedules");
    gbx_hold_choose(0);
    call_all();
    for (int i = 0; i < rules && gbx_hold_has_order() && clock_ns() - start_ns < limit_ns / 2;
         ++i) {
        prepare(fd);
        gbx_hold_choose(i + 1);
        call_all();
        kept += gbx_hold_was_kept();
    }
    if (gbx_hold_has_order())
        say("%s %d %d", GBX_PLAN_SCHEDULES, kept, rules);
}
#endif

static void *call_main(void *file) {
    int fd = *(const int *)file;
    prepare(fd);
    begin_watch();
    say("%s", GBX_PLAN_CALLS);
#if HAS_THREAD
    call_held(fd);
#else
    call_each(fd);
#endif
    return NULL;
}

/* --- start --- */

/* What kernels print would stand between the reports, and could look like one. The runtimes do not
 * write through these. */
static void silence_kernels(void) {
    FILE *nowhere = fopen("/dev/null", "we");
    if (!nowhere || dup2(fileno(nowhere), STDOUT_FILENO) < 0)
        give_up("/dev/null cannot be opened");
    stdout = nowhere;
    stderr = nowhere;
}

/* Ends here if reports on a kernel would be wrong. */
static void refuse_foreign(uint32_t subtask, const void *entry) {
#if HAS_MEMORY
    const char *name = gbx_foreign_to_memory(entry);
#elif HAS_THREAD
    const char *name = gbx_foreign_to_threads(entry);
#else
    const char *name = NULL;
    (void)entry;
#endif
    if (!name)
        return;
    say("%s %" PRIu32 " %s", GBX_PLAN_UNKNOWN, subtask, name);
    _exit(GBX_CALL_FAULT_EXIT);
}

static void load_kernels(void) {
    gbx_kernel_call *call = &loaded.call;
    if (gbx_kernel_call_load(call))
        give_up(call->error);
    for (uint32_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (call->kernels[i].entry)
            refuse_foreign(i, (const void *)(uintptr_t)call->kernels[i].entry);
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        entries[i] = call->kernels[i].entry;
        if (entries[i])
            call->kernels[i].entry = enter;
    }
}

static void read_plan(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    range_count = size < 0 ? 0 : (size_t)size / sizeof *ranges;
    if (range_count > 0)
        ranges = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (size < 0 || ranges == MAP_FAILED)
        give_up("the plan cannot be read");
    close(fd);
}

int main(int argument_count, char **arguments) {
    pthread_t caller;
    pthread_attr_t attributes;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read the reports */
    int fd = argument_count == 4 ? open(arguments[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        give_up("the call file cannot be opened");
    if (gbx_loaded_call_read(fd, &loaded))
        give_up(loaded.call.error);
    read_plan(arguments[2]);
    limit_ns = strtoull(arguments[3], NULL, 10) * 1000000u;
    open_memory();
    silence_kernels();
    load_kernels();
    (void)atexit(on_exit_call);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_setattr_default_np(&attributes);
    if (pthread_create(&caller, &attributes, call_main, &fd) != 0)
        give_up("a thread cannot be started");
    pthread_join(caller, NULL);
    test_outputs();
    end_watch();
    say("%s", GBX_PLAN_DONE);
    fflush(NULL);
    _exit(0);
}
