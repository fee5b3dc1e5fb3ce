/* What passes over vectors of several columns need beside passes.cl. Element (row, column) of a vector is number row * COLUMNS + column;
 * COLUMNS, a power of two, divides LANES, so that a work-item has elements of one column only.
 */

#if !SHAPE_CPU
/* The sum of s over those lanes of a tile that have the same column, on the first COLUMNS lanes. */
static inline acc columns_sum(acc s, __local acc *scratch)
{
    const uint at = get_local_id(0), lane = at % LANES;
    scratch[at] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint apart = LANES / 2; apart >= COLUMNS; apart /= 2) {
        if (lane < apart) {
            s += scratch[at + apart];
            scratch[at] = s;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return s;
}
#endif

/* totals[to + g] for each group g: the sum of `count` partial sums, `step` apart. They begin at base + g, and after `per` groups `further`
 * behind. */
KERNEL void add_columns(__global const acc *sums, uint base, uint per, uint further, uint step, uint count,
                        __global acc *totals, uint to)
{
    __local acc scratch[GROUP_SIZE];
    const uint group = get_group_id(0), from = base + group / per * further + group % per;
    acc s = 0;
    for (uint k = get_local_id(0); k < count; k += GROUP_SIZE)
        s += sums[from + k * step];
    s = group_sum(s, scratch);
    if (get_local_id(0) == 0)
        totals[to + group] = s;
}

/* Element (row, k) of `to` = element (row, place k) of `from`, which has `of` columns: places have four bits each, those of the first eight
 * columns in `low`.
 */
KERNEL void take_columns(uint n, __global const real *from, uint of, uint low, uint high, __global real *to)
{
#define PLACE(i) (((i) % COLUMNS < 8 ? low >> 4 * ((i) % COLUMNS) : high >> 4 * ((i) % COLUMNS - 8)) & 15)
    SET_EACH(i, n, to, from[i / COLUMNS * of + PLACE(i)])
}
