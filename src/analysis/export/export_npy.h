/* An entry as a numpy array, in pieces. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_NPY_H
#define GBX_ANALYSIS_EXPORT_EXPORT_NPY_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/export/export_source.h"

/*
 * Header and elements. bfloat16, float8 and int4 come as raw bits (tensor/npy.h), bool as 0 and 1.
 * What is left of a tensor that was cut is one-dimensional, of int4 the bytes. Failures of `to` are
 * its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_npy(const gbx_export_source *source, FILE *to);

/* Bytes of all of it. */
uint64_t gbx_export_npy_bytes(const gbx_export_source *source);

#endif
