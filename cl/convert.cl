/* Between vectors in the precision of the iteration and those in that of sums, for iterations whose residuals and
 * iterate are in more precision than the rest. */

/* to = from, rounded to nearest. */
KERNEL void narrow(uint n, __global const acc *restrict from, __global real *restrict to)
{
    SET_EACH(i, n, to, (real)from[i])
}

/* x += d; d = 0. */
#if SHAPE_CPU
#define ADD_WIDE                                                                                                       \
    for (uint i = chunk_begin(n), end = chunk_end(n); i < end; i++) {                                                  \
        x[i] += (acc)d[i];                                                                                             \
        d[i] = 0;                                                                                                      \
    }
#else
#define ADD_WIDE EACH(i, n, x[i] += (acc)d[i]; d[i] = 0)
#endif
KERNEL void add_wide(uint n, __global real *restrict d, __global acc *restrict x)
{
    ADD_WIDE
}
