/* Products with a block of rows of a few patterns, as discretisations on grids give them.
 *
 * The pattern of a row says how many entries it has and at which distances from the diagonal, column - row, in the order of
 * the columns: in the dictionary it has the entries runs[pattern].s0 .. runs[pattern].s1, each a value and behind it the
 * distance, as an integer with as many bytes, so that both come with one load. So a row costs the 2 bytes of the number of its
 * pattern in place of 4 bytes for each column. In `dictionary` kernels no value is read but from there, which stays in a cache.
 * In `pattern` kernels rows have values of their own, in slices of 32 rows (SELL-32: Kreutzer et al., SIAM J. Sci. Comput. 36
 * (2014) C401, doi 10.1137/130930352): entry e of row i is values[((i - segment) / 32 * width + e) * 32 + i % 32], where the row
 * `segment`, the first of a slice, is the first that there are values of.
 *
 * GPU shape: most rows are of one pattern, the main one, or lack some of its entries, as at the sides of a grid.
 * masks[pattern] has a bit for each entry of the main pattern that the pattern has; of patterns that have other entries it is
 * 0. For the rows main.begin .. main.end all entries of the main pattern are among the rank's own rows, so that they are loaded
 * before it is known which of them count, and such a row's own values lie where the main pattern has them. MAIN is the number
 * of its entries, known to the compiler: the loop over them becomes straight code without a look at the dictionary. Where the
 * 32 rows of a slice have one mask, slice_masks[row / 32] is that mask, and their patterns are not read; else it is 0.
 *
 * A launch works on `count` rows: from `first` on, but after `before_gap` rows it leaves out `gap` rows. Interior rows are one
 * run without a gap; those that need what other ranks send are what comes before and after.
 *
 * A row is summed in the order of its columns, each product rounded (prelude.cl): the same bits as from compressed rows that
 * are summed by one work-item. CPU shape: eight rows at a time where they are of one pattern, row by row if there are several columns.
 */
#define SLICE 32

#ifndef MAIN
#define MAIN 0
#endif

/* The main pattern: values, if rows have none of their own, distances, and the rows for which it is inside. */
#define MOST_MAIN 32
typedef struct {
    real value[MOST_MAIN];
    int distance[MOST_MAIN];
    uint begin, end;
} main_pattern;

/* RESTRICT stands in kernels only: inlined functions with it are more than some tools understand. */
#define DICTIONARY_ARGS(RESTRICT, MAIN_ROW)                                                                            \
    uint first, uint count, uint before_gap, uint gap, __global const ushort *RESTRICT patterns,                       \
        __global const uint2 *RESTRICT runs, __global const real *RESTRICT entries,                                    \
        __global const real *RESTRICT values, __global const uint *RESTRICT masks,                                     \
        __global const uint *RESTRICT slice_masks, MAIN_ROW
#define DICTIONARY_PASS first, count, before_gap, gap, patterns, runs, entries, values, masks, slice_masks, &main_row

/* The integer in the low bytes of a number. */
#define LOW_WORD_float(v) as_int(v)
#define LOW_WORD_double(v) as_int2(v).s0
#define LOW_WORD JOIN(LOW_WORD_, REAL)

static inline uint row_of(uint v, uint first, uint before_gap, uint gap) { return first + v + (v >= before_gap ? gap : 0); }

/* Where the values of a row begin, if it has its own. */
#define VALUES_AT(row) ((uint)(((row) - segment) / SLICE) * SLICE * width + (row) % SLICE)

static inline wide dictionary_row(uint row, uint width, uint segment, __global const ushort *patterns,
                               __global const uint2 *runs, __global const real *entries,
                               __global const real *values, __global const real *x)
{
    uint2 run = runs[patterns[row]];
    uint value = VALUES_AT(row);
    wide sum = 0;
    for (uint e = run.s0; e < run.s1; e++) {
        real2 entry = vload2(e, entries);
        sum += (width ? values[value] : entry.s0) * ROW(x, row + LOW_WORD(entry.s1));
        value += SLICE;
    }
    return sum;
}

#if MAIN > 0
#define ALL_OF_MAIN (UINT_MAX >> (32 - MAIN))

