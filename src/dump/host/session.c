#include "dump/host/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "dump/host/filter.h"
#include "dump/host/internal.h"
#include "store/run/kernel_copies.h"
#include "tensor/signature.h"

struct gbx_dump_session {
    gbx_dump_session_config config;
    gbx_run_identity identity;
    gbx_dump_region region;
    gbx_store *store;
    gbx_collector *collector;
    gbx_dump_manager *manager; /* NULL before the launch and after it */
    bool is_collected;         /* all that the device wrote */
    gbx_dump_signature signatures[GBX_MAX_KERNELS];
    gbx_run_finding *findings;
    uint32_t finding_count;
};

/* --- what the options mean --- */

static gbx_status check_options(const gbx_dump_session_config *config) {
    const gbx_dump_options *options = config->options;
    if (config->level < GBX_DUMP_OFF || config->level > GBX_DUMP_STATS)
        return gbx_fail(GBX_INVALID_ARGUMENT, "dumping: unknown level %d", (int)config->level);
    if (!options->directory || !options->directory[0])
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "dumping: no directory is given; set gbx_call_config.dump.directory");
    if (options->filter_count > GBX_MAX_DUMP_FILTERS)
        return gbx_fail(GBX_OUT_OF_RANGE, "dumping: %zu filters, but at most %d are possible",
                        options->filter_count, GBX_MAX_DUMP_FILTERS);
    if (options->filter_count && config->level == GBX_DUMP_OFF)
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dumping: filters need a tensor dump; set enable_dump_tensor (--dump-tensor)");
    if (options->arena_bytes && (options->arena_bytes < GBX_MIN_DUMP_ARENA_BYTES ||
                                 options->arena_bytes > GBX_MAX_DUMP_ARENA_BYTES))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "dumping: an arena of %" PRIu64 " bytes is outside %" PRIu64 " to %" PRIu64,
                        options->arena_bytes, GBX_MIN_DUMP_ARENA_BYTES, GBX_MAX_DUMP_ARENA_BYTES);
    if (options->buffer_count && (options->buffer_count < GBX_MIN_DUMP_BUFFERS ||
                                  options->buffer_count > GBX_MAX_DUMP_BUFFERS))
        return gbx_fail(GBX_OUT_OF_RANGE, "dumping: %" PRIu32 " buffers are outside %d to %d",
                        options->buffer_count, GBX_MIN_DUMP_BUFFERS, GBX_MAX_DUMP_BUFFERS);
    return NULL;
}

static gbx_status parse_filters(gbx_dump_session *session) {
    const gbx_dump_session_config *config = &session->config;
    gbx_kernel *kernels = calloc(config->run.kernel_count + 1, sizeof *kernels);
    if (!kernels)
        return gbx_fail_memory("dumping");
    for (size_t i = 0; i < config->run.kernel_count; ++i)
        kernels[i] = (gbx_kernel){.func_id = config->run.kernels[i].func_id,
                                  .name = config->run.kernels[i].name};
    gbx_status status = NULL;
    for (size_t i = 0; i < config->options->filter_count && !status; ++i)
        status = gbx_dump_filter_parse(config->options->filters[i], kernels,
                                       config->run.kernel_count, &session->region.setup.filters[i]);
    free(kernels);
    return status;
}

/* Slots hold all tensors first, then all scalars. */
static void note_signatures(gbx_dump_session *session) {
    for (size_t i = 0; i < session->config.run.kernel_count; ++i) {
        const gbx_run_kernel *kernel = &session->config.run.kernels[i];
        gbx_dump_signature *to = &session->signatures[kernel->func_id];
        gbx_signature signature;
        (void)gbx_signature_read(kernel->declared, &signature);
        to->tensor_count = signature.tensor_count;
        for (uint32_t s = 0; s < signature.scalar_count; ++s)
            to->scalar_dtypes[s] = signature.slots[signature.tensor_count + s].dtype;
    }
}

/* --- the beginning --- */

