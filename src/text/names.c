#include "text/names.h"

#include <glassbox/finding.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/chip.h>
#include <glassbox/dump.h>
#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>

#define SET(table, first, end)                                                                     \
    {.rows = (table), .count = (end)};                                                             \
    static_assert(sizeof(table) / sizeof *(table) == (end) && (first) == 0, "a row for each number")

static const gbx_name parameters[] = {
    [GBX_ROLE_INPUT] = {.name = "input", .brief = "in"},
    [GBX_ROLE_OUTPUT] = {.name = "output", .brief = "out"},
    [GBX_ROLE_INOUT] = {.name = "inout", .brief = "inout"},
    [GBX_PARAMETER_SCALAR] = {.name = "scalar", .brief = "scalar"},
};
const gbx_name_set gbx_parameters = SET(parameters, GBX_ROLE_INPUT, GBX_PARAMETER_COUNT);
const gbx_name_set gbx_roles = {.rows = parameters, .count = GBX_PARAMETER_SCALAR};

static const gbx_name stages[] = {
    [GBX_STAGE_BEFORE] = {.name = "before_dispatch", .brief = "before"},
    [GBX_STAGE_AFTER] = {.name = "after_completion", .brief = "after"},
};
const gbx_name_set gbx_stages = SET(stages, GBX_STAGE_BEFORE, GBX_STAGE_COUNT);

static const gbx_name kinds[] = {
    [GBX_KIND_TENSOR] = {.name = "tensor", .brief = "tensor"},
    [GBX_KIND_SCALAR] = {.name = "scalar", .brief = "scalar"},
};
const gbx_name_set gbx_kinds = SET(kinds, GBX_KIND_TENSOR, GBX_KIND_COUNT);

static const gbx_name subtasks[] = {
    [GBX_SUBTASK_AIC] = {.name = "aic", .brief = "aic"},
    [GBX_SUBTASK_AIV0] = {.name = "aiv0", .brief = "aiv0"},
    [GBX_SUBTASK_AIV1] = {.name = "aiv1", .brief = "aiv1"},
};
const gbx_name_set gbx_subtasks = SET(subtasks, GBX_SUBTASK_AIC, GBX_SUBTASK_COUNT);

static const gbx_name core_types[] = {
    [GBX_CORE_AIC] = {.name = "aic", .brief = "aic"},
    [GBX_CORE_AIV] = {.name = "aiv", .brief = "aiv"},
};
const gbx_name_set gbx_core_types = SET(core_types, GBX_CORE_AIC, GBX_CORE_AIV + 1);

static const gbx_name dump_levels[] = {
    [GBX_DUMP_OFF] = {.name = NULL, .brief = NULL},
    [GBX_DUMP_FULL] = {.name = "full", .brief = "full"},
    [GBX_DUMP_PARTIAL] = {.name = "partial", .brief = "partial"},
    [GBX_DUMP_HYBRID] = {.name = "hybrid", .brief = "hybrid"},
    [GBX_DUMP_STATS] = {.name = "stats", .brief = "stats"},
};
const gbx_name_set gbx_dump_levels = SET(dump_levels, GBX_DUMP_OFF, GBX_DUMP_STATS + 1);

static const gbx_name loss_causes[] = {
    [GBX_LOSS_STALL] = {"stall", "stall", "there was no room within the stall timeout"},
    [GBX_LOSS_DISK] = {"disk", "disk", "the disk failed or was full"},
    [GBX_LOSS_CORRUPT] = {"corrupt", "corrupt", "a kernel wrote over the memory of the dump"},
    [GBX_LOSS_DEVICE] = {"device", "device", "the chip ended before the records were handed over"},
    [GBX_LOSS_UNKNOWN] = {"not told", "not told", "the dump does not say why"},
};
const gbx_name_set gbx_loss_causes = SET(loss_causes, GBX_LOSS_STALL, GBX_LOSS_CAUSE_COUNT);

static const gbx_name skip_reasons[] = {
    [GBX_SKIP_NOT_DESCRIBED] = {"undescribed", "undescribed",
                                "the tensors of the task were never described"},
    [GBX_SKIP_MISMATCH] = {"misdescribed", "misdescribed",
                           "the description of the argument does not match what the kernel gets"},
};
const gbx_name_set gbx_skip_reasons =
    SET(skip_reasons, GBX_SKIP_NOT_DESCRIBED, GBX_SKIP_REASON_COUNT);

