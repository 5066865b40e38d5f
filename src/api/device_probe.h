/* The probe of a run on the chip: the dump's, the guard's, or both. */
#ifndef GBX_API_DEVICE_PROBE_H
#define GBX_API_DEVICE_PROBE_H

#include "sched/probe.h"

extern const gbx_probe_source gbx_device_probe_source;

#endif
