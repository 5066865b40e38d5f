/* a2a3sim: the host maps global memory at the chip's own address and reads it while kernels run. */
#ifndef GBX_HAL_A2A3SIM_H
#define GBX_HAL_A2A3SIM_H

#include "hal/hal.h"

extern const gbx_hal_ops gbx_a2a3sim_ops;

#endif
