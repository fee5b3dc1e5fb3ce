/* Prolongation (src/precond/amg/prolongation.rs), P = (I - omega D^-1 A) T, its transpose, and the scaling of the next level. */

/* 4/3 by a bound of the eigenvalues; a row whose diagonal is less than LEAST, or that would have more entries, stays as it is in T. */
#define OMEGA (4.0f / 3.0f)
#define LEAST 0.1f
#define MOST_ENTRIES 12

/* A column of P on which A is less than this part of its length squared is in the null space. */
#define NULL_SPACE 1e-6f

/* Keys to sort rows by: their aggregates, `count` for those in none. */
KERNEL void aggregate_keys(uint n, uint count, __global const uint *restrict aggregates, __global uint *restrict keys)
{
    EACH_ROW(i, n)
        keys[i] = min(aggregates[i], count);
}

/* starts[k] = where keys from k on begin, for k <= count, of n keys in order, none of which is above count. */
KERNEL void key_starts(uint n, uint count, __global const uint *restrict keys, __global uint *restrict starts)
{
    EACH_ROW(place, n + 1) {
        const uint first = place == 0 ? 0 : keys[place - 1] + 1, last = place < n ? keys[place] : count;
        for (uint k = first; k <= last; k++)
            starts[k] = place;
    }
}

/* The length of b on each aggregate. */
KERNEL void coarse_vector(uint count, __global const uint *restrict starts, __global const uint *restrict members,
                          __global const real *restrict b, __global real *restrict coarse)
{
    EACH_ROW(k, count) {
        acc sum = 0;
        EACH_ENTRY(e, starts, k)
            sum += (acc)b[members[e]] * (acc)b[members[e]];
        coarse[k] = (real)sqrt(sum);
    }
}

/* The entry of T in each row, or 0. */
KERNEL void tentative(uint n, __global const uint *restrict aggregates, __global const real *restrict b,
                      __global const real *restrict coarse, __global real *restrict t)
{
    EACH_ROW(i, n)
        t[i] = aggregates[i] == NONE ? 0 : QUOTIENT(b[i], coarse[aggregates[i]]);
}

/* Adds v to the sum of a column; how many columns there are then. */
static inline uint add_to(uint *found, real *sums, uint count, uint column, real v)
{
    uint k = 0;
    while (k < count && found[k] != column)
        k++;
    if (k < count) {
        sums[k] += v;
        return count;
    }
    if (k <= MOST_ENTRIES) {
        found[k] = column;
        sums[k] = v;
    }
    return min(count + 1, (uint)MOST_ENTRIES + 1);
}

/* What is needed of a neighbour, side by side: its largest entry, b, t, and the bits of its aggregate. */
KERNEL void smoothed_needs(uint n, __global const real *restrict b, __global const real *restrict largest,
                           __global const uint *restrict aggregates, __global const real *restrict t,
                           __global real4 *restrict needs)
{
    EACH_ROW(i, n)
        needs[i] = (real4)(largest[i], b[i], t[i], as_float(aggregates[i]));
}

#define SMOOTHED_ARGS BLOCKS_ARGS, __global const real4 *restrict needs

/* What is weak, or on the diagonal, in place of an aggregate. */
#define WEAK 0xFFFFFFFEu

/* What is staged of entries: the aggregate that they are added to, -a_ij t_j, and a_ij b_j / b_i. */
#define SMOOTHED_LOCAL                                                                                                 \
    __local uint keys[STAGED];                                                                                         \
    __local real terms[STAGED], couplings[STAGED];
#define SMOOTHED_STAGE(at)                                                                                             \
    EACH_LOADED(e, i, at) {                                                                                            \
        const uint j = columns[e];                                                                                     \
        const real v = values[e];                                                                                      \
        const real4 own = needs[i], other = needs[j];                                                                  \
        const int strong = j != i && v * v > THETA * THETA * (own.s0 * other.s0);                                      \
        keys[e - at] = strong ? as_uint(other.s3) : WEAK;                                                              \
        terms[e - at] = -v * other.s2;                                                                                 \
        couplings[e - at] = j == i ? 0 : QUOTIENT(v * other.s1, own.s1);                                               \
    }

/* A row of P, in the making: columns and sums; the diagonal with the weak couplings, and the strong ones as a bound for eigenvalues has
 * them. */
typedef struct {
    uint found[MOST_ENTRIES + 1];
    real sums[MOST_ENTRIES + 1];
    uint count;
    real diagonal, strong;
} smoothed;

static inline void smoothed_add(smoothed *s, uint key, real term, real coupling)
{
    if (key == WEAK) {
        s->diagonal += coupling;
    } else {
        s->strong += fabs(coupling);
        if (key != NONE)
            s->count = add_to(s->found, s->sums, s->count, key, term);
    }
}

/* All couplings are there: how many entries it has then. */
static inline uint smoothed_end(smoothed *s, uint own, real t)
{
    if (own == NONE)
        return 0;
    if (s->diagonal < LEAST || s->count > MOST_ENTRIES) {
        s->found[0] = own;
        s->sums[0] = t;
        return 1;
    }
    const real omega = QUOTIENT(OMEGA, 1 + fmax(QUOTIENT(s->strong, s->diagonal), (real)1));
    const real scale = QUOTIENT(omega, s->diagonal);
    for (uint k = 0; k < s->count; k++)
        s->sums[k] *= scale;
    return add_to(s->found, s->sums, s->count, own, (1 - omega) * t);
}

