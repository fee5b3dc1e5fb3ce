/* Rows of a factorised sparse approximate inverse (src/precond/fsai), all in double precision. A group makes a row:
 *
 *   S     pattern, columns before i, in the order in which they came in: `size` of them, one for each work-item at most
 *   L     Cholesky factor of A[S, S], row by row without the upper triangle
 *   f     L^-1 A[S, i]
 *   g     1, which is g_i, and behind it -L^-T f: g in the pattern
 *   psi   1 - f.f
 *
 * A table has a slot for each column that rows of the pattern reach, by its hash, with the gradient of psi there. Rows of A are taken one after
 * the other, each by all work-items: so sums are in the same order each time. Which slot a column gets makes no difference.
 *
 * Defined by the host: TABLE, how many slots there are, a power of two.
 */

#define EMPTY 0xffffffffu
#define TAKEN 0xfffffffeu
#define OUTSIDE 0xffu

/* Lengths of rows that are given up, as they reach more columns than a table takes. */
#define TOO_MANY 0xffffffffu

/* A pivot of a matrix with a diagonal of ones below this is one of rounding. */
#define TINY 1e-13

/* Rows of A that are longer don't tell which columns come next. */
#define LONG 1024u

/* How many columns a table takes. */
#define MOST (TABLE / 4 * 3)

#define ENTRIES_BEFORE(row) ((row) * ((row) + 1) / 2)

/* values = factor scale A scale, row by row. */
KERNEL void fsai_scale(uint n, __global const uint *restrict starts, __global const uint *restrict columns,
                       __global const real *restrict scale, real factor, __global real *restrict values)
{
    for (uint i = get_group_id(0); i < n; i += get_num_groups(0)) {
        const real of_row = factor * scale[i];
        for (uint e = starts[i] + get_local_id(0); e < starts[i + 1]; e += GROUP_SIZE)
            values[e] = values[e] * of_row * scale[columns[e]];
    }
}

ALWAYS_INLINE uint first_slot(uint column)
{
    const uint hash = column * 0x9e3779b1u;
    return (hash ^ hash >> 16) & (TABLE - 1);
}

/* Adds the gradient's part of a row of A, times g, in the columns before i. */
ALWAYS_INLINE void reach(__local volatile uint *keys, __local real *slopes, __local ushort *used,
                         __local volatile uint *found, __local volatile uint *is_full, uint i, uint begin, uint end,
                         real g, __global const uint *columns, __global const real *values)
{
    for (uint e = begin + get_local_id(0); e < end && columns[e] < i; e += GROUP_SIZE) {
        const uint column = columns[e];
        uint slot = first_slot(column), seen = TAKEN, tries = 0;
        for (; tries < TABLE; tries++) {
            seen = atomic_cmpxchg(&keys[slot], EMPTY, column);
            if (seen == EMPTY || seen == column)
                break;
            slot = (slot + 1) & (TABLE - 1);
        }
        if (seen == EMPTY) {
            const uint place = atomic_inc(found);
            if (place < MOST)
                used[place] = slot;
            else
                atomic_or(is_full, 1u);
        }
        if (tries < TABLE)
            slopes[slot] += values[e] * g; /* no other work-item has this column now */
    }
}

/* The slot of the column outside the pattern where the square of the gradient is largest, the first of equal ones; EMPTY if it is not above `least`
 * anywhere. */
