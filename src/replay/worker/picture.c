#include "replay/worker/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <glassbox/orchestration.h>

#include "base/checked.h"
#include "replay/worker/pattern.h"
#include "replay/worker/rows.h"

/* --- payloads --- */

static const unsigned char *payload_at(const unsigned char *bytes, uint64_t size, uint64_t offset,
                                       const gbx_tensor *tensor) {
    bool is_there = offset != GBX_NO_PAYLOAD && bytes &&
                    gbx_range_is_inside(offset, gbx_tensor_payload_bytes(tensor), size);
    return is_there ? bytes + offset : NULL;
}

const unsigned char *gbx_payload_before(const gbx_payloads *payloads,
                                        const gbx_order_argument *argument) {
    if (argument->is_before_kept)
        return payload_at(payloads->kept, payloads->kept_bytes, argument->before,
                          &argument->tensor);
    return payload_at(payloads->dump, payloads->dump_bytes, argument->before, &argument->tensor);
}

const unsigned char *gbx_payload_after(const gbx_payloads *payloads,
                                       const gbx_order_argument *argument) {
    if (argument->is_after_kept)
        return payload_at(payloads->kept, payloads->kept_bytes, argument->after, &argument->tensor);
    return payload_at(payloads->dump, payloads->dump_bytes, argument->after, &argument->tensor);
}

/* --- windows --- */

static uint32_t widths_of(const gbx_tensor *tensor) {
    return 1u << (gbx_dtype_bits(tensor->dtype) + 7) / 8;
}

static gbx_pattern_flavour flavour_of(const gbx_tensor *tensor) {
    return gbx_pattern_flavour_of(widths_of(tensor));
}

static bool has_elements(const gbx_order_argument *argument) {
    return argument->kind == GBX_CALL_TENSOR && gbx_tensor_numel(&argument->tensor) > 0;
}

/* The pages of a tensor, and one more on each side. */
static gbx_window window_around(const gbx_tensor *tensor) {
    int64_t first, end;
    const uint64_t page = GBX_PICTURE_PAGE;
    gbx_tensor_extent(tensor, &first, &end);
    uint64_t start = (tensor->data + (uint64_t)first) / page * page - page;
    uint64_t stop = (tensor->data + (uint64_t)end + page - 1) / page * page + page;
    return (gbx_window){.start = start, .bytes = stop - start};
}

/* Adds a window in order of addresses; those that touch become one. */
static void add_window(gbx_picture *picture, gbx_window added) {
    uint32_t count = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < picture->window_count; ++i) {
        const gbx_window *old = &picture->windows[i];
        uint64_t old_end = old->start + old->bytes;
        uint64_t end = added.start + added.bytes;
        if (old_end < added.start || end < old->start) {
            place += old->start < added.start;
            picture->windows[count++] = *old;
            continue;
        }
        uint64_t start = old->start < added.start ? old->start : added.start;
        added.bytes = (old_end > end ? old_end : end) - start;
        added.start = start;
    }
    memmove(&picture->windows[place + 1], &picture->windows[place], (count - place) * sizeof added);
    picture->windows[place] = added;
    picture->window_count = count + 1;
}

void gbx_picture_find_windows(gbx_picture *picture, const gbx_order *order) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    uint32_t widths[GBX_CALL_SLOTS] = {0}; /* of elements, by window */
    picture->window_count = 0;
    picture->bytes = 0;
    for (uint32_t i = 0; i < order->argument_count; ++i)
        if (has_elements(&arguments[i]))
            add_window(picture, window_around(&arguments[i].tensor));
    for (uint32_t i = 0; i < picture->window_count; ++i) {
        picture->windows[i].address = picture->windows[i].start;
        picture->windows[i].offset = picture->bytes;
        picture->bytes += picture->windows[i].bytes;
    }
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        picture->window_of[i] = -1;
        if (!has_elements(&arguments[i]))
            continue;
        uint64_t start = window_around(&arguments[i].tensor).start;
        uint32_t w = 0;
        while (start - picture->windows[w].start >= picture->windows[w].bytes)
            ++w;
        picture->window_of[i] = (int32_t)w;
        widths[w] |= widths_of(&arguments[i].tensor);
    }
    for (uint32_t i = 0; i < picture->window_count; ++i)
        picture->windows[i].flavour = gbx_pattern_flavour_of(widths[i]);
    gbx_picture_place(picture, order);
}

