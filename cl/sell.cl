/* Products with a block of rows in slices: SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36 (2014) C401,
 * doi 10.1137/130930352) without padding, and with columns and values in as few bytes as they need.
 *
 * A unit is a row, or `block` consecutive rows (2 to 4) whose entries are full blocks of block x block: then a column
 * is stored once for each block, that of its first entry. 32 units make a slice, in the order of falling lengths, so
 * that those with more than e blocks are the first counts[e]; 256 neighbouring units were sorted together. All of a
 * slice is in one run of bytes (src/operator/sell.rs):
 *
 *   counts   uchar, one for each e below the slice's width, zeros up to a multiple of 8
 *   values   of the first entries of all rows, then of the second, ...: b * b * counts[e] values for each e; where all
 *            blocks are complex numbers, [r, -m; m, r], of the first entries alone: r and m of each
 *   columns  counts[e] for each e: ushort, or uint where they are far apart, above the slice's least; in blocks where
 *            all are whole blocks apart
 *   rows     one for each unit: ushort or uint, above the slice's least
 *
 * and 5 words say where it begins, in units of 16 bytes, how many blocks it has, its width, units and flags, its least
 * row and column. Values are reals, or what gives the same after a multiplication by `scale`: float, short or char.
 *
 * Long rows are cut into pieces, units that leave their sums in `parts`; *_sell_parts add these.
 *
 * A launch works on `blocked` slices of blocks from `first` on, and on `single` ones of rows behind these. A row that is
 * no long one is summed in the order of its columns, each product rounded (prelude.cl): the same bits as from compressed
 * rows that are summed by one work-item. GPU shape: a work-item takes a row. CPU shape: a slice at a time, entry by entry.
 */
#define SELL_UNITS 32
#define SELL_MAX_BLOCK 4
#define SELL_WORDS 5

/* Flags of a slice; the lowest two bits are the type of the values. */
#define SELL_REAL 0
#define SELL_FLOAT 1
#define SELL_SHORT 2
#define SELL_CHAR 3
#define SELL_TYPE 3
#define SELL_WIDE_COLUMNS 4
#define SELL_WIDE_ROWS 8
#define SELL_PIECES 16
#define SELL_IN_BLOCKS 32
#define SELL_COMPLEX 64

/* DO(type, what makes a real of it) for the values of a slice. */
#define SELL_BY_TYPE(slice_flags, DO)                                                                                  \
    switch ((slice_flags) & SELL_TYPE) {                                                                               \
    case SELL_REAL: DO(real, ) break;                                                                                  \
    case SELL_FLOAT: DO(float, *scale) break;                                                                          \
    case SELL_SHORT: DO(short, *scale) break;                                                                          \
    default: DO(char, *scale) break;                                                                                   \
    }

/* RESTRICT stands in kernels only: inlined functions with it are more than some tools understand. */
#define SELL_ARGS(RESTRICT)                                                                                            \
    uint first, uint blocked, uint single, uint block, real scale, __global const uint *RESTRICT slices,               \
        __global const uchar *RESTRICT data, __global real *RESTRICT parts
#define SELL_PASS first, blocked, single, block, scale, slices, data, parts

/* A slice, taken apart. */
typedef struct {
    uint width, units, flags, row, column, step;
    __global const uchar *counts, *values, *columns, *rows;
} sell_slice;

/* Through a pointer: functions that return it are more than some tools understand. */
static inline void sell_find(sell_slice *s, uint number, uint b, __global const uint *slices,
                             __global const uchar *data)
{
    __global const uint *words = slices + (ulong)number * SELL_WORDS;
    uint blocks = words[1];
    s->width = words[2] & 0xffff;
    s->units = words[2] >> 16 & 0xff;
    s->flags = words[2] >> 24;
    s->row = words[3];
    s->column = words[4];
    s->step = s->flags & SELL_IN_BLOCKS ? b : 1;
    uint type = s->flags & SELL_TYPE;
    uint value_bytes = type == SELL_REAL ? sizeof(real) : type == SELL_FLOAT ? 4 : type == SELL_SHORT ? 2 : 1;
    uint column_bytes = s->flags & SELL_WIDE_COLUMNS ? 4 : 2;
    uint block_values = s->flags & SELL_COMPLEX ? 2 : b * b;
    s->counts = data + (ulong)words[0] * 16;
    s->values = s->counts + (s->width + 7) / 8 * 8;
    s->columns = s->values + (blocks * block_values * value_bytes + 3) / 4 * 4;
    s->rows = s->columns + (blocks * column_bytes + 3) / 4 * 4;
}