static gbx_status describe_run(gbx_dump_session *session) {
    const gbx_dump_session_config *config = &session->config;
    const gbx_dump_about *about = &config->options->about;
    gbx_run_info *run = &session->config.run;
    gbx_hal_caps caps;
    config->hal->ops->caps(config->hal, &caps);
    gbx_run_identity_make(&session->identity);
    run->generator = "glassbox " GBX_VERSION;
    run->run_id = session->identity.run_id;
    run->started_at = session->identity.started_at;
    run->scene = about->scene;
    run->scene_path = about->scene_path;
    run->case_name = about->case_name;
    run->command = about->command;
    run->rank = about->rank;
    run->round = about->round;
    run->platform = config->hal->ops->name;
    run->gm_bytes = caps.gm_bytes;
    run->dump_level = gbx_name_of(&gbx_dump_levels, config->level);
    run->has_args = config->has_args;
    run->result.status = "running";
    run->filters = calloc(config->options->filter_count + 1, sizeof *run->filters);
    if (!run->filters)
        return gbx_fail_memory("dumping");
    for (; run->filter_count < config->options->filter_count; ++run->filter_count)
        run->filters[run->filter_count] = config->options->filters[run->filter_count];
    return NULL;
}

static uint64_t to_pages(uint64_t bytes) {
    return (bytes + GBX_DUMP_PAGE_BYTES - 1) & ~(uint64_t)(GBX_DUMP_PAGE_BYTES - 1);
}

/* Everything but the addresses and the filters, which are already set. */
static void fill_setup(const gbx_dump_session_config *config, gbx_dump_setup *setup) {
    const gbx_dump_options *options = config->options;
    uint32_t stall_ms =
        options->stall_timeout_ms ? options->stall_timeout_ms : GBX_DEFAULT_DUMP_STALL_TIMEOUT_MS;
    uint32_t buffers = options->buffer_count ? options->buffer_count : GBX_DEFAULT_DUMP_BUFFERS;
    setup->magic = GBX_DUMP_MAGIC;
    /* Without a mapping the host must not read what the device is writing. */
    setup->flags = (config->level ? GBX_DUMP_HAS_TENSORS : 0u) |
                   (config->has_args ? GBX_DUMP_HAS_ARGS : 0u) |
                   (options->has_stats ? GBX_DUMP_HAS_STATS : 0u) |
                   (config->hal->ops->map ? 0u : GBX_DUMP_BY_BATCH);
    setup->level = (uint32_t)config->level;
    setup->lane_count = config->run.threads;
    setup->buffer_count = 1;
    while (setup->buffer_count < buffers)
        setup->buffer_count *= 2;
    setup->arena_bytes =
        to_pages(options->arena_bytes ? options->arena_bytes : GBX_DEFAULT_DUMP_ARENA_BYTES);
    setup->max_tensor_bytes = options->max_tensor_bytes;
    setup->stall_timeout_ns = (uint64_t)stall_ms * (uint64_t)GBX_NS_PER_MS;
    setup->filter_count = (uint32_t)options->filter_count;
}

/* All buffers are free; the rings are otherwise empty. */
static gbx_status write_lane(gbx_hal *hal, const gbx_dump_setup *setup, uint32_t index) {
    gbx_dump_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return gbx_fail_memory("preparing a dump");
    gbx_spsc_init(&lane->free);
    gbx_spsc_init(&lane->ready);
    for (uint32_t i = 0; i < setup->buffer_count; ++i)
        gbx_spsc_try_push(&lane->free, lane->free_slots, setup->buffer_count, i);
    atomic_init(&lane->open_item, GBX_DUMP_NO_ITEM);
    gbx_status status =
        hal->ops->copy_in(hal, setup->lanes + index * sizeof *lane, lane, sizeof *lane);
    free(lane);
    return status;
}

/* Lays out the memory of dump/abi.h on the chip. */
static gbx_status create_region(gbx_dump_session *session) {
    gbx_hal *hal = session->region.hal = session->config.hal;
    gbx_dump_setup *setup = &session->region.setup;
    fill_setup(&session->config, setup);
    uint64_t buffers_bytes = (uint64_t)setup->lane_count * setup->buffer_count *
                             GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES;
    uint64_t signatures = to_pages(sizeof *setup);
    uint64_t lanes = to_pages(signatures + sizeof session->signatures);
    uint64_t buffers = to_pages(lanes + setup->lane_count * sizeof(gbx_dump_lane));
    uint64_t arenas = buffers + buffers_bytes;
    uint64_t base;
    gbx_status status = hal->ops->alloc(hal, arenas + setup->lane_count * setup->arena_bytes,
                                        GBX_DUMP_PAGE_BYTES, &base);
    if (status)
        return gbx_status_annotate(
            status,
            "reserving memory for a dump on the chip: %" PRIu32 " threads with arenas of %" PRIu64
            " bytes; use smaller arenas (--dump-arena) or open the chip with more memory (--gm)",
            setup->lane_count, setup->arena_bytes);
    session->region.address = base;
    setup->signatures = base + signatures;
    setup->lanes = base + lanes;
    setup->buffers = base + buffers;
    setup->arenas = base + arenas;
    GBX_TRY(hal->ops->copy_in(hal, base, setup, sizeof *setup));
    GBX_TRY(
        hal->ops->copy_in(hal, setup->signatures, session->signatures, sizeof session->signatures));
    for (uint32_t i = 0; i < setup->lane_count; ++i)
        GBX_TRY(write_lane(hal, setup, i));
    return NULL;
}

