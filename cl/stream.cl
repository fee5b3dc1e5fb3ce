/* y = x: the plain copy against which "% of limit" is measured. It moves 2 sizeof(real) bytes an element. */
KERNEL void stream_copy(uint n, __global const real *restrict x, __global real *restrict y)
{
    SET_EACH(i, n, y, x[i])
}
