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
#ifndef LANES
#if GROUP_SIZE < 256
#define LANES GROUP_SIZE
#else
#define LANES 256
#endif
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

/* Of RUN elements side by side x is updated or its update deferred together: see src/backend/deferred.rs. `deferred` is positive
 * where it is even runs that are deferred, negative where it is the odd ones. */
#define IS_EVEN(i) ((i) / RUN % 2 == 0)

/* Whether the update of element i is deferred. */
static inline int is_deferred(uint i, real deferred) { return IS_EVEN(i) ? deferred > 0 : deferred < 0; }

/* What p - r is multiplied by where the update of element i was deferred, else 0. */
static inline real deferred_at(uint i, real deferred) { return fmax(IS_EVEN(i) ? deferred : -deferred, (real)0); }

static inline real finite_or_0(real v) { return isfinite(v) ? v : 0; }
static inline real8 finite_or_0_8(real8 v) { return select((real8)0, v, isfinite(v)); }

/* Pairs of real and imaginary parts: i v, and the sum of what a pair adds to a dot product. */
static inline real2 turned2(real2 v) { return (real2)(-v.s1, v.s0); }
static inline real8 turned8(real8 v) { return (real8)(-v.s1, v.s0, -v.s3, v.s2, -v.s5, v.s4, -v.s7, v.s6); }
static inline acc sum2(acc2 v) { return v.s0 + v.s1; }

/* Scalars are read before sums are formed, so that the one does not wait for the other; but not on CPUs, where PoCL 3.1 loses what is
 * read before a barrier and used behind it. */
#ifndef READ_EARLY
#define READ_EARLY 0
#endif

/* The first partial sum of a total that is this work-item's, who has every LANES-th: on a CPU all of them; on a GPU the first LANES
 * work-items have them. */
static inline uint first_part(void) { return get_local_id(0) < LANES ? get_local_id(0) : UINT_MAX; }