static gbx_status create_store(gbx_dump_session *session) {
    const gbx_dump_session_config *config = &session->config;
    char *run_json;
    GBX_TRY(gbx_run_record_make(&session->config.run, &run_json));
    gbx_store_config store = {.directory = config->options->directory,
                              .run_json = run_json,
                              .has_tensors = config->level != GBX_DUMP_OFF,
                              .has_args = config->has_args,
                              .is_deduplicated = !config->options->keeps_duplicates};
    gbx_status status = gbx_store_create(&store, &session->store);
    free(run_json);
    return status;
}

static gbx_status begin(gbx_dump_session *session) {
    const gbx_dump_session_config *config = &session->config;
    GBX_TRY(check_options(config));
    GBX_TRY(describe_run(session));
    GBX_TRY(parse_filters(session));
    note_signatures(session);
    GBX_TRY(create_region(session));
    GBX_TRY(create_store(session));
    GBX_TRY(gbx_kernel_copies_make(config->options->directory, &session->config.run));
    GBX_TRY(gbx_run_file_write(&session->config.run, config->options->directory));
    GBX_TRY(gbx_collector_create(&session->region, session->store,
                                 !config->options->keeps_duplicates, &session->collector));
    return config->has_orchestration
               ? NULL
               : gbx_dump_manager_start(session->collector, &session->manager);
}

static gbx_status destroy(gbx_dump_session *session) {
    gbx_collector_destroy(session->collector);
    gbx_store_destroy(session->store);
    const gbx_dump_region *region = &session->region;
    gbx_status status =
        region->address ? region->hal->ops->free(region->hal, region->address) : NULL;
    gbx_run_info_free(&session->config.run);
    free(session->findings);
    free(session);
    return status;
}

gbx_status gbx_dump_session_begin(const gbx_dump_session_config *config,
                                  gbx_dump_session **out_session) {
    gbx_dump_session *session = calloc(1, sizeof *session);
    *out_session = NULL;
    if (!session) {
        gbx_run_info unused = config->run;
        gbx_run_info_free(&unused);
        return gbx_fail_memory("dumping");
    }
    session->config = *config;
    gbx_status status = begin(session);
    if (status) {
        /* A session that could not begin leaves no dump behind. */
        if (session->store)
            gbx_store_discard(session->store);
        session->store = NULL;
        return gbx_status_first(status, destroy(session));
    }
    *out_session = session;
    return NULL;
}

uint64_t gbx_dump_session_data_base(const gbx_dump_session *session) {
    return session->region.address;
}

uint32_t gbx_dump_session_flags(const gbx_dump_session *session) {
    return session->region.setup.flags;
}

/* --- while it lasts --- */

/* `tensor` is NULL for a scalar. */
static void receive(gbx_dump_session *session, uint32_t index, uint64_t bits, uint32_t dtype,
                    const gbx_tensor *tensor) {
    uint32_t ndims = tensor ? tensor->ndims : 0;
    uint32_t words = sizeof(gbx_record_run_arg) / sizeof(uint64_t) + ndims;
    gbx_store_announce_dtype(session->store, dtype);
    gbx_record_run_arg *to = gbx_store_append(session->store, GBX_RECORD_RUN_ARG, words);
    if (!to)
        return;
    to->head = (gbx_record){.type = GBX_RECORD_RUN_ARG,
                            .stage = GBX_STAGE_NONE,
                            .arg_index = (uint8_t)index,
                            .dtype = (uint8_t)dtype,
                            .ndims = (uint8_t)ndims,
                            .words = words};
    to->is_tensor = tensor != NULL;
    to->bits = bits;
    if (tensor)
        memcpy(to + 1, tensor->shape, ndims * sizeof(uint64_t));
}