void gbx_picture_place(gbx_picture *picture, const gbx_order *order) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        if (arguments[i].kind != GBX_CALL_TENSOR)
            continue;
        picture->tensors[i] = arguments[i].tensor;
        if (picture->window_of[i] < 0)
            continue;
        const gbx_window *window = &picture->windows[picture->window_of[i]];
        picture->tensors[i].data += window->address - window->start;
    }
}

int gbx_window_map(const gbx_window *window, char out_error[GBX_CALL_ERROR_BYTES]) {
    void *wanted = (void *)(uintptr_t)window->address;
    void *mapped = mmap(wanted, window->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == wanted)
        return 0;
    snprintf(out_error, GBX_CALL_ERROR_BYTES, "mapping %llu bytes of global memory at %p: %s",
             (unsigned long long)window->bytes, wanted,
             mapped == MAP_FAILED ? strerror(errno) : "the address range is in use");
    if (mapped != MAP_FAILED)
        munmap(mapped, window->bytes);
    return -1;
}

int gbx_picture_open(gbx_picture *picture, const gbx_order *order,
                     char out_error[GBX_CALL_ERROR_BYTES]) {
    picture->mirror = NULL;
    picture->strayed = NULL;
    gbx_picture_find_windows(picture, order);
    for (uint32_t i = 0; i < picture->window_count; ++i) {
        if (gbx_window_map(&picture->windows[i], out_error)) {
            picture->window_count = i;
            gbx_picture_close(picture);
            return -1;
        }
    }
    if (picture->bytes <= GBX_PICTURE_MIRRORED)
        picture->mirror = malloc(picture->bytes + 1);
    return 0;
}

void gbx_picture_close(gbx_picture *picture) {
    for (uint32_t i = 0; i < picture->window_count; ++i)
        munmap((void *)(uintptr_t)picture->windows[i].address, picture->windows[i].bytes);
    picture->window_count = 0;
    free(picture->mirror);
    free(picture->strayed);
    picture->mirror = NULL;
    picture->strayed = NULL;
}

/* --- content --- */

void *gbx_picture_buffer(const gbx_picture *picture, uint32_t argument) {
    return (void *)(uintptr_t)picture->tensors[argument].data;
}

/* It may lie outside of the mirror if no element is there. */
void *gbx_picture_mirrored(const gbx_picture *picture, uint32_t argument) {
    const gbx_window *window = &picture->windows[picture->window_of[argument]];
    return (void *)((uintptr_t)picture->mirror + window->offset +
                    (uintptr_t)(picture->tensors[argument].data - window->address));
}

void gbx_picture_start(const gbx_picture *picture, const gbx_order *order, int pattern,
                       uint32_t argument, void *out_payload) {
    const gbx_tensor *tensor = &gbx_order_arguments(order)[argument].tensor;
    if (picture->window_of[argument] < 0)
        return;
    if (picture->mirror)
        gbx_tensor_gather(tensor, gbx_picture_mirrored(picture, argument), out_payload);
    else
        gbx_pattern_fill(pattern, flavour_of(tensor), argument, out_payload,
                         gbx_tensor_payload_bytes(tensor));
}

static void copy_windows(const gbx_picture *picture) {
    for (uint32_t i = 0; i < picture->window_count; ++i) {
        const gbx_window *window = &picture->windows[i];
        memcpy((void *)(uintptr_t)window->address, picture->mirror + window->offset, window->bytes);
    }
}

/* Adds the unused half byte at the end of packed rows: a kernel writes complete bytes. */
static gbx_tensor with_padding(const gbx_tensor *tensor) {
    gbx_tensor padded = *tensor;
    uint32_t last = tensor->ndims - 1;
    int64_t first, end, padded_end;
    if (!gbx_dtype_is_packed(tensor->dtype) || tensor->ndims == 0 ||
        gbx_tensor_numel(tensor) == 0 || tensor->strides[last] != 1 || tensor->shape[last] % 2 == 0)
        return padded;
    padded.shape[last]++;
    gbx_tensor_extent(tensor, &first, &end);
    gbx_tensor_extent(&padded, &first, &padded_end);
    bool is_filled = last == 0 || tensor->strides[last - 1] == padded.shape[last];
    return is_filled && padded_end == end ? padded : *tensor;
}

/* Inputs and inouts, in a buffer that `locate` finds. Unused half bytes come first, 0 as in every
 * payload: another argument may have them. */
