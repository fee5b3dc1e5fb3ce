/* Products of sparse matrices C = A B, row by row (Gustavson 1978, doi 10.1145/355791.355796), in tables of columns and sums.
 *
 * A row has a table of SLOTS_EACH slots for each of its lanes, `lanes` neighbouring work-items, in local memory, or in `product_*_long` a
 * group has one in global memory. A column is put into the first slot from a hash on that is free, by an atomic exchange; which slots
 * columns have does not matter. Rows of B are added one after the other, with a barrier between them, and each has a column once at most:
 * so no two lanes add to a sum at once, and all sums are formed in the order of A's entries, as on the host, whatever runs when.
 *
 * Rows come in bins by a bound for their entries. First product_count tells how many entries rows have, then product_fill makes them.
 */
#define SLOTS_EACH 16
#define ROOM (GROUP_SIZE * SLOTS_EACH)

/* No column. */
#define EMPTY 0xFFFFFFFFu

/* Lanes that take a row of B together where the order does not matter, at most. */
#define TOGETHER 4

/* The fewest lanes of a row. */
#define FEWEST 2

/* A row in a bin has at most so many entries, or may have: three quarters of the slots of 2, 4, 8, 32 and 128 lanes. */
#define BINS 6
static inline uint bin_of(uint length)
{
    return length <= 24 ? 0 : length <= 48 ? 1 : length <= 96 ? 2 : length <= 384 ? 3 : length <= 1536 ? 4 : 5;
}

#define EACH_ROW(i, n) for (uint i = get_global_id(0); i < (n); i += get_global_size(0))
/* RESTRICT stands in kernels only: inlined functions with it are more than some tools understand. */
#define OPERANDS(RESTRICT)                                                                                             \
    __global const uint *RESTRICT a_starts, __global const uint *RESTRICT a_columns, __global const uint *RESTRICT b_starts, \
        __global const uint *RESTRICT b_columns

/* A bound for the entries of each row, of n_columns columns. */
KERNEL void product_bounds(uint n, uint n_columns, __global const uint *restrict a_starts,
                           __global const uint *restrict a_columns, __global const uint *restrict b_starts,
                           __global uint *restrict bounds)
{
    EACH_ROW(i, n) {
        ulong bound = 0;
        for (uint e = a_starts[i], end = a_starts[i + 1]; e < end; e++)
            bound += b_starts[a_columns[e] + 1] - b_starts[a_columns[e]];
        bounds[i] = (uint)min(bound, (ulong)n_columns);
    }
}

/* Adds to counts how many rows are in each bin, and makes counts[BINS] the longest one of all. */
KERNEL void bins_count(uint n, __global const uint *restrict lengths, __global uint *restrict counts)
{
    __local uint own[BINS + 1];
    const uint lane = get_local_id(0);
    if (lane <= BINS)
        own[lane] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint longest = 0;
    EACH_ROW(i, n) {
        atomic_inc(&own[bin_of(lengths[i])]);
        longest = max(longest, lengths[i]);
    }
    atomic_max(&own[BINS], longest);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < BINS)
        atomic_add(&counts[lane], own[lane]);
    if (lane == BINS)
        atomic_max(&counts[BINS], own[BINS]);
}

