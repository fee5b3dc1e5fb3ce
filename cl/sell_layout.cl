/* Slices (sell.cl) of compressed rows that a device has, and these again of slices: what operator::sell does on the host, entry by entry. Rows and their order are the
 * host's; values are those that the device multiplies by, which are `factor`, a power of two, times those of the matrix.
 *
 * A list has units that are alike: `block` rows each, of full blocks if there are several, or pieces of such rows. Of those that are pieces
 * `units` has the numbers; `pieces` has the row of each, its first block, how far apart blocks are, and where its sum goes.
 */
#if SHAPE_CPU
#error "sell_layout.cl has no shape for CPUs"
#endif

#define UNITS 32
#define SLICE_WORDS 5
#define EACH_ROW(i, n) for (uint i = get_global_id(0); i < (n); i += get_global_size(0))

/* Marks of rows (operator/sell/blocks.rs). */
#define SAME_AS_NEXT 1
#define NEEDS_HALO 2
#define MADE_OF(block) (1 << (block))
#define COMPLEX_ROWS 32

/* Flags of slices (sell.cl). */
#define TYPE 3
#define WIDE_COLUMNS 4
#define WIDE_ROWS 8
#define IN_BLOCKS 32
#define COMPLEX 64

#define BITS_float as_uint
#define BITS_double as_ulong
#define SAME_BITS(a, b) (JOIN(BITS_, REAL)(a) == JOIN(BITS_, REAL)(b))

/* Whether a block is [r, -m; m, r], with 0 - m for -m. */
#define IS_COMPLEX(upper, lower) (SAME_BITS((upper)[0], (lower)[1]) && SAME_BITS((upper)[1], 0 - (lower)[0]))

/* The integers that a number is stored as, if they are what it is. */
#define AS_CHAR(v) convert_char_sat_rtz(v)
#define AS_SHORT(v) convert_short_sat_rtz(v)

#define ROWS_ARGS                                                                                                      \
    __global const uint *restrict starts, __global const uint *restrict columns, __global const real *restrict values

#define UNITS_ARGS                                                                                                     \
    uint n, uint first_unit, uint block, uint has_pieces, __global const uint *restrict units,                         \
        __global const uint *restrict pieces

/* A unit: its first row, or where the sums of a piece go; entries of a row before its first block, and from one block to the next; blocks. */
typedef struct {
    uint row, target, first, step, blocks;
} a_unit;

static inline void find_unit(a_unit *u, uint number, uint block, uint has_pieces, __global const uint *units,
                             __global const uint *pieces, __global const uint *starts)
{
    const uint word = units[number];
    uint first = 0, step = 1;
    u->row = u->target = word;
    if (has_pieces) {
        __global const uint *piece = pieces + 4 * word;
        u->row = piece[0];
        first = piece[1];
        step = piece[2];
        u->target = piece[3];
    }
    const uint blocks = (starts[u->row + 1] - starts[u->row]) / block;
    u->blocks = (blocks - first + step - 1) / step;
    u->first = first * block;
    u->step = step * block;
}

/* What is known of the blocks of a row, and whether the next one has the same columns. */
KERNEL void sell_marks(uint n, uint has_halo, ROWS_ARGS, __global uchar *restrict marks)
{
    EACH_ROW(i, n) {
        const uint begin = starts[i], end = starts[i + 1], len = end - begin;
        uint mark = MADE_OF(2) | MADE_OF(3) | MADE_OF(4);
        for (uint e = begin, run = 1; e < end && mark; e++, run++)
            if (e + 1 == end || columns[e] + 1 != columns[e + 1]) {
                for (uint b = 2; b <= 4; b++)
                    mark &= run % b == 0 ? ~0u : ~(uint)MADE_OF(b);
                run = 0;
            }
        if (mark && i + 1 < n && starts[i + 2] - end == len) {
            uint is_same = 1, is_complex = mark & MADE_OF(2);
            for (uint e = begin; e < end && is_same; e++)
                is_same = columns[e] == columns[e + len];
            for (uint e = begin; e < end && is_same && is_complex; e += 2)
                is_complex = IS_COMPLEX(values + e, values + e + len);
            mark |= is_same ? SAME_AS_NEXT : 0;
            mark |= is_same && is_complex ? COMPLEX_ROWS : 0;
        }
        if (has_halo)
            for (uint e = begin; e < end; e++)
                if (columns[e] >= n) {
                    mark |= NEEDS_HALO;
                    break;
                }
        marks[i] = mark;
    }
}

/* Numbers of a slice that its units come to. */
#define SHAPE_WORDS 8

/* Of each slice, beside each other: blocks, the most of a unit, the least and the largest target, the same of columns, and of what they leave
 * by `block`, and flags: whether all values are chars, shorts or floats, and whether all blocks are complex. Without columns, if these are not
 * to be looked at: then they may be anything. */
