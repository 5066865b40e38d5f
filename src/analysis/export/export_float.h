/* Many floats as text. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_FLOAT_H
#define GBX_ANALYSIS_EXPORT_EXPORT_FLOAT_H

#include <stddef.h>

#include "text/float_text.h"

/* The text of gbx_f32_format, as a rule in a twentieth of the time. */
size_t gbx_export_f32_format(float value, char out_text[GBX_FLOAT_TEXT_BYTES]);

#endif