ALWAYS_INLINE uint steepest(__local volatile uint *keys, __local real *slopes, __local uchar *places,
                            __local ushort *used, uint reached, real least, __local real *best_slopes,
                            __local uint *best_slots)
{
    const uint lane = get_local_id(0);
    real slope = 0;
    uint slot = EMPTY;
    for (uint s = lane; s < reached; s += GROUP_SIZE) {
        const uint other = used[s];
        const real at_other = fabs(slopes[other]);
        if (places[other] == OUTSIDE && at_other * at_other > least
            && (at_other > slope || at_other == slope && keys[other] < keys[slot])) {
            slope = at_other;
            slot = other;
        }
    }
    best_slopes[lane] = slope;
    best_slots[lane] = slot;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint apart = GROUP_SIZE / 2; apart > 0; apart /= 2) {
        const uint other = lane < apart ? best_slots[lane + apart] : EMPTY;
        if (other != EMPTY) {
            const real at_other = best_slopes[lane + apart];
            if (slot == EMPTY || at_other > slope || at_other == slope && keys[other] < keys[slot]) {
                best_slopes[lane] = slope = at_other;
                best_slots[lane] = slot = other;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    slot = best_slots[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return slot;
}

/* Rows of G from row `first` on, or those of a list behind it, in places of `room` entries: their columns rise, the last is the diagonal's. */
KERNEL void fsai_rows(uint n, uint first, uint is_listed, __global const uint *restrict list,
                      __global const uint *restrict starts, __global const uint *restrict columns,
                      __global const real *restrict values, __global const real *restrict scale, uint entries,
                      uint at_once, real gain, uint room, __global uint *restrict lengths,
                      __global uint *restrict to_columns, __global real *restrict to_values)
{
    __local volatile uint keys[TABLE];
    __local real slopes[TABLE];
    __local uchar places[TABLE];
    __local ushort used[MOST];
    __local real l[ENTRIES_BEFORE(GROUP_SIZE)];
    __local real f[GROUP_SIZE], g[GROUP_SIZE + 1], fresh[GROUP_SIZE], best_slopes[GROUP_SIZE], turns[2];
    __local real pivot_and_rhs[2];
    /* Of row i, and behind it those of the pattern. */
    __local uint begins[GROUP_SIZE + 1], ends[GROUP_SIZE + 1];
    __local uint pattern[GROUP_SIZE], best_slots[GROUP_SIZE];
    __local volatile uint found, is_full;
    const uint lane = get_local_id(0);

    for (uint k = get_group_id(0); k < n; k += get_num_groups(0)) {
        const uint place = is_listed ? list[k] : k, i = first + place;
        for (uint s = lane; s < TABLE; s += GROUP_SIZE) {
            keys[s] = EMPTY;
            slopes[s] = 0;
            places[s] = OUTSIDE;
        }
        if (lane == 0) {
            found = 0;
            is_full = 0;
            begins[0] = starts[i];
            ends[0] = starts[i + 1];
            g[0] = 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        uint size = 0, has_grown = 1, is_lost = 0;
        real psi = 1, saved = 0;
        while (has_grown && size < entries && psi > TINY) {
            const uint known = found, before = size;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint s = lane; s < known; s += GROUP_SIZE)
                slopes[used[s]] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint r = 0; r <= size; r++) {
                if (r == 0 || ends[r] - begins[r] <= LONG)
                    reach(keys, slopes, used, &found, &is_full, i, begins[r], ends[r], g[r], columns, values);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            is_lost = is_full;
            const uint reached = found;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (is_lost)
                break;

            const real least = gain * psi;
            for (uint left_over = min(at_once, entries - size); left_over > 0; left_over--) {
                const uint slot = steepest(keys, slopes, places, used, reached, least, best_slopes, best_slots);
                if (slot == EMPTY)
                    break;
                const uint column = keys[slot], begin = starts[column], end = starts[column + 1];

                /* what A has of it */
                fresh[lane] = 0;
                if (lane < 2)
                    pivot_and_rhs[lane] = 0;
                if (lane == 0)
                    slopes[slot] = 0; /* not once more */
                barrier(CLK_LOCAL_MEM_FENCE);
                for (uint e = begin + lane; e < end && columns[e] <= i; e += GROUP_SIZE) {
                    const uint other = columns[e];
                    if (other == column)
                        pivot_and_rhs[0] = values[e];
                    else if (other == i)
                        pivot_and_rhs[1] = values[e];
                    else {
                        uint at = first_slot(other);
                        while (keys[at] != other && keys[at] != EMPTY)
                            at = (at + 1) & (TABLE - 1);
                        if (keys[at] == other && places[at] != OUTSIDE)
                            fresh[places[at]] = values[e];
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);

                /* its row of L, and its element of f */
                real left = pivot_and_rhs[0], rhs = pivot_and_rhs[1], own = fresh[lane];
                for (uint j = 0; j < size; j++) {
                    if (lane == j) {
                        own /= l[ENTRIES_BEFORE(j) + j];
                        turns[j % 2] = own;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const real t = turns[j % 2];
                    if (lane > j && lane < size)
                        own -= l[ENTRIES_BEFORE(lane) + j] * t;
                    left -= t * t;
                    rhs -= t * f[j];
                }
                if (left > TINY && isfinite(left)) {
                    const real root = sqrt(left);
                    if (lane < size)
                        l[ENTRIES_BEFORE(size) + lane] = own;
                    if (lane == 0) {
                        l[ENTRIES_BEFORE(size) + size] = root;
                        f[size] = rhs / root;
                        pattern[size] = column;
                        begins[size + 1] = begin;
                        ends[size + 1] = end;
                        places[slot] = size;
                    }
                    size++;
                    rhs /= root;
                    saved += rhs * rhs;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }

            has_grown = size > before;
            psi = 1 - saved;
            real own = lane < size ? -f[lane] : 0;
            for (uint j = size; j-- > 0;) {
                if (lane == j) {
                    own /= l[ENTRIES_BEFORE(j) + j];
                    turns[j % 2] = own;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (lane < j)
                    own -= l[ENTRIES_BEFORE(j) + lane] * turns[j % 2];
            }
            g[lane + 1] = own;
            barrier(CLK_LOCAL_MEM_FENCE);
        }

        if (!(psi > TINY) || !isfinite(psi)) {
            psi = 1;
            size = 0;
        }
        const real root = sqrt(psi);
        if (lane < size && !is_lost) {
            uint rank = 0;
            for (uint j = 0; j < size; j++)
                rank += pattern[j] < pattern[lane];
            to_columns[place * room + rank] = pattern[lane];
            to_values[place * room + rank] = g[lane + 1] / root * scale[pattern[lane]];
        }
        if (lane == 0) {
            lengths[place] = is_lost ? TOO_MANY : size + 1;
            to_columns[place * room + size] = i;
            to_values[place * room + size] = 1 / root * scale[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The rows one behind the other, in single precision. */
KERNEL void fsai_gather(uint n, uint room, __global const uint *restrict starts, __global const uint *restrict columns,
                        __global const real *restrict values, __global uint *restrict to_columns,
                        __global float *restrict to_values)
{
    for (uint k = get_group_id(0); k < n; k += get_num_groups(0)) {
        const uint begin = starts[k], length = starts[k + 1] - begin;
        for (uint e = get_local_id(0); e < length; e += GROUP_SIZE) {
            to_columns[begin + e] = columns[k * room + e];
            to_values[begin + e] = (float)values[k * room + e];
        }
    }
}