/* Sum of a row for which the main pattern is inside. */
ALWAYS_INLINE wide dictionary_inside(uint row, uint width, uint segment, __global const ushort *patterns,
                                  __global const uint2 *runs, __global const real *entries,
                                  __global const real *values, __global const uint *masks,
                                  __global const uint *slice_masks, const main_pattern *main_row, __global const real *x)
{
    wide sum = 0;
    uint mask = slice_masks[row / SLICE];
    if (!mask)
        mask = masks[patterns[row]];
    wide x_of[MAIN];
    real value_of[MAIN];
    UNROLL_BY(MAIN)
    for (uint e = 0; e < MAIN; e++) {
        x_of[e] = ROW(x, row + main_row->distance[e]);
        value_of[e] = width ? values[VALUES_AT(row) + e * SLICE] : main_row->value[e];
    }
    /* with many entries, code of its own for all of them costs more than it saves: 27 take a seventh longer on an H200 */
    if (MAIN <= 8 && mask == ALL_OF_MAIN) {
        UNROLL_BY(MAIN)
        for (uint e = 0; e < MAIN; e++)
            sum += value_of[e] * x_of[e];
    } else {
        UNROLL_BY(MAIN)
        for (uint e = 0; e < MAIN; e++) {
            if (mask >> e & 1)
                sum += value_of[e] * x_of[e];
        }
    }
    return mask ? sum : dictionary_row(row, width, segment, patterns, runs, entries, values, x);
}
#endif