gbx_status gbx_dump_session_receive(gbx_dump_session *session, const gbx_run_args *run) {
    for (uint32_t i = 0; session->config.has_args && i < run->tensor_count; ++i)
        receive(session, i, run->tensors[i].data, run->tensors[i].dtype, &run->tensors[i]);
    for (uint32_t i = 0; session->config.has_args && i < run->scalar_count; ++i) {
        uint32_t index = run->tensor_count + i;
        uint32_t dtype = index < session->config.run.argument_count
                             ? session->config.run.arguments[index].dtype
                             : GBX_DTYPE_NONE;
        receive(session, index, run->scalars[i], dtype, NULL);
    }
    return gbx_dump_manager_start(session->collector, &session->manager);
}

void gbx_dump_session_attend(gbx_dump_session *session) {
    if (session->manager)
        gbx_dump_manager_attend(session->manager);
}

/* --- the end --- */

static void collect_rest(gbx_dump_session *session) {
    if (session->is_collected)
        return;
    session->is_collected = true;
    if (session->manager)
        gbx_dump_manager_stop(session->manager);
    else
        gbx_collector_finish(session->collector);
    session->manager = NULL;
}

void gbx_dump_session_conclude(gbx_dump_session *session, const gbx_final_tensor *tensors,
                               size_t count, bool is_in_flight) {
    const gbx_dump_session_config *config = &session->config;
    bool is_full = config->level == GBX_DUMP_FULL;
    bool is_stats = config->level == GBX_DUMP_STATS;
    collect_rest(session);
    if (config->options->filter_count || !(is_full || is_stats))
        return;
    gbx_result_wish wish = {.has_payload = is_full,
                            .has_statistics = is_stats || config->options->has_stats,
                            .is_in_flight = is_in_flight};
    gbx_collector_keep_results(session->collector, tensors, count, wish);
}

void gbx_dump_session_add_findings(gbx_dump_session *session, const gbx_run_finding *findings,
                                   uint32_t count) {
    session->findings = count ? malloc(count * sizeof *findings) : NULL;
    session->finding_count = session->findings ? count : 0;
    if (session->findings)
        memcpy(session->findings, findings, count * sizeof *findings);
    else if (count)
        gbx_log_error("dumping to %s: out of memory for %" PRIu32
                      " findings; they are not in the dump",
                      session->config.options->directory, count);
}

/* The collector's thread has ended: nobody else appends. */
static void append_findings(gbx_dump_session *session) {
    for (uint32_t i = 0; i < session->finding_count; ++i) {
        const gbx_run_finding *finding = &session->findings[i];
        uint32_t words = sizeof(gbx_record_finding) / sizeof(uint64_t);
        gbx_record_finding *to = gbx_store_append(session->store, GBX_RECORD_FINDING, words);
        if (!to)
            return;
        to->head =
            (gbx_record){.type = GBX_RECORD_FINDING,
                         .stage = GBX_STAGE_NONE,
                         .arg_index = GBX_ARG_NONE,
                         .words = words,
                         .task = finding->finder == GBX_FINDING_NO_TASK ? 0 : finding->finder,
                         .time_ns = finding->time_ns};
        to->finding = *finding;
    }
}

static gbx_status finish_store(gbx_dump_session *session, const gbx_dump_ending *ending,
                               const gbx_dump_totals *totals,
                               const gbx_collector_totals *collected) {
    bool is_complete = totals->dropped == 0 && !ending->is_lost;
    int error = gbx_store_disk_error(session->store);
    char text[256] = "ok";
    if (!is_complete)
        snprintf(text, sizeof text, "done, but records were lost%s%s", error ? ": " : "",
                 error ? strerror(error) : "");
    gbx_record_outcome outcome = {.ending = is_complete ? GBX_ENDING_WELL : GBX_ENDING_RECORDS_LOST,
                                  .func_id = GBX_OUTCOME_NO_KERNEL};
    if (ending->error) {
        outcome = ending->outcome;
        outcome.ending = GBX_ENDING_FAILED;
    }
    gbx_record_end end = {
        .head = {.stage = GBX_STAGE_NONE, .flags = is_complete ? GBX_FLAG_COMPLETE : 0},
        .record_count = totals->records + totals->in_flight,
        .task_count = collected->tasks,
        .dispatch_count = totals->dispatches,
        .payload_bytes = totals->payload_bytes,
        .stored_bytes = totals->stored_bytes,
        .deduplicated = totals->deduplicated,
        .dropped = totals->dropped,
        .stall_ns = totals->stall_ns};
    gbx_store_set_sums(session->store, &collected->sums);
    return gbx_store_finish(session->store, &end, ending->error ? ending->error : text, &outcome);
}

