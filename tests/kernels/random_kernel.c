/* A task of a random graph; TENSORS is given when it is compiled. */
#include "random_graph.h"

void kernel_entry(const uint64_t *args) {
    random_kernel(args, TENSORS);
}
