/* Products with rows that a text of the caller's forms, one at a time.
 *
 * Defined by the host (src/kernels/own_rows.rs), beside what prelude.cl asks for:
 *   OPERATOR_ARRAYS, OPERATOR_PASS   the caller's arrays, as parameters and as arguments, each behind a comma
 *   SCALED                           1 if the system is scaled: x and y are multiplied by `scale`
 *   operator_row                     the function that has the text, in between the two halves of this file
 *
 * The text sees its `row` of all `n`, and element j of x as X(j), wherever on the rank that is: own elements come first, those of other ranks
 * behind them, in the order of `halo`.
 */
#ifndef OPERATOR_ROW

typedef struct {
    __global const real *x;
    __global const real *scale;
    __global const uint *halo;
    uint first, own, others;
} columns;

static inline real element_of_x(const columns *v, uint j)
{
    uint at = j - v->first;
    if (at >= v->own) {
        uint low = 0, high = v->others;
        while (high - low > 1) {
            const uint middle = (low + high) / 2;
            if (v->halo[middle] <= j)
                low = middle;
            else
                high = middle;
        }
        at = v->own + low;
    }
    return SCALED ? v->x[at] * v->scale[at] : v->x[at];
}

#define X(j) element_of_x(&of_rank, (j))

#else

/* The rank's rows first .. first + own of n, which need `others` elements of other ranks. */
#define OWN_ROWS_ARGS                                                                                                  \
    uint n, uint first, uint own, uint others, __global const uint *restrict halo, __global const real *restrict scale \
        OPERATOR_ARRAYS

#define OWN_ROWS(mode, b, y, s)                                                                                        \
    const columns of_rank = {x, scale, halo, first, own, others};                                                      \
    for (uint i = get_global_id(0); i < own; i += get_global_size(0)) {                                                \
        const real sum = operator_row(first + i, n, of_rank OPERATOR_PASS);                                            \
        finish_row(mode, i, SCALED ? sum * scale[i] : sum, x, b, y, s);                                                \
    }

KERNEL void own_rows_store(OWN_ROWS_ARGS, __global const real *restrict x, __global real *restrict y)
{
    OWN_ROWS(ROWS_PRODUCT, x, y, 0)
}

KERNEL void own_rows_dots(OWN_ROWS_ARGS, __global const real *restrict x, __global real *restrict y,
                          __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    __local dots_scratch scratch[GROUP_SIZE];
    own = *done ? 0 : own;
    dots s;
    no_dots(&s);
    OWN_ROWS(ROWS_DOT, x, y, &s)
    leave_dots(&s, scratch, partials, first_partial);
}

KERNEL void own_rows_residual(OWN_ROWS_ARGS, __global const real *restrict x, __global const real *restrict b,
                              __global real *restrict r)
{
    OWN_ROWS(ROWS_RESIDUAL, b, r, 0)
}

#endif