static inline uint sell_index(__global const uchar *at, uint i, uint is_wide)
{
    return is_wide ? ((__global const uint *)at)[i] : ((__global const ushort *)at)[i];
}

static inline uint sell_row(const sell_slice *s, uint unit)
{
    return s->row + sell_index(s->rows, unit, s->flags & SELL_WIDE_ROWS);
}

#if SHAPE_CPU

/* The slice's rows, one entry of each at a time: sums[unit * b + row of the unit]. */
#define SELL_ADD(TYPE, TIMES)                                                                                          \
    for (uint e = 0; e < s.width; e++) {                                                                               \
        uint units = s.counts[e];                                                                                      \
        for (uint k = 0; k < b; k++)                                                                                   \
            for (uint unit = 0; unit < units; unit++) {                                                                \
                uint column = s.column + s.step * sell_index(s.columns, before + unit, s.flags & SELL_WIDE_COLUMNS);   \
                for (uint row = 0; row < b; row++, value++)                                                            \
                    sums[unit * b + row] += ((real)((__global const TYPE *)s.values)[value] TIMES) * ROW(x, column + k); \
            }                                                                                                          \
        before += units;                                                                                               \
    }

/* The same of complex blocks: 0 - m is what a matrix has for -m, where m is 0, too. */
#define SELL_ADD_COMPLEX(TYPE, TIMES)                                                                                  \
    for (uint e = 0; e < s.width; e++) {                                                                               \
        uint units = s.counts[e];                                                                                      \
        for (uint unit = 0; unit < units; unit++, value += 2) {                                                        \
            uint column = s.column + s.step * sell_index(s.columns, before + unit, s.flags & SELL_WIDE_COLUMNS);       \
            real r = (real)((__global const TYPE *)s.values)[value] TIMES;                                             \
            real m = (real)((__global const TYPE *)s.values)[value + 1] TIMES;                                         \
            wide x0 = ROW(x, column), x1 = ROW(x, column + 1);                                                         \
            sums[2 * unit] = sums[2 * unit] + r * x0 + (0 - m) * x1;                                                   \
            sums[2 * unit + 1] = sums[2 * unit + 1] + m * x0 + r * x1;                                                 \
        }                                                                                                              \
        before += units;                                                                                               \
    }

static inline const dots *sell_rows(int mode, SELL_ARGS(), __global const real *x, __global const real *b_vector,
                            __global real *y, dots *total SENDING)
{
    uint count = blocked + single;
    uint begin = (uint)((ulong)count * get_group_id(0) / get_num_groups(0));
    uint end = (uint)((ulong)count * (get_group_id(0) + 1) / get_num_groups(0));
    for (uint i = begin; i < end; i++) {
        uint b = i < blocked ? block : 1;
        sell_slice s;
        sell_find(&s, first + i, b, slices, data);
        wide sums[SELL_UNITS * SELL_MAX_BLOCK];
        for (uint lane = 0; lane < s.units * b; lane++)
            sums[lane] = 0;
        uint before = 0, value = 0;
        if (s.flags & SELL_COMPLEX)
            SELL_BY_TYPE(s.flags, SELL_ADD_COMPLEX)
        else
            SELL_BY_TYPE(s.flags, SELL_ADD)
        for (uint unit = 0; unit < s.units; unit++) {
            for (uint row = 0; row < b; row++) {
                uint at = sell_row(&s, unit) + row;
                if (s.flags & SELL_PIECES)
                    ROW(parts, at) = sums[unit * b + row];
                else
                    finish_row(mode, at, sums[unit * b + row], x, b_vector, y, total SEND);
            }
        }
    }
    return total;
}

#else

/* value[] of all blocks that are under way: all loads, then what they are worth. Of a complex block, a work-item and its neighbour
 * have the first entries; the second ones are those of the neighbour, but for their sign. */
#define SELL_VALUES(TYPE, TIMES)                                                                                       \
    {                                                                                                                  \
        TYPE loaded[12];                                                                                               \
        UNROLL_BY(8)                                                                                                   \
        for (uint u = 0; u < batch; u++)                                                                               \
            UNROLL_BY(4)                                                                                               \
            for (uint k = 0; k < b; k++) {                                                                             \
                uint place = is_complex ? at[u] * b + (lane ^ k) : at[u] * b * b + k * b * units[u] + lane;            \
                loaded[u * b + k] = unit < units[u] ? ((__global const TYPE *)s->values)[place] : 0;                   \
            }                                                                                                          \
        UNROLL_BY(12)                                                                                                  \
        for (uint u = 0; u < batch * b; u++)                                                                           \
            value[u] = (real)loaded[u] TIMES;                                                                          \
    }

