/* Batches of tridiagonal systems a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i], i = 0 .. n - 1.
 *
 * Row i of a system is element system * across + i * along of each array: (n, 1) for one system after the other, (1, systems) for systems
 * that are interleaved. a of the first row and c of the last have to be 0, but in tridiagonal_residual.
 *
 * Defined by the host (src/kernels/tridiagonal.rs), beside what prelude.cl needs:
 *   ROWS      rows that a work-item has in registers, at least 2
 *   CAPACITY  rows that a group has in local memory, a multiple of GROUP_SIZE (tridiagonal_cr, tridiagonal_pcr)
 *
 * No rows are exchanged: where pivots vanish, x has infinities and NaN. All divisions are by 1 / pivot, as on the host.
 *
 * The groups of these kernels have several work-items, on processors, too.
 */
#define AT(system, row) ((system) * across + (row) * along)

/* Gaussian elimination down and up, one work-item a system (Thomas 1949). scratch is as long as the arrays. Reads 4 elements a row, writes and
 * reads 2 more, writes 1. */
KERNEL void tridiagonal_thomas(uint systems, uint n, uint across, uint along, __global const real *restrict a,
                               __global const real *restrict b, __global const real *restrict c,
                               __global const real *restrict d, __global real *restrict x,
                               __global real *restrict scratch)
{
    for (uint system = get_global_id(0); system < systems; system += get_global_size(0)) {
        uint at = system * across;
        real upper = 0, value = 0;
        UNROLL_BY(4)
        for (uint row = 0; row < n; row++) {
            const real lower = a[at];
            const real inverse = 1 / (b[at] - lower * upper);
            upper = c[at] * inverse;
            value = (d[at] - lower * value) * inverse;
            scratch[at] = upper;
            x[at] = value;
            at += along;
        }
        value = 0;
        UNROLL_BY(4)
        for (uint row = n; row > 0; row--) {
            at -= along;
            value = x[at] - scratch[at] * value;
            x[at] = value;
        }
    }
}

/* Cyclic reduction (Hockney 1965), one group a system of at most CAPACITY rows: rows (k + 1) 2h - 1 are freed of their neighbours at distance h,
 * for h = 1, 2, 4, ..., until one is left; then the others follow, the last ones first. Reads 4 elements a row, writes 1. */
