/* The owner of an address: the tensor of another task that lies there. */
#include "analysis/accesses_internal.h"
#include "analysis/view_find.h"

typedef struct owner {
    bool is_found;
    uint64_t distance;
    uint64_t extent;
    uint32_t role_rank;
    uint32_t use;
} owner;

typedef struct owner_search {
    uint64_t task;
    gbx_addresses wanted; /* one byte; none at UINT64_MAX, which no valid view has */
    uint64_t before;      /* the first use of the task, and the first after it */
    uint64_t after;
    owner best;
} owner_search;

static bool is_better(const owner *a, const owner *b) {
    if (!b->is_found)
        return true;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if (a->extent != b->extent)
        return a->extent < b->extent;
    if (a->role_rank != b->role_rank)
        return a->role_rank < b->role_rank;
    return a->use < b->use;
}

static void consider(const gbx_accesses *accesses, const owner_search *search, const gbx_place *p,
                     uint32_t number, owner *best) {
    static const uint32_t ranks[] = {
        [GBX_ROLE_OUTPUT] = 0, [GBX_ROLE_INOUT] = 1, [GBX_ROLE_INPUT] = 2};
    const gbx_use *u = gbx_accesses_use_at(accesses, p, number);
    owner o = {.is_found = true,
               .distance = u->task < search->task ? search->task - u->task : u->task - search->task,
               .extent = p->end - p->begin,
               .role_rank = ranks[u->detail],
               .use = accesses->order[p->first + number]};
    if (is_better(&o, best))
        *best = o;
}

/* The uses of the last task before, and of the first one after. */
static owner find_nearest(const gbx_accesses *accesses, const owner_search *search,
                          const gbx_place *p) {
    owner best = {0};
    uint32_t before = gbx_accesses_count_before(accesses, p, search->before);
    uint32_t after = gbx_accesses_count_before(accesses, p, search->after);
    uint64_t task = before > 0 ? gbx_accesses_use_at(accesses, p, before - 1)->task : 0;
    for (uint32_t i = before; i > 0 && gbx_accesses_use_at(accesses, p, i - 1)->task == task; --i)
        consider(accesses, search, p, i - 1, &best);
    task = after < p->count ? gbx_accesses_use_at(accesses, p, after)->task : 0;
    for (uint32_t i = after; i < p->count && gbx_accesses_use_at(accesses, p, i)->task == task; ++i)
        consider(accesses, search, p, i, &best);
    return best;
}

static gbx_status visit_owner(gbx_accesses *accesses, uint64_t number, void *context) {
    owner_search *search = context;
    const gbx_place *p = &accesses->places[number];
    if (p->form == GBX_FORM_PIECE)
        return NULL;
    owner nearest = find_nearest(accesses, search, p);
    if (!nearest.is_found || !is_better(&nearest, &search->best))
        return NULL;
    if (p->form != GBX_FORM_WHOLE) {
        gbx_tensor view;
        gbx_view_element element;
        GBX_TRY(gbx_accesses_read_view(accesses, nearest.use, &view));
        if (!gbx_view_find_bytes(&view, search->wanted.begin, search->wanted.end, &element))
            return NULL;
    }
    search->best = nearest;
    return NULL;
}

gbx_status gbx_accesses_owner(gbx_accesses *accesses, uint64_t task, uint64_t address,
                              gbx_tensor_access *out_access, bool *out_is_found) {
    owner_search search = {.task = task,
                           .wanted = {address, address + 1},
                           .before = gbx_accesses_find_use(accesses, task, false),
                           .after = gbx_accesses_find_use(accesses, task, true)};
    gbx_tensor view;
    uint64_t element = 0;
    *out_is_found = false;
    GBX_TRY(gbx_accesses_visit(accesses, 0, accesses->place_count, search.wanted, visit_owner,
                               &search));
    if (!search.best.is_found)
        return NULL;
    GBX_TRY(gbx_accesses_read_view(accesses, search.best.use, &view));
    *out_is_found = gbx_view_find_first(&view, search.wanted.begin, search.wanted.end, &element);
    return *out_is_found ? gbx_accesses_fill(accesses, &accesses->uses[search.best.use], &view,
                                             element, out_access)
                         : NULL;
}