#define SELL_COLUMNS(TYPE)                                                                                             \
    UNROLL_BY(8)                                                                                                       \
    for (uint u = 0; u < batch; u++)                                                                                   \
        column[u] = unit < units[u] ? s->column + s->step * ((__global const TYPE *)s->columns)[at[u] + unit] : 0;

/* The sum of one row: `batch` blocks are under way at a time, batch * b <= 12 entries; 8 is a multiple of batch.
 * A GPU that has fewer under way waits for its memory. Half as many where each is of several columns. */
#define SELL_BATCH(batch) (WIDE > 1 ? (batch) / 2 : (batch))
ALWAYS_INLINE wide sell_sum(const uint b, const uint is_complex, const uint batch, uint lane, const sell_slice *s,
                            real scale, __global const real *x)
{
    wide sum = 0;
    uint unit = lane / b, before = 0;
    for (uint e = 0; e < s->width; e += batch) {
        uint units[8], at[8], column[8];
        real value[12];
        wide xs[12];
        UNROLL_BY(8)
        for (uint u = 0; u < batch; u++) {
            units[u] = s->counts[e + u];
            at[u] = before;
            before += units[u];
        }
        if (unit >= units[0])
            break;
        if (s->flags & SELL_WIDE_COLUMNS) {
            SELL_COLUMNS(uint)
        } else {
            SELL_COLUMNS(ushort)
        }
        SELL_BY_TYPE(s->flags, SELL_VALUES)
        if (is_complex && lane % 2 == 0) {
            UNROLL_BY(8)
            for (uint u = 0; u < batch; u++)
                value[2 * u + 1] = 0 - value[2 * u + 1]; /* -m as a matrix has it, where m is 0, too */
        }
        UNROLL_BY(8)
        for (uint u = 0; u < batch; u++)
            UNROLL_BY(4)
            for (uint k = 0; k < b; k++)
                xs[u * b + k] = unit < units[u] ? ROW(x, column[u] + k) : (wide)0;
        UNROLL_BY(8)
        for (uint u = 0; u < batch; u++)
            UNROLL_BY(4)
            for (uint k = 0; k < b; k++)
                if (unit < units[u])
                    sum += value[u * b + k] * xs[u * b + k];
    }
    return sum;
}

static inline const dots *sell_rows(int mode, SELL_ARGS(), __global const real *x, __global const real *b_vector,
                            __global real *y, dots *total SENDING)
{
    uint in_blocks = blocked * SELL_UNITS * block;
    for (uint v = SLOT; v < in_blocks + single * SELL_UNITS; v += ALL_SLOTS) {
        uint b = v < in_blocks ? block : 1;
        uint of_kind = v < in_blocks ? v : v - in_blocks;
        uint number = first + (v < in_blocks ? 0 : blocked) + of_kind / (SELL_UNITS * b);
        uint lane = of_kind % (SELL_UNITS * b);
        sell_slice s;
        sell_find(&s, number, b, slices, data);
        if (lane < s.units * b) {
            uint row = sell_row(&s, lane / b) + lane % b; /* on its way while the sum is formed */
            wide sum;
            switch (s.flags & SELL_COMPLEX ? 0 : b) {
            case 0: sum = sell_sum(2, 1, SELL_BATCH(4), lane, &s, scale, x); break;
            case 1: sum = sell_sum(1, 0, SELL_BATCH(8), lane, &s, scale, x); break;
            case 2: sum = sell_sum(2, 0, SELL_BATCH(4), lane, &s, scale, x); break;
            case 3: sum = sell_sum(3, 0, SELL_BATCH(4), lane, &s, scale, x); break;
            default: sum = sell_sum(4, 0, SELL_BATCH(2), lane, &s, scale, x); break;
            }
            if (s.flags & SELL_PIECES)
                ROW(parts, row) = sum;
            else
                finish_row(mode, row, sum, x, b_vector, y, total SEND);
        }
    }
    return total;
}

#endif

/* Long rows: row, first part, number of parts, how far apart they are. A work-item adds those of one of the first `few`
 * rows, a group those of one of the others. */
