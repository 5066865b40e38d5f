/* What the parts of the reader of scene.json share. */
#ifndef GBX_SCENE_SCENE_FIELDS_H
#define GBX_SCENE_SCENE_FIELDS_H

#include "scene/scene.h"
#include "text/json_reader.h"

#define GBX_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* An optional string; NULL when it is not there. */
GBX_MUST_USE gbx_status gbx_field_text(const gbx_cursor *object, const char *name,
                                       const char **out_text);

/* An optional number that is not negative; -1 when it is not there. */
GBX_MUST_USE gbx_status gbx_field_tolerance(const gbx_cursor *object, const char *name,
                                            double *out_value);

/* A path of a file that is there, made usable from the working directory; the caller frees it. */
GBX_MUST_USE gbx_status gbx_field_file(const gbx_cursor *field, const gbx_scene *scene,
                                       char **out_path);

/* A string that is not empty. */
GBX_MUST_USE gbx_status gbx_field_name(const gbx_cursor *field, const char **out_text);

/* Zeroed memory for an array, or a failure that says what for. */
GBX_MUST_USE gbx_status gbx_field_allocate(size_t count, size_t size, const char *what,
                                           void *out_pointer);

/* The names of gbx_scene_role. */
extern const char *const gbx_scene_role_names[4];

GBX_MUST_USE gbx_status gbx_scene_read_kernels(const gbx_cursor *root, gbx_scene *scene);
GBX_MUST_USE gbx_status gbx_scene_read_cases(const gbx_cursor *root, gbx_scene *scene);

void gbx_scene_free_kernels(gbx_scene *scene);
void gbx_scene_free_cases(gbx_scene *scene);

#endif
