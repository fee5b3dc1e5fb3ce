/* Dot product by multi-stage reduction (Bueno 2013, section 4.2.1): each work-item sums its share, each work-group adds
 * the sums of its work-items and writes one partial sum. The host adds the partial sums, in order.
 *
 *   partials[first + g] = sum over the share of group g of x[i] y[i]
 */
KERNEL void dot_partial(uint n, __global const real *restrict x, __global const real *restrict y,
                        __global acc *restrict partials, uint first)
{
    __local acc scratch[GROUP_SIZE];
    acc s = 0;
#if SHAPE_CPU
    uint i = chunk_begin(n), end = chunk_end(n);
    acc8 s8 = 0;
    for (; i + 8 <= end; i += 8)
        s8 += convert_acc8(vload8(0, x + i)) * convert_acc8(vload8(0, y + i));
    for (; i < end; i++)
        s += (acc)x[i] * (acc)y[i];
    s += sum8(s8);
#else
    EACH(i, n, s += (acc)x[i] * (acc)y[i])
#endif
    s = group_sum(s, scratch);
    if (get_local_id(0) == 0)
        partials[first + get_group_id(0)] = s;
}
