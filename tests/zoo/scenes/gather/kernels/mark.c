/*
 * A hash of each id. A record is a byte that says how far to shift, then a seed of four bytes,
 * little endian, then four bytes that are not used here.
 */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *ids = gbx_arg_tensor(args, 0);
    const int32_t *id = gbx_tensor_origin(ids, sizeof *id);
    const uint8_t *record = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *record);
    int32_t *marks = gbx_tensor_origin(gbx_arg_tensor(args, 2), sizeof *marks);
    unsigned shift = record[0] % 32;
    uint32_t seed;
    memcpy(&seed, record + 1, sizeof seed);
    for (int64_t i = 0; i < ids->shape[0]; ++i) {
        uint32_t hash = seed * 31 + (uint32_t)id[i];
        marks[i] = (int32_t)(hash ^ 1u << shift);
    }
}
