#include "replay/call.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { SIGNAL_STACK_BYTES = 64 * 1024, FRAME_BYTES = 16 << 20 }; /* of the largest function */

/* -1, with one sentence in call->error. */
#define FAIL(call, ...) (snprintf((call)->error, sizeof(call)->error, __VA_ARGS__), -1)

/* --- memory --- */

int gbx_kernel_call_map(gbx_kernel_call *call, int fd) {
    void *wanted = (void *)(uintptr_t)call->gm_base;
    int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    flags |= fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *mapped = mmap(wanted, call->gm_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (mapped == wanted)
        return 0;
    if (mapped == MAP_FAILED)
        return FAIL(call, "mapping %llu bytes of global memory at %p: %s",
                    (unsigned long long)call->gm_bytes, wanted, strerror(errno));
    munmap(mapped, call->gm_bytes); /* an old Linux treats the address as a hint */
    return FAIL(call, "mapping global memory at %p: the address range is in use", wanted);
}

void gbx_kernel_call_unmap(const gbx_kernel_call *call) {
    munmap((void *)(uintptr_t)call->gm_base, call->gm_bytes);
}

/* --- kernels --- */

static int load_kernel(gbx_kernel_call *call, gbx_call_kernel *kernel) {
    void *object = dlopen(kernel->object, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return FAIL(call, "loading %s: %s", kernel->object, dlerror());
    void *symbol = dlsym(object, "kernel_entry");
    if (!symbol)
        return FAIL(call, "loading %s: it has no kernel_entry", kernel->object);
    memcpy(&kernel->entry, &symbol, sizeof symbol);
    return 0;
}

/* An object linked with -Ofast makes the thread that loads it flush subnormals to zero. On a chip
 * that thread does not call kernels, so the mode is restored. */
int gbx_kernel_call_load(gbx_kernel_call *call) {
    int result = 0;
    fenv_t before;
    fegetenv(&before);
    for (int i = 0; i < GBX_SUBTASK_COUNT && !result; ++i)
        if (call->kernels[i].object && !call->kernels[i].entry)
            result = load_kernel(call, &call->kernels[i]);
    fesetenv(&before);
    return result;
}

/* --- faults --- */

/* Set once, before any kernel runs, for the signal handler. */
static gbx_call_fault *noted_fault;
static void (*see_first)(uint64_t address);
static pid_t noting_process;
static atomic_flag is_noted = ATOMIC_FLAG_INIT;

/* The dispatch that this thread runs. */
static _Thread_local uint32_t current_dispatch = GBX_CALL_NO_DISPATCH;
/* Where gbx_kernel_call_escape goes. */
static _Thread_local jmp_buf *escape_to;
/* The thread has a stack for signals. */
static _Thread_local int has_signal_stack;

uint32_t gbx_kernel_call_current(void) {
    return current_dispatch;
}

/* Whether a SIGSEGV or SIGBUS was a read or a write, and of the stack. */
static uint32_t access_of(const siginfo_t *info, const void *context) {
#ifdef __x86_64__
    const ucontext_t *at = context;
    if (info && at && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS)) {
        uint64_t from_stack =
            (uint64_t)(uintptr_t)info->si_addr - (uint64_t)at->uc_mcontext.gregs[REG_RSP];
        if (from_stack + FRAME_BYTES < 2 * (uint64_t)FRAME_BYTES)
            return GBX_CALL_ACCESS_STACK;
        return at->uc_mcontext.gregs[REG_ERR] & 2 ? GBX_CALL_ACCESS_WRITE : GBX_CALL_ACCESS_READ;
    }
#endif
    (void)info;
    (void)context;
    return GBX_CALL_ACCESS_UNKNOWN;
}

/* Only the first fault is noted; other threads wait here until the process ends. */
static _Noreturn void note_fault(gbx_call_fault_kind kind, const siginfo_t *info,
                                 const void *context) {
    while (atomic_flag_test_and_set(&is_noted))
        pause();
    noted_fault->dispatch = current_dispatch;
    if (info) {
        noted_fault->signal = (uint32_t)info->si_signo;
        /* A signal sent by a process has its sender in place of the address. */
        noted_fault->has_address = info->si_code > 0 && info->si_code != SI_KERNEL;
        noted_fault->address = noted_fault->has_address ? (uint64_t)(uintptr_t)info->si_addr : 0;
        noted_fault->access = access_of(info, context);
    }
    atomic_store_explicit(&noted_fault->kind, (uint32_t)kind, memory_order_release);
    _exit(GBX_CALL_FAULT_EXIT);
}

_Noreturn void gbx_kernel_call_note(gbx_call_fault_kind kind) {
    note_fault(kind, NULL, NULL);
}

static void on_fatal_signal(int number, siginfo_t *info, void *context) {
    if (getpid() == noting_process) {
        if (see_first && number == SIGSEGV)
            see_first((uint64_t)(uintptr_t)info->si_addr);
        note_fault(GBX_CALL_SIGNAL, info, context);
    }
    /* A process that a kernel forked ends as it would without this handler. */
    signal(number, SIG_DFL);
    raise(number);
}

/* On the thread that called exit. */
static void on_exit_call(void) {
    if (getpid() == noting_process && current_dispatch != GBX_CALL_NO_DISPATCH)
        atomic_store_explicit(&noted_fault->exiting, current_dispatch + 1, memory_order_relaxed);
}

void gbx_kernel_call_catch_faults(gbx_call_fault *fault, void (*first)(uint64_t address)) {
    static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static _Alignas(64) char signal_stack[SIGNAL_STACK_BYTES];
    stack_t wanted = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    has_signal_stack = sigaltstack(&wanted, NULL) == 0;
    noted_fault = fault;
    see_first = first;
    noting_process = getpid();
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = on_fatal_signal;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal_signals / sizeof fatal_signals[0]; ++i)
        sigaction(fatal_signals[i], &action, NULL);
    (void)atexit(on_exit_call); /* if it fails, the dispatch that exits is unknown */
}

