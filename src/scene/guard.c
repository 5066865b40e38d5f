#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "scene/internal.h"

enum { STACK_BYTES = 64 * 1024 };

static const struct {
    int number;
    const char *text; /* no strsignal in a handler */
} fatal[GBX_GUARD_SIGNALS] = {
    {SIGSEGV, "11 (segmentation fault)"},
    {SIGBUS, "7 (bus error)"},
    {SIGFPE, "8 (arithmetic exception)"},
    {SIGILL, "4 (illegal instruction)"},
    {SIGABRT, "6 (aborted)"},
};

_Static_assert(SIGSEGV == 11 && SIGBUS == 7 && SIGFPE == 8 && SIGILL == 4 && SIGABRT == 6,
               "numbers in the texts above");

/* For the handler; set before it is installed, cleared after it is removed. */
static gbx_guard *active;

static void append(char *line, size_t *used, const char *text) {
    while (*text && *used + 1 < GBX_GUARD_TEXT_BYTES)
        line[(*used)++] = *text++;
}

static void append_hex(char *line, size_t *used, uintptr_t value) {
    char digits[2 * sizeof value + 1] = "";
    size_t at = sizeof digits - 1;
    do
        digits[--at] = "0123456789abcdef"[value % 16];
    while (value /= 16);
    append(line, used, digits + at);
}

static _Noreturn void say_and_exit(size_t which, const siginfo_t *info) {
    char *line = active->text;
    size_t used = active->text_size;
    append(line, &used, fatal[which].text);
    if (info->si_code > 0 && info->si_code != SI_KERNEL && which < 2) {
        append(line, &used, " at address 0x");
        append_hex(line, &used, (uintptr_t)info->si_addr);
    }
    append(line, &used, "\n");
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    _exit(GBX_GUARD_EXIT_CODE);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    size_t which = 0;
    while (which + 1 < GBX_GUARD_SIGNALS && fatal[which].number != number)
        ++which;
    if (pthread_equal(active->thread, pthread_self()))
        say_and_exit(which, info);
    const struct sigaction *before = &active->previous[which];
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    } else {
        signal(number, SIG_DFL);
        raise(number); /* delivered when this handler returns */
    }
}

gbx_status gbx_guard_begin(gbx_guard *guard, const char *what) {
    *guard = (gbx_guard){.thread = pthread_self()};
    int length = snprintf(guard->text, sizeof guard->text - 64,
                          "glassbox run: %s was killed by signal ", what);
    guard->text_size =
        (size_t)length < sizeof guard->text - 65 ? (size_t)length : sizeof guard->text - 65;
    guard->stack = malloc(STACK_BYTES);
    if (!guard->stack)
        return gbx_fail_memory("running %s", what);
    stack_t stack = {.ss_sp = guard->stack, .ss_size = STACK_BYTES};
    sigaltstack(&stack, &guard->previous_stack);
    active = guard;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < GBX_GUARD_SIGNALS; ++i)
        sigaction(fatal[i].number, &action, &guard->previous[i]);
    return NULL;
}

void gbx_guard_end(gbx_guard *guard) {
    for (size_t i = 0; i < GBX_GUARD_SIGNALS; ++i)
        sigaction(fatal[i].number, &guard->previous[i], NULL);
    active = NULL;
    sigaltstack(&guard->previous_stack, NULL);
    free(guard->stack);
    guard->stack = NULL;
}