KERNEL void sell_shapes(UNITS_ARGS, ROWS_ARGS, real factor, real unscale, uint with_columns, __global uint *restrict shapes)
{
    __local uint scratch[SHAPE_WORDS * GROUP_SIZE];
    const uint lane = get_local_id(0);
    __local uint *own = scratch + SHAPE_WORDS * lane;
    for (uint base = get_group_id(0) * GROUP_SIZE; base < n; base += get_num_groups(0) * GROUP_SIZE) {
        uint blocks = 0, target_low = UINT_MAX, target_high = 0, low = UINT_MAX, high = 0;
        uint phase = 0xffff, flags = block == 2 ? 15 : 7;
        if (base + lane < n) {
            a_unit u;
            find_unit(&u, first_unit + base + lane, block, has_pieces, units, pieces, starts);
            blocks = u.blocks;
            target_low = target_high = u.target;
            uint phase_low = 0xff, phase_high = 0;
            for (uint row = 0; row < block && (row == 0 || flags & 7); row++) {
                uint at = starts[u.row + row] + u.first;
                for (uint e = 0; e < blocks; e++, at += u.step) {
                    if (with_columns && row == 0) {
                        const uint column = columns[at];
                        low = min(low, column);
                        high = max(high, column);
                        phase_low = min(phase_low, column % block);
                        phase_high = max(phase_high, column % block);
                        phase = phase_low | (0xff - phase_high) << 8;
                    }
                    for (uint k = 0; k < block && flags & 7; k++) {
                        const real v = values[at + k], given = v * unscale;
                        flags &= SAME_BITS((real)AS_CHAR(given) * factor, v) ? ~0u : ~1u;
                        flags &= SAME_BITS((real)AS_SHORT(given) * factor, v) ? ~0u : ~2u;
                        flags &= SAME_BITS((real)convert_float(given) * factor, v) ? ~0u : ~4u;
                    }
                    if (flags & 8 && row == 0) {
                        const uint below = starts[u.row + 1] + at - starts[u.row];
                        flags &= IS_COMPLEX(values + at, values + below) ? ~0u : ~8u;
                    }
                }
            }
        }
        own[0] = own[1] = blocks;
        own[2] = target_low;
        own[3] = target_high;
        own[4] = low;
        own[5] = high;
        own[6] = phase;
        own[7] = flags;
        for (uint apart = UNITS / 2; apart > 0; apart /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lane % UNITS < apart) {
                __local const uint *other = own + SHAPE_WORDS * apart;
                own[0] += other[0];
                own[1] = max(own[1], other[1]);
                own[2] = min(own[2], other[2]);
                own[3] = max(own[3], other[3]);
                own[4] = min(own[4], other[4]);
                own[5] = max(own[5], other[5]);
                own[6] = min(own[6] & 0xff, other[6] & 0xff) | min(own[6] & 0xff00, other[6] & 0xff00);
                own[7] &= other[7];
            }
        }
        if (lane % UNITS == 0 && base + lane < n)
            vstore8(vload8(0, own), (base + lane) / UNITS, shapes);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The slice of a work-item's unit: its numbers, where its values and columns lie in its data, and the blocks of its units. */
#define TAKE_APART(BYTES)                                                                                              \
    __local const uint *slice_blocks = all_blocks + (lane - unit);                                                     \
    __global const uint *words = slices + (ulong)(first_slice + (base + lane) / UNITS) * SLICE_WORDS;                  \
    const uint flags = words[2] >> 24, type = flags & TYPE, stored = flags & COMPLEX ? 1 : block;                      \
    const uint least_column = words[4], column_step = flags & IN_BLOCKS ? block : 1;                                   \
    const uint value_bytes = type == 0 ? sizeof(real) : type == 1 ? 4 : type == 2 ? 2 : 1;                             \
    uint active = words[2] >> 16 & 0xff;                                                                               \
    BYTES *slice_data = data + (ulong)words[0] * 16;                                                                   \
    BYTES *slice_values = slice_data + ((words[2] & 0xffff) + 7) / 8 * 8;                                              \
    BYTES *slice_columns = slice_values + (words[1] * block * stored * value_bytes + 3) / 4 * 4;

/* The blocks of a unit, each value as STORE(v). */
#define FILL(VALUE, STORE)                                                                                             \
    for (uint e = 0, before = 0; e < u.blocks; e++) {                                                                  \
        while (slice_blocks[active - 1] <= e)                                                                          \
            active--;                                                                                                  \
        const uint at = u.first + e * u.step;                                                                          \
        if (with_columns) {                                                                                            \
            const uint above = (columns[starts[u.row] + at] - least_column) / column_step;                             \
            if (flags & WIDE_COLUMNS)                                                                                  \
                ((__global uint *)slice_columns)[before + unit] = above;                                               \
            else                                                                                                       \
                ((__global ushort *)slice_columns)[before + unit] = above;                                             \
            if (unit == 0)                                                                                             \
                slice_data[e] = active;                                                                                \
        }                                                                                                              \
        for (uint row = 0; row < block; row++)                                                                         \
            for (uint k = 0; k < stored; k++) {                                                                        \
                const real v = values[starts[u.row + row] + at + k];                                                   \
                const uint place = before * block * stored + (k * active + unit) * block + row;                        \
                ((__global VALUE *)slice_values)[place] = STORE(v);                                                    \
            }                                                                                                          \
        before += active;                                                                                              \
    }

#define AS_IT_IS(v) (v)
#define TO_FLOAT(v) convert_float((v) * unscale)
#define TO_SHORT(v) AS_SHORT((v) * unscale)
#define TO_CHAR(v) AS_CHAR((v) * unscale)

/* The bytes of the slices from first_slice on, as many as the units fill, which are zeros before. Without columns, what lies between the
 * values stays. */
KERNEL void sell_fill(UNITS_ARGS, ROWS_ARGS, real unscale, uint with_columns, uint first_slice,
                      __global const uint *restrict slices, __global uchar *restrict data)
{
    __local uint all_blocks[GROUP_SIZE];
    const uint lane = get_local_id(0), unit = lane % UNITS;
    for (uint base = get_group_id(0) * GROUP_SIZE; base < n; base += get_num_groups(0) * GROUP_SIZE) {
        a_unit u;
        u.blocks = 0;
        if (base + lane < n)
            find_unit(&u, first_unit + base + lane, block, has_pieces, units, pieces, starts);
        all_blocks[lane] = u.blocks;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (base + lane < n) {
            TAKE_APART(__global uchar)
            __global uchar *to_rows = slice_columns + (words[1] * (flags & WIDE_COLUMNS ? 4 : 2) + 3) / 4 * 4;
            const uint least_row = words[3];
            if (with_columns) {
                if (flags & WIDE_ROWS)
                    ((__global uint *)to_rows)[unit] = u.target - least_row;
                else
                    ((__global ushort *)to_rows)[unit] = u.target - least_row;
            }
            switch (type) {
            case 0: FILL(real, AS_IT_IS) break;
            case 1: FILL(float, TO_FLOAT) break;
            case 2: FILL(short, TO_SHORT) break;
            default: FILL(char, TO_CHAR) break;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The blocks of a unit, from their places, each value by LOAD. */
#define UNPACK(VALUE, LOAD)                                                                                            \
    for (uint e = 0, before = 0; e < u.blocks; e++) {                                                                  \
        while (slice_blocks[active - 1] <= e)                                                                          \
            active--;                                                                                                  \
        const uint at = u.first + e * u.step;                                                                          \
        const uint above = flags & WIDE_COLUMNS ? ((__global const uint *)slice_columns)[before + unit]                \
                                                : ((__global const ushort *)slice_columns)[before + unit];             \
        for (uint row = 0; row < block; row++)                                                                         \
            for (uint k = 0; k < block; k++) {                                                                         \
                const uint to = starts[u.row + row] + at + k, other = k < stored ? row : 1 - row;                      \
                const uint place = before * block * stored + (k % stored * active + unit) * block + other;             \
                const real v = LOAD(((__global const VALUE *)slice_values)[place]);                                    \
                columns[to] = least_column + above * column_step + k;                                                  \
                values[to] = k < stored || row == 1 ? v : 0 - v;                                                       \
            }                                                                                                          \
        before += active;                                                                                              \
    }

#define TIMES_FACTOR(v) ((real)(v)*factor)

/* The rows of the slices from first_slice on, as many as the units fill, in the places of compressed rows. */
KERNEL void sell_unpack(UNITS_ARGS, __global const uint *restrict starts, real factor, uint first_slice,
                        __global const uint *restrict slices, __global const uchar *restrict data,
                        __global uint *restrict columns, __global real *restrict values)
{
    __local uint all_blocks[GROUP_SIZE];
    const uint lane = get_local_id(0), unit = lane % UNITS;
    for (uint base = get_group_id(0) * GROUP_SIZE; base < n; base += get_num_groups(0) * GROUP_SIZE) {
        a_unit u;
        u.blocks = 0;
        if (base + lane < n)
            find_unit(&u, first_unit + base + lane, block, has_pieces, units, pieces, starts);
        all_blocks[lane] = u.blocks;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (base + lane < n) {
            TAKE_APART(__global const uchar)
            switch (type) {
            case 0: UNPACK(real, AS_IT_IS) break;
            case 1: UNPACK(float, TIMES_FACTOR) break;
            case 2: UNPACK(short, TIMES_FACTOR) break;
            default: UNPACK(char, TIMES_FACTOR) break;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Scales the rows of A, times `factor`, as precond::scaling does: entry (i, j) by both roots, so that (j, i) comes to the same bits, with the sign of that
 * of row i. A sign of zero goes. */
KERNEL void sell_scale(uint n, __global const uint *restrict starts, __global const uint *restrict columns,
                       __global const real *restrict roots, real factor, __global real *restrict values)
{
    EACH_ROW(i, n) {
        const real root = roots[i], one = fabs(root);
        for (uint e = starts[i]; e < starts[i + 1]; e++) {
            const real other = fabs(roots[columns[e]]);
            const real scaled = values[e] / fmax(one, other) / copysign(fmin(one, other), root);
            values[e] = (scaled + 0) * factor;
        }
    }
}
