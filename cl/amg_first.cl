/* The first level of multigrid, D^(-1/2) A D^(-1/2), from rows that a device has: by their patterns (dictionary.cl), or compressed. REAL is that of these
 * rows; levels are in single precision. Rows have `times` as what they are multiplied by here, a power of two that undoes the factor
 * of the ranks. */
#if SHAPE_CPU
#error "amg_*.cl has no shape for CPUs"
#endif

#define SLICE 32
#define EACH_ROW(i, n) for (uint i = get_global_id(0); i < (n); i += get_global_size(0))

/* The integer in the low bytes of a number. */
#define LOW_WORD_float(v) as_int(v)
#define LOW_WORD_double(v) as_int2(v).s0
#define LOW_WORD JOIN(LOW_WORD_, REAL)

/* width: entries of a row that there is room for among the values; 0 where patterns have them. main_begin, main_end: the rows whose values lie where
 * the main pattern has them. */
#define PATTERNS_ARGS                                                                                                  \
    uint n, __global const ushort *restrict patterns, __global const uint2 *restrict runs,                             \
        __global const real *restrict entries, __global const real *restrict values, __global const uint *restrict masks, \
        uint main_begin, uint main_end, uint width, real times

/* Does what follows for each entry of row i: its place in the row's room, its column, and the number that its value is. */
#define EACH_OF_PATTERN(i, place, column, value)                                                                       \
    const uint2 i##_run = runs[patterns[i]];                                                                           \
    uint i##_mask = i >= main_begin && i < main_end ? masks[patterns[i]] : 0;                                          \
    uint place = 0, column = 0;                                                                                        \
    real value = 0;                                                                                                    \
    for (uint e = i##_run.s0;                                                                                          \
         e < i##_run.s1 && (place = place_of(&i##_mask, e - i##_run.s0), column = i + LOW_WORD(entries[2 * e + 1]),    \
                            value = times * (width ? values[PLACE(i, place, width)] : entries[2 * e]), 1);             \
         e++)

#define PLACE(i, place, width) ((((i) / SLICE) * (width) + (place)) * SLICE + (i) % SLICE)

/* The place of entry number e: of the lowest bit of the mask, which it takes away, or if there is none e. */
static inline uint place_of(uint *mask, uint e)
{
    const uint lowest = *mask & -*mask;
    *mask ^= lowest;
    return lowest ? popcount(lowest - 1) : e;
}

/* d. */
KERNEL void first_diagonal(PATTERNS_ARGS, __global real *restrict diagonal)
{
    EACH_ROW(i, n) {
        real own = 0;
        EACH_OF_PATTERN(i, place, column, value)
            own = column == i ? value : own;
        diagonal[i] = own;
    }
}

/* d of compressed rows. */
KERNEL void first_diagonal_of_rows(uint n, __global const uint *restrict starts, __global const uint *restrict columns,
                                   __global const real *restrict values, real times, __global real *restrict diagonal)
{
    EACH_ROW(i, n) {
        real own = 0;
        for (uint e = starts[i]; e < starts[i + 1]; e++)
            own = columns[e] == i ? times * values[e] : own;
        diagonal[i] = own;
    }
}

/* The least and the largest element of each group, in range[2 g] and behind. */
KERNEL void first_range(uint n, __global const real *restrict diagonal, __global real *restrict range)
{
    __local real2 scratch[GROUP_SIZE];
    const uint lane = get_local_id(0);
    real2 own = (real2)(INFINITY, 0);
    EACH_ROW(i, n)
        own = (real2)(fmin(own.s0, diagonal[i]), fmax(own.s1, diagonal[i]));
    scratch[lane] = own;
    for (uint apart = GROUP_SIZE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < apart) {
            const real2 other = scratch[lane + apart];
            scratch[lane] = (real2)(fmin(scratch[lane].s0, other.s0), fmax(scratch[lane].s1, other.s1));
        }
    }
    if (lane == 0)
        vstore2(scratch[0], get_group_id(0), range);
}

/* scale = d^(-1/2), or 1 if rows are scaled by that already; enter and leave are multiples of it, and b is sqrt d, whose largest element is 1. */
KERNEL void first_vectors(uint n, __global const real *restrict diagonal, uint is_scaled, real largest, real of_enter,
                          real of_leave, __global real *restrict scale, __global real *restrict enter, __global real *restrict leave,
                          __global float *restrict b)
{
    EACH_ROW(i, n) {
        const real own = is_scaled ? 1 : 1 / sqrt(diagonal[i]);
        scale[i] = own;
        enter[i] = of_enter * own;
        leave[i] = of_leave * own;
        b[i] = fmax((float)sqrt(diagonal[i] / largest), FLT_MIN);
    }
}

/* How many entries rows have. */
KERNEL void first_lengths(uint n, __global const ushort *restrict patterns, __global const uint2 *restrict runs,
                          __global uint *restrict lengths)
{
    EACH_ROW(i, n)
        lengths[i] = runs[patterns[i]].s1 - runs[patterns[i]].s0;
}

/* The entries, scaled, in compressed rows. */
KERNEL void first_entries(PATTERNS_ARGS, __global const real *restrict scale, __global const uint *restrict starts,
                          __global uint *restrict to_columns, __global float *restrict to_values)
{
    EACH_ROW(i, n) {
        const real own = scale[i];
        uint at = starts[i];
        EACH_OF_PATTERN(i, place, column, value) {
            to_columns[at] = column;
            to_values[at++] = column == i ? 1 : (float)(value * (own * scale[column]));
        }
    }
}

/* The same of compressed rows. */
KERNEL void first_values(uint n, __global const uint *restrict starts, __global const uint *restrict columns,
                         __global const real *restrict values, real times, __global const real *restrict scale,
                         __global float *restrict to)
{
    EACH_ROW(i, n) {
        const real own = scale[i];
        for (uint e = starts[i]; e < starts[i + 1]; e++)
            to[e] = columns[e] == i ? 1 : (float)(times * values[e] * (own * scale[columns[e]]));
    }
}

/* The same in the places of values in slices. */
KERNEL void first_slices(PATTERNS_ARGS, __global const real *restrict scale, uint room, __global float *restrict to)
{
    EACH_ROW(i, n) {
        const real own = scale[i];
        EACH_OF_PATTERN(i, place, column, value)
            to[PLACE(i, place, room)] = column == i ? 1 : (float)(value * (own * scale[column]));
    }
}

/* The entries of patterns, all scaled alike: a value and a distance each. */
KERNEL void first_patterns(uint count, __global const real *restrict entries, real times, __global float *restrict to)
{
    EACH_ROW(e, count) {
        const int distance = LOW_WORD(entries[2 * e + 1]);
        to[2 * e] = distance == 0 ? 1 : (float)(entries[2 * e] * times);
        to[2 * e + 1] = as_float(distance);
    }
}
