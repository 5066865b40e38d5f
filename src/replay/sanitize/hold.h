/*
 * Other schedules for dispatches that wait for each other. Flags that are set early, or waited for
 * too late, only show as a race if the right dispatch is slow: what waits by chance at the right
 * moment is in order. Under each rule some dispatches are slow: they stop until all others have
 * ended or wait. They do so from their start on and before each atomic operation; or, under another
 * rule, after each flag that they see change, which the others show them at once; and always after
 * they have set one. Part of the program that runs under the thread sanitizer; nothing here orders
 * what kernels do.
 */
#ifndef GBX_REPLAY_SANITIZE_HOLD_H
#define GBX_REPLAY_SANITIZE_HOLD_H

#include <stdint.h>

#include "replay/call.h"

/* Before the first call. Returns how many rules there are beside 0, which holds nothing back, or
 * -1 if memory is lacking. All calls together have `limit_ns`. */
int gbx_hold_open(const gbx_kernel_call *call, uint64_t limit_ns);

/* Before each call. */
void gbx_hold_choose(int rule);

/* Whether a dispatch of the calls up to here has waited, or has used an atomic operation that
 * orders others. */
int gbx_hold_has_order(void);

/* Whether the last call kept its rule: no stop took too long. */
int gbx_hold_was_kept(void);

/* On the thread of a dispatch: */
void gbx_hold_enter(uint32_t dispatch);
void gbx_hold_leave(void);
void gbx_hold_wait(void); /* it yields */

#endif
