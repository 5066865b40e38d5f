/*
 * Whether two views share a byte is whether a linear equation has a solution in bounds:
 *
 *     sum of step * x (0 <= x <= count, over the dimensions of both views) + w = target
 *
 * where w (0 <= w <= slack) stands for the bytes within the two elements. All steps are positive: a
 * dimension that runs down, or that belongs to the second view, is counted from its other end.
 */
#include <glassbox/tensor.h>

/* After this many tries, about 100 us, the answer is true without proof. Tiles take a handful. */
#define SEARCH_LIMIT 16384

#define MAX_TERMS (2 * GBX_MAX_DIMS)

typedef struct term {
    uint64_t step;
    uint64_t count; /* the greatest value of the variable */
} term;

/* A view of elements of whole bytes, in absolute addresses. */
typedef struct byte_view {
    uint64_t first;
    uint64_t end; /* one past the last byte */
    uint64_t element_bytes;
    uint32_t count;
    term terms[GBX_MAX_DIMS];
} byte_view;

typedef struct equation {
    uint32_t count;
    term terms[MAX_TERMS];
    uint64_t slack;
    uint64_t target;
} equation;

typedef struct search {
    const equation *equation;
    uint64_t rest[MAX_TERMS + 1]; /* the most that the terms from here on, and w, add up to */
    uint64_t gcd[MAX_TERMS + 1];  /* of the steps from here on; 0 after the last */
    uint32_t *tries_left;
} search;

static uint64_t gcd_u64(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* --- making the equation simple --- */

static void remove_term(equation *eq, uint32_t at) {
    --eq->count;
    for (uint32_t k = at; k < eq->count; ++k)
        eq->terms[k] = eq->terms[k + 1];
}

/* In descending order of steps, one term for each step. */
static void add_term(equation *eq, term added) {
    uint32_t at = 0;
    while (at < eq->count && eq->terms[at].step > added.step)
        ++at;
    if (at < eq->count && eq->terms[at].step == added.step) {
        eq->terms[at].count += added.count;
        return;
    }
    for (uint32_t k = eq->count; k > at; --k)
        eq->terms[k] = eq->terms[k - 1];
    eq->terms[at] = added;
    ++eq->count;
}

/* Divides by what all steps have in common; w takes the remainder, or false when it cannot. */
static bool divide_by_gcd(equation *eq) {
    uint64_t gcd = 0;
    for (uint32_t k = 0; k < eq->count; ++k)
        gcd = gcd_u64(eq->terms[k].step, gcd);
    if (gcd <= 1)
        return true;
    uint64_t remainder = eq->target % gcd;
    if (remainder > eq->slack)
        return false;
    for (uint32_t k = 0; k < eq->count; ++k)
        eq->terms[k].step /= gcd;
    eq->slack = (eq->slack - remainder) / gcd;
    eq->target = (eq->target - remainder) / gcd;
    return true;
}

/* A step that leaves no gap after w becomes part of w: together they reach every value. */
static void absorb_into_slack(equation *eq) {
    while (eq->count > 0) {
        term smallest = eq->terms[eq->count - 1];
        if (eq->slack < smallest.step - 1)
            return;
        eq->slack += smallest.step * smallest.count;
        --eq->count;
    }
}

/* Likewise for two terms, where one step is a multiple of the other. */
static void merge_multiples(equation *eq) {
    for (uint32_t k = eq->count; k-- > 1;) {
        term *smaller = &eq->terms[k];
        const term *larger = &eq->terms[k - 1];
        uint64_t factor = larger->step / smaller->step;
        if (larger->step % smaller->step != 0 || smaller->count < factor - 1)
            continue;
        smaller->count += factor * larger->count;
        remove_term(eq, k - 1);
    }
}

/* --- solving it --- */

/* Whether the terms from `at` on, and w, can make up `target`. */
static bool can_reach(const search *find, uint32_t at, uint64_t target) {
    const equation *eq = find->equation;
    if (target > find->rest[at])
        return false;
    if (at == eq->count)
        return true;
    if (target % find->gcd[at] > eq->slack)
        return false;
    term here = eq->terms[at];
    uint64_t beyond = find->rest[at + 1];
    uint64_t most = target / here.step < here.count ? target / here.step : here.count;
    uint64_t least = target > beyond ? (target - beyond - 1) / here.step + 1 : 0;
    for (uint64_t x = most + 1; x-- > least;) {
        if (*find->tries_left == 0)
            return true;
        --*find->tries_left;
        if (can_reach(find, at + 1, target - x * here.step))
            return true;
    }
    return false;
}

static bool has_solution(equation *eq, uint32_t *tries_left) {
    if (!divide_by_gcd(eq))
        return false;
    absorb_into_slack(eq);
    merge_multiples(eq);
    search find = {.equation = eq, .tries_left = tries_left};
    find.rest[eq->count] = eq->slack;
    for (uint32_t k = eq->count; k-- > 0;) {
        find.rest[k] = find.rest[k + 1] + eq->terms[k].step * eq->terms[k].count;
        find.gcd[k] = gcd_u64(eq->terms[k].step, find.gcd[k + 1]);
    }
    return can_reach(&find, 0, eq->target);
}

static bool byte_views_overlap(const byte_view *a, const byte_view *b, uint32_t *tries_left) {
    if (a->end <= b->first || b->end <= a->first)
        return false;
    equation eq = {.slack = a->element_bytes - 1 + b->element_bytes - 1,
                   .target = b->end - 1 - a->first};
    for (uint32_t k = 0; k < a->count; ++k)
        add_term(&eq, a->terms[k]);
    for (uint32_t k = 0; k < b->count; ++k)
        add_term(&eq, b->terms[k]);
    return has_solution(&eq, tries_left);
}

/* --- from tensors to views of bytes --- */

/* One dimension in bytes. `count` is at least 1. */
static void add_dim(byte_view *view, int64_t count, int64_t stride) {
    uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
    uint64_t reach = step * (uint64_t)(count - 1);
    if (reach == 0)
        return;
    if (stride < 0)
        view->first -= reach;
    else
        view->end += reach;
    view->terms[view->count++] = (term){step, (uint64_t)(count - 1)};
}

static bool is_odd_dim(const gbx_tensor *tensor, uint32_t dim) {
    return gbx_dtype_is_packed(tensor->dtype) && tensor->shape[dim] > 1 &&
           tensor->strides[dim] % 2 != 0;
}

/*
 * A view of packed elements is split along the dimensions with odd strides into even and odd
 * indices: then every part lies in one half of its bytes and is a view of bytes. Other views have
 * one part.
 */
static uint32_t part_count(const gbx_tensor *tensor) {
    uint32_t parts = 1;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        parts *= is_odd_dim(tensor, d) ? 2 : 1;
    return parts;
}

/* Bit k of `part` is the parity of the index along the k-th odd dimension. */
static byte_view packed_part(const gbx_tensor *tensor, uint32_t part) {
    int64_t position = tensor->start_offset;
    int64_t shape[GBX_MAX_DIMS], strides[GBX_MAX_DIMS];
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        shape[d] = tensor->shape[d];
        strides[d] = tensor->strides[d] / 2;
        if (!is_odd_dim(tensor, d))
            continue;
        int64_t parity = part & 1;
        part >>= 1;
        position += parity * tensor->strides[d];
        shape[d] = (tensor->shape[d] + 1 - parity) / 2;
        strides[d] = tensor->strides[d];
    }
    byte_view view = {.element_bytes = 1, .first = tensor->data + (uint64_t)(position >> 1)};
    view.end = view.first + 1;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        add_dim(&view, shape[d], strides[d]);
    return view;
}