/* width: entries of a row that there is room for; 0 where the pattern has the values. is_done: nothing is to be stored. */
ALWAYS_INLINE const dots *dictionary_rows(int mode, uint width, uint segment, int is_done, DICTIONARY_ARGS(, const main_pattern *main_row),
                                __global const real *x, __global const real *b, __global real *y, dots *s SENDING)
{
#if SHAPE_CPU && COLUMNS == 1
    acc8 xy8 = 0, yy8 = 0;
    count = is_done ? 0 : count;
    uint v = chunk_begin(count), v_end = chunk_end(count);
    while (v < v_end) {
        uint row = row_of(v, first, before_gap, gap);
        int is_run = !SENDS && v + 8 <= v_end && (v >= before_gap || v + 8 <= before_gap) && row % SLICE <= SLICE - 8;
        if (is_run && all(vload8(0, patterns + row) == (ushort8)patterns[row])) {
            uint2 run = runs[patterns[row]];
            uint value = VALUES_AT(row);
            real8 sum = 0;
            for (uint e = run.s0; e < run.s1; e++) {
                real2 entry = vload2(e, entries);
                real8 xs = vload8(0, x + row + LOW_WORD(entry.s1));
                sum += (width ? vload8(0, values + value) : (real8)entry.s0) * xs;
                value += SLICE;
            }
            if (mode == ROWS_RESIDUAL) {
                vstore8(vload8(0, b + row) - sum, 0, y + row);
            } else {
                vstore8(sum, 0, y + row);
                if (mode == ROWS_DOT) {
                    acc8 y8 = convert_acc8(sum);
                    xy8 += y8 * convert_acc8(vload8(0, x + row));
                    yy8 += y8 * y8;
                }
            }
            v += 8;
        } else {
            real sum = dictionary_row(row, width, segment, patterns, runs, entries, values, x);
            finish_row(mode, row, sum, x, b, y, s SEND);
            v++;
        }
    }
    if (mode == ROWS_DOT) {
        s->xy += sum8(xy8);
        s->yy += sum8(yy8);
    }
#else
#if SHAPE_CPU
    for (uint v = chunk_begin(count), v_end = chunk_end(count); v < v_end; v++) {
#else
    for (uint v = SLOT; v < count; v += ALL_SLOTS) {
#endif
        uint row = row_of(v, first, before_gap, gap);
#if MAIN > 0
        int is_inside = row >= main_row->begin && row < main_row->end;
        wide sum = is_inside ? dictionary_inside(row, width, segment, patterns, runs, entries, values, masks, slice_masks,
                                              main_row, x)
                             : dictionary_row(row, width, segment, patterns, runs, entries, values, x);
#else
        wide sum = dictionary_row(row, width, segment, patterns, runs, entries, values, x);
#endif
        /* only now, when the loads are under way */
        if (is_done)
            break;
        finish_row(mode, row, sum, x, b, y, s SEND);
    }
#endif
    return s;
}

/* y = A x, values by pattern. */
KERNEL void spmv_dictionary(DICTIONARY_ARGS(restrict, const main_pattern main_row), __global const real *restrict x,
                         __global real *restrict y)
{
    dictionary_rows(ROWS_PRODUCT, 0, 0, 0, DICTIONARY_PASS, x, x, y, 0 SEND_NOTHING);
}

/* y = A x, and the part of x.y and of y.y in the rows of group g in partials[2 COLUMNS (first_partial + g)] and
 * behind; y stays if *done is set. */
KERNEL void spmv_dot_dictionary(DICTIONARY_ARGS(restrict, const main_pattern main_row), __global const real *restrict x,
                             __global real *restrict y,
                             __global acc *restrict partials, uint first_partial, __global const int *restrict done SENDS_ARGS)
{
    __local dots_scratch scratch[GROUP_SIZE];
    SENDS_HERE
    dots s;
    dictionary_rows(ROWS_DOT, 0, 0, *done, DICTIONARY_PASS, x, x, y, no_dots(&s) SEND);
    leave_dots(&s, scratch, partials, first_partial);
}

/* r = b - A x. */
KERNEL void residual_dictionary(DICTIONARY_ARGS(restrict, const main_pattern main_row), __global const real *restrict x,
                             __global const real *restrict b, __global real *restrict r)
{
    dictionary_rows(ROWS_RESIDUAL, 0, 0, 0, DICTIONARY_PASS, x, b, r, 0 SEND_NOTHING);
}

/* y = A x, each row with values of its own. */
KERNEL void spmv_pattern(DICTIONARY_ARGS(restrict, const main_pattern main_row), uint width, uint segment,
                         __global const real *restrict x, __global real *restrict y)
{
    dictionary_rows(ROWS_PRODUCT, width, segment, 0, DICTIONARY_PASS, x, x, y, 0 SEND_NOTHING);
}

/* As spmv_dot_dictionary. */
KERNEL void spmv_dot_pattern(DICTIONARY_ARGS(restrict, const main_pattern main_row), uint width, uint segment,
                             __global const real *restrict x, __global real *restrict y,
                             __global acc *restrict partials, uint first_partial, __global const int *restrict done SENDS_ARGS)
{
    __local dots_scratch scratch[GROUP_SIZE];
    SENDS_HERE
    dots s;
    dictionary_rows(ROWS_DOT, width, segment, *done, DICTIONARY_PASS, x, x, y, no_dots(&s) SEND);
    leave_dots(&s, scratch, partials, first_partial);
}

/* r = b - A x. */
KERNEL void residual_pattern(DICTIONARY_ARGS(restrict, const main_pattern main_row), uint width, uint segment,
                             __global const real *restrict x, __global const real *restrict b,
                             __global real *restrict r)
{
    dictionary_rows(ROWS_RESIDUAL, width, segment, 0, DICTIONARY_PASS, x, b, r, 0 SEND_NOTHING);
}

/* For persistent.cl. */
#define DICTIONARY_ROWS_ARGS DICTIONARY_ARGS(restrict, const main_pattern main_row)
#define DICTIONARY_ROWS_LOCAL dots of_rows;
#define DICTIONARY_ROWS_TIMES(x, y)                                                                                    \
    dictionary_rows(ROWS_DOT, 0, 0, 0, DICTIONARY_PASS, x, x, y, no_dots(&of_rows) SEND)
#define PATTERN_ROWS_ARGS DICTIONARY_ARGS(restrict, const main_pattern main_row), uint width, uint segment
#define PATTERN_ROWS_LOCAL dots of_rows;
#define PATTERN_ROWS_TIMES(x, y)                                                                                       \
    dictionary_rows(ROWS_DOT, width, segment, 0, DICTIONARY_PASS, x, x, y, no_dots(&of_rows) SEND)
