/* Gathers the elements of x that other ranks need into one message: out[i] = x[indices[i]]. */
KERNEL void halo_pack(uint count, __global const uint *restrict indices, __global const real *restrict x,
                      __global real *restrict out)
{
    SET_EACH(i, count, out, x[indices[i]])
}
