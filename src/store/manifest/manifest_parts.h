/* What the three files of a manifest are made of. Internal to manifest.h. */
#ifndef GBX_STORE_MANIFEST_MANIFEST_PARTS_H
#define GBX_STORE_MANIFEST_MANIFEST_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/manifest/manifest.h"
#include "store/manifest/manifest_file.h"
#include "store/manifest/manifest_names.h"
#include "store/manifest/manifest_text.h"
#include "store/reader.h"

/* Of one call of gbx_manifest_write or gbx_manifest_print. */
typedef struct gbx_manifest {
    const char *run_directory; /* the last component of the dump's directory */
    gbx_reader *reader;
    const gbx_manifest_chosen *chosen; /* NULL: all entries */
    gbx_manifest_names names;
    gbx_float_cache floats;
} gbx_manifest;

/* Each writes the whole text of its file. */
GBX_MUST_USE gbx_status gbx_manifest_put_tensors(gbx_manifest *manifest, gbx_manifest_file *file);
GBX_MUST_USE gbx_status gbx_manifest_put_arguments(gbx_manifest *manifest, gbx_manifest_file *file);
GBX_MUST_USE gbx_status gbx_manifest_put_dispatches(gbx_manifest *manifest,
                                                    gbx_manifest_file *file);

/* The head of tensor_dump.json, up to its `tensors`. */
GBX_MUST_USE gbx_status gbx_manifest_put_tensors_head(gbx_manifest *manifest,
                                                      gbx_manifest_file *file);

/* --- members of the object at the top, one a line --- */

#define GBX_MEMBER(file, literal) gbx_manifest_file_put((file), (literal), sizeof(literal) - 1)

GBX_MUST_USE gbx_status gbx_manifest_member_string(gbx_manifest_file *file, const char *key,
                                                   const char *text);
GBX_MUST_USE gbx_status gbx_manifest_member_number(gbx_manifest_file *file, const char *key,
                                                   uint64_t value);
void gbx_manifest_member_bool(gbx_manifest_file *file, const char *key, bool value);
/* `run`, the same in all files. */
GBX_MUST_USE gbx_status gbx_manifest_member_run(gbx_manifest_file *file, const gbx_run_info *run);

/* --- parts of entries --- */

/* Between the entries of an array, each on a line of its own. */
static inline char *gbx_put_separator(char *at, uint64_t position) {
    return position ? GBX_PUT(at, ",\n") : GBX_PUT(at, "\n");
}

/* Text that may be long: at most a quarter of the room is taken. */
static inline char *gbx_put_text(gbx_manifest_file *file, char *at, const char *text, size_t size) {
    if (__builtin_expect(size < GBX_MANIFEST_ROOM_BYTES / 4, 1)) {
        memcpy(at, text, size);
        return at + size;
    }
    file->at = at;
    gbx_manifest_file_put(file, text, size);
    return file->at;
}

/* The names of role, stage and so on; the values have been checked. */
const char *gbx_manifest_role(uint32_t role);
const char *gbx_manifest_stage(uint32_t stage);

/* Whether readers of JSON hold a number exactly. */
static inline bool gbx_is_exact(uint64_t value) {
    return value >> 53 == 0;
}

static inline bool gbx_is_exact_signed(int64_t value) {
    return gbx_is_exact(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static inline bool gbx_are_exact(const int64_t *values, uint32_t count) {
    bool is_exact = true;
    for (uint32_t i = 0; i < count; ++i)
        is_exact &= gbx_is_exact_signed(values[i]);
    return is_exact;
}

#endif