/* --- threads --- */

/* Shared by the threads of a run. */
typedef struct run {
    gbx_kernel_call *call;
    gbx_global_context global;
    pthread_mutex_t gate;   /* held until all threads are started */
    pthread_barrier_t wave; /* reached when all kernels of a wave have returned */
    uint32_t lane_count;    /* threads; thread i calls dispatches i, i + lane_count, ... */
    int is_abandoned;       /* protected by the gate */
} run;

typedef struct lane {
    run *run;
    uint32_t index;
    pthread_t thread;
    uint64_t start_ns;
    uint64_t end_ns;
} lane;

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void set_state(const gbx_kernel_call *call, uint32_t dispatch, gbx_call_state state) {
    current_dispatch = state == GBX_CALL_RUNS ? dispatch : GBX_CALL_NO_DISPATCH;
    if (call->states)
        atomic_store_explicit(&call->states[dispatch], (uint32_t)state, memory_order_release);
}

/* Tensors first, scalars after them, the two contexts at their fixed places. */
static void fill_args(run *r, gbx_local_context *local, uint64_t args[GBX_ARG_SLOTS]) {
    for (uint32_t i = 0; i < GBX_CALL_SLOTS; ++i) {
        gbx_call_slot *slot = &r->call->slots[i];
        if (slot->kind == GBX_CALL_TENSOR)
            args[i] = (uint64_t)(uintptr_t)&slot->tensor;
        else
            args[i] = slot->kind == GBX_CALL_SCALAR ? slot->bits : r->call->empty;
    }
    args[GBX_ARG_LOCAL_CONTEXT] = (uint64_t)(uintptr_t)local;
    args[GBX_ARG_GLOBAL_CONTEXT] = (uint64_t)(uintptr_t)&r->global;
}

/* Left by pthread_exit and longjmp: the address sanitizer must not guard its frame. */
__attribute__((no_sanitize("address"))) static void call_kernel(run *r, uint32_t index) {
    gbx_kernel_call *call = r->call;
    const gbx_call_dispatch *dispatch = &call->dispatches[index];
    gbx_local_context local = {.block_idx = dispatch->block_idx,
                               .block_num = call->block_num,
                               .subtask = dispatch->subtask,
                               .core_id = dispatch->core_id};
    uint64_t args[GBX_ARG_SLOTS];
    fill_args(r, &local, args);
    set_state(call, index, GBX_CALL_RUNS);
    call->kernels[dispatch->subtask].entry(args);
    set_state(call, index, GBX_CALL_ENDED);
}

/* Runs when a kernel calls pthread_exit: the other threads could wait for it forever. */
static void on_thread_end(void *unused) {
    (void)unused;
    if (noted_fault)
        note_fault(GBX_CALL_THREAD_END, NULL, NULL);
    fputs("a kernel ended its thread; it must return instead\n", stderr);
    _exit(GBX_CALL_FAULT_EXIT);
}

static void run_waves(lane *l) {
    run *r = l->run;
    uint32_t count = r->call->dispatch_count;
    l->start_ns = clock_ns();
    for (uint32_t first = 0; first < count; first += r->lane_count) {
        if (l->index < count - first)
            call_kernel(r, first + l->index);
        l->end_ns = clock_ns();
        if (r->lane_count > 1)
            pthread_barrier_wait(&r->wave);
    }
}