static const gbx_name finding_kinds[] = {
    [GBX_RUN_FINDING_OVERRUN] = {"overrun", "overrun", NULL},
    [GBX_RUN_FINDING_UNDERRUN] = {"underrun", "underrun", NULL},
    [GBX_RUN_FINDING_STRAY] = {"stray", "stray", NULL},
    [GBX_RUN_FINDING_ARGUMENTS] = {"arguments_overwritten", "arguments", NULL},
};
const gbx_name_set gbx_run_finding_kinds = {finding_kinds, GBX_RUN_FINDING_ARGUMENTS + 1};

static const gbx_name finding_places[] = {
    [GBX_PLACE_RUN_ARGUMENT] = {"run_argument", "run", NULL},
    [GBX_PLACE_ALLOCATION] = {"allocation", "allocation", NULL},
    [GBX_PLACE_DEVICE_MALLOC] = {"device_malloc", "malloc", NULL},
    [GBX_PLACE_OUTPUT] = {"output", "output", NULL},
    [GBX_PLACE_ARGUMENTS] = {"arguments", "arguments", NULL},
    [GBX_PLACE_OWN] = {"own", "own", NULL},
};
const gbx_name_set gbx_run_finding_places = {finding_places, GBX_PLACE_OWN + 1};

static const gbx_name finding_certainties[] = {
    [GBX_CERTAINTY_OPEN] = {"open", "open", NULL},
    [GBX_CERTAINTY_LIKELY] = {"likely", "likely", NULL},
    [GBX_CERTAINTY_SURE] = {"sure", "sure", NULL},
};
const gbx_name_set gbx_run_finding_certainties = {finding_certainties, GBX_CERTAINTY_SURE + 1};

const char *gbx_name_of(const gbx_name_set *set, uint32_t number) {
    return number < set->count ? set->rows[number].name : NULL;
}

const char *gbx_name_brief(const gbx_name_set *set, uint32_t number) {
    return number < set->count ? set->rows[number].brief : NULL;
}

const char *gbx_name_sentence(const gbx_name_set *set, uint32_t number) {
    return number < set->count ? set->rows[number].sentence : NULL;
}

bool gbx_name_find(const gbx_name_set *set, const char *text, uint32_t *out_number) {
    for (uint32_t i = 0; i < set->count; ++i) {
        const gbx_name *row = &set->rows[i];
        if (row->name && (strcmp(row->name, text) == 0 || strcmp(row->brief, text) == 0)) {
            *out_number = i;
            return true;
        }
    }
    return false;
}

bool gbx_parameter_read(const char *word, size_t length, uint32_t *out_parameter,
                        const char **out_dtype) {
    static const char prefix[] = "scalar:";
    *out_dtype = NULL;
    if (length > sizeof prefix - 1 && memcmp(word, prefix, sizeof prefix - 1) == 0) {
        *out_parameter = GBX_PARAMETER_SCALAR;
        *out_dtype = word + sizeof prefix - 1;
        return true;
    }
    for (uint32_t i = 0; i < GBX_PARAMETER_COUNT; ++i)
        if (strlen(parameters[i].brief) == length &&
            memcmp(parameters[i].brief, word, length) == 0) {
            *out_parameter = i;
            return true;
        }
    return false;
}

static size_t append(char *out_text, size_t capacity, size_t used, const char *word) {
    int length = snprintf(out_text + used, capacity - used, "%s%s", used ? ", " : "", word);
    return used + (size_t)length < capacity ? used + (size_t)length : capacity - 1;
}

void gbx_name_list(const gbx_name_set *set, char *out_text, size_t capacity) {
    size_t used = 0;
    out_text[0] = '\0';
    for (uint32_t i = 0; i < set->count; ++i)
        if (set->rows[i].name)
            used = append(out_text, capacity, used, set->rows[i].name);
    for (uint32_t i = 0; i < set->count; ++i)
        if (set->rows[i].name && strcmp(set->rows[i].name, set->rows[i].brief) != 0)
            used = append(out_text, capacity, used, set->rows[i].brief);
}
