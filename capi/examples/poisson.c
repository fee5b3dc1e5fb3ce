/* Solves -u'' - u_yy = 1 on a square by finite differences, twice: for one right-hand side by arrays that the program keeps, and for three
 * at once. Checks b - A x itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <declive.h>

/* The five-point matrix of a grid of side x side points. */
typedef struct {
    int64_t n, nnz;
    int64_t *row_ptr;
    int32_t *col_idx;
    double *values;
} matrix;

static void add(matrix *a, int64_t column, double value) {
    a->col_idx[a->nnz] = (int32_t)column;
    a->values[a->nnz++] = value;
}

static matrix grid(int64_t side) {
    matrix a = {side * side, 0, NULL, NULL, NULL};
    a.row_ptr = malloc((size_t)(a.n + 1) * sizeof *a.row_ptr);
    a.col_idx = malloc((size_t)(5 * a.n) * sizeof *a.col_idx);
    a.values = malloc((size_t)(5 * a.n) * sizeof *a.values);
    if (!a.row_ptr || !a.col_idx || !a.values)
        exit(EXIT_FAILURE);
    for (int64_t row = 0; row < a.n; row++) {
        int64_t i = row % side, j = row / side;
        a.row_ptr[row] = a.nnz;
        if (j > 0)
            add(&a, row - side, -1);
        if (i > 0)
            add(&a, row - 1, -1);
        add(&a, row, 4);
        if (i < side - 1)
            add(&a, row + 1, -1);
        if (j < side - 1)
            add(&a, row + side, -1);
    }
    a.row_ptr[a.n] = a.nnz;
    return a;
}

/* ||b - A x|| / ||b||. */
static double residual(const matrix *a, const double *b, const double *x) {
    double r2 = 0, b2 = 0;
    for (int64_t row = 0; row < a->n; row++) {
        double r = b[row];
        for (int64_t k = a->row_ptr[row]; k < a->row_ptr[row + 1]; k++)
            r -= a->values[k] * x[a->col_idx[k]];
        r2 += r * r;
        b2 += b[row] * b[row];
    }
    return sqrt(r2 / b2);
}

/* Ends the program with the message of the library. */
static void check(int code) {
    if (code != DECLIVE_OK) {
        fprintf(stderr, "%s\n", declive_last_error());
        exit(EXIT_FAILURE);
    }
}

static int watch(void *user, int64_t iterations, double relative_residual, double target, double seconds) {
    (void)relative_residual, (void)target, (void)seconds;
    *(int64_t *)user = iterations;
    return 0; /* go on */
}

int main(void) {
    enum { SIDE = 60, COLUMNS = 3 };
    matrix a = grid(SIDE);
    double *b = malloc((size_t)(COLUMNS * a.n) * sizeof *b);
    double *x = malloc((size_t)(COLUMNS * a.n) * sizeof *x);
    if (!b || !x)
        return EXIT_FAILURE;
    for (int64_t k = 0; k < COLUMNS * a.n; k++)
        b[k] = (double)(1 + k / a.n);

    declive_solver *s = NULL;
    int64_t seen = 0;
    check(declive_create(&s));
    check(declive_set(s, "method", "cg"));
    check(declive_set(s, "rtol", "1e-10"));
    check(declive_set_progress(s, watch, &seen));
    check(declive_set_csr_i64_i32(s, a.n, a.n, a.nnz, a.row_ptr, a.col_idx, a.values, DECLIVE_BORROW));

    check(declive_solve(s, b, x));
    declive_outcome outcome;
    check(declive_get_outcome(s, 0, &outcome, sizeof outcome));
    double worst = residual(&a, b, x);
    printf("declive %s, %s: %s, %lld iterations, ||b - A x|| / ||b|| = %.2e\n", declive_version(), declive_method(s),
           declive_reason_text(s, 0), (long long)outcome.iterations, worst);

    /* the first solution is a good guess for the first column */
    for (int64_t k = a.n; k < COLUMNS * a.n; k++)
        x[k] = 0;
    check(declive_solve_columns(s, COLUMNS, b, x, DECLIVE_GUESS));
    for (int k = 0; k < COLUMNS; k++)
        worst = fmax(worst, residual(&a, b + k * a.n, x + k * a.n));
    printf("%d right-hand sides: %.2e at the most\n", COLUMNS, worst);

    /* after this the arrays are the program's alone */
    check(declive_destroy(s));
    free(a.row_ptr), free(a.col_idx), free(a.values), free(b), free(x);
    return worst <= 1.1e-10 ? EXIT_SUCCESS : EXIT_FAILURE;
}
