#include "tensor/signature.h"

#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

/* --- words --- */

/* The kind of a word without dtype and rank. */
static bool read_kind(const char *word, size_t length, uint8_t *out_kind) {
    for (uint32_t i = 0; i < gbx_parameters.count; ++i) {
        const char *name = gbx_name_brief(&gbx_parameters, i);
        if (strlen(name) == length && memcmp(name, word, length) == 0) {
            *out_kind = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* "[2]" */
static bool read_rank(const char *text, size_t length, uint8_t *out_ndims) {
    if (length != 3 || text[0] != '[' || text[2] != ']' || text[1] < '0' ||
        text[1] > '0' + GBX_MAX_DIMS)
        return false;
    *out_ndims = (uint8_t)(text[1] - '0');
    return true;
}

static bool read_dtype(const char *text, size_t length, uint8_t *out_dtype) {
    char name[32] = "";
    if (length == 0 || length >= sizeof name)
        return false;
    memcpy(name, text, length);
    *out_dtype = (uint8_t)gbx_dtype_parse(name);
    return *out_dtype != GBX_DTYPE_NONE;
}

gbx_parameter_trouble gbx_parameter_read(const char *word, size_t length, gbx_parameter *out) {
    const char *colon = memchr(word, ':', length);
    *out = (gbx_parameter){.dtype = GBX_DTYPE_NONE, .ndims = GBX_ANY_NDIMS};
    if (!read_kind(word, colon ? (size_t)(colon - word) : length, &out->kind))
        return GBX_PARAMETER_UNKNOWN;
    if (!colon)
        return GBX_PARAMETER_OK;
    const char *form = colon + 1;
    size_t form_bytes = length - (size_t)(form - word);
    const char *bracket = memchr(form, '[', form_bytes);
    size_t dtype_bytes = bracket ? (size_t)(bracket - form) : form_bytes;
    if (bracket && (out->kind == GBX_PARAMETER_SCALAR ||
                    !read_rank(bracket, form_bytes - dtype_bytes, &out->ndims)))
        return GBX_PARAMETER_RANK;
    if (bracket && dtype_bytes == 0)
        return GBX_PARAMETER_OK;
    return read_dtype(form, dtype_bytes, &out->dtype) ? GBX_PARAMETER_OK : GBX_PARAMETER_DTYPE;
}

uint32_t gbx_parameter_kind(const char *word) {
    gbx_parameter parameter;
    return gbx_parameter_read(word, strlen(word), &parameter) == GBX_PARAMETER_OK
               ? parameter.kind
               : GBX_PARAMETER_COUNT;
}

void gbx_parameter_write(const gbx_parameter *parameter, char out_text[GBX_PARAMETER_TEXT_BYTES]) {
    bool has_dtype = parameter->dtype != GBX_DTYPE_NONE;
    char rank[8] = "";
    if (parameter->ndims != GBX_ANY_NDIMS)
        snprintf(rank, sizeof rank, "[%u]", parameter->ndims);
    snprintf(out_text, GBX_PARAMETER_TEXT_BYTES, "%s%s%s%s",
             gbx_name_brief(&gbx_parameters, parameter->kind), has_dtype || rank[0] ? ":" : "",
             has_dtype ? gbx_dtype_name(parameter->dtype) : "", rank);
}

/* --- signatures --- */

const char *gbx_list_next(const char **rest, size_t *out_length) {
    const char *item = *rest;
    if (!item)
        return NULL;
    *out_length = strcspn(item, ",");
    *rest = item[*out_length] ? item + *out_length + 1 : NULL;
    return item;
}

static bool has_form(const gbx_parameter *tensor) {
    return tensor->dtype != GBX_DTYPE_NONE || tensor->ndims != GBX_ANY_NDIMS;
}

static void make_quick(gbx_signature *signature) {
    uint8_t bytes[4][GBX_QUICK_ARGUMENTS] = {{0}};
    uint32_t tensors = signature->tensor_count;
    uint32_t scalars = signature->scalar_count;
    bool says_all = tensors <= GBX_QUICK_ARGUMENTS && scalars <= GBX_QUICK_ARGUMENTS;
    for (uint32_t i = 0; i < tensors && says_all; ++i) {
        bytes[0][i] = signature->slots[i].kind;
        bytes[1][i] = 0xff;
        says_all = !has_form(&signature->slots[i]);
    }
    for (uint32_t i = 0; i < scalars && says_all; ++i) {
        bytes[2][i] = signature->slots[tensors + i].dtype;
        bytes[3][i] = bytes[2][i] == GBX_DTYPE_NONE ? 0 : 0xff;
    }
    memcpy(&signature->roles, bytes[0], sizeof signature->roles);
    memcpy(&signature->role_mask, bytes[1], sizeof signature->role_mask);
    memcpy(&signature->dtypes, bytes[2], sizeof signature->dtypes);
    memcpy(&signature->dtype_mask, bytes[3], sizeof signature->dtype_mask);
    signature->counts = tensors | (uint64_t)scalars << 32;
    if (!says_all)
        signature->counts = 1; /* and no bit counts: nothing is equal */
    else if (tensors + scalars > 0)
        signature->count_mask = scalars ? UINT64_MAX : UINT32_MAX;
}

bool gbx_signature_read(const char *text, gbx_signature *out) {
    static const uint32_t most[] = {GBX_MAX_TENSOR_ARGS, GBX_MAX_SCALAR_ARGS};
    *out = (gbx_signature){0};
    for (int is_scalar = 0; is_scalar <= 1; ++is_scalar) {
        const char *rest = text && text[0] ? text : NULL;
        const char *word;
        size_t length;
        uint32_t count = 0;
        while ((word = gbx_list_next(&rest, &length))) {
            gbx_parameter parameter;
            if (gbx_parameter_read(word, length, &parameter) != GBX_PARAMETER_OK ||
                (parameter.kind == GBX_PARAMETER_SCALAR) != is_scalar)
                continue;
            if (count == most[is_scalar])
                return false;
            out->slots[out->tensor_count + count++] = parameter;
        }
        *(is_scalar ? &out->scalar_count : &out->tensor_count) = (uint8_t)count;
    }
    make_quick(out);
    return true;
}

const char *gbx_signature_name(const char *text, const char *names, uint32_t slot,
                               size_t *out_length) {
    for (int is_scalar = 0; is_scalar <= 1; ++is_scalar) {
        const char *words = text && text[0] ? text : NULL;
        const char *rest = names && names[0] ? names : NULL;
        const char *word, *name;
        size_t length;
        while ((word = gbx_list_next(&words, &length)) &&
               (name = gbx_list_next(&rest, out_length))) {
            gbx_parameter parameter;
            (void)gbx_parameter_read(word, length, &parameter);
            if ((parameter.kind == GBX_PARAMETER_SCALAR) == is_scalar && slot-- == 0)
                return name;
        }
    }
    return NULL;
}