/* Lists the rows of each bin, from next[bin] on, in any order. */
KERNEL void bins_fill(uint n, __global const uint *restrict lengths, __global uint *restrict next,
                      __global uint *restrict list)
{
    __local uint own[BINS], first[BINS];
    const uint lane = get_local_id(0);
    for (uint begin = get_group_id(0) * GROUP_SIZE; begin < n; begin += get_global_size(0)) {
        if (lane < BINS)
            own[lane] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint row = begin + lane, bin = row < n ? bin_of(lengths[row]) : 0;
        const uint place = row < n ? atomic_inc(&own[bin]) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < BINS)
            first[lane] = atomic_add(&next[lane], own[lane]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < n)
            list[first[bin] + place] = row;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* For tables in a SPACE of memory: functions NAME_*. Where lanes go through all slots of a table, `turn` rotates them, so that rows of a group
 * don't meet in the banks of local memory: a multiple of the lanes. */
#define TABLES(SPACE, NAME, FENCE)                                                                                     \
    /* The slot of a column, which it gets if it has none; says whether it got it. */                                  \
    ALWAYS_INLINE uint NAME##_slot(SPACE volatile uint *table, uint slots, uint column, uint *is_new)                  \
    {                                                                                                                  \
        uint slot = column * 0x9e3779b1u;                                                                              \
        slot = (slot ^ slot >> 16) & (slots - 1);                                                                      \
        for (;; slot = (slot + 1) & (slots - 1)) {                                                                     \
            const uint seen = atomic_cmpxchg(&table[slot], EMPTY, column);                                             \
            *is_new = seen == EMPTY;                                                                                   \
            if (seen == EMPTY || seen == column)                                                                       \
                return slot;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Adds to *found how many columns a row has, if it is_there. All lanes of the group call this. */                 \
    ALWAYS_INLINE void NAME##_count(uint lane, uint lanes, uint slots, uint turn, int is_there, uint row, OPERANDS(),    \
                                    SPACE volatile uint *table, __local volatile uint *found)                          \
    {                                                                                                                  \
        for (uint k = lane; k < slots; k += lanes)                                                                     \
            table[(k + turn) & (slots - 1)] = EMPTY;                                                                   \
        if (lane == 0)                                                                                                 \
            *found = 0;                                                                                                \
        barrier(FENCE);                                                                                                \
        uint mine = 0, is_new;                                                                                         \
        const uint begin = is_there ? a_starts[row] : 0, end = is_there ? a_starts[row + 1] : 0;                       \
        const uint together = min(lanes, (uint)TOGETHER);                                                              \
        for (uint e = begin + lane / together; e < end; e += lanes / together) {                                       \
            const uint middle = a_columns[e], f_end = b_starts[middle + 1];                                            \
            for (uint f = b_starts[middle] + lane % together; f < f_end; f += together) {                              \
                NAME##_slot(table, slots, b_columns[f], &is_new);                                                      \
                mine += is_new;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        if (mine)                                                                                                      \
            atomic_add(found, mine);                                                                                   \
        barrier(FENCE);                                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    /* Makes a row, from c_columns and c_values on, in the order of its columns if it is_sorted. All lanes of the group call this, which   \
     * has `steps`: the entries of the longest of its rows of A. What a step needs is loaded one and two steps before. */ \
    ALWAYS_INLINE void NAME##_fill(uint lane, uint lanes, uint slots, uint turn, uint begin, uint length, uint steps,  \
                                   OPERANDS(), __global const real *a_values,                                   \
                                   __global const real *b_values, SPACE volatile uint *table,                 \
                                   SPACE real *sums, __local volatile uint *found,                                     \
                                   __global uint *c_columns, __global real *c_values, uint is_sorted) \
    {                                                                                                                  \
        for (uint k = lane; k < slots; k += lanes) {                                                                   \
            table[(k + turn) & (slots - 1)] = EMPTY;                                                                   \
            sums[(k + turn) & (slots - 1)] = 0;                                                                        \
        }                                                                                                              \
        if (lane == 0)                                                                                                 \
            *found = 0;                                                                                                \
        uint is_new, middle = 0, f = 0, f_end = 0;                                                                     \
        real left = 0, next_left = 0;                                                                                  \
        if (length > 0) {                                                                                              \
            middle = a_columns[begin];                                                                                 \
            left = a_values[begin];                                                                                    \
            f = b_starts[middle];                                                                                      \
            f_end = b_starts[middle + 1];                                                                              \
        }                                                                                                              \
        if (length > 1) {                                                                                              \
            middle = a_columns[begin + 1];                                                                             \
            next_left = a_values[begin + 1];                                                                           \
        }                                                                                                              \
        barrier(FENCE);                                                                                                \
        for (uint s = 0; s < steps; s++) {                                                                             \
            uint after = 0, next_f = 0, next_f_end = 0;                                                                \
            real after_left = 0;                                                                                       \
            if (s + 1 < length) {                                                                                      \
                next_f = b_starts[middle];                                                                             \
                next_f_end = b_starts[middle + 1];                                                                     \
            }                                                                                                          \
            if (s + 2 < length) {                                                                                      \
                after = a_columns[begin + s + 2];                                                                      \
                after_left = a_values[begin + s + 2];                                                                  \
            }                                                                                                          \
            for (f += lane; f < f_end; f += lanes)                                                                     \
                sums[NAME##_slot(table, slots, b_columns[f], &is_new)] += left * b_values[f];                          \
            f = next_f;                                                                                                \
            f_end = next_f_end;                                                                                        \
            left = next_left;                                                                                          \
            middle = after;                                                                                            \
            next_left = after_left;                                                                                    \
            barrier(FENCE);                                                                                            \
        }                                                                                                              \
        /* what there is moves to the front, some slots of each lane at a time */                                      \
        for (uint at = 0; at < slots; at += SLOTS_EACH * lanes) {                                                      \
            uint columns[SLOTS_EACH];                                                                                  \
            real values[SLOTS_EACH];                                                                                   \
            for (uint k = 0; k < SLOTS_EACH; k++) {                                                                    \
                columns[k] = table[(at + k * lanes + lane + turn) & (slots - 1)];                                      \
                values[k] = sums[(at + k * lanes + lane + turn) & (slots - 1)];                                        \
            }                                                                                                          \
            barrier(FENCE);                                                                                            \
            for (uint k = 0; k < SLOTS_EACH; k++) {                                                                    \
                if (columns[k] != EMPTY) {                                                                             \
                    const uint place = (atomic_inc(found) + turn) & (slots - 1);                                       \
                    table[place] = columns[k];                                                                         \
                    sums[place] = values[k];                                                                           \
                }                                                                                                      \
            }                                                                                                          \
            barrier(FENCE);                                                                                            \
        }                                                                                                              \
        const uint count = *found;                                                                                     \
        for (uint k = lane; k < count; k += lanes) {                                                                   \
            const uint column = table[(k + turn) & (slots - 1)];                                                       \
            uint rank = is_sorted ? 0 : k;                                                                             \
            for (uint other = 0; is_sorted && other < count; other++)                                                  \
                rank += table[(other + turn) & (slots - 1)] < column;                                                  \
            c_columns[rank] = column;                                                                                  \
            c_values[rank] = sums[(k + turn) & (slots - 1)];                                                           \
        }                                                                                                              \
        barrier(FENCE);                                                                                                \
    }
TABLES(__local, local, CLK_LOCAL_MEM_FENCE)
TABLES(__global, global, CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Of the rows of a list, a group has one for each `lanes` of it at a time: its number, and the work-item's place, are */
#define OWN(lanes) const uint own = get_local_id(0) / (lanes), lane = get_local_id(0) % (lanes), rows = GROUP_SIZE / (lanes)
#define EACH_LISTED(first, count) for (uint first = get_group_id(0) * rows; first < (count); first += get_num_groups(0) * rows)

/* lengths[row] = how many entries it has, for `count` rows of a list, from number `begin` on. */
KERNEL void product_count(uint lanes, uint begin, uint count, __global const uint *restrict list, OPERANDS(restrict),
                          __global uint *restrict lengths)
{
    __local uint table[ROOM];
    __local uint found[GROUP_SIZE / FEWEST];
    OWN(lanes);
    EACH_LISTED(first, count) {
        const int is_there = first + own < count;
        const uint row = is_there ? list[begin + first + own] : 0;
        local_count(lane, lanes, SLOTS_EACH * lanes, own * lanes, is_there, row, a_starts, a_columns, b_starts, b_columns,
                    table + own * SLOTS_EACH * lanes, found + own);
        if (is_there && lane == 0)
            lengths[row] = found[own];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The same with a table of so many slots for each group. */
KERNEL void product_count_long(uint slots, uint begin, uint count, __global const uint *restrict list, OPERANDS(restrict),
                               __global uint *restrict lengths, __global uint *restrict tables)
{
    __local uint found[1];
    OWN(GROUP_SIZE);
    EACH_LISTED(first, count) {
        const uint row = list[begin + first + own];
        global_count(lane, GROUP_SIZE, slots, 0, 1, row, a_starts, a_columns, b_starts, b_columns,
                     tables + (size_t)get_group_id(0) * slots, found);
        if (lane == 0)
            lengths[row] = found[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The entries of each row of a list, from c_starts[row] on, in the order of their columns if they are to be sorted. */
KERNEL void product_fill(uint lanes, uint begin, uint count, __global const uint *restrict list, OPERANDS(restrict),
                         __global const real *restrict a_values, __global const real *restrict b_values,
                         __global const uint *restrict c_starts, __global uint *restrict c_columns,
                         __global real *restrict c_values, uint is_sorted)
{
    __local uint table[ROOM];
    __local real sums[ROOM];
    __local uint found[GROUP_SIZE / FEWEST];
    __local uint longest[1];
    OWN(lanes);
    EACH_LISTED(first, count) {
        const int is_there = first + own < count;
        const uint row = is_there ? list[begin + first + own] : 0;
        const uint entry = a_starts[row], length = is_there ? a_starts[row + 1] - entry : 0, at = c_starts[row];
        if (get_local_id(0) == 0)
            longest[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0)
            atomic_max(&longest[0], length);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint steps = longest[0];
        local_fill(lane, lanes, SLOTS_EACH * lanes, own * lanes, entry, length, steps, a_starts, a_columns, b_starts, b_columns, a_values,
                   b_values, table + own * SLOTS_EACH * lanes, sums + own * SLOTS_EACH * lanes, found + own,
                   c_columns + at, c_values + at, is_sorted);
    }
}

KERNEL void product_fill_long(uint slots, uint begin, uint count, __global const uint *restrict list, OPERANDS(restrict),
                              __global const real *restrict a_values, __global const real *restrict b_values,
                              __global const uint *restrict c_starts, __global uint *restrict c_columns,
                              __global real *restrict c_values, uint is_sorted, __global uint *restrict tables,
                              __global real *restrict table_sums)
{
    __local uint found[1];
    OWN(GROUP_SIZE);
    EACH_LISTED(first, count) {
        const uint row = list[begin + first + own];
        const uint entry = a_starts[row], length = a_starts[row + 1] - entry, at = c_starts[row];
        global_fill(lane, GROUP_SIZE, slots, 0, entry, length, length, a_starts, a_columns, b_starts, b_columns, a_values,
                    b_values, tables + (size_t)get_group_id(0) * slots, table_sums + (size_t)get_group_id(0) * slots, found,
                    c_columns + at, c_values + at, is_sorted);
    }
}
