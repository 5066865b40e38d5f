#include <math.h>

#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    int64_t rows = extent(args, 0, 0), columns = extent(args, 0, 1);
    double total = 0.0;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 1; j < columns; ++j)
            total += pow((double)*at(args, 0, i, j) - *at(args, 0, i, j - 1), 2.0);
    *at(args, 1, 0, 0) = (float)sqrt(total / (double)(rows * (columns - 1)));
}