static byte_view view_part(const gbx_tensor *tensor, uint32_t part) {
    if (gbx_dtype_is_packed(tensor->dtype))
        return packed_part(tensor, part);
    int64_t bytes = gbx_dtype_bits(tensor->dtype) / 8;
    byte_view view = {.element_bytes = (uint64_t)bytes,
                      .first = tensor->data + (uint64_t)(tensor->start_offset * bytes)};
    view.end = view.first + (uint64_t)bytes;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        if (tensor->shape[d] > 1)
            add_dim(&view, tensor->shape[d], tensor->strides[d] * bytes);
    return view;
}

static bool extents_meet(const gbx_tensor *a, const gbx_tensor *b) {
    int64_t a_first, a_end, b_first, b_end;
    gbx_tensor_extent(a, &a_first, &a_end);
    gbx_tensor_extent(b, &b_first, &b_end);
    return a_first != a_end && b_first != b_end &&
           a->data + (uint64_t)a_first < b->data + (uint64_t)b_end &&
           b->data + (uint64_t)b_first < a->data + (uint64_t)a_end;
}

bool gbx_tensor_overlaps(const gbx_tensor *a, const gbx_tensor *b) {
    if (!extents_meet(a, b))
        return false;
    if (gbx_tensor_is_contiguous(a) && gbx_tensor_is_contiguous(b))
        return true;
    uint32_t a_parts = part_count(a), b_parts = part_count(b);
    uint32_t tries_left = SEARCH_LIMIT;
    for (uint32_t i = 0; i < a_parts; ++i) {
        byte_view a_view = view_part(a, i);
        for (uint32_t k = 0; k < b_parts; ++k) {
            byte_view b_view = view_part(b, k);
            if (tries_left == 0)
                return true;
            --tries_left;
            if (byte_views_overlap(&a_view, &b_view, &tries_left))
                return true;
        }
    }
    return false;
}
