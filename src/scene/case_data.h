/*
 * The tensors of a case in host memory: what a run is called with, and what a golden is. Inputs are
 * filled once and cannot be written from then on; inouts and outputs are restored before each run.
 */
#ifndef GBX_SCENE_CASE_DATA_H
#define GBX_SCENE_CASE_DATA_H

#include <glassbox/runtime.h>

#include "scene/scene.h"

typedef struct gbx_case_data {
    const gbx_scene_case *source;
    const gbx_scene_arg *args[GBX_MAX_RUN_TENSORS]; /* of each tensor */
    gbx_run_tensor tensors[GBX_MAX_RUN_TENSORS];
    gbx_tensor golden[GBX_MAX_RUN_TENSORS]; /* inputs are those of the run */
    uint64_t scalars[GBX_MAX_RUN_SCALARS];
    const char *scalar_names[GBX_MAX_RUN_SCALARS];
    gbx_dtype scalar_dtypes[GBX_MAX_RUN_SCALARS];
    uint32_t tensor_count;
    uint32_t scalar_count;
    bool has_golden; /* the golden's outputs have memory */
} gbx_case_data;

/* Takes memory and fills the inputs; the caller frees it, also after a failure. */
GBX_MUST_USE gbx_status gbx_case_data_create(const gbx_scene *scene, const gbx_scene_case *one,
                                             gbx_case_data *out_data);
void gbx_case_data_free(gbx_case_data *data);

/* Outputs and inouts as they are before a run. */
GBX_MUST_USE gbx_status gbx_case_data_restore(gbx_case_data *data);

/* Memory of the golden's own, with outputs poisoned and inouts as before a run. */
GBX_MUST_USE gbx_status gbx_case_data_add_golden(gbx_case_data *data);

static inline bool gbx_case_data_is_output(const gbx_case_data *data, uint32_t index) {
    return data->args[index]->role != GBX_SCENE_IN;
}

#endif