/* All couplings of the work-item's row, if it has one, in s. */
#define SMOOTHED_ROW(s)                                                                                                \
    smoothed s;                                                                                                        \
    s.count = 0;                                                                                                       \
    s.diagonal = 1;                                                                                                    \
    s.strong = 0;                                                                                                      \
    EACH_STAGE(at) {                                                                                                   \
        SMOOTHED_STAGE(at)                                                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        EACH_OWN(e, at)                                                                                                \
            smoothed_add(&s, keys[e], terms[e], couplings[e]);                                                         \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }

KERNEL void smoothed_lengths(SMOOTHED_ARGS, __global uint *restrict lengths)
{
    SMOOTHED_LOCAL
    EACH_BLOCK_OF(n) {
        SMOOTHED_ROW(s)
        if (HAS_ROW)
            lengths[OWN_ROW] = smoothed_end(&s, as_uint(needs[OWN_ROW].s3), needs[OWN_ROW].s2);
    }
}

/* Rows in the order of their columns. */
KERNEL void smoothed_rows(SMOOTHED_ARGS, __global const uint *restrict p_starts, __global uint *restrict p_columns,
                          __global real *restrict p_values)
{
    SMOOTHED_LOCAL
    EACH_BLOCK_OF(n) {
        SMOOTHED_ROW(s)
        if (HAS_ROW) {
            const uint count = smoothed_end(&s, as_uint(needs[OWN_ROW].s3), needs[OWN_ROW].s2), begin = p_starts[OWN_ROW];
            for (uint k = 0; k < count; k++) {
                uint rank = 0;
                for (uint other = 0; other < count; other++)
                    rank += s.found[other] < s.found[k];
                p_columns[begin + rank] = s.found[k];
                p_values[begin + rank] = s.sums[k];
            }
        }
    }
}

/* The same of T itself. */
KERNEL void tentative_lengths(uint n, __global const uint *restrict aggregates, __global uint *restrict lengths)
{
    EACH_ROW(i, n)
        lengths[i] = aggregates[i] != NONE;
}

KERNEL void tentative_rows(uint n, __global const uint *restrict aggregates, __global const real *restrict t,
                           __global const uint *restrict p_starts, __global uint *restrict p_columns,
                           __global real *restrict p_values)
{
    EACH_ROW(i, n) {
        if (aggregates[i] != NONE) {
            p_columns[p_starts[i]] = aggregates[i];
            p_values[p_starts[i]] = t[i];
        }
    }
}

/* Does what follows for each entry e that the work-item has of each row i: `lanes` neighbouring work-items share a row. */
#define EACH_SHARED(e, i, n, starts, lanes)                                                                            \
    for (uint i = get_global_id(0) / (lanes); i < (n); i += get_global_size(0) / (lanes))                              \
        for (uint e = starts[i] + get_global_id(0) % (lanes), e##_end = starts[i + 1]; e < e##_end; e += (lanes))

/* The row of each entry. */
KERNEL void entry_rows(uint n, uint lanes, __global const uint *restrict starts, __global uint *restrict rows)
{
    EACH_SHARED(e, i, n, starts, lanes)
        rows[e] = i;
}

/* Rows and values of entries in another order. */
KERNEL void entries_at(uint n, __global const uint *restrict places, __global const uint *restrict rows,
                       __global const real *restrict values, __global uint *restrict to_rows,
                       __global real *restrict to_values)
{
    EACH_ROW(e, n) {
        to_rows[e] = rows[places[e]];
        to_values[e] = values[places[e]];
    }
}

/* What the next matrix is scaled by so that its diagonal is 1; 0 for columns of P in the null space. Changes its near-null vector to match. */
KERNEL void scale_factors(ROWS_ARGS, __global const uint *restrict r_starts, __global const real *restrict r_values,
                          __global real *restrict factors, __global real *restrict coarse)
{
    EACH_ROW(i, n) {
        real diagonal = 0, length = 0;
        EACH_ENTRY(e, starts, i)
            diagonal = columns[e] == i ? values[e] : diagonal;
        EACH_ENTRY(e, r_starts, i)
            length += r_values[e] * r_values[e];
        const real factor = diagonal > NULL_SPACE * length ? QUOTIENT(1, ROOT(diagonal)) : 0;
        factors[i] = factor;
        coarse[i] = factor > 0 ? QUOTIENT(coarse[i], factor) : FLT_MIN;
    }
}

/* The matrix. */
KERNEL void scale_both(uint n, uint lanes, __global const uint *restrict starts, __global const uint *restrict columns,
                       __global const real *restrict factors, __global real *restrict values)
{
    EACH_SHARED(e, i, n, starts, lanes)
        values[e] = columns[e] == i ? 1 : values[e] * (factors[i] * factors[columns[e]]);
}

/* The rows of the transpose of P. */
KERNEL void scale_rows(uint n, uint lanes, __global const uint *restrict starts, __global const real *restrict factors,
                       __global real *restrict values)
{
    EACH_SHARED(e, i, n, starts, lanes)
        values[e] *= factors[i];
}

/* The columns of P, with the other sign: a cycle has x + P e as the residual of -P. */
KERNEL void scale_columns(uint n, __global const uint *restrict columns, __global const real *restrict factors,
                          __global real *restrict values)
{
    EACH_ROW(e, n)
        values[e] = -(values[e] * factors[columns[e]]);
}
