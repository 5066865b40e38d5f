/* a5sim: the host has no mapping of global memory; bytes move by copies alone. */
#ifndef GBX_HAL_A5SIM_H
#define GBX_HAL_A5SIM_H

#include "hal/hal.h"

extern const gbx_hal_ops gbx_a5sim_ops;

#endif