/* Calls the dispatches of a lane; does not return if a kernel ends the thread. */
static void run_guarded(lane *l) {
    fenv_t rounding; /* which a kernel may change */
    fegetenv(&rounding);
    errno = 0;
    pthread_cleanup_push(on_thread_end, NULL);
    run_waves(l);
    pthread_cleanup_pop(0);
    fesetenv(&rounding);
}

static void run_lane(lane *l) {
    /* A full stack raises a signal too: its handler needs a stack that is reserved beforehand. */
    _Alignas(64) char signal_stack[SIGNAL_STACK_BYTES];
    stack_t wanted = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    stack_t before;
    if (has_signal_stack) {
        run_guarded(l);
        return;
    }
    sigaltstack(&wanted, &before);
    run_guarded(l);
    sigaltstack(&before, NULL);
}

static void *lane_main(void *argument) {
    lane *l = argument;
    pthread_mutex_lock(&l->run->gate);
    pthread_mutex_unlock(&l->run->gate);
    if (!l->run->is_abandoned)
        run_lane(l);
    return NULL;
}

static void measure(gbx_kernel_call *call, const lane *lanes, uint32_t count) {
    uint64_t start_ns = lanes[0].start_ns;
    uint64_t end_ns = lanes[0].end_ns;
    for (uint32_t i = 1; i < count; ++i) {
        if (lanes[i].start_ns < start_ns)
            start_ns = lanes[i].start_ns;
        if (lanes[i].end_ns > end_ns)
            end_ns = lanes[i].end_ns;
    }
    call->ns = end_ns - start_ns;
}

/* The first lane is this thread: a task with one dispatch needs no other. */
static int run_lanes(run *r, lane *lanes) {
    int error = 0;
    uint32_t started = 1;
    lanes[0] = (lane){.run = r};
    pthread_mutex_lock(&r->gate);
    for (; started < r->lane_count && !error; started += !error) {
        lanes[started] = (lane){.run = r, .index = started};
        error = pthread_create(&lanes[started].thread, NULL, lane_main, &lanes[started]);
    }
    r->is_abandoned = error != 0;
    pthread_mutex_unlock(&r->gate);
    if (!error)
        run_lane(&lanes[0]);
    for (uint32_t i = 1; i < started; ++i)
        pthread_join(lanes[i].thread, NULL);
    if (error)
        return FAIL(r->call, "starting thread %u of %u: %s", started + 1, r->lane_count,
                    strerror(error));
    measure(r->call, lanes, started);
    return 0;
}

/* All subtasks of as many blocks as the chip has. */
uint32_t gbx_kernel_call_lanes(const gbx_kernel_call *call) {
    uint32_t subtasks = 1;
    while (subtasks < call->dispatch_count &&
           call->dispatches[subtasks].block_idx == call->dispatches[0].block_idx)
        ++subtasks;
    uint64_t lanes = (uint64_t)subtasks * (call->chip_blocks ? call->chip_blocks : 1);
    return lanes < call->dispatch_count ? (uint32_t)lanes : call->dispatch_count;
}

static run run_of(gbx_kernel_call *call) {
    return (run){.call = call,
                 .global = {.gm_base = call->gm_base,
                            .gm_bytes = call->gm_bytes,
                            .blocks = call->chip_blocks}};
}

int gbx_kernel_call_run(gbx_kernel_call *call) {
    run r = run_of(call);
    r.lane_count = gbx_kernel_call_lanes(call);
    if (r.lane_count == 0)
        return FAIL(call, "the call has no dispatches");
    if (r.lane_count == 1) {
        lane only = {.run = &r};
        run_lane(&only);
        measure(call, &only, 1);
        return 0;
    }
    lane *lanes = calloc(r.lane_count, sizeof *lanes);
    if (!lanes)
        return FAIL(call, "out of memory for %u threads", r.lane_count);
    pthread_mutex_init(&r.gate, NULL);
    pthread_barrier_init(&r.wave, NULL, r.lane_count);
    int result = run_lanes(&r, lanes);
    pthread_barrier_destroy(&r.wave);
    pthread_mutex_destroy(&r.gate);
    free(lanes);
    return result;
}

/* --- one at a time --- */

void gbx_kernel_call_escape(void) {
    if (escape_to)
        longjmp(*escape_to, 1);
}

int gbx_kernel_call_alone(gbx_kernel_call *call, uint32_t dispatch) {
    run r = run_of(call);
    fenv_t rounding;
    jmp_buf here;
    volatile int has_escaped = 1;
    fegetenv(&rounding);
    pthread_cleanup_push(on_thread_end, NULL);
    if (setjmp(here) == 0) {
        escape_to = &here;
        call_kernel(&r, dispatch);
        has_escaped = 0;
    }
    escape_to = NULL;
    pthread_cleanup_pop(0);
    current_dispatch = GBX_CALL_NO_DISPATCH;
    fesetenv(&rounding);
    return has_escaped;
}