KERNEL void tridiagonal_cr(uint n, uint across, uint along, __global const real *restrict a,
                           __global const real *restrict b, __global const real *restrict c,
                           __global const real *restrict d, __global real *restrict x)
{
    __local real la[CAPACITY], lb[CAPACITY], lc[CAPACITY], ld[CAPACITY];
    const uint system = get_group_id(0), lane = get_local_id(0);
    for (uint row = lane; row < n; row += GROUP_SIZE) {
        const uint at = AT(system, row);
        la[row] = a[at];
        lb[row] = b[at];
        lc[row] = c[at];
        ld[row] = d[at];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint h = 1;
    for (; 2 * h <= n; h *= 2) {
        for (uint k = lane; (k + 1) * 2 * h <= n; k += GROUP_SIZE) {
            const uint i = (k + 1) * 2 * h - 1, left = i - h, right = i + h;
            const real alpha = la[i] / lb[left];
            real diagonal = lb[i] - alpha * lc[left], value = ld[i] - alpha * ld[left], upper = 0;
            if (right < n) {
                const real beta = lc[i] / lb[right];
                diagonal -= beta * la[right];
                value -= beta * ld[right];
                upper = -beta * lc[right];
            }
            la[i] = -alpha * la[left];
            lb[i] = diagonal;
            lc[i] = upper;
            ld[i] = value;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (; h > 0; h /= 2) {
        for (uint k = lane; (2 * k + 1) * h <= n; k += GROUP_SIZE) {
            const uint i = (2 * k + 1) * h - 1;
            real value = ld[i];
            if (i >= h)
                value -= la[i] * ld[i - h];
            if (i + h < n)
                value -= lc[i] * ld[i + h];
            ld[i] = value / lb[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint row = lane; row < n; row += GROUP_SIZE)
        x[AT(system, row)] = ld[row];
}

/* Parallel cyclic reduction, one group a system of at most CAPACITY rows: all rows are freed of their neighbours at distance h, for h = 1, 2,
 * 4, ... Reads 4 elements a row, writes 1. */
KERNEL void tridiagonal_pcr(uint n, uint across, uint along, __global const real *restrict a,
                            __global const real *restrict b, __global const real *restrict c,
                            __global const real *restrict d, __global real *restrict x)
{
    __local real la[CAPACITY], lc[CAPACITY], ld[CAPACITY];
    const uint system = get_group_id(0), lane = get_local_id(0);
    real own_a[CAPACITY / GROUP_SIZE], own_c[CAPACITY / GROUP_SIZE], own_d[CAPACITY / GROUP_SIZE];
    for (uint k = 0; k < CAPACITY / GROUP_SIZE; k++) {
        const uint i = lane + k * GROUP_SIZE;
        if (i < n) {
            const uint at = AT(system, i);
            const real inverse = 1 / b[at];
            la[i] = a[at] * inverse;
            lc[i] = c[at] * inverse;
            ld[i] = d[at] * inverse;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint h = 1; h < n; h *= 2) {
        for (uint k = 0; k < CAPACITY / GROUP_SIZE; k++) {
            const uint i = lane + k * GROUP_SIZE;
            if (i < n) {
                real lower = 0, diagonal = 1, upper = 0, value = ld[i];
                if (i >= h) {
                    diagonal -= la[i] * lc[i - h];
                    value -= la[i] * ld[i - h];
                    lower = -la[i] * la[i - h];
                }
                if (i + h < n) {
                    diagonal -= lc[i] * la[i + h];
                    value -= lc[i] * ld[i + h];
                    upper = -lc[i] * lc[i + h];
                }
                const real inverse = 1 / diagonal;
                own_a[k] = lower * inverse;
                own_c[k] = upper * inverse;
                own_d[k] = value * inverse;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < CAPACITY / GROUP_SIZE; k++) {
            const uint i = lane + k * GROUP_SIZE;
            if (i < n) {
                la[i] = own_a[k];
                lc[i] = own_c[k];
                ld[i] = own_d[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint row = lane; row < n; row += GROUP_SIZE)
        x[AT(system, row)] = ld[row];
}

/* Chunks of rows in registers, and a reduced system between them (Laszlo, Giles and Appleyard 2016, with one unknown for each chunk).
 *
 * A group has a tile of GROUP_SIZE chunks of ROWS rows, and a work-item a chunk. It expresses all but the last of its unknowns by that one and
 * the last one of the chunk before, its left:
 *     x[j] = d[j] - a[j] left - c[j] last.
 * What the last row then has of its neighbours is an equation between the last unknowns of three chunks, and these are solved by parallel
 * cyclic reduction between the work-items of a system.
 */
#define TILE (GROUP_SIZE * ROWS)
/* Local memory has room behind every ROWS elements, so that neighbours' chunks are in different banks. */
#define ROOM (TILE + GROUP_SIZE)
#define SPREAD(slot) ((slot) + (slot) / ROWS)
#define NOWHERE 0xFFFFFFFFu

typedef struct {
    real a[ROWS], b[ROWS], c[ROWS], d[ROWS];
} chunk;

/* The equation of a chunk's last unknown x: x + a (that of the chunk before) + c (that of the next) = d. */
typedef struct {
    real a, c, d;
} equation;

/* A tile's place in the arrays: `slots` rows for each of its systems, of which the first `n` are there. */
ALWAYS_INLINE void find_slots(uint *at, uint first_system, uint systems, uint slots, uint first_row, uint n, uint across,
                              uint along)
{
    for (uint k = 0; k < ROWS; k++) {
        const uint slot = get_local_id(0) + k * GROUP_SIZE;
        const uint system = first_system + slot / slots, row = first_row + slot % slots;
        at[k] = system < systems && slot / slots < TILE / slots && row < n ? AT(system, row) : NOWHERE;
    }
}

/* Neighbouring work-items take neighbouring elements; then each has those of its chunk. */
ALWAYS_INLINE void load_chunks(real *own, __global const real *from, const uint *at, real elsewhere, __local real *tile)
{
    const uint lane = get_local_id(0);
    for (uint k = 0; k < ROWS; k++)
        tile[SPREAD(lane + k * GROUP_SIZE)] = at[k] == NOWHERE ? elsewhere : from[at[k]];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < ROWS; k++)
        own[k] = tile[lane * (ROWS + 1) + k];
    barrier(CLK_LOCAL_MEM_FENCE);
}

ALWAYS_INLINE void store_chunks(const real *own, __global real *to, const uint *at, __local real *tile)
{
    const uint lane = get_local_id(0);
    for (uint k = 0; k < ROWS; k++)
        tile[lane * (ROWS + 1) + k] = own[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < ROWS; k++)
        if (at[k] != NOWHERE)
            to[at[k]] = tile[SPREAD(lane + k * GROUP_SIZE)];
}

/* Rows that are not there are those of x = 0. */
#define LOAD_ALL(rows)                                                                                                 \
    load_chunks(rows.a, a, at, 0, tile);                                                                               \
    load_chunks(rows.b, b, at, 1, tile);                                                                               \
    load_chunks(rows.c, c, at, 0, tile);                                                                               \
    load_chunks(rows.d, d, at, 0, tile);

/* Expresses all unknowns but the last by that and the left one. The last row keeps its b and c. */
ALWAYS_INLINE void reduce_chunk(chunk *r)
{
    real inverse = 1 / r->b[0];
    r->a[0] *= inverse;
    r->c[0] *= inverse;
    r->d[0] *= inverse;
    for (uint j = 1; j < ROWS - 1; j++) {
        const real lower = r->a[j];
        inverse = 1 / (r->b[j] - lower * r->c[j - 1]);
        r->a[j] = -lower * r->a[j - 1] * inverse;
        r->c[j] *= inverse;
        r->d[j] = (r->d[j] - lower * r->d[j - 1]) * inverse;
    }
    const real lower = r->a[ROWS - 1];
    r->a[ROWS - 1] = -lower * r->a[ROWS - 2];
    r->b[ROWS - 1] -= lower * r->c[ROWS - 2];
    r->d[ROWS - 1] -= lower * r->d[ROWS - 2];
    for (uint j = ROWS - 2; j-- > 0;) {
        const real upper = r->c[j];
        r->a[j] -= upper * r->a[j + 1];
        r->d[j] -= upper * r->d[j + 1];
        r->c[j] = -upper * r->c[j + 1];
    }
}

/* The equations of the other work-items, as they were when all have come. */
ALWAYS_INLINE void share(const equation *own, __local real *tile)
{
    const uint lane = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[lane] = own->a;
    tile[GROUP_SIZE + lane] = own->c;
    tile[2 * GROUP_SIZE + lane] = own->d;
    barrier(CLK_LOCAL_MEM_FENCE);
}

ALWAYS_INLINE equation shared_by(uint lane, __local const real *tile)
{
    const equation other = {tile[lane], tile[GROUP_SIZE + lane], tile[2 * GROUP_SIZE + lane]};
    return other;
}

/* The equation of chunk `number` of a system's `chunks`, between last unknowns: that of the next chunk's first row takes its place. Of the
 * `open` last chunk, b and c are as they are. */
ALWAYS_INLINE equation join_chunks(chunk *r, uint number, uint chunks, bool open, __local real *tile)
{
    const equation first = {r->a[0], r->c[0], r->d[0]};
    share(&first, tile);
    real lower = r->a[ROWS - 1], diagonal = r->b[ROWS - 1], upper = r->c[ROWS - 1], value = r->d[ROWS - 1];
    if (number + 1 < chunks) {
        const equation next = shared_by(get_local_id(0) + 1, tile);
        diagonal -= upper * next.a;
        value -= upper * next.d;
        upper = -upper * next.c;
    }
    const real inverse = open && number + 1 == chunks ? 1 : 1 / diagonal;
    const equation own = {lower * inverse, upper * inverse, value * inverse};
    return own;
}

/* Frees the equations of the first `count` chunks of a system of each other, by parallel cyclic reduction. What is left in a and c are the
 * unknowns before the first and behind the last of them. `most` is the largest count in the group. */
ALWAYS_INLINE equation solve_between(equation own, uint number, uint count, uint most, __local real *tile)
{
    const uint lane = get_local_id(0);
    for (uint h = 1; h < most; h *= 2) {
        share(&own, tile);
        if (number < count) {
            real lower = own.a, diagonal = 1, upper = own.c, value = own.d;
            if (number >= h) {
                const equation left = shared_by(lane - h, tile);
                diagonal -= own.a * left.c;
                value -= own.a * left.d;
                lower = -own.a * left.a;
            }
            if (number + h < count) {
                const equation right = shared_by(lane + h, tile);
                diagonal -= own.c * right.a;
                value -= own.c * right.d;
                upper = -own.c * right.c;
            }
            const real inverse = 1 / diagonal;
            own.a = lower * inverse;
            own.c = upper * inverse;
            own.d = value * inverse;
        }
    }
    return own;
}

/* All unknowns of a chunk from its last one, if `before` is that of the chunk before the first. */
ALWAYS_INLINE void substitute(chunk *r, real last, real before, uint number, __local real *tile)
{
    const uint lane = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    tile[lane] = last;
    barrier(CLK_LOCAL_MEM_FENCE);
    const real left = number == 0 ? before : tile[lane - 1];
    for (uint j = 0; j < ROWS - 1; j++)
        r->d[j] -= r->a[j] * left + r->c[j] * last;
    r->d[ROWS - 1] = last;
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Whole systems: each has `chunks` = ceil(n / ROWS) <= GROUP_SIZE work-items of a group. Reads 4 elements a row, writes 1. */
KERNEL void tridiagonal_hybrid(uint systems, uint n, uint across, uint along, uint chunks,
                               __global const real *restrict a, __global const real *restrict b,
                               __global const real *restrict c, __global const real *restrict d,
                               __global real *restrict x)
{
    __local real tile[ROOM];
    const uint lane = get_local_id(0), together = GROUP_SIZE / chunks;
    /* work-items without a system have rows that are not there, and no neighbours */
    const bool has_system = lane < together * chunks;
    const uint number = has_system ? lane % chunks : 0, count = has_system ? chunks : 1;
    uint at[ROWS];
    find_slots(at, get_group_id(0) * together, systems, chunks * ROWS, 0, n, across, along);
    chunk rows;
    LOAD_ALL(rows)
    reduce_chunk(&rows);
    equation own = join_chunks(&rows, number, count, false, tile);
    own = solve_between(own, number, count, chunks, tile);
    substitute(&rows, own.d, 0, number, tile);
    store_chunks(rows.d, x, at, tile);
}

/* A tile of a longer system, after what its chunks have to do with each other: x of a chunk's last row + a left + c last = d, with the last
 * unknowns of the tile before and of this one. */
#define REDUCE_TILE                                                                                                    \
    const uint lane = get_local_id(0), system = get_group_id(0) / tiles, number = get_group_id(0) % tiles;             \
    uint at[ROWS];                                                                                                     \
    find_slots(at, system, systems, TILE, number *TILE, n, across, along);                                             \
    chunk rows;                                                                                                        \
    LOAD_ALL(rows)                                                                                                     \
    reduce_chunk(&rows);                                                                                               \
    equation own = join_chunks(&rows, lane, GROUP_SIZE, true, tile);                                                   \
    own = solve_between(own, lane, GROUP_SIZE - 1, GROUP_SIZE - 1, tile);

/* Long systems, `tiles` = ceil(n / TILE) groups each: leaves the equation ea left + eb last + ec first = ed of each tile's last unknown, where
 * first is the first unknown of the next tile, and with it first = fd - fa left - fc last of its own. Reads 4 elements a row. */
KERNEL void tridiagonal_reduce(uint systems, uint n, uint across, uint along, uint tiles, __global const real *restrict a,
                               __global const real *restrict b, __global const real *restrict c,
                               __global const real *restrict d, __global real *restrict ea, __global real *restrict eb,
                               __global real *restrict ec, __global real *restrict ed, __global real *restrict fa,
                               __global real *restrict fc, __global real *restrict fd)
{
    __local real tile[ROOM];
    REDUCE_TILE
    share(&own, tile);
    const uint to = get_group_id(0);
    if (lane == GROUP_SIZE - 1) {
        const equation before = shared_by(lane - 1, tile);
        ea[to] = -own.a * before.a;
        eb[to] = rows.b[ROWS - 1] - own.a * before.c;
        ec[to] = own.c;
        ed[to] = own.d - own.a * before.d;
    }
    if (lane == 0) {
        fa[to] = rows.a[0] - rows.c[0] * own.a;
        fc[to] = -rows.c[0] * own.c;
        fd[to] = rows.d[0] - rows.c[0] * own.d;
    }
}

/* The equations between last unknowns of tiles: the first unknown of the next tile is replaced. `all` tiles, `tiles` a system. */
KERNEL void tridiagonal_join(uint all, uint tiles, __global real *restrict eb, __global real *restrict ec,
                             __global real *restrict ed, __global const real *restrict fa,
                             __global const real *restrict fc, __global const real *restrict fd)
{
    for (uint i = get_global_id(0); i < all; i += get_global_size(0)) {
        const bool has_next = (i + 1) % tiles != 0;
        const real upper = has_next ? ec[i] : 0;
        const uint next = has_next ? i + 1 : i;
        eb[i] -= upper * fa[next];
        ed[i] -= upper * fd[next];
        ec[i] = -upper * fc[next];
    }
}

/* x of all rows of long systems, if `lasts` has the last unknowns of their tiles. Reads 4 elements a row once more, writes 1. */
KERNEL void tridiagonal_expand(uint systems, uint n, uint across, uint along, uint tiles, __global const real *restrict a,
                               __global const real *restrict b, __global const real *restrict c,
                               __global const real *restrict d, __global const real *restrict lasts,
                               __global real *restrict x)
{
    __local real tile[ROOM];
    REDUCE_TILE
    const real before = number == 0 ? 0 : lasts[get_group_id(0) - 1], last = lasts[get_group_id(0)];
    substitute(&rows, lane == GROUP_SIZE - 1 ? last : own.d - own.a * before - own.c * last, before, lane, tile);
    store_chunks(rows.d, x, at, tile);
}

/* Of each part of each system: the largest |r| of a row, and the largest sum of the absolute values that r is made of; rows with a residual that is
 * no number have an infinite one. `width` neighbouring work-items, 1 or GROUP_SIZE, share one of `parts` parts of a system: part p of system s
 * is number p * systems + s. The first row has the last x on its left, and the last row the first one on its right. Reads 5 elements a row. */
KERNEL void tridiagonal_residual(uint systems, uint n, uint across, uint along, uint parts, uint width,
                                 __global const real *restrict a, __global const real *restrict b,
                                 __global const real *restrict c, __global const real *restrict d,
                                 __global const real *restrict x, __global real *restrict largest)
{
    __local real tile[2 * GROUP_SIZE];
    const uint unit = get_global_id(0) / width, first = get_global_id(0) % width;
    const uint system = unit % systems, part = unit / systems, each = (n + parts - 1) / parts;
    real residual = 0, scale = 0;
    if (part < parts) {
        const uint end = min(n, (part + 1) * each);
        for (uint row = part * each + first; row < end; row += width) {
            const uint at = AT(system, row);
            const uint left = AT(system, row == 0 ? n - 1 : row - 1), right = AT(system, row + 1 == n ? 0 : row + 1);
            const real of_a = a[at] * x[left], of_b = b[at] * x[at], of_c = c[at] * x[right];
            const real r = fabs(d[at] - of_a - of_b - of_c);
            residual = fmax(residual, r <= MAXFLOAT || r > MAXFLOAT ? r : INFINITY);
            scale = fmax(scale, fabs(of_a) + fabs(of_b) + fabs(of_c) + fabs(d[at]));
        }
    }
    const uint lane = get_local_id(0);
    tile[lane] = residual;
    tile[GROUP_SIZE + lane] = scale;
    for (uint h = width / 2; h > 0; h /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < h) {
            tile[lane] = fmax(tile[lane], tile[lane + h]);
            tile[GROUP_SIZE + lane] = fmax(tile[GROUP_SIZE + lane], tile[GROUP_SIZE + lane + h]);
        }
    }
    if (first == 0 && part < parts) {
        largest[2 * unit] = tile[lane];
        largest[2 * unit + 1] = tile[GROUP_SIZE + lane];
    }
}

/* How much of z is in x: x[0] + w x[n - 1], times the system's factor (Sherman and Morrison). */
KERNEL void tridiagonal_share_of(uint systems, uint n, uint across, uint along, __global const real *restrict w,
                                 __global const real *restrict factors, __global const real *restrict x,
                                 __global real *restrict shares)
{
    for (uint system = get_global_id(0); system < systems; system += get_global_size(0))
        shares[system] = (x[AT(system, 0)] + w[system] * x[AT(system, n - 1)]) * factors[system];
}

/* x -= share of its system times z. `all` elements; those of a system are `across` apart from the next one's. Reads 2 elements a row, writes 1. */
KERNEL void tridiagonal_close(uint all, uint systems, uint across, __global const real *restrict shares,
                              __global const real *restrict z, __global real *restrict x)
{
    for (uint i = get_global_id(0); i < all; i += get_global_size(0))
        x[i] -= shares[across == 1 ? i % systems : i / across] * z[i];
}