/* For levels that keep marked tensors, when none was marked. */
static void warn_of_nothing(const gbx_dump_session *session, const gbx_collector_totals *totals) {
    const gbx_dump_session_config *config = &session->config;
    bool is_empty = (config->level == GBX_DUMP_PARTIAL && totals->dump.records == 0) ||
                    (config->level == GBX_DUMP_HYBRID && totals->dump.payload_bytes == 0 &&
                     !config->options->has_stats);
    if (is_empty && totals->tasks > 0 && config->options->filter_count == 0)
        gbx_log_warning("dumping to %s: no tensor of any task is marked for the dump; mark some "
                        "(gbx_args_dump) or give a filter (--dump-filter)",
                        config->options->directory);
}

/* The first by name, because it is often the only one. */
static void warn_of_skipped(const gbx_dump_session_config *config, const char *file,
                            const gbx_dump_skipped *first, uint64_t count) {
    const bool is_argument = first->head.arg_index != GBX_ARG_NONE;
    const gbx_run_kernel *kernel = gbx_run_info_kernel(&config->run, (uint32_t)first->func_id);
    const char *reason =
        gbx_name_sentence(&gbx_skip_reasons, is_argument && first->reason == GBX_SKIP_NOT_DESCRIBED
                                                 ? (uint32_t)GBX_SKIP_TENSOR_NOT_DESCRIBED
                                                 : (uint32_t)first->reason);
    char argument[24] = "", more[64] = "";
    if (is_argument)
        snprintf(argument, sizeof argument, ", argument %u", first->head.arg_index);
    if (count > 1)
        snprintf(more, sizeof more, "; %" PRIu64 " more were skipped", count - 1);
    gbx_log_warning("dumping to %s: skipped task %" PRIu64 ", kernel %s%s: %s%s; \"skipped\" in %s "
                    "lists all",
                    config->options->directory, first->head.task, kernel ? kernel->name : "?",
                    argument, reason ? reason : "the reason is unknown", more, file);
}

static gbx_status describe_losses(const gbx_dump_session_config *config,
                                  const gbx_collector_totals *collected,
                                  const gbx_dump_totals *totals) {
    const char *directory = config->options->directory;
    const char *file = config->level ? "tensor_dump.json" : "kernel_args_dump.json";
    if (totals->skipped)
        warn_of_skipped(config, file, &collected->first_skipped, totals->skipped);
    if (!totals->dropped)
        return NULL;
    return gbx_fail(
        GBX_LOST, "dumping to %s: %" PRIu64 " %s lost; \"losses\" in %s says which and why",
        directory, totals->dropped, totals->dropped == 1 ? "record was" : "records were", file);
}

gbx_status gbx_dump_session_end(gbx_dump_session *session, const gbx_dump_ending *ending,
                                gbx_dump_totals *out_totals) {
    const gbx_dump_options *options = session->config.options;
    collect_rest(session);
    gbx_collector_totals totals = session->collector->totals;
    /* Frees its memory before the manifests need some. */
    gbx_collector_destroy(session->collector);
    session->collector = NULL;
    *out_totals = totals.dump;
    /* A failed run may not have reached what a filter names. */
    for (size_t i = 0; i < options->filter_count && totals.has_ended && !ending->error; ++i)
        out_totals->unmatched_filters += totals.filter_hits[i] == 0;
    warn_of_nothing(session, &totals);
    append_findings(session);
    const char *code = gbx_code_name((gbx_code)ending->outcome.code);
    session->config.run.result = (gbx_run_result){.status = ending->error ? "failed" : "ok",
                                                  .error = ending->error,
                                                  .code = ending->error ? code : NULL,
                                                  .tasks = ending->tasks,
                                                  .dispatches = ending->dispatches,
                                                  .seconds = (double)ending->device_ns * 1e-9,
                                                  .dump = *out_totals};
    gbx_status status = finish_store(session, ending, out_totals, &totals);
    status = gbx_status_first(status, gbx_run_file_write(&session->config.run, options->directory));
    if (status && gbx_status_code(status) != GBX_LOST) {
        /* The run itself succeeded: only the dump is incomplete. */
        gbx_status cause = status;
        status = gbx_fail(GBX_LOST,
                          "finishing the dump in %s: %s; `glassbox recover %s` keeps what was "
                          "written",
                          options->directory, gbx_status_message(cause), options->directory);
        gbx_status_free(cause);
    }
    status = gbx_status_first(status, describe_losses(&session->config, &totals, out_totals));
    return gbx_status_first(status, destroy(session));
}
