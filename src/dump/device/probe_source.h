/* The device writer, for the code that starts a device. */
#ifndef GBX_DUMP_DEVICE_PROBE_SOURCE_H
#define GBX_DUMP_DEVICE_PROBE_SOURCE_H

#include "sched/probe.h"

/* Listens to runs whose dump_data_base is the address of a gbx_dump_setup. */
extern const gbx_probe_source gbx_dump_probe_source;

#endif
