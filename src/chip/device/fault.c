#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chip/device/device.h"

enum { SIGNAL_STACK_BYTES = 64 * 1024 };

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/* For signal handlers; only the thread itself writes them. */
static _Thread_local gbx_core *current_core;
static _Thread_local gbx_device *current_orchestration;
static _Thread_local const gbx_device *current_loader;

/* For handlers on threads that a kernel started: the process's only chip. Set before any runs. */
static gbx_device *caught_device;
static pid_t caught_pid;

void gbx_fault_enter_core(gbx_core *core) {
    current_core = core;
}

void gbx_fault_enter_orchestration(gbx_device *device) {
    current_orchestration = device;
}

void gbx_fault_enter_loading(const gbx_device *device) {
    current_loader = device;
}

void gbx_fault_leave(void) {
    current_core = NULL;
    current_orchestration = NULL;
    current_loader = NULL;
}

/* The fault to fill in, or NULL when there is no launch or another thread was first. */
static gbx_fault *claim(gbx_device *device) {
    if (!device || !device->control)
        return NULL;
    if (atomic_exchange_explicit(&device->is_fault_claimed, true, memory_order_relaxed))
        return NULL;
    return &device->control->fault;
}

/* From memory that kernels cannot reach; they may have overwritten what is in global memory. NULL:
 * not on a core. */
static void fill_core(gbx_fault *fault, gbx_core *core) {
    fault->core_id = core ? core->id : GBX_NO_CORE;
    fault->func_id = GBX_NO_KERNEL;
    if (!core)
        return;
    fault->task_id = atomic_load_explicit(&core->task_id, memory_order_relaxed);
    fault->func_id = atomic_load_explicit(&core->func_id, memory_order_relaxed);
    fault->block_idx = atomic_load_explicit(&core->block_idx, memory_order_relaxed);
    fault->block_num = atomic_load_explicit(&core->block_num, memory_order_relaxed);
}

static void fill_signal(gbx_fault *fault, const siginfo_t *info) {
    fill_core(fault, current_core);
    fault->signal = (uint32_t)info->si_signo;
    /* Only signals that an instruction raised have an address; SI_KERNEL: it is unknown. */
    if (info->si_code > 0 && info->si_code != SI_KERNEL) {
        fault->address_kind = GBX_ADDRESS_KNOWN;
        fault->address = (uint64_t)(uintptr_t)info->si_addr;
    } else if (info->si_code == SI_KERNEL && info->si_signo == SIGSEGV) {
        fault->address_kind = GBX_ADDRESS_IMPOSSIBLE;
    }
}

/* Pairs with the acquire of every reader of the fault: the rest is filled in. */
static void publish(gbx_device *device, gbx_fault *fault, gbx_fault_kind kind) {
    atomic_store_explicit(&device->fault_core, fault->core_id, memory_order_relaxed);
    atomic_store_explicit(&device->fault_kind, (uint32_t)kind, memory_order_relaxed);
    atomic_store_explicit(&fault->kind, (uint32_t)kind, memory_order_release);
}

void gbx_fault_record_hang(gbx_device *device, gbx_fault_kind kind, int64_t running_ns,
                           gbx_core *core, uint32_t other_cores) {
    gbx_fault *fault = claim(device);
    if (!fault)
        return;
    fill_core(fault, core);
    fault->running_ns = running_ns;
    fault->other_cores = other_cores;
    publish(device, fault, kind);
    gbx_device_fail(device);
}

void gbx_fault_record_guard(gbx_device *device, uint64_t task_id, uint32_t func_id) {
    gbx_fault *fault = claim(device);
    if (!fault)
        return;
    fill_core(fault, NULL);
    fault->task_id = task_id;
    fault->func_id = func_id;
    publish(device, fault, GBX_FAULT_GUARD);
    gbx_device_fail(device);
}

void gbx_fault_record_thread_end(gbx_device *device) {
    gbx_fault *fault = claim(device);
    if (!fault)
        return;
    fill_core(fault, current_core);
    publish(device, fault, GBX_FAULT_THREAD);
    gbx_device_fail(device);
    /* Parks like a thread that faults: its cleanup must not run on state that may be broken. */
    while (device == caught_device)
        pause();
}

void gbx_fault_record_link(gbx_device *device) {
    gbx_fault *fault = claim(device);
    if (fault)
        publish(device, fault, GBX_FAULT_LINK);
}

/*
 * The thread never continues: its kernel or orchestration may have left anything in any state. It
 * parks, the control thread ends the launch, and the host ends the process.
 */
static _Noreturn void park(gbx_device *device, const siginfo_t *info) {
    gbx_fault *fault = claim(device);
    if (fault) {
        fill_signal(fault, info);
        publish(device, fault, current_core ? GBX_FAULT_SIGNAL : GBX_FAULT_ORCHESTRATION);
        gbx_device_fail(device);
    }
    for (;;)
        pause();
}

/* Parks on a core or an orchestration. Elsewhere records the fault and ends the process with it. */
static void on_fatal_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    /* A process that a kernel forked is not the chip: it records nothing, and ends. */
    bool is_chip = getpid() == caught_pid;
    if (is_chip && (current_core || current_orchestration))
        park(caught_device, info);
    gbx_fault *fault = is_chip ? claim(caught_device) : NULL;
    if (fault) {
        fill_signal(fault, info);
        publish(caught_device, fault, current_loader ? GBX_FAULT_LOADING : GBX_FAULT_OUTSIDE);
    }
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
}

gbx_status gbx_fault_catch_signals(gbx_device *device) {
    caught_device = device;
    caught_pid = getpid();
    struct sigaction action = {.sa_sigaction = on_fatal_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal_signals / sizeof fatal_signals[0]; ++i)
        if (sigaction(fatal_signals[i], &action, NULL) != 0)
            return gbx_fail(GBX_IO, "catching signal %d: %s", fatal_signals[i], strerror(errno));
    return NULL;
}

/* A signal stack, and the one that it replaced. */
typedef struct signal_stack {
    stack_t previous;
    _Alignas(64) char bytes[SIGNAL_STACK_BYTES];
} signal_stack;

void *gbx_fault_stack_create(void) {
    signal_stack *stack = mmap(NULL, sizeof *stack, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    stack_t wanted = {.ss_sp = stack->bytes, .ss_size = sizeof stack->bytes};
    if (sigaltstack(&wanted, &stack->previous) == 0)
        return stack;
    munmap(stack, sizeof *stack);
    return NULL;
}

void gbx_fault_stack_destroy(void *memory) {
    signal_stack *stack = memory;
    if (!stack)
        return;
    sigaltstack(&stack->previous, NULL);
    munmap(stack, sizeof *stack);
}
