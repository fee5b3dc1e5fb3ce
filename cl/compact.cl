/* What flags pick out of an array. A flag is a byte, set if it is not 0.
 *
 *   compact_sums      sums[share] = how many flags of the share are set
 *   compact_indices   to[k] = the index of the flag that is number k of those set, where sums is what scan_shares has
 *                     made of them
 *   compact_values    to[k] = the value there
 *
 * Read n bytes and again n bytes, and, of values, those that are picked; written is a uint for each flag that is set.
 *
 * GPU shape: a work-item takes ITEMS flags side by side; the group gathers the places of a tile that are set in local
 * memory, so that it writes them side by side. CPU shape: flag by flag, with what is set of a tile at hand before it is
 * written, so that nothing depends on a branch. A tile has at most 2^16 flags.
 */
#if !SHAPE_CPU
GROUP_SCAN(scan_counts, uint, 1)

/* Of four flags: 1 in the byte of each that is set. */
#define FLAGS_SET(flags) ((((flags)&0x7F7F7F7Fu) + 0x7F7F7F7Fu | (flags)) >> 7 & 0x01010101u)
/* The sum of the bytes of a word, if it is below 256. */
#define SUM_OF_BYTES(word) ((word) * 0x01010101u >> 24)
#endif

KERNEL void compact_sums(uint n, __global const uchar *flags, __global ulong *sums)
{
    const uint begin = share_begin(n, get_group_id(0)), end = share_begin(n, get_group_id(0) + 1);
    __local ulong scratch[GROUP_SIZE];
    uint sum = 0;
#if SHAPE_CPU
    for (uint i = begin; i < end; i++)
        sum += flags[i] != 0;
#else
    const uint lane = get_local_id(0);
    __global const uint2 *runs = (__global const uint2 *)flags;
    UNROLL_BY(4)
    for (uint i = begin / 8 + lane; i < end / 8; i += GROUP_SIZE) {
        const uint2 run = runs[i];
        sum += SUM_OF_BYTES(FLAGS_SET(run.s0) + FLAGS_SET(run.s1));
    }
    for (uint i = lane; i < end % 8; i += GROUP_SIZE)
        sum += flags[end / 8 * 8 + i] != 0;
#endif
    leave_share(sum, scratch, sums);
}

/* VALUE may depend on i, an index. */
#if SHAPE_CPU
#define COMPACT(n, sums, flags, to, VALUE)                                                                             \
    ushort places[TILE];                                                                                               \
    uint next = (uint)sums[get_group_id(0)];                                                                           \
    EACH_TILE (n, at, here) {                                                                                          \
        uint all = 0;                                                                                                  \
        for (uint k = 0; k < here; k++) {                                                                              \
            places[all] = (ushort)k;                                                                                   \
            all += flags[at + k] != 0;                                                                                 \
        }                                                                                                              \
        for (uint k = 0; k < all; k++) {                                                                               \
            const uint i = at + places[k];                                                                             \
            to[next + k] = VALUE;                                                                                      \
        }                                                                                                              \
        next += all;                                                                                                   \
    }
#else
/* The flags that are set of the `here` ones of a tile: places get them in order. Tells how many. */
ALWAYS_INLINE uint set_places(uint here, __global const uchar *flags, __local uint *scratch, __local ushort *places)
{
    const uint first = get_local_id(0) * ITEMS;
    uint set[ITEMS / 4], s = 0, all;
    UNROLL_ALL
    for (uint w = 0; w < ITEMS / 4; w++) {
        const uint place = first + 4 * w;
        if (here == TILE) {
            set[w] = FLAGS_SET(((__global const uint *)flags)[place / 4]);
        } else {
            set[w] = 0;
            UNROLL_ALL
            for (uint k = 0; k < 4; k++)
                set[w] |= (uint)(place + k < here && flags[place + k] != 0) << 8 * k;
        }
        s += SUM_OF_BYTES(set[w]);
    }
    scan_counts(&s, &all, scratch);
    UNROLL_ALL
    for (uint k = 0; k < ITEMS; k++)
        if (set[k / 4] >> k % 4 * 8 & 1)
            places[s++] = (ushort)(first + k);
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}

#define COMPACT(n, sums, flags, to, VALUE)                                                                             \
    __local uint scratch[2 * GROUP_SIZE];                                                                              \
    __local ushort places[TILE];                                                                                       \
    uint next = (uint)sums[get_group_id(0)];                                                                           \
    EACH_TILE (n, at, here) {                                                                                          \
        const uint all = set_places(here, flags + at, scratch, places);                                                \
        for (uint k = get_local_id(0); k < all; k += GROUP_SIZE) {                                                     \
            const uint i = at + places[k];                                                                             \
            to[next + k] = VALUE;                                                                                      \
        }                                                                                                              \
        next += all;                                                                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }
#endif

KERNEL void compact_indices(uint n, __global const ulong *sums, __global const uchar *flags, __global uint *to)
{
    COMPACT(n, sums, flags, to, i)
}

KERNEL void compact_values(uint n, __global const ulong *sums, __global const uchar *flags,
                           __global const uint *restrict values, __global uint *restrict to)
{
    COMPACT(n, sums, flags, to, values[i])
}
