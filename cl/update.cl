/* The three vector updates of conjugate gradients (Bueno 2013, section 4.2.2), for any method that needs them. */

/* Next iterate: x += alpha p. */
KERNEL void next_iterate(uint n, real alpha, __global const real *restrict p, __global real *restrict x)
{
    SET_EACH(i, n, x, x[i] + alpha * p[i])
}

/* Next residual: r -= alpha q, with q = A p. */
KERNEL void next_residual(uint n, real alpha, __global const real *restrict q, __global real *restrict r)
{
    SET_EACH(i, n, r, r[i] - alpha * q[i])
}

/* Next direction: p = z + beta p. */
KERNEL void next_direction(uint n, real beta, __global const real *restrict z, __global real *restrict p)
{
    SET_EACH(i, n, p, z[i] + beta * p[i])
}

/* z = d r, element by element: the residual of a scaled system in the units given. */
KERNEL void scale_diagonal(uint n, __global const real *restrict d, __global const real *restrict r,
                           __global real *restrict z)
{
    SET_EACH(i, n, z, d[i] * r[i])
}
