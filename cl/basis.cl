/* Columns of a basis W, which lie one behind the other: element i of column c is basis[c * stride + i], i < n. Vectors w, to and x are
 * longer: element i of a column goes with their element begin + i, so that W may be cut into bands of rows.
 *
 *   basis_dots    sum k of each tile = sum of w_k[i] w[i], and sum all + k that of w_k[i] u[i], where u is column `newest`, for
 *                 k = first .. first + count - 1; with first = 0 also, as sum 2 all, that of w[i]^2
 *   basis_next    to = scale (w - f_0 w_0 - f_1 w_1 - ...), in this order, where c < columns, which becomes column `column`, too; if
 *                 `turned`, with pairs of real and imaginary parts, i times that becomes the next column. Sum 0 of each tile is that of
 *                 to[i]^2
 *   basis_totals  totals[k] = the sum of all tiles' sums k, for k < count
 *   basis_add     x += f_0 w_0 + ..., in this order
 *
 * Sum k of tile t is partials[k * all_tiles + first_tile + t]. Elements belong to tiles whatever the number of groups, so that it changes no
 * bits: a group takes one tile or several.
 *
 * GPU shape: GROUP_SIZE neighbouring elements are a piece, and pieces belong to tiles in turns. For dots, teams of 32 work-items have columns
 * in turns, each all of the piece's elements, with w and u of the piece in local memory: so every load is of neighbours, and all is read
 * from memory once. A team keeps its sums of EACH_TEAM columns until the end of the tile: a launch takes at most TEAMS * EACH_TEAM of them.
 * CPU shape: a tile is a run of neighbouring elements, which is worked on in pieces that stay in a cache, in vectors of 8.
 */
#if SHAPE_CPU
#define PIECE 512

/* Elements of a tile, a multiple of 8. */
static inline uint basis_tile_len(uint n, uint tiles) { return (n / tiles + 8) / 8 * 8; }

/* s += factor v, on count elements. */
static inline void piece_add(uint count, real factor, __global const real *v, real *s)
{
    uint i = 0;
    for (; i + 8 <= count; i += 8)
        vstore8(vload8(0, s + i) + factor * vload8(0, v + i), 0, s + i);
    for (; i < count; i++)
        s[i] += factor * v[i];
}

/* The sum of v[i] s[i] over count elements. */
static inline acc piece_dot(uint count, __global const real *v, __global const real *s)
{
    uint i = 0;
    acc8 sum = 0;
    acc rest = 0;
    for (; i + 8 <= count; i += 8)
        sum += convert_acc8(vload8(0, v + i)) * convert_acc8(vload8(0, s + i));
    for (; i < count; i++)
        rest += (acc)v[i] * (acc)s[i];
    return rest + sum8(sum);
}

/* w of a piece. */
static inline void piece_load(uint count, __global const real *w, real *s)
{
    for (uint i = 0; i < count; i++)
        s[i] = w[i];
}

/* And back. */
static inline void piece_store(uint count, const real *s, real scale, __global real *w)
{
    for (uint i = 0; i < count; i++)
        w[i] = scale * s[i];
}
#else
#define TEAM (GROUP_SIZE < 32 ? GROUP_SIZE : 32)
#define TEAMS (GROUP_SIZE / TEAM)
#define EACH_TEAM 8

/* s plus or minus factors[c] basis[c * stride], for all c in order. */
ALWAYS_INLINE real basis_add_columns(real s, real sign, uint columns, uint stride, __global const acc *factors,
                                     __global const real *basis)
{
    uint c = 0;
    for (; c + 8 <= columns; c += 8, basis += (ulong)8 * stride) {
        real v[8];
        UNROLL_BY(8)
        for (uint k = 0; k < 8; k++)
            v[k] = basis[(ulong)k * stride];
        UNROLL_BY(8)
        for (uint k = 0; k < 8; k++)
            s += sign * (real)factors[c + k] * v[k];
    }
    for (; c < columns; c++, basis += stride)
        s += sign * (real)factors[c] * *basis;
    return s;
}

