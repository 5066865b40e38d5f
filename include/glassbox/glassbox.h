/* All of glassbox for a program that embeds it. Kernels include <glassbox/kernel.h> alone. */
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

/* "0.1.0": the version of the library that is running. */
GBX_API const char *gbx_version(void);

#ifdef __cplusplus
}
#endif
#endif
