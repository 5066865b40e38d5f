/* What c must be, computed without the kernels: c[batch] = a[batch] . b[batch], summed in double.
 */
#include <stdlib.h>

#include <glassbox/orchestration.h>

/* Sums at a time, so that they stay in registers; what is beyond the matrix is zero. */
enum { ROWS = 4, COLUMNS = 32, LANES = 8, VECTORS = COLUMNS / LANES };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));

/* One matrix: rows x depth times depth x columns. */
typedef struct matmul {
    const uint16_t *a, *b;
    float *c;
    int64_t rows, depth, columns;
    double *a_values; /* [depth][ROWS] for every ROWS rows of a */
    double *b_values; /* [depth][COLUMNS]: some columns of b */
} matmul;

static void convert_a(const matmul *m) {
    for (int64_t row = 0; row < m->rows; row += ROWS)
        for (int64_t k = 0; k < m->depth; ++k)
            for (int64_t i = 0; i < ROWS; ++i)
                m->a_values[row * m->depth + k * ROWS + i] =
                    row + i < m->rows ? gbx_f16_to_f32(m->a[(row + i) * m->depth + k]) : 0.0;
}

static void convert_b(const matmul *m, int64_t column) {
    for (int64_t k = 0; k < m->depth; ++k)
        for (int64_t j = 0; j < COLUMNS; ++j)
            m->b_values[k * COLUMNS + j] =
                column + j < m->columns ? gbx_f16_to_f32(m->b[k * m->columns + column + j]) : 0.0;
}

static void sum(const matmul *m, int64_t row, int64_t column) {
    const double *a = m->a_values + row * m->depth;
    const lanes *b = (const lanes *)m->b_values;
    lanes sums[ROWS][VECTORS] = {{{0.0}}};
    for (int64_t k = 0; k < m->depth; ++k)
        for (int i = 0; i < ROWS; ++i)
            for (int v = 0; v < VECTORS; ++v)
                sums[i][v] += a[k * ROWS + i] * b[k * VECTORS + v];
    for (int64_t i = 0; i < ROWS && row + i < m->rows; ++i)
        for (int64_t j = 0; j < COLUMNS && column + j < m->columns; ++j)
            m->c[(row + i) * m->columns + column + j] = (float)sums[i][j / LANES][j % LANES];
}

static void multiply(const matmul *m) {
    convert_a(m);
    for (int64_t column = 0; column < m->columns; column += COLUMNS) {
        convert_b(m, column);
        for (int64_t row = 0; row < m->rows; row += ROWS)
            sum(m, row, column);
    }
}

int golden(const gbx_run_args *run) {
    const gbx_tensor *a = &run->tensors[0], *b = &run->tensors[1], *c = &run->tensors[2];
    matmul m = {.rows = c->shape[1], .depth = a->shape[2], .columns = c->shape[2]};
    m.a_values = malloc((size_t)((m.rows + ROWS) * m.depth) * sizeof *m.a_values);
    m.b_values = malloc((size_t)(COLUMNS * m.depth) * sizeof *m.b_values);
    int is_ready = m.a_values && m.b_values;
    for (int64_t batch = 0; is_ready && batch < c->shape[0]; ++batch) {
        m.a = (const uint16_t *)gbx_tensor_origin(a, sizeof(uint16_t)) + batch * m.rows * m.depth;
        m.b =
            (const uint16_t *)gbx_tensor_origin(b, sizeof(uint16_t)) + batch * m.depth * m.columns;
        m.c = gbx_tensor_f32(c) + batch * m.rows * m.columns;
        multiply(&m);
    }
    free(m.b_values);
    free(m.a_values);
    return is_ready ? 0 : 1;
}