/* The sum of s over the work-items of a team, on its first one; scratch may be reused after. */
static inline acc team_sum(acc s, uint place, __local acc *scratch)
{
    uint n = TEAM;
    scratch += get_local_id(0) - place;
    scratch[place] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (; n > FAN; n /= FAN) {
        if (place < n / FAN) {
            for (uint k = 1; k < FAN; k++)
                s += scratch[place + k * (n / FAN)];
            scratch[place] = s;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (place == 0)
        for (uint k = 1; k < n; k++)
            s += scratch[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    return s;
}
#endif

KERNEL void basis_dots(uint n, uint begin, uint stride, uint first, uint count, uint all, uint newest, __global const real *basis,
                       __global const real *w, __global acc *partials, uint tiles, uint first_tile, uint all_tiles)
{
    w += begin;
    partials += first_tile;
    __global const real *u = basis + (ulong)newest * stride;
#if SHAPE_CPU
    for (uint tile = get_global_id(0); tile < tiles; tile += get_global_size(0)) {
        const uint len = basis_tile_len(n, tiles), from = min(n, tile * len), to = min(n, from + len);
        for (uint k = first; k < first + count; k++) {
            partials[(ulong)k * all_tiles + tile] = 0;
            partials[(ulong)(all + k) * all_tiles + tile] = 0;
        }
        acc square = 0;
        for (uint at = from; at < to; at += PIECE) {
            const uint here = min((uint)PIECE, to - at);
            for (uint k = first; k < first + count; k++) {
                __global const real *v = basis + (ulong)k * stride + at;
                partials[(ulong)k * all_tiles + tile] += piece_dot(here, v, w + at);
                partials[(ulong)(all + k) * all_tiles + tile] += piece_dot(here, v, u + at);
            }
            if (first == 0)
                square += piece_dot(here, w + at, w + at);
        }
        if (first == 0)
            partials[(ulong)2 * all * all_tiles + tile] = square;
    }
#else
    __local real piece[GROUP_SIZE], piece_of_u[GROUP_SIZE];
    __local acc scratch[GROUP_SIZE];
    const uint lane = get_local_id(0), place = lane % TEAM, team = lane / TEAM;
    for (uint tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        acc sum[EACH_TEAM], sum_of_u[EACH_TEAM], square = 0;
        UNROLL_BY(EACH_TEAM)
        for (uint k = 0; k < EACH_TEAM; k++)
            sum[k] = sum_of_u[k] = 0;
        for (ulong at = (ulong)tile * GROUP_SIZE; at < n; at += (ulong)tiles * GROUP_SIZE) {
            const real s = at + lane < n ? w[at + lane] : 0;
            square += (acc)s * (acc)s;
            piece[lane] = s;
            piece_of_u[lane] = count > 0 && at + lane < n ? u[at + lane] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            UNROLL_BY(EACH_TEAM)
            for (uint k = 0; k < EACH_TEAM; k++) {
                const uint column = team + k * TEAMS;
                if (column < count) {
                    __global const real *v = basis + (ulong)(first + column) * stride + at;
                    UNROLL_BY(8)
                    for (uint i = place; i < GROUP_SIZE; i += TEAM)
                        if (at + i < n) {
                            const acc e = (acc)v[i];
                            sum[k] += e * (acc)piece[i];
                            sum_of_u[k] += e * (acc)piece_of_u[i];
                        }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        UNROLL_BY(EACH_TEAM)
        for (uint k = 0; k < EACH_TEAM; k++) {
            const uint column = team + k * TEAMS;
            const acc s = team_sum(sum[k], place, scratch), of_u = team_sum(sum_of_u[k], place, scratch);
            if (place == 0 && column < count) {
                partials[(ulong)(first + column) * all_tiles + tile] = s;
                partials[(ulong)(all + first + column) * all_tiles + tile] = of_u;
            }
        }
        square = group_sum(square, scratch);
        if (lane == 0 && first == 0)
            partials[(ulong)2 * all * all_tiles + tile] = square;
    }
#endif
}

KERNEL void basis_next(uint n, uint begin, uint stride, uint columns, __global const acc *factors, uint column, uint turned, real scale,
                       __global real *basis, __global const real *w, __global real *to, __global acc *partials, uint tiles,
                       uint first_tile)
{
    w += begin;
    to += begin;
    partials += first_tile;
    __global real *next = basis + (ulong)column * stride;
#if SHAPE_CPU
    for (uint tile = get_global_id(0); tile < tiles; tile += get_global_size(0)) {
        const uint len = basis_tile_len(n, tiles), from = min(n, tile * len), end = min(n, from + len);
        acc square = 0;
        for (uint at = from; at < end; at += PIECE) {
            const uint here = min((uint)PIECE, end - at);
            real s[PIECE];
            piece_load(here, w + at, s);
            for (uint c = 0; c < columns; c++)
                piece_add(here, -(real)factors[c], basis + (ulong)c * stride + at, s);
            piece_store(here, s, scale, to + at);
            piece_store(here, s, scale, next + at);
            square += piece_dot(here, to + at, to + at);
            for (uint i = 0; turned && i < here; i++)
                next[(ulong)stride + ((at + i) ^ 1)] = (at + i) % 2 == 0 ? scale * s[i] : -(scale * s[i]);
        }
        partials[tile] = square;
    }
#else
    __local acc scratch[GROUP_SIZE];
    const uint lane = get_local_id(0);
    for (uint tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        acc square = 0;
        for (ulong i = (ulong)tile * GROUP_SIZE + lane; i < n; i += (ulong)tiles * GROUP_SIZE) {
            const real s = scale * basis_add_columns(w[i], -1, columns, stride, factors, basis + i);
            to[i] = s;
            next[i] = s;
            if (turned)
                next[stride + (i ^ 1)] = i % 2 == 0 ? s : -s;
            square += (acc)s * (acc)s;
        }
        square = group_sum(square, scratch);
        if (lane == 0)
            partials[tile] = square;
    }
#endif
}

KERNEL void basis_totals(uint count, uint tiles, __global const acc *restrict partials, __global acc *restrict totals)
{
    __local acc scratch[GROUP_SIZE];
    for (uint k = get_group_id(0); k < count; k += get_num_groups(0)) {
        acc s = 0;
        for (uint tile = get_local_id(0); tile < tiles; tile += GROUP_SIZE)
            s += partials[(ulong)k * tiles + tile];
        s = group_sum(s, scratch);
        if (get_local_id(0) == 0)
            totals[k] = s;
    }
}

KERNEL void basis_add(uint n, uint begin, uint stride, uint columns, __global const acc *factors, __global const real *basis,
                      __global real *x)
{
    x += begin;
#if SHAPE_CPU
    for (uint at = chunk_begin(n), end = chunk_end(n); at < end; at += PIECE) {
        const uint here = min((uint)PIECE, end - at);
        real s[PIECE];
        piece_load(here, x + at, s);
        for (uint c = 0; c < columns; c++)
            piece_add(here, (real)factors[c], basis + (ulong)c * stride + at, s);
        piece_store(here, s, 1, x + at);
    }
#else
    EACH(i, n, x[i] = basis_add_columns(x[i], 1, columns, stride, factors, basis + i))
#endif
}
