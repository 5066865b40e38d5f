#include <inttypes.h>

#include "base/clock.h"
#include "chip/host/chip.h"

/* How often the host looks whether a chip that has not rung is still alive. */
#define LOOK_NS (200 * GBX_NS_PER_MS)
/* The chip's own watchdog speaks first; the host's has this much more patience. */
#define SILENCE_MARGIN_NS (3 * GBX_NS_PER_SECOND)

/* The part of the control block that tells how a launch ended. */
typedef struct control_header {
    uint64_t magic;
    uint64_t finished_launch;
    uint32_t code;
    uint32_t reserved;
    int64_t device_ns;
    uint64_t task_count;
    uint64_t dispatch_count;
} control_header;
_Static_assert(offsetof(control_header, dispatch_count) ==
                   offsetof(gbx_control_block, dispatch_count),
               "the header is the start of the control block");

static gbx_status read_control(gbx_chip *chip, size_t offset, void *to, size_t bytes) {
    return gbx_chip_ops(chip)->copy_out(chip->hal, to, chip->control + offset, bytes);
}

static gbx_status clear_control(gbx_chip *chip) {
    static const char zeros[sizeof(gbx_fault)];
    const gbx_hal_ops *ops = gbx_chip_ops(chip);
    GBX_TRY(ops->copy_in(chip->hal, chip->control + offsetof(gbx_control_block, fault), zeros,
                         sizeof(gbx_fault)));
    return ops->copy_in(chip->hal, chip->control + offsetof(gbx_control_block, message), zeros, 8);
}

/*
 * Sets *out_is_finished once the chip has reported the end of the launch under way. The id comes
 * first and alone: it pairs with the chip's release, so that the rest is read as it was reported.
 */
static gbx_status look(gbx_chip *chip, control_header *out_header, bool *out_is_finished) {
    uint64_t finished_launch;
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, finished_launch), &finished_launch,
                         sizeof finished_launch));
    *out_is_finished = finished_launch == chip->launches;
    if (!*out_is_finished)
        return NULL;
    return read_control(chip, 0, out_header, sizeof *out_header);
}

/* A launch that has ended counts, rung or not, and also when the chip has ended since. */
static gbx_status await_end(gbx_chip *chip, const gbx_chip_launch_config *config,
                            control_header *out_header) {
    int64_t patience_ns = (int64_t)config->timeout_ms * GBX_NS_PER_MS + SILENCE_MARGIN_NS;
    int64_t heard_ns = gbx_clock_ns();
    int64_t looked_ns = heard_ns;
    uint64_t last_heartbeat = 0;
    for (;;) {
        gbx_hal_event event;
        bool is_finished = false;
        GBX_TRY(gbx_chip_ops(chip)->wait(chip->hal, LOOK_NS, &event));
        GBX_TRY(look(chip, out_header, &is_finished));
        if (is_finished)
            return NULL;
        if (event.kind == GBX_HAL_LOST)
            return gbx_chip_report_ending(chip, &event);
        if (config->listener)
            config->listener->attend(config->listener->context);
        uint64_t heartbeat;
        uint64_t tasks_so_far;
        GBX_TRY(read_control(chip, offsetof(gbx_control_block, heartbeat), &heartbeat,
                             sizeof heartbeat));
        GBX_TRY(read_control(chip, offsetof(gbx_control_block, tasks_so_far), &tasks_so_far,
                             sizeof tasks_so_far));
        if (config->progress)
            config->progress(config->progress_context, tasks_so_far);
        int64_t now_ns = gbx_clock_ns();
        /* Time in which the host itself was stopped is not the chip's silence. */
        int64_t away_ns = now_ns - looked_ns - 5 * LOOK_NS;
        looked_ns = now_ns;
        if (away_ns > 0)
            heard_ns += away_ns;
        if (heartbeat != last_heartbeat) {
            last_heartbeat = heartbeat;
            heard_ns = now_ns;
        } else if (now_ns - heard_ns > patience_ns) {
            return gbx_chip_report_silence(chip, now_ns - heard_ns);
        }
    }
}

gbx_status gbx_chip_read_message(gbx_chip *chip, void *to, size_t bytes) {
    return read_control(chip, offsetof(gbx_control_block, message), to, bytes);
}

/* What the chip said, made safe to print. */
static gbx_status read_message(gbx_chip *chip, char *text, size_t bytes) {
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, message), text, bytes));
    text[bytes - 1] = '\0';
    for (char *c = text; *c; ++c)
        if ((unsigned char)*c < ' ' && *c != '\n')
            *c = '?';
    return NULL;
}

static gbx_status describe_end(gbx_chip *chip, const control_header *header) {
    char message[sizeof((gbx_control_block *)0)->message];
    if (header->magic != GBX_CONTROL_MAGIC)
        return gbx_chip_report_scribbled(chip);
    switch (header->code) {
    case GBX_OK:
        return NULL;
    case GBX_DEVICE_FAULT:
    case GBX_DEVICE_HUNG:
        return gbx_chip_report_fault(chip, (gbx_code)header->code);
    case GBX_BAD_KERNEL:
    case GBX_EXHAUSTED:
        GBX_TRY(read_message(chip, message, sizeof message));
        return gbx_fail((gbx_code)header->code, "%s", message);
    case GBX_DEVICE_LOST:
        chip->failure = GBX_DEVICE_LOST;
        return gbx_fail(GBX_DEVICE_LOST,
                        "launching: the chip has failed in the launch before, as that ended; open "
                        "another");
    case GBX_BAD_GRAPH:
        return gbx_fail(GBX_BAD_GRAPH, "the chip found the graph to be wrong");
    default:
        chip->failure = GBX_INTERNAL;
        return gbx_fail(GBX_INTERNAL, "launching: the chip refused it with code %" PRIu32,
                        header->code);
    }
}

gbx_status gbx_chip_launch(gbx_chip *chip, const gbx_chip_launch_config *config,
                           gbx_call_result *out_result) {
    const gbx_hal_ops *ops = gbx_chip_ops(chip);
    gbx_hal_event event;
    chip->fault = (gbx_chip_fault){.place = {.func_id = GBX_NO_KERNEL}};
    GBX_TRY(ops->wait(chip->hal, 0, &event));
    if (event.kind == GBX_HAL_LOST) /* before what it left in the control block is cleared */
        return gbx_chip_report_ending(chip, &event);
    GBX_TRY(ops->copy_in(chip->hal, chip->scratch, config->payload, config->payload_bytes));
    GBX_TRY(clear_control(chip));
    gbx_launch_args launch = {.launch_id = ++chip->launches,
                              .control_block = chip->control,
                              .payload = chip->scratch,
                              .payload_bytes = config->payload_bytes,
                              .entry = config->entry,
                              .timeout_ms = config->timeout_ms};
    if (config->listener) {
        launch.dump_data_base = config->listener->dump_data_base;
        launch.dump_flags = config->listener->dump_flags;
    }
    gbx_status status = ops->launch(chip->hal, &launch);
    /* A chip that is gone is described by its ending, which the wait finds at once. */
    if (status && gbx_status_code(status) != GBX_DEVICE_LOST)
        return status;
    gbx_status_free(status);
    control_header header = {0};
    GBX_TRY(await_end(chip, config, &header));
    if (out_result)
        *out_result = (gbx_call_result){.device_ns = header.device_ns,
                                        .tasks = header.task_count,
                                        .dispatches = header.dispatch_count};
    return describe_end(chip, &header);
}