static inline void sell_add_parts(int mode, uint few, uint count, __global const uint *rows, __global const real *parts,
                                 __global const real *x, __global const real *b_vector, __global real *y,
                                 __local wide_acc *scratch, dots *total SENDING)
{
    for (uint i = SLOT; i < few; i += ALL_SLOTS) {
        __global const uint *row = rows + 4 * i;
        wide_acc sum = 0;
        for (uint p = 0; p < row[2]; p++)
            sum += to_wide_acc(ROW(parts, row[1] + p * row[3]));
        finish_row(mode, row[0], to_wide(sum), x, b_vector, y, total SEND);
    }
    for (uint i = few + get_group_id(0); i < count; i += get_num_groups(0)) {
        __global const uint *row = rows + 4 * i;
        wide_acc sum = 0;
        for (uint p = LOCAL_SLOT; p < row[2]; p += SLOTS)
            sum += to_wide_acc(ROW(parts, row[1] + p * row[3]));
        sum = part_sum(sum, scratch);
        if (LOCAL_SLOT == 0)
            finish_row(mode, row[0], to_wide(sum), x, b_vector, y, total SEND);
    }
}

/* y = A x. */
KERNEL void spmv_sell(SELL_ARGS(restrict), __global const real *restrict x, __global real *restrict y)
{
    sell_rows(ROWS_PRODUCT, SELL_PASS, x, x, y, 0 SEND_NOTHING);
}

/* y = A x, and the part of x.y and of y.y in the rows of group g in partials[2 COLUMNS (first_partial + g)] and
 * behind; y stays if *done is set. */
KERNEL void spmv_dot_sell(SELL_ARGS(restrict), __global const real *restrict x, __global real *restrict y,
                          __global acc *restrict partials, uint first_partial, __global const int *restrict done SENDS_ARGS)
{
    __local dots_scratch scratch[GROUP_SIZE];
    SENDS_HERE
    blocked = *done ? 0 : blocked;
    single = *done ? 0 : single;
    dots s;
    sell_rows(ROWS_DOT, SELL_PASS, x, x, y, no_dots(&s) SEND);
    leave_dots(&s, scratch, partials, first_partial);
}

/* r = b - A x. */
KERNEL void residual_sell(SELL_ARGS(restrict), __global const real *restrict x, __global const real *restrict b,
                          __global real *restrict r)
{
    sell_rows(ROWS_RESIDUAL, SELL_PASS, x, b, r, 0 SEND_NOTHING);
}

/* y = A x in the long rows, from the sums of their pieces. */
KERNEL void spmv_sell_parts(uint few, uint count, __global const uint *restrict rows,
                            __global const real *restrict parts, __global const real *restrict x,
                            __global real *restrict y)
{
    __local wide_acc scratch[GROUP_SIZE];
    sell_add_parts(ROWS_PRODUCT, few, count, rows, parts, x, x, y, scratch, 0 SEND_NOTHING);
}

/* The same, and the part of x.y and of y.y in these rows, as in spmv_dot_sell. */
KERNEL void spmv_dot_sell_parts(uint few, uint count, __global const uint *restrict rows,
                                __global const real *restrict parts, __global const real *restrict x,
                                __global real *restrict y, __global acc *restrict partials, uint first_partial,
                                __global const int *restrict done SENDS_ARGS)
{
    __local wide_acc scratch[GROUP_SIZE];
    __local dots_scratch scratch2[GROUP_SIZE];
    SENDS_HERE
    few = *done ? 0 : few;
    count = *done ? 0 : count;
    dots s;
    sell_add_parts(ROWS_DOT, few, count, rows, parts, x, x, y, scratch, no_dots(&s) SEND);
    leave_dots(&s, scratch2, partials, first_partial);
}

/* r = b - A x in the long rows. */
KERNEL void residual_sell_parts(uint few, uint count, __global const uint *restrict rows,
                                __global const real *restrict parts, __global const real *restrict x,
                                __global const real *restrict b, __global real *restrict r)
{
    __local wide_acc scratch[GROUP_SIZE];
    sell_add_parts(ROWS_RESIDUAL, few, count, rows, parts, x, b, r, scratch, 0 SEND_NOTHING);
}

/* For persistent.cl. */
#define SELL_ROWS_ARGS SELL_ARGS(restrict)
#define SELL_ROWS_LOCAL dots of_rows;
#define SELL_ROWS_TIMES(x, y) sell_rows(ROWS_DOT, SELL_PASS, x, x, y, no_dots(&of_rows) SEND)
