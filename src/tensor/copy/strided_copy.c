#include "tensor/copy/strided_copy.h"

#include <string.h>

gbx_cpu_level gbx_cpu_level_detect(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return GBX_CPU_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return GBX_CPU_AVX2;
#endif
    return GBX_CPU_PLAIN;
}

static const gbx_copy_ops *ops_of_level(gbx_cpu_level level) {
#if defined(__x86_64__)
    if (level == GBX_CPU_AVX512)
        return &gbx_copy_avx512;
    if (level == GBX_CPU_AVX2)
        return &gbx_copy_avx2;
#endif
    (void)level;
    return &gbx_copy_plain;
}

/* Streaming stores are not ordered by a release store: this puts them before whatever follows. */
static void finish_streaming(void) {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

static void remove_dim(gbx_strided_copy *copy, uint32_t dim) {
    --copy->ndims;
    for (uint32_t d = dim; d < copy->ndims; ++d) {
        copy->shape[d] = copy->shape[d + 1];
        copy->dst_strides[d] = copy->dst_strides[d + 1];
        copy->src_strides[d] = copy->src_strides[d + 1];
    }
}

/* Runs a dimension the other way: the same pairs of elements, met in reverse. */
static void flip_dim(gbx_strided_copy *copy, uint32_t dim) {
    copy->dst += (copy->shape[dim] - 1) * copy->dst_strides[dim];
    copy->src += (copy->shape[dim] - 1) * copy->src_strides[dim];
    copy->dst_strides[dim] = -copy->dst_strides[dim];
    copy->src_strides[dim] = -copy->src_strides[dim];
}

static void swap_i64(int64_t *a, int64_t *b) {
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

static void swap_dims(gbx_strided_copy *copy, uint32_t a, uint32_t b) {
    swap_i64(&copy->shape[a], &copy->shape[b]);
    swap_i64(&copy->dst_strides[a], &copy->dst_strides[b]);
    swap_i64(&copy->src_strides[a], &copy->src_strides[b]);
}

/*
 * Drops dimensions of one element, and those along which dst stands still: whatever the other
 * indices, the last element along them is the one that stays. False when there is nothing to copy.
 */
static bool drop_trivial_dims(gbx_strided_copy *copy) {
    for (uint32_t d = 0; d < copy->ndims; ++d)
        if (copy->shape[d] == 0)
            return false;
    for (uint32_t d = copy->ndims; d-- > 0;) {
        if (copy->shape[d] > 1 && copy->dst_strides[d] != 0)
            continue;
        if (copy->shape[d] > 1)
            copy->src += (copy->shape[d] - 1) * copy->src_strides[d];
        remove_dim(copy, d);
    }
    return true;
}

/* Makes the strides of dst positive and descending. The order of the elements is lost. */
static void sort_dims(gbx_strided_copy *copy) {
    for (uint32_t d = 0; d < copy->ndims; ++d)
        if (copy->dst_strides[d] < 0)
            flip_dim(copy, d);
    for (uint32_t d = 1; d < copy->ndims; ++d)
        for (uint32_t e = d; e > 0 && copy->dst_strides[e - 1] < copy->dst_strides[e]; --e)
            swap_dims(copy, e - 1, e);
}

/* Whether each stride of sorted dimensions steps over all that the smaller ones span. Then no two
 * elements of dst share a byte, and the order of copying is free. */
static bool is_nested(const gbx_strided_copy *copy) {
    int64_t span = copy->element_bytes;
    for (uint32_t d = copy->ndims; d-- > 0;) {
        if (copy->dst_strides[d] < span)
            return false;
        span += (copy->shape[d] - 1) * copy->dst_strides[d];
    }
    return true;
}

/* Makes one dimension of two that lie end to end on both sides. Keeps the order of elements. */
static void merge_dims(gbx_strided_copy *copy) {
    for (uint32_t d = copy->ndims; d-- > 1;) {
        int64_t count = copy->shape[d];
        if (copy->dst_strides[d - 1] != count * copy->dst_strides[d] ||
            copy->src_strides[d - 1] != count * copy->src_strides[d])
            continue;
        copy->shape[d] *= copy->shape[d - 1];
        remove_dim(copy, d - 1);
    }
}

/* Runs of 2, 4 or 8 bytes are copied as one element. */
static void widen_element(gbx_strided_copy *copy) {
    if (copy->ndims < 2)
        return;
    uint32_t last = copy->ndims - 1;
    int64_t bytes = copy->element_bytes;
    if (copy->dst_strides[last] != bytes || copy->src_strides[last] != bytes)
        return;
    int64_t run = bytes * copy->shape[last];
    if (run != 2 && run != 4 && run != 8)
        return;
    copy->element_bytes = (uint32_t)run;
    remove_dim(copy, last);
}

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* The dimension other than the last along which src advances least, or the last when that advances
 * no further: worth a blocked copy, which reads whole lines of src. */
static uint32_t source_dim(const gbx_strided_copy *copy) {
    uint32_t best = copy->ndims - 1;
    if (copy->src_strides[best] == 0)
        return best;
    for (uint32_t d = copy->ndims - 1; d-- > 0;)
        if (copy->src_strides[d] != 0 &&
            magnitude(copy->src_strides[d]) < magnitude(copy->src_strides[best]))
            best = d;
    return best;
}

typedef struct copy_plan {
    const gbx_copy_ops *ops;
    gbx_strided_copy dims; /* normalised; the plane's dimensions are the last two */
    gbx_copy_plane plane;
    bool is_transposed;
    bool is_rows;
} copy_plan;

static void plan_plane(copy_plan *plan) {
    gbx_strided_copy *dims = &plan->dims;
    uint32_t inner = dims->ndims - 1;
    gbx_copy_plane *plane = &plan->plane;
    plane->element_bytes = dims->element_bytes;
    plane->inner_count = dims->shape[inner];
    plane->inner_dst = dims->dst_strides[inner];
    plane->inner_src = dims->src_strides[inner];
    plane->outer_count = 1;
    plane->outer_dst = 0;
    plane->outer_src = 0;
    if (inner == 0)
        return;
    plane->outer_count = dims->shape[inner - 1];
    plane->outer_dst = dims->dst_strides[inner - 1];
    plane->outer_src = dims->src_strides[inner - 1];
}

static uint64_t total_bytes(const gbx_strided_copy *copy) {
    uint64_t bytes = copy->element_bytes;
    for (uint32_t d = 0; d < copy->ndims; ++d)
        bytes *= (uint64_t)copy->shape[d];
    return bytes;
}

/* Normalises and chooses. At least one dimension is left. */
static void make_plan(copy_plan *plan) {
    gbx_strided_copy *dims = &plan->dims;
    gbx_strided_copy sorted = *dims;
    sort_dims(&sorted);
    bool is_free = is_nested(&sorted);
    if (is_free)
        *dims = sorted;
    merge_dims(dims);
    widen_element(dims);
    uint32_t last = dims->ndims - 1;
    plan->is_rows = dims->dst_strides[last] == dims->element_bytes &&
                    dims->src_strides[last] == dims->element_bytes;
    uint32_t along_source = is_free && !plan->is_rows ? source_dim(dims) : last;
    plan->is_transposed = along_source != last;
    if (plan->is_transposed) {
        /* Next to the last, and upwards in src: as the tile kernels want it. */
        for (uint32_t d = along_source; d + 2 < dims->ndims; ++d)
            swap_dims(dims, d, d + 1);
        if (dims->src_strides[last - 1] < 0)
            flip_dim(dims, last - 1);
    }
    plan->plane.is_streaming = is_free && total_bytes(dims) >= GBX_STREAM_BYTES;
    plan_plane(plan);
}

static void run_plane(const copy_plan *plan, const gbx_copy_plane *plane) {
    if (plan->is_transposed)
        gbx_copy_transpose(plane, plan->ops);
    else if (plan->is_rows)
        plan->ops->rows(plane);
    else
        plan->ops->step(plane);
}

/* Runs the plane at every index of the dimensions outside of it, in row-major order. */
static void run_planes(copy_plan *plan) {
    const gbx_strided_copy *dims = &plan->dims;
    uint32_t outside = dims->ndims > 2 ? dims->ndims - 2 : 0;
    int64_t index[GBX_MAX_DIMS] = {0};
    gbx_copy_plane plane = plan->plane;
    plane.dst = dims->dst;
    plane.src = dims->src;
    for (;;) {
        run_plane(plan, &plane);
        uint32_t d = outside;
        for (; d > 0; --d) {
            plane.dst += dims->dst_strides[d - 1];
            plane.src += dims->src_strides[d - 1];
            if (++index[d - 1] < dims->shape[d - 1])
                break;
            plane.dst -= dims->shape[d - 1] * dims->dst_strides[d - 1];
            plane.src -= dims->shape[d - 1] * dims->src_strides[d - 1];
            index[d - 1] = 0;
        }
        if (d == 0)
            return;
    }
}

static void run_plan(copy_plan *plan) {
    const gbx_strided_copy *dims = &plan->dims;
    if (plan->is_rows && dims->ndims == 1) {
        size_t size = (size_t)dims->shape[0] * dims->element_bytes;
        if (plan->plane.is_streaming && plan->ops->stream)
            plan->ops->stream(dims->dst, dims->src, size);
        else
            memcpy(dims->dst, dims->src, size);
    } else {
        run_planes(plan);
    }
    if (plan->plane.is_streaming)
        finish_streaming();
}

void gbx_strided_copy_run(const gbx_strided_copy *copy, gbx_cpu_level level) {
    copy_plan plan = {.ops = ops_of_level(level), .dims = *copy};
    if (!drop_trivial_dims(&plan.dims))
        return;
    if (plan.dims.ndims == 0) {
        memcpy(plan.dims.dst, plan.dims.src, plan.dims.element_bytes);
        return;
    }
    make_plan(&plan);
    run_plan(&plan);
}
