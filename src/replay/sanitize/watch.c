#include "replay/sanitize/watch.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { SITES = 1024, RECENT = 64, FRAMES = 32, FRAME_TEXT_BYTES = 256, STACK_BYTES = 65536 };

/* Constructors of kernels run before the watch begins: then there is no global memory. */
static const gbx_kernel_call nothing;
static gbx_watch watch = {.call = &nothing};

/* --- what is allowed --- */

/* Bytes from `begin` up to `end`. */
typedef struct span {
    uint64_t begin;
    uint64_t end;
} span;

/* Sorted; two of them have at least a byte between them. */
typedef struct span_list {
    span *items;
    size_t count;
} span_list;

static span_list readable, writable;

static int compare_spans(const void *left, const void *right) {
    const span *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void join_spans(span_list *list) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; ++i) {
        const span *next = &list->items[i];
        if (count > 0 && next->begin <= list->items[count - 1].end) {
            if (next->end > list->items[count - 1].end)
                list->items[count - 1].end = next->end;
        } else
            list->items[count++] = *next;
    }
    list->count = count;
}

static int make_list(span_list *list, bool are_written) {
    list->items = calloc(watch.range_count + 1, sizeof *list->items);
    if (!list->items)
        return -1;
    for (size_t i = 0; i < watch.range_count; ++i) {
        const gbx_plan_range *range = &watch.ranges[i];
        if (range->bytes > 0 && (range->is_written || !are_written))
            list->items[list->count++] = (span){range->address, range->address + range->bytes};
    }
    qsort(list->items, list->count, sizeof *list->items, compare_spans);
    join_spans(list);
    return 0;
}

/* The last span that begins at or before an address; 0 also if there is none. */
static size_t find_span(const span_list *list, uint64_t address) {
    size_t low = 0, high = list->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle].begin <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool holds(const span_list *list, size_t index, uint64_t address) {
    return index < list->count && address >= list->items[index].begin &&
           address < list->items[index].end;
}

/* --- where --- */

/* Whose code it is; GBX_SUBTASK_COUNT for none. */
static int subtask_of(const void *code, uint64_t *out_offset) {
    Dl_info about;
    if (dladdr(code, &about) && about.dli_fname)
        for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
            const char *object = watch.call->kernels[i].object;
            if (object && strcmp(object, about.dli_fname) == 0) {
                *out_offset = (uint64_t)((uintptr_t)code - (uintptr_t)about.dli_fbase);
                return i;
            }
        }
    return GBX_SUBTASK_COUNT;
}

/* " SUBTASK+OFFSET" of each kernel's frame from `first` on. A return address is that of the next
 * instruction, which may be of another line; `fault` is the instruction itself. */
static void name_frames(const void *first, const void *fault, char out_text[FRAME_TEXT_BYTES]) {
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), at = 0;
    size_t used = 0;
    out_text[0] = '\0';
    while (first && at < count && frames[at] != first)
        ++at;
    if (at == count) { /* the stack cannot be followed */
        at = 0;
        count = 1;
        frames[0] = (void *)(uintptr_t)first;
    }
    for (; at < count && used + 32 < FRAME_TEXT_BYTES; ++at) {
        uint64_t offset;
        int subtask = subtask_of(frames[at], &offset);
        if (subtask < GBX_SUBTASK_COUNT)
            used += (size_t)snprintf(out_text + used, FRAME_TEXT_BYTES - used, " %d+0x%" PRIx64,
                                     subtask, offset - (frames[at] != fault));
    }
}

/* --- sites --- */

/* What is wrong with an access. */
typedef enum fault { READS_OUTSIDE = 0, WRITES_OUTSIDE = 1, WRITES_INPUT = 2 } fault;
static const char *const fault_words[] = {GBX_PLAN_READS, GBX_PLAN_WRITES, GBX_PLAN_WRITES_INPUT};

/* A place in the code, with what is wrong there. */
typedef struct site {
    _Atomic uint64_t key; /* 0: empty */
    _Atomic uint64_t count;
    uint32_t number; /* of its line, under `lines` */
} site;

static site sites[SITES];
static pthread_mutex_t lines = PTHREAD_MUTEX_INITIALIZER;
static uint32_t line_count;

/* NULL: there is no room, and it is not said. */
static site *find_site(const void *code, fault what, bool *out_is_new) {
    const uint64_t key = (uint64_t)(uintptr_t)code << 2 | (uint64_t)what;
    const uint64_t start = key * UINT64_C(0x9e3779b97f4a7c15) >> 54;
    for (uint64_t i = 0; i < SITES; ++i) {
        site *s = &sites[(start + i) % SITES];
        uint64_t known = 0;
        *out_is_new = atomic_compare_exchange_strong(&s->key, &known, key);
        if (*out_is_new || known == key)
            return s;
    }
    return NULL;
}

/* The input that a byte belongs to; GBX_CALL_SLOTS for none. */
static uint32_t input_at(uint64_t address) {
    for (size_t i = 0; i < watch.range_count; ++i) {
        const gbx_plan_range *range = &watch.ranges[i];
        if (!range->is_written && address - range->address < range->bytes)
            return range->slot;
    }
    return GBX_CALL_SLOTS;
}

