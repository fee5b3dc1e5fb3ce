/* What generated passes need beside the prelude: src/backend/source.rs writes the rest. A pass sets vectors to linear combinations
 * and leaves sums of products of elements.
 *
 * Sums do not depend on the launch: elements belong to *tiles*, and each tile leaves one partial sum, formed in an order of its own; a
 * group takes one tile or several. Whoever needs the sum adds the partial sums, in an order of their own, too.
 *
 * GPU shape: LANES neighbouring elements belong to a tile, the next LANES to the next tile, and so on in turns, so that all tiles
 * together move over the vectors as one front. LANES work-items take one or more tiles side by side. Each keeps its own sum for each
 * tile, of the tile's elements from the last to the first, as products go from the first to the last and leave the last in the
 * cache; these sums meet in a tree over the lanes. CPU shape: a tile is a run of neighbouring elements, which one work-item takes
 * in vectors of 8.
 */
#if GROUP_SIZE < 256
#define LANES GROUP_SIZE
#else
#define LANES 256
#endif

#if SHAPE_CPU
/* Elements of a tile, a multiple of 8. */
static inline uint tile_len(uint n, uint tiles) { return (n / tiles + 8) / 8 * 8; }
#endif

/* The sum of s over the lanes of a tile; over those of the group's first tile, on all work-items. */
#if SHAPE_CPU
#define LANES_SUM(NAME, TYPE)                                                                                          \
    static inline TYPE NAME(TYPE s, __local TYPE *scratch) { return s; }                                               \
    static inline TYPE first_##NAME(TYPE s, __local TYPE *scratch) { return s; }
#else
#define LANES_SUM(NAME, TYPE)                                                                                          \
    static inline TYPE tree_##NAME(TYPE s, uint base, uint result, __local TYPE *scratch)                              \
    {                                                                                                                  \
        uint at = get_local_id(0), lane = at - base, n = LANES;                                                        \
        scratch[at] = s;                                                                                               \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (; n > FAN; n /= FAN) {                                                                                    \
            if (lane < n / FAN) {                                                                                      \
                UNROLL_BY(FAN)                                                                                         \
                for (uint k = 1; k < FAN; k++)                                                                         \
                    s += scratch[at + k * (n / FAN)];                                                                  \
                scratch[at] = s;                                                                                       \
            }                                                                                                          \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        s = scratch[result];                                                                                           \
        for (uint k = 1; k < n; k++)                                                                                   \
            s += scratch[result + k];                                                                                  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        return s;                                                                                                      \
    }                                                                                                                  \
    static inline TYPE NAME(TYPE s, __local TYPE *scratch)                                                             \
    {                                                                                                                  \
        uint base = get_local_id(0) / LANES * LANES;                                                                   \
        return tree_##NAME(s, base, base, scratch);                                                                    \
    }                                                                                                                  \
    static inline TYPE first_##NAME(TYPE s, __local TYPE *scratch)                                                     \
    {                                                                                                                  \
        return tree_##NAME(s, get_local_id(0) / LANES * LANES, 0, scratch);                                            \
    }
#endif

LANES_SUM(lanes_sum, acc)
LANES_SUM(lanes_sum2, acc2)
LANES_SUM(lanes_sum4, acc4)

/* This work-item's part of a total of partial sums: on a CPU all of it; on a GPU the first LANES have all of it. */
static inline acc part_of_total(__global const acc *partials, uint count, uint stride)
{
    acc s = 0;
    if (get_local_id(0) < LANES)
        for (uint i = get_local_id(0); i < count; i += LANES)
            s += partials[i * stride];
    return s;
}
