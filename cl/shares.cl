/* Prepended to scan.cl, compact.cl and sort.cl: how their arrays are shared among groups, and scans within a group.
 *
 * Defined by the host beside what the prelude asks for:
 *   ITEMS        elements of a tile for each work-item: 8 or 16; in the CPU shape any number
 * GROUP_SIZE is 32 or more here, but in the CPU shape.
 *
 * Elements come in tiles of GROUP_SIZE * ITEMS. Each group has a share: neighbouring tiles, at least one if there are
 * elements. An algorithm is several kernels with as many groups each: the first leaves a number for each share, then
 * these numbers are scanned, then each group goes through its share again, from where the shares before it end (reduce,
 * scan, and scan: Blelloch 1990, Prefix sums and their applications; Merrill and Grimshaw 2009, CS2009-14, University
 * of Virginia). No group waits for another within a kernel. Whatever the number of groups, the results are the same.
 *
 *   scan_shares   sums[k] = sums[0] + ... + sums[k - 1] for k <= shares; one group
 *
 * There may be 2^32 - 1 elements: no index here, nor a sum of indices, is more than their number.
 */
#if !defined(ITEMS)
#error "ITEMS must be defined"
#endif

#define TILE (GROUP_SIZE * ITEMS)

/* Asks the compiler to unroll all of the loop that follows, so that its array is in registers. How often it turns is
 * known, but as an expression, which not all compilers take for UNROLL_BY. */
#define UNROLL_ALL PRAGMA(unroll)

/* The first element of a share of n, and, of the share behind the last, n. */
static inline uint share_begin(uint n, uint share)
{
    const ulong tiles = ((ulong)n + TILE - 1) / TILE;
    return (uint)min((ulong)n, tiles * share / get_num_groups(0) * TILE);
}

/* Does what follows for each tile of the group's share of 0..n: `here` elements from `at` on. */
#define EACH_TILE(n, at, here)                                                                                         \
    for (uint at = share_begin(n, get_group_id(0)), at##_end = share_begin(n, get_group_id(0) + 1),                    \
              here = min((uint)TILE, at##_end - at);                                                                   \
         at < at##_end; at += here, here = min((uint)TILE, at##_end - at))

/* GPU shape: for each of ROWS rows of numbers, one of each work-item, s becomes the sum over the work-items before, and
 * all that over all of them; scratch has 2 ROWS GROUP_SIZE numbers and may be reused after. Distances grow fourfold,
 * since it is barriers that cost time. */
#define GROUP_SCAN(NAME, TYPE, ROWS)                                                                                   \
    ALWAYS_INLINE void NAME(TYPE *s, TYPE *all, __local TYPE *scratch)                                                 \
    {                                                                                                                  \
        const uint lane = get_local_id(0);                                                                             \
        __local TYPE *here = scratch, *other = scratch + (ROWS) * GROUP_SIZE, *next;                                   \
        TYPE own[ROWS];                                                                                                \
        UNROLL_ALL                                                                                                     \
        for (uint r = 0; r < (ROWS); r++)                                                                              \
            own[r] = s[r];                                                                                             \
        for (uint apart = 1; apart < GROUP_SIZE; apart *= 4) {                                                         \
            UNROLL_ALL                                                                                                 \
            for (uint r = 0; r < (ROWS); r++)                                                                          \
                here[r * GROUP_SIZE + lane] = s[r];                                                                    \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
            UNROLL_ALL                                                                                                 \
            for (uint r = 0; r < (ROWS); r++) {                                                                        \
                UNROLL_ALL                                                                                             \
                for (uint k = 1; k < 4; k++)                                                                           \
                    if (lane >= k * apart)                                                                             \
                        s[r] += here[r * GROUP_SIZE + lane - k * apart];                                               \
            }                                                                                                          \
            next = other;                                                                                              \
            other = here;                                                                                              \
            here = next;                                                                                               \
        }                                                                                                              \
        if (lane == GROUP_SIZE - 1) {                                                                                  \
            UNROLL_ALL                                                                                                 \
            for (uint r = 0; r < (ROWS); r++)                                                                          \
                here[r] = s[r];                                                                                        \
        }                                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        UNROLL_ALL                                                                                                     \
        for (uint r = 0; r < (ROWS); r++) {                                                                            \
            all[r] = here[r];                                                                                          \
            s[r] -= own[r];                                                                                            \
        }                                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }

/* Leaves the sum of a share. */
GROUP_SUM(group_sum_ulong, ulong, 1)
static inline void leave_share(ulong sum, __local ulong *scratch, __global ulong *sums)
{
    sum = group_sum_ulong(sum, scratch);
    if (get_local_id(0) == 0)
        sums[get_group_id(0)] = sum;
}

#if !SHAPE_CPU
/* Shares that a work-item scans by itself: there are thousands, and one group for them. */
#define SIDE_BY_SIDE 8
GROUP_SCAN(scan_ulong, ulong, 1)
#endif

KERNEL void scan_shares(uint shares, __global ulong *sums)
{
    ulong before = 0;
#if SHAPE_CPU
    for (uint k = 0; k < shares; k++) {
        const ulong own = sums[k];
        sums[k] = before;
        before += own;
    }
    sums[shares] = before;
#else
    __local ulong scratch[2 * GROUP_SIZE];
    const uint lane = get_local_id(0);
    for (uint at = lane * SIDE_BY_SIDE; at - lane * SIDE_BY_SIDE < shares; at += GROUP_SIZE * SIDE_BY_SIDE) {
        ulong own[SIDE_BY_SIDE], s = 0, all;
        UNROLL_ALL
        for (uint k = 0; k < SIDE_BY_SIDE; k++) {
            own[k] = at + k < shares ? sums[at + k] : 0;
            s += own[k];
        }
        scan_ulong(&s, &all, scratch);
        s += before;
        before += all;
        UNROLL_ALL
        for (uint k = 0; k < SIDE_BY_SIDE; k++) {
            if (at + k < shares)
                sums[at + k] = s;
            s += own[k];
        }
    }
    if (lane == 0)
        sums[shares] = before;
#endif
}
