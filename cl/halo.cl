/* Gathers the elements of x that other ranks need into one message: out[k] = x[indices[k]]. */
KERNEL void halo_pack(uint count, __global const uint *restrict indices, __global const real *restrict x,
                      __global real *restrict out)
{
    FOR_EACH(k, count)
        out[k] = x[indices[k]];
}
