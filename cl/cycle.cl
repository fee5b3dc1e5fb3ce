/* What a multigrid cycle does beside products, on matrices whose diagonal is 1 (src/precond/amg). Vectors are in single precision, the
 * residual that it is applied to in that of the iteration.
 *
 * The smoother is a polynomial of degree 2 (Lottes 2023, doi 10.1002/nla.2518): d1 = add1 r, d2 = keep d1 + add2 (r - A d1),
 * x += weight1 d1 + weight2 d2. */
typedef struct {
    real add1, keep, add2, weight1, weight2;
} polynomial;
#define POLYNOMIAL real add1, real keep, real add2, real weight1, real weight2
#define POLYNOMIAL_HERE const polynomial of = {add1, keep, add2, weight1, weight2}

/* What both steps add to an element of x whose residual is r, where t = A r. */
static inline real gain(const polynomial *of, real r, real t)
{
    const real first = of->add1 * r;
    const real second = of->keep * first + of->add2 * (r - of->add1 * t);
    return of->weight1 * first + of->weight2 * second;
}

/* to = scale from, rounded to single precision, from place `first` of `to` on. */
KERNEL void cycle_enter(uint n, uint first, __global const acc *restrict scale, __global const acc *restrict from,
                        __global real *restrict to)
{
    SET_EACH(i, n, (to + first), (real)(scale[i] * from[i]))
}

/* to = scale from, which begins at place `first`. */
KERNEL void cycle_leave(uint n, uint first, __global const acc *restrict scale, __global const real *restrict from,
                        __global acc *restrict to)
{
    from += first;
    SET_EACH(i, n, to, scale[i] * (acc)from[i])
}

/* Smooths from x = 0, for the right-hand side b and t = A b. */
KERNEL void cycle_from_zero(uint n, POLYNOMIAL, __global const real *restrict b, __global const real *restrict t,
                            __global real *restrict x)
{
    POLYNOMIAL_HERE;
    SET_EACH(i, n, x, gain(&of, b[i], t[i]))
}

/* Smooths from the x that is there, whose residual is r, for t = A r. */
KERNEL void cycle_smooth(uint n, POLYNOMIAL, __global const real *restrict r, __global const real *restrict t,
                         __global real *restrict x)
{
    POLYNOMIAL_HERE;
    SET_EACH(i, n, x, x[i] + gain(&of, r[i], t[i]))
}

/* x = X b with the n x n matrix X, row by row: a group has a row, or the CPU shape several. */
KERNEL void cycle_dense(uint n, __global const real *restrict matrix, __global const real *restrict b,
                        __global real *restrict x)
{
#if SHAPE_CPU
    for (uint row = get_group_id(0); row < n; row += get_num_groups(0)) {
        acc sum = 0;
        for (uint j = 0; j < n; j++)
            sum += (acc)matrix[row * n + j] * (acc)b[j];
        x[row] = (real)sum;
    }
#else
    __local acc scratch[GROUP_SIZE];
    for (uint row = get_group_id(0); row < n; row += get_num_groups(0)) {
        acc sum = 0;
        for (uint j = get_local_id(0); j < n; j += GROUP_SIZE)
            sum += (acc)matrix[row * n + j] * (acc)b[j];
        sum = group_sum(sum, scratch);
        if (get_local_id(0) == 0)
            x[row] = (real)sum;
    }
#endif
}
