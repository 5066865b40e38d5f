/* The guard of a run, for the code that starts a device. */
#ifndef GBX_GUARD_DEVICE_PROBE_SOURCE_H
#define GBX_GUARD_DEVICE_PROBE_SOURCE_H

#include "sched/probe.h"

/* Guards runs whose guard_base is the address of a gbx_guard_setup. Its probe also exists where the
 * setup says that there are no zones: findings of others need it for their candidates. */
extern const gbx_probe_source gbx_guard_probe_source;

#endif
