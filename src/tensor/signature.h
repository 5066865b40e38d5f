/*
 * Signatures of kernels, such as "in,inout,out:bfloat16[2],scalar:float32": a word for each
 * argument. A tensor may have a dtype, a rank or both (in:bfloat16, in:[2], in:bfloat16[2]), a
 * scalar a dtype. This is the only place that reads the words.
 */
#ifndef GBX_TENSOR_SIGNATURE_H
#define GBX_TENSOR_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include <glassbox/kernel.h>

#include "text/names.h"

enum {
    GBX_ANY_NDIMS = 0xff,
    GBX_SIGNATURE_SLOTS = GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS,
    GBX_PARAMETER_TEXT_BYTES = 32,
    GBX_QUICK_ARGUMENTS = 8
};

/* One word. */
typedef struct gbx_parameter {
    uint8_t kind;  /* of gbx_parameters: the gbx_role of a tensor, or GBX_PARAMETER_SCALAR */
    uint8_t dtype; /* gbx_dtype; GBX_DTYPE_NONE: any */
    uint8_t ndims; /* GBX_ANY_NDIMS: any */
} gbx_parameter;

/* What is wrong with a word. */
typedef enum gbx_parameter_trouble {
    GBX_PARAMETER_OK = 0,
    GBX_PARAMETER_UNKNOWN = 1, /* neither in, out, inout nor scalar */
    GBX_PARAMETER_DTYPE = 2,
    GBX_PARAMETER_RANK = 3 /* not [0] to [8], or on a scalar */
} gbx_parameter_trouble;

#define GBX_SIGNATURE_WORDS                                                                        \
    "in, out, inout or scalar, alone or as in in:float32, in:float32[2], in:[2] or scalar:float32"

/* Reads a word of `length` bytes. */
gbx_parameter_trouble gbx_parameter_read(const char *word, size_t length, gbx_parameter *out);

/* The kind of a word, of gbx_parameters; GBX_PARAMETER_COUNT for one that cannot be read. */
uint32_t gbx_parameter_kind(const char *word);

/* "in:bfloat16[2]" */
void gbx_parameter_write(const gbx_parameter *parameter, char out_text[GBX_PARAMETER_TEXT_BYTES]);

/* The next item of a list separated by commas, and its length; NULL at the end of the list, or
 * where `*rest` is NULL. An empty text is one empty item. */
const char *gbx_list_next(const char **rest, size_t *out_length);

/*
 * A signature in the order of args[]: all tensors, then all scalars. One without parameters says
 * nothing; one without scalars says nothing about scalars.
 */
typedef struct gbx_signature {
    /*
     * For a quick look, which most arguments pass: how many tensors and (in the high half) scalars,
     * roles of tensors and dtypes of scalars, a byte each; each with a mask of the bits that
     * count. Nothing passes where this does not say it all.
     */
    uint64_t counts;
    uint64_t count_mask;
    uint64_t roles;
    uint64_t role_mask;
    uint64_t dtypes;
    uint64_t dtype_mask;
    uint8_t tensor_count;
    uint8_t scalar_count;
    uint8_t reserved[6];
    gbx_parameter slots[GBX_SIGNATURE_SLOTS];
} gbx_signature;

/* Fills in a signature from words that can be read, separated by commas. `text` may be NULL. False
 * where there are too many. */
bool gbx_signature_read(const char *text, gbx_signature *out);

/* The name of the argument in a slot, from names in the order of the words; NULL where there is
 * none. Both texts may be NULL. */
const char *gbx_signature_name(const char *text, const char *names, uint32_t slot,
                               size_t *out_length);

#endif