static void report(fault what, uint64_t address, uint64_t bytes, const void *code) {
    char frames[FRAME_TEXT_BYTES];
    bool is_new;
    uint32_t slot = what == READS_OUTSIDE ? GBX_CALL_SLOTS : input_at(address);
    if (what == WRITES_OUTSIDE && slot < GBX_CALL_SLOTS)
        what = WRITES_INPUT;
    site *s = find_site(code, what, &is_new);
    if (!s)
        return;
    atomic_fetch_add(&s->count, 1);
    if (!is_new)
        return;
    pthread_mutex_lock(&lines);
    s->number = line_count++;
    name_frames(code, NULL, frames);
    watch.say(GBX_PLAN_ACCESS " %s 0x%" PRIx64 " %" PRIu64 " %" PRIu32 " %" PRIu32 "%s",
              fault_words[what], address, bytes, slot, gbx_kernel_call_current(), frames);
    pthread_mutex_unlock(&lines);
}

/* --- accesses --- */

/* Bytes from `first` on that belong to no span: at most `bytes`. `at` is that of find_span. */
static uint64_t count_outside(const span_list *list, size_t at, uint64_t first, uint64_t bytes) {
    size_t next = at < list->count && list->items[at].begin <= first ? at + 1 : at;
    if (next < list->count && list->items[next].begin - first < bytes)
        return list->items[next].begin - first;
    return bytes;
}

/* The first bytes that are not allowed are what is wrong with an access. */
static void check_all(const span_list *list, uint32_t *known, fault what, uint64_t address,
                      uint64_t bytes, const void *code) {
    const size_t at = find_span(list, address);
    uint64_t inside = 0;
    if (holds(list, at, address)) {
        *known = (uint32_t)at;
        inside = list->items[at].end - address;
    }
    if (inside < bytes)
        report(what, address + inside, count_outside(list, at, address + inside, bytes - inside),
               code);
}

/* An instruction mostly goes on where it was. */
static inline void check(const span_list *list, uint32_t recent[RECENT], fault what,
                         uint64_t address, uint64_t bytes, const void *code) {
    if (address - watch.call->gm_base >= watch.call->gm_bytes || bytes == 0)
        return;
    uint32_t *known = &recent[((uintptr_t)code >> 2) % RECENT];
    if (holds(list, *known, address) && bytes <= list->items[*known].end - address)
        return;
    check_all(list, known, what, address, bytes, code);
}

void gbx_watch_read(const volatile void *address, uint64_t bytes, const void *code) {
    static _Thread_local uint32_t recent[RECENT];
    check(&readable, recent, READS_OUTSIDE, (uintptr_t)address, bytes, code);
}

void gbx_watch_write(const volatile void *address, uint64_t bytes, const void *code) {
    static _Thread_local uint32_t recent[RECENT];
    check(&writable, recent, WRITES_OUTSIDE, (uintptr_t)address, bytes, code);
}

/* --- crashes --- */

static const struct {
    int number;
    const char *name; /* in the words of the address sanitizer */
} fatal[] = {
    {SIGSEGV, "SEGV"}, {SIGBUS, "BUS"}, {SIGFPE, "FPE"}, {SIGILL, "ILL"}, {SIGABRT, "ABRT"}};
enum { FATAL_COUNT = sizeof fatal / sizeof fatal[0] };

static const void *instruction(const void *context) {
#ifdef __x86_64__
    return (const void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    return (const void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

/* The handler is removed when it is called: a crash in it ends the process. */
static void on_fatal_signal(int number, siginfo_t *info, void *context) {
    char frames[FRAME_TEXT_BYTES];
    const char *name = "";
    for (int i = 0; i < FATAL_COUNT; ++i)
        if (fatal[i].number == number)
            name = fatal[i].name;
    bool has_address = info->si_code > 0 && info->si_code != SI_KERNEL && number != SIGABRT;
    name_frames(NULL, instruction(context), frames);
    watch.say(GBX_PLAN_CRASHED " %s 0x%" PRIx64 " %d %" PRIu32 "%s", name,
              has_address ? (uint64_t)(uintptr_t)info->si_addr : 0, has_address,
              gbx_kernel_call_current(), frames);
    gbx_watch_end();
    _exit(GBX_CALL_FAULT_EXIT);
}

/* --- begin and end --- */

int gbx_watch_begin(const gbx_watch *with) {
    static char stack[STACK_BYTES];
    void *loads_the_unwinder[1];
    const stack_t wanted = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND)};
    watch = *with;
    if (make_list(&readable, false) || make_list(&writable, true))
        return -1;
    (void)backtrace(loads_the_unwinder, 1);
    sigaltstack(&wanted, NULL);
    action.sa_sigaction = on_fatal_signal;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; ++i)
        sigaction(fatal[i].number, &action, NULL);
    return 0;
}

void gbx_watch_end(void) {
    for (size_t i = 0; i < SITES; ++i)
        if (atomic_load(&sites[i].count) > 1)
            watch.say(GBX_PLAN_TIMES " %" PRIu32 " %" PRIu64, sites[i].number,
                      atomic_load(&sites[i].count));
}
