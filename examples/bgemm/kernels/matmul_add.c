/* c += a . b: every further product of a tile. */
#include "tile.h"

void kernel_entry(const uint64_t *args) {
    multiply_tile(gbx_arg_tensor(args, 0), gbx_arg_tensor(args, 1), gbx_arg_tensor(args, 2), 1);
}
