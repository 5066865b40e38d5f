/* The statistics of entries, one or many at a time. */
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <glassbox/tensor.h>

#include "analysis/entries.h"
#include "base/memory.h"
#include "base/numbers.h"

enum {
    PIECE_BYTES = 1 << 17,        /* read at a time: stays in the cache */
    BATCH_BYTES = 256 << 20,      /* computed before results are returned */
    THREAD_WORTH_BYTES = 1 << 20, /* starting a thread for less does not pay */
    THREADS_MAX = 8
};
static_assert(PIECE_BYTES % GBX_STATISTICS_STEP_BYTES == 0, "pieces of statistics");

/* --- one entry --- */

static gbx_status compute(const gbx_entry_values *values, gbx_statistics *out_statistics) {
    const gbx_elements *elements = &values->elements;
    uint32_t bits = gbx_dtype_bits(elements->dtype);
    uint64_t row_elements = elements->ndims ? (uint64_t)elements->shape[elements->ndims - 1] : 1;
    unsigned char bytes[PIECE_BYTES];
    gbx_statistics_state state;
    gbx_statistics_begin(&state, elements->dtype);
    uint64_t all = values->bytes;
    if (bits >= 8)
        all -= all % (bits / 8); /* drops an incomplete last element */
    for (uint64_t at = 0; at < all; at += PIECE_BYTES) {
        size_t size = (size_t)gbx_min_u64(all - at, PIECE_BYTES);
        GBX_TRY(gbx_reader_read_payload(values->reader, values->offset + at, bytes, size));
        gbx_statistics_update(&state, bytes, size, row_elements);
    }
    gbx_statistics_end(&state, out_statistics);
    return NULL;
}

/* Fills the summary if that needs no payload; else sets *out_is_left and opens `out_values`. */
static gbx_status begin(const gbx_entry *entry, const gbx_reader *reader,
                        gbx_entry_values *out_values, gbx_entry_summary *out_summary,
                        bool *out_is_left) {
    const gbx_record_stats *stats = entry->tensor ? gbx_record_statistics(entry->tensor) : NULL;
    *out_is_left = false;
    out_summary->is_there =
        stats || (gbx_entry_has_values(entry) && entry->dtype != GBX_DTYPE_NONE);
    if (stats) {
        out_summary->statistics = (gbx_statistics){.min_bits = stats->min_bits,
                                                   .max_bits = stats->max_bits,
                                                   .mean = stats->mean,
                                                   .nan_count = stats->nan_count,
                                                   .inf_count = stats->inf_count,
                                                   .zero_count = stats->zero_count,
                                                   .subnormal_count = stats->subnormal_count};
    }
    if (stats || !out_summary->is_there)
        return NULL;
    GBX_TRY(gbx_entry_values_open(entry, reader, out_values));
    *out_is_left = !out_values->is_scalar;
    if (out_values->is_scalar) {
        uint32_t bits = gbx_dtype_bits(out_values->elements.dtype);
        gbx_statistics_state state;
        gbx_statistics_begin(&state, out_values->elements.dtype);
        gbx_statistics_update(&state, &out_values->scalar_bits, bits < 8 ? 1 : bits / 8, 1);
        gbx_statistics_end(&state, &out_summary->statistics);
    }
    return NULL;
}

gbx_status gbx_entry_statistics(const gbx_entry *entry, const gbx_reader *reader,
                                gbx_statistics *out_statistics, bool *out_is_there) {
    gbx_entry_values values;
    gbx_entry_summary summary;
    bool is_left = false;
    GBX_TRY(begin(entry, reader, &values, &summary, &is_left));
    *out_is_there = summary.is_there;
    if (is_left)
        return compute(&values, out_statistics);
    if (summary.is_there)
        *out_statistics = summary.statistics;
    return NULL;
}

/* --- many entries --- */

typedef struct job {
    gbx_entry_values values;
    gbx_entry_summary *summary;
} job;

/* Jobs that threads take one by one. */
typedef struct batch {
    job *jobs;
    size_t count;
    uint64_t bytes;
    atomic_size_t next;
    pthread_mutex_t lock; /* protects the rest */
    gbx_status failure;   /* of the first job that failed, */
    size_t failed;        /* this one */
} batch;

static void *work(void *context) {
    batch *b = context;
    for (;;) {
        /* Relaxed: pthread_create already made the jobs visible. */
        size_t i = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
        if (i >= b->count)
            return NULL;
        gbx_status status = compute(&b->jobs[i].values, &b->jobs[i].summary->statistics);
        if (status) {
            pthread_mutex_lock(&b->lock);
            bool is_first = !b->failure || i < b->failed;
            gbx_status_free(is_first ? b->failure : status);
            if (is_first) {
                b->failure = status;
                b->failed = i;
            }
            pthread_mutex_unlock(&b->lock);
        }
    }
}

/* Takes entries until the batch is full. */
static gbx_status fill(batch *b, gbx_entries *entries, const uint64_t *indices, size_t count,
                       gbx_entry_summary *summaries, size_t *out_count) {
    const gbx_reader *reader = gbx_entries_reader(entries);
    size_t taken = 0;
    for (; taken < count && b->bytes < BATCH_BYTES; ++taken) {
        gbx_entry entry;
        bool is_left = false;
        job *one = &b->jobs[b->count];
        one->summary = &summaries[taken];
        GBX_TRY(gbx_entries_at(entries, indices[taken], &entry));
        GBX_TRY(begin(&entry, reader, &one->values, one->summary, &is_left));
        if (!is_left)
            continue;
        b->bytes += one->values.bytes;
        b->count++;
    }
    *out_count = taken;
    return NULL;
}

gbx_status gbx_entries_statistics(gbx_entries *entries, const uint64_t *indices, size_t count,
                                  gbx_entry_summary *out_summaries, size_t *out_count) {
    batch b = {.jobs = malloc((count + 1) * sizeof *b.jobs)};
    if (!b.jobs)
        return gbx_fail_memory("computing the statistics of %zu entries", count);
    pthread_mutex_init(&b.lock, NULL);
    gbx_status status = fill(&b, entries, indices, count, out_summaries, out_count);
    if (!status) {
        /* This thread works too. */
        pthread_t threads[THREADS_MAX - 1];
        size_t thread_count = 0;
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t wanted = b.bytes / THREAD_WORTH_BYTES;
        wanted = wanted < b.count ? wanted : b.count;
        wanted = processors > 0 && wanted > (uint64_t)processors ? (uint64_t)processors : wanted;
        while (thread_count + 1 < wanted && thread_count < THREADS_MAX - 1 &&
               pthread_create(&threads[thread_count], NULL, work, &b) == 0)
            ++thread_count;
        work(&b);
        for (size_t i = 0; i < thread_count; ++i)
            pthread_join(threads[i], NULL);
        status = b.failure;
    }
    pthread_mutex_destroy(&b.lock);
    free(b.jobs);
    return status;
}