static void restore(const gbx_picture *picture, const gbx_order *order,
                    const gbx_payloads *payloads,
                    void *(*locate)(const gbx_picture *picture, uint32_t argument)) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (int is_last = 0; is_last < 2; ++is_last)
        for (uint32_t i = 0; i < order->argument_count; ++i) {
            const unsigned char *before = gbx_payload_before(payloads, &arguments[i]);
            if (picture->window_of[i] < 0 || arguments[i].role == GBX_ROLE_OUTPUT || !before)
                continue;
            if (!is_last && !gbx_dtype_is_packed(arguments[i].tensor.dtype))
                continue;
            const gbx_tensor padded = with_padding(&arguments[i].tensor);
            gbx_tensor_scatter(is_last ? &arguments[i].tensor : &padded, before,
                               locate(picture, i));
        }
}

void gbx_picture_paint(gbx_picture *picture, const gbx_order *order, const gbx_payloads *payloads,
                       int pattern) {
    for (uint32_t i = 0; i < picture->window_count; ++i)
        gbx_pattern_fill(pattern, picture->windows[i].flavour, i,
                         picture->mirror + picture->windows[i].offset, picture->windows[i].bytes);
    restore(picture, order, payloads, gbx_picture_mirrored);
}

void gbx_picture_prepare(gbx_picture *picture, const gbx_order *order, const gbx_payloads *payloads,
                         int pattern, void *scratch) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    picture->pattern = pattern;
    if (picture->mirror) {
        gbx_picture_paint(picture, order, payloads, pattern);
        copy_windows(picture);
        return;
    }
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        if (picture->window_of[i] < 0 || arguments[i].role != GBX_ROLE_OUTPUT)
            continue;
        gbx_picture_start(picture, order, pattern, i, scratch);
        gbx_tensor_scatter(&arguments[i].tensor, scratch, gbx_picture_buffer(picture, i));
    }
    restore(picture, order, payloads, gbx_picture_buffer);
}

/* --- stray writes --- */

static void note_stray(gbx_picture *picture, const gbx_window *window, uint64_t at,
                       gbx_strays *strays) {
    uint64_t address = window->start + at;
    if (!picture->strayed && !picture->is_abandoned)
        picture->strayed = calloc(1, picture->bytes);
    /* Without memory for the marks, a byte counts in each call that changes it. */
    if (picture->strayed) {
        unsigned char *mark = &picture->strayed[window->offset + at];
        if (*mark)
            return;
        *mark = 1;
    }
    strays->address = strays->bytes == 0 || address < strays->address ? address : strays->address;
    strays->end = address + 1 > strays->end ? address + 1 : strays->end;
    strays->bytes++;
}

static void compare_window(gbx_picture *picture, const gbx_window *window, gbx_strays *strays) {
    const unsigned char *gm = (const unsigned char *)(uintptr_t)window->address;
    const unsigned char *mirror = picture->mirror + window->offset;
    for (uint64_t at = 0; at < window->bytes; at += GBX_PICTURE_PAGE) {
        if (memcmp(gm + at, mirror + at, GBX_PICTURE_PAGE) == 0)
            continue;
        for (uint64_t i = at; i < at + GBX_PICTURE_PAGE; ++i)
            if (gm[i] != mirror[i])
                note_stray(picture, window, i, strays);
    }
}

void gbx_picture_find_strays(gbx_picture *picture, const gbx_order *order, void *scratch,
                             gbx_strays *strays) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; picture->mirror && i < order->argument_count; ++i) {
        if (picture->window_of[i] < 0 || arguments[i].role == GBX_ROLE_INPUT)
            continue;
        const gbx_tensor tensor = with_padding(&arguments[i].tensor);
        gbx_rows_copy(&tensor, gbx_picture_buffer(picture, i), gbx_picture_mirrored(picture, i),
                      scratch);
    }
    for (uint32_t i = 0; picture->mirror && i < picture->window_count; ++i)
        compare_window(picture, &picture->windows[i], strays);
}

uint32_t gbx_picture_list_strays(const gbx_picture *picture, gbx_stray_range *out_ranges,
                                 uint32_t capacity) {
    uint32_t count = 0;
    for (uint32_t w = 0; picture->strayed && w < picture->window_count; ++w) {
        const gbx_window *window = &picture->windows[w];
        const unsigned char *marks = picture->strayed + window->offset;
        for (uint64_t i = 0; i < window->bytes; ++i) {
            if (!marks[i])
                continue;
            if (i > 0 && marks[i - 1] && count > 0)
                out_ranges[count - 1].bytes++;
            else if (count == capacity)
                return count;
            else
                out_ranges[count++] = (gbx_stray_range){window->start + i, 1};
        }
    }
    return count;
}
