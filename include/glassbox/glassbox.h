/* All of glassbox, for a program that embeds it. Kernels include only <glassbox/kernel.h>. */
#ifndef GLASSBOX_GLASSBOX_H
#define GLASSBOX_GLASSBOX_H

#include <glassbox/chip.h>
#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>
#include <glassbox/runtime.h>
#include <glassbox/status.h>
#include <glassbox/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library: "0.1.0". */
GBX_API const char *gbx_version(void);

#ifdef __cplusplus
}
#endif
#endif
