/* Products with a matrix of finite elements that is never assembled: y = sum of L^T K L x over the elements, where L takes the nodes of an
 * element and K is its matrix, made again for each product from coordinates, or stored.
 *
 * Defined by the host (src/kernels/elements.rs), beside what prelude.cl asks for:
 *   DIM, NODES, UNKNOWNS   dimensions, nodes of an element, unknowns of a node
 *   LOCAL_NODES            the most nodes of a block
 *   POINTS                 places at which integrals are formed, with
 *   SLOPES, WEIGHTS        the derivatives of shape functions there, by point, node and direction, and the parts of the volume
 *   CURVED                 1 if each node of an element has a say in its geometry, 0 if its corners alone have
 *   ELASTIC                1 for Hooke's law with two numbers a region, lambda and mu; 0 for diffusion with one
 *   STORED                 1 if the matrices of elements are stored: lower triangles, entry by entry, neighbouring elements side by side
 *   COORDINATES            1 for an array of float4 or double4 (PLACE), 2 for two of float4 whose sum they are
 *   SCALED                 1 if the system is scaled: x and y are multiplied by `scale`
 *   SPRINGS                1 if rows have entries beside those of elements
 *   BY_BLOCKS              1 for the kernels of blocks, 0 for those of colours
 *   UNROLLED               1 where loops over an element are to be unrolled, so that its arrays are in registers; 0 where compilers take long
 *                          for that, and gain nothing
 *
 * Two ways to add up what elements give to a node:
 *
 * Blocks. A group has a block of at most GROUP_SIZE elements, a work-item each. It reads the block's nodes into local memory once, leaves the
 * products of elements in local memory, and adds up each node from there by a list. Nodes that other blocks have, too, go to `sums`, a place
 * for each block; a second launch adds these up. Sums have one order, so equal runs give equal bits.
 *
 * Colours. No two elements of a colour share a node; a launch for each colour adds to y in memory, between one that sets y to zero and one that
 * finishes it.
 */

typedef JOIN(PLACE, 4) place4;

#if UNROLLED
#define UNROLL_ELEMENT(times) UNROLL_BY(times)
#else
#define UNROLL_ELEMENT(times) UNROLL_BY(1)
#endif

__constant real slopes[POINTS][NODES][DIM] = SLOPES;
__constant real weights[POINTS] = WEIGHTS;

#define CORNERS (DIM + 1)
#define SHAPING (CURVED ? NODES : CORNERS)
#define ROWS (NODES * UNKNOWNS)

/* A node's number, and above that a bit for each of its unknowns that is known. */
#define NODE_BITS 29
#define NODE_OF(word) ((word) & ((1u << NODE_BITS) - 1))
#define IS_KNOWN(word, a) ((word) >> (NODE_BITS + (a)) & 1)

#if COORDINATES == 2
#define DIFFERENCE(n, m) ((PLACES[n] - PLACES[m]) + (PLACES_LOW[n] - PLACES_LOW[m]))
#else
#define DIFFERENCE(n, m) (to_real4(PLACES[n]) - to_real4(PLACES[m]))
#endif
#define to_real4 JOIN(convert_, JOIN(REAL, 4))
#define PLACES ((__global const place4 *)places)
#define PLACES_LOW ((__global const place4 *)places_low)
#define FIXED_ARGS                                                                                                     \
    __global const PLACE *restrict places, __global const PLACE *restrict places_low,                                  \
        __global const real *restrict materials, __global const real *restrict scale

/* Nodes relative to the first, of those that shape an element: numbers of nodes by NODE(n). */
#define READ_SHAPE(at, NODE)                                                                                           \
    UNROLL_ELEMENT(SHAPING)                                                                                                 \
    for (uint n = 1; n < SHAPING; n++) {                                                                               \
        const real4 from_first = DIFFERENCE(NODE(n), NODE(0));                                                         \
        at[n][0] = from_first.s0;                                                                                      \
        at[n][1] = from_first.s1;                                                                                      \
        at[n][DIM - 1] = DIM == 3 ? from_first.s2 : from_first.s1;                                                     \
    }                                                                                                                  \
    UNROLL_ELEMENT(DIM)                                                                                                     \
    for (uint k = 0; k < DIM; k++)                                                                                     \
        at[0][k] = 0;

/* The cofactors of the derivatives of coordinates, by direction in the element and in space, and their determinant. */
ALWAYS_INLINE real cofactors(const real j[DIM][DIM], real c[DIM][DIM])
{
#if DIM == 2
    c[0][0] = j[1][1];
    c[0][1] = -j[1][0];
    c[1][0] = -j[0][1];
    c[1][1] = j[0][0];
    return fma(j[0][0], c[0][0], j[0][1] * c[0][1]);
#else
    UNROLL_ELEMENT(DIM)
    for (uint a = 0; a < DIM; a++) {
        UNROLL_ELEMENT(DIM)
        for (uint b = 0; b < DIM; b++) {
            const uint r = (a + 1) % 3, s = (a + 2) % 3, u = (b + 1) % 3, v = (b + 2) % 3;
            c[a][b] = fma(j[r][u], j[s][v], -j[r][v] * j[s][u]);
        }
    }
    return fma(j[0][0], c[0][0], fma(j[0][1], c[0][1], j[0][2] * c[0][2]));
#endif
}

/* q = K u. */
ALWAYS_INLINE void element_product(const real at[SHAPING][DIM], __global const real *material, const real u[ROWS],
                                   real q[ROWS])
{
    UNROLL_ELEMENT(ROWS)
    for (uint i = 0; i < ROWS; i++)
        q[i] = 0;
    real c[DIM][DIM], determinant = 0;
    UNROLL_ELEMENT(POINTS)
    for (uint p = 0; p < POINTS; p++) {
        if (CURVED || p == 0) {
            real j[DIM][DIM];
            UNROLL_ELEMENT(DIM)
            for (uint k = 0; k < DIM; k++) {
                UNROLL_ELEMENT(DIM)
                for (uint x = 0; x < DIM; x++) {
                    j[k][x] = CURVED ? (real)0 : at[CURVED ? 0 : k + 1][x];
                    UNROLL_ELEMENT(NODES)
                    for (uint n = 1; n < (CURVED ? NODES : 1); n++)
                        j[k][x] = fma(slopes[p][n][k], at[n][x], j[k][x]);
                }
            }
            determinant = cofactors(j, c);
        }
        const real inverse = 1 / determinant;
        /* derivatives in the element: of unknown a, in direction k */
        real g[UNKNOWNS][DIM], f[UNKNOWNS][DIM];
        UNROLL_ELEMENT(UNKNOWNS)
        for (uint a = 0; a < UNKNOWNS; a++) {
            UNROLL_ELEMENT(DIM)
            for (uint k = 0; k < DIM; k++) {
                g[a][k] = 0;
                UNROLL_ELEMENT(NODES)
                for (uint n = 0; n < NODES; n++)
                    g[a][k] = fma(slopes[p][n][k], u[n * UNKNOWNS + a], g[a][k]);
            }
        }
        /* in space, */
        real h[UNKNOWNS][DIM];
        UNROLL_ELEMENT(UNKNOWNS)
        for (uint a = 0; a < UNKNOWNS; a++) {
            UNROLL_ELEMENT(DIM)
            for (uint x = 0; x < DIM; x++) {
                h[a][x] = 0;
                UNROLL_ELEMENT(DIM)
                for (uint k = 0; k < DIM; k++)
                    h[a][x] = fma(g[a][k], c[k][x], h[a][x]);
            }
        }
        /* what they make of it, times the volume, */
        real s[UNKNOWNS][DIM];
#if ELASTIC
        const real times = weights[p] * inverse, lambda = material[0] * times, mu = material[1] * times;
        real trace = 0;
        UNROLL_ELEMENT(DIM)
        for (uint x = 0; x < DIM; x++)
            trace += h[x][x];
        UNROLL_ELEMENT(DIM)
        for (uint a = 0; a < DIM; a++) {
            UNROLL_ELEMENT(DIM)
            for (uint x = 0; x < DIM; x++)
                s[a][x] = fma(mu, h[a][x] + h[x][a], a == x ? lambda * trace : (real)0);
        }
#else
        const real times = material[0] * weights[p] * inverse;
        UNROLL_ELEMENT(DIM)
        for (uint x = 0; x < DIM; x++)
            s[0][x] = times * h[0][x];
#endif
        /* and back */
        UNROLL_ELEMENT(UNKNOWNS)
        for (uint a = 0; a < UNKNOWNS; a++) {
            UNROLL_ELEMENT(DIM)
            for (uint k = 0; k < DIM; k++) {
                f[a][k] = 0;
                UNROLL_ELEMENT(DIM)
                for (uint x = 0; x < DIM; x++)
                    f[a][k] = fma(s[a][x], c[k][x], f[a][k]);
            }
        }
        UNROLL_ELEMENT(NODES)
        for (uint n = 0; n < NODES; n++) {
            UNROLL_ELEMENT(UNKNOWNS)
            for (uint a = 0; a < UNKNOWNS; a++) {
                UNROLL_ELEMENT(DIM)
                for (uint k = 0; k < DIM; k++)
                    q[n * UNKNOWNS + a] = fma(slopes[p][n][k], f[a][k], q[n * UNKNOWNS + a]);
            }
        }
    }
}

/* The same by a matrix that is stored. */
ALWAYS_INLINE void stored_product(__global const real *matrix, uint apart, const real u[ROWS], real q[ROWS])
{
    uint entry = 0;
    UNROLL_ELEMENT(ROWS)
    for (uint i = 0; i < ROWS; i++) {
        real sum = 0;
        UNROLL_ELEMENT(ROWS)
        for (uint j = 0; j <= i; j++, entry++) {
            const real k = matrix[(ulong)entry * apart];
            sum = fma(k, u[j], sum);
            if (j < i)
                q[j] = fma(k, u[i], q[j]);
        }
        q[i] = sum;
    }
}

/* Leaves what the mode asks for of the unknowns of a node, to which its elements give `sum`. */
ALWAYS_INLINE void finish_node(int mode, uint word, real sum[UNKNOWNS], __global const real *scale, __global const real *x,
                               __global const real *b, __global real *y, dots *s)
{
    UNROLL_ELEMENT(UNKNOWNS)
    for (uint a = 0; a < UNKNOWNS; a++) {
        const uint row = NODE_OF(word) * UNKNOWNS + a;
        const real all = SCALED ? sum[a] * scale[row] : sum[a];
        finish_row(mode, row, IS_KNOWN(word, a) ? x[row] : all, x, b, y, s);
    }
}

/* x of an unknown as elements have it. */
#define OF_ELEMENTS(word, a, x, scale)                                                                                 \
    (IS_KNOWN(word, a) ? (real)0                                                                                       \
                       : SCALED ? x[NODE_OF(word) * UNKNOWNS + (a)] * scale[NODE_OF(word) * UNKNOWNS + (a)]            \
                                : x[NODE_OF(word) * UNKNOWNS + (a)])

/* Blocks `first` to `last`. The head of a block: where its nodes begin in `nodes` and `ends`; how many of these it has alone, owns, and has
 * at all, in this order; how many elements; and where its places in `sums` begin. Element e of block k has node
 * corners[k * GROUP_SIZE * NODES + n * GROUP_SIZE + e] of the block in place n; the products of its node l are in `lists`, from
 * ends[l - 1] to ends[l], as n * GROUP_SIZE + e. */
#define HEAD 6
/* Places of products that a work-item reads at once, so that it waits for memory as seldom. */
#define AT_ONCE 4
#define BLOCKS_ARGS                                                                                                    \
    uint first, uint last, __global const uint *restrict heads, __global const uint *restrict nodes,                  \
        __global const ushort *restrict ends, __global const ushort *restrict lists,                                   \
        __global const ushort *restrict corners, __global const ushort *restrict regions,                              \
        __global const uint *restrict slots, __global real *sums, __global const real *restrict matrices, FIXED_ARGS

#define BLOCKS_LOCAL                                                                                                   \
    __local real held[LOCAL_NODES * UNKNOWNS];                                                                         \
    __local uint words[LOCAL_NODES];                                                                                   \
    __local real products[ROWS * GROUP_SIZE];

#define BLOCKS(mode, b, y, s)                                                                                          \
    const uint lane = get_local_id(0);                                                                                 \
    for (uint k = first + get_group_id(0); k < last; k += get_num_groups(0)) {                                         \
        __global const uint *head = heads + HEAD * k;                                                                  \
        const uint begin = head[0], inside = head[1], own = head[2], all = head[3], count = head[4], slot = head[5];   \
        for (uint l = lane; l < all; l += GROUP_SIZE) {                                                                \
            const uint word = nodes[begin + l];                                                                        \
            words[l] = word;                                                                                           \
            UNROLL_ELEMENT(UNKNOWNS)                                                                                        \
            for (uint a = 0; a < UNKNOWNS; a++)                                                                        \
                held[l * UNKNOWNS + a] = OF_ELEMENTS(word, a, x, scale);                                               \
        }                                                                                                              \
        uint of[NODES];                                                                                                \
        UNROLL_ELEMENT(NODES)                                                                                          \
        for (uint n = 0; n < NODES; n++)                                                                               \
            of[n] = corners[(k * NODES + n) * GROUP_SIZE + lane];                                                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        if (lane < count) {                                                                                            \
            real u[ROWS], q[ROWS];                                                                                     \
            UNROLL_ELEMENT(NODES)                                                                                      \
            for (uint n = 0; n < NODES; n++) {                                                                         \
                UNROLL_ELEMENT(UNKNOWNS)                                                                                    \
                for (uint a = 0; a < UNKNOWNS; a++)                                                                    \
                    u[n * UNKNOWNS + a] = held[of[n] * UNKNOWNS + a];                                                  \
            }                                                                                                          \
            ELEMENT(k * GROUP_SIZE + lane, OF_BLOCK, (ulong)k * (ROWS * (ROWS + 1) / 2) * GROUP_SIZE + lane, GROUP_SIZE)   \
            UNROLL_ELEMENT(ROWS)                                                                                            \
            for (uint i = 0; i < ROWS; i++)                                                                            \
                products[i * GROUP_SIZE + lane] = q[i];                                                                \
        }                                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (uint l = lane; l < own; l += GROUP_SIZE) {                                                                \
            real sum[UNKNOWNS];                                                                                        \
            UNROLL_ELEMENT(UNKNOWNS)                                                                                        \
            for (uint a = 0; a < UNKNOWNS; a++)                                                                        \
                sum[a] = 0;                                                                                            \
            const uint end = ends[begin + l];                                                                          \
            for (uint at = l > 0 ? ends[begin + l - 1] : 0; at < end; at += AT_ONCE) {                                 \
                uint product[AT_ONCE];                                                                                 \
                UNROLL_ELEMENT(AT_ONCE)                                                                                \
                for (uint i = 0; i < AT_ONCE; i++)                                                                     \
                    product[i] = lists[k * NODES * GROUP_SIZE + min(at + i, end - 1)];                                 \
                UNROLL_ELEMENT(AT_ONCE)                                                                                \
                for (uint i = 0; i < AT_ONCE; i++) {                                                                   \
                    const uint n = product[i] / GROUP_SIZE, e = product[i] % GROUP_SIZE;                               \
                    UNROLL_ELEMENT(UNKNOWNS)                                                                           \
                    for (uint a = 0; a < UNKNOWNS; a++)                                                                \
                        sum[a] += at + i < end ? products[(n * UNKNOWNS + a) * GROUP_SIZE + e] : (real)0;              \
                }                                                                                                      \
            }                                                                                                          \
            if (l < inside) {                                                                                          \
                finish_node(mode, words[l], sum, scale, x, b, y, s);                                                   \
            } else {                                                                                                   \
                UNROLL_ELEMENT(UNKNOWNS)                                                                                    \
                for (uint a = 0; a < UNKNOWNS; a++)                                                                    \
                    sums[slots[slot + l - inside] * UNKNOWNS + a] = sum[a];                                         \
            }                                                                                                          \
        }                                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    }

/* q = K u of an element by its number, with nodes by NODE(n), or by what is stored from `at` on. */
#if STORED
#define ELEMENT(element, NODE, at, apart) stored_product(matrices + (at), apart, u, q);
#else
#define ELEMENT(element, NODE, at, apart)                                                                              \
    real shape[SHAPING][DIM];                                                                                          \
    READ_SHAPE(shape, NODE)                                                                                            \
    element_product(shape, materials + (ELASTIC + 1) * regions[element], u, q);
#endif
#define OF_BLOCK(n) NODE_OF(words[of[n]])
#define OF_COLOUR(n) NODE_OF(of[n])

#if BY_BLOCKS
KERNEL void blocks_store(BLOCKS_ARGS, __global const real *restrict x, __global real *restrict y)
{
    BLOCKS_LOCAL
    BLOCKS(ROWS_PRODUCT, x, y, 0)
}

KERNEL void blocks_dots(BLOCKS_ARGS, __global const real *restrict x, __global real *restrict y,
                        __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    BLOCKS_LOCAL
    __local dots_scratch scratch[GROUP_SIZE];
    last = *done ? first : last;
    dots s;
    no_dots(&s);
    BLOCKS(ROWS_DOT, x, y, &s)
    leave_dots(&s, scratch, partials, first_partial);
}

KERNEL void blocks_residual(BLOCKS_ARGS, __global const real *restrict x, __global const real *restrict b,
                            __global real *restrict r)
{
    BLOCKS_LOCAL
    BLOCKS(ROWS_RESIDUAL, b, r, 0)
}

#endif

/* Adds entries of springs to the sums of a node, which is entry k of the list: those of unknown a are from
 * spring_ends[k * UNKNOWNS + a - 1] on. */
#define SPRINGS_ARGS                                                                                                   \
    __global const uint *restrict spring_ends, __global const uint *restrict spring_columns,                           \
        __global const real *restrict spring_values
#if SPRINGS
#define ADD_SPRINGS(k, sum)                                                                                            \
    for (uint a = 0; a < UNKNOWNS; a++) {                                                                              \
        const uint row = (k) * UNKNOWNS + a;                                                                           \
        for (uint at = row > 0 ? spring_ends[row - 1] : 0; at < spring_ends[row]; at++) {                              \
            const uint column = spring_columns[at];                                                                    \
            sum[a] = fma(spring_values[at], SCALED ? x[column] * scale[column] : x[column], sum[a]);                   \
        }                                                                                                              \
    }
#else
#define ADD_SPRINGS(k, sum)
#endif

/* Nodes of a list whose sums are in several places, in places sum_ends[k - 1] to sum_ends[k] for node k. */
#define SHARED_ARGS                                                                                                    \
    uint count, __global const uint *restrict nodes, __global const uint *restrict sum_ends,                           \
        __global const real *restrict sums, SPRINGS_ARGS, __global const real *restrict scale

#define SHARED(mode, b, y, s)                                                                                          \
    for (uint k = get_global_id(0); k < count; k += get_global_size(0)) {                                              \
        real sum[UNKNOWNS];                                                                                            \
        UNROLL_ELEMENT(UNKNOWNS)                                                                                            \
        for (uint a = 0; a < UNKNOWNS; a++)                                                                            \
            sum[a] = 0;                                                                                                \
        for (uint at = k > 0 ? sum_ends[k - 1] : 0; at < sum_ends[k]; at++) {                                          \
            UNROLL_ELEMENT(UNKNOWNS)                                                                                        \
            for (uint a = 0; a < UNKNOWNS; a++)                                                                        \
                sum[a] += sums[at * UNKNOWNS + a];                                                                     \
        }                                                                                                              \
        ADD_SPRINGS(k, sum)                                                                                            \
        finish_node(mode, nodes[k], sum, scale, x, b, y, s);                                                           \
    }

#if BY_BLOCKS
KERNEL void shared_store(SHARED_ARGS, __global const real *restrict x, __global real *restrict y)
{
    SHARED(ROWS_PRODUCT, x, y, 0)
}

KERNEL void shared_dots(SHARED_ARGS, __global const real *restrict x, __global real *restrict y,
                        __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    __local dots_scratch scratch[GROUP_SIZE];
    count = *done ? 0 : count;
    dots s;
    no_dots(&s);
    SHARED(ROWS_DOT, x, y, &s)
    leave_dots(&s, scratch, partials, first_partial);
}

KERNEL void shared_residual(SHARED_ARGS, __global const real *restrict x, __global const real *restrict b,
                            __global real *restrict r)
{
    SHARED(ROWS_RESIDUAL, b, r, 0)
}

#else

/* Elements `first` to `last` of `all` in the order of colours, which are of one colour: element e has node corners[n * all + e] in place n. */
#define COLOUR_ARGS                                                                                                    \
    uint first, uint last, uint all, __global const uint *restrict corners, __global const ushort *restrict regions,   \
        __global const real *restrict matrices, FIXED_ARGS

#define COLOUR(y)                                                                                                      \
    for (uint e = first + get_global_id(0); e < last; e += get_global_size(0)) {                                       \
        real u[ROWS], q[ROWS];                                                                                         \
        uint of[NODES];                                                                                                \
        UNROLL_ELEMENT(NODES)                                                                                               \
        for (uint n = 0; n < NODES; n++) {                                                                             \
            of[n] = corners[(ulong)n * all + e];                                                                       \
            UNROLL_ELEMENT(UNKNOWNS)                                                                                        \
            for (uint a = 0; a < UNKNOWNS; a++)                                                                        \
                u[n * UNKNOWNS + a] = OF_ELEMENTS(of[n], a, x, scale);                                                 \
        }                                                                                                              \
        ELEMENT(e, OF_COLOUR, e, all)                                                                                  \
        UNROLL_ELEMENT(NODES)                                                                                               \
        for (uint n = 0; n < NODES; n++) {                                                                             \
            UNROLL_ELEMENT(UNKNOWNS)                                                                                        \
            for (uint a = 0; a < UNKNOWNS; a++)                                                                        \
                if (NODE_OF(of[n]) * UNKNOWNS < owned)                                                                 \
                    y[NODE_OF(of[n]) * UNKNOWNS + a] += q[n * UNKNOWNS + a];                                           \
        }                                                                                                              \
    }

KERNEL void colour_store(COLOUR_ARGS, uint owned, __global const real *restrict x, __global real *restrict y)
{
    COLOUR(y)
}

KERNEL void colour_dots(COLOUR_ARGS, uint owned, __global const real *restrict x, __global real *restrict y,
                        __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    last = *done ? first : last;
    COLOUR(y)
}

KERNEL void colour_residual(COLOUR_ARGS, uint owned, __global const real *restrict x, __global const real *restrict b,
                            __global real *restrict r)
{
    COLOUR(r)
}

/* y = 0 for `count` elements, before colours. */
KERNEL void zero_store(uint count, __global const real *restrict x, __global real *restrict y)
{
    SET_EACH(i, count, y, 0)
}

KERNEL void zero_dots(uint count, __global const real *restrict x, __global real *restrict y,
                      __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    count = *done ? 0 : count;
    SET_EACH(i, count, y, 0)
}

KERNEL void zero_residual(uint count, __global const real *restrict x, __global const real *restrict b,
                          __global real *restrict r)
{
    SET_EACH(i, count, r, 0)
}

/* Behind all colours: nodes whose sums are in y. `spring_places` has the place of a node in the list of springs, counted from 1, or 0. */
#define SUMMED_ARGS                                                                                                    \
    uint count, __global const uint *restrict nodes, __global const uint *restrict spring_places, SPRINGS_ARGS,        \
        __global const real *restrict scale

#define SUMMED(mode, b, y, s)                                                                                          \
    for (uint k = get_global_id(0); k < count; k += get_global_size(0)) {                                              \
        real sum[UNKNOWNS];                                                                                            \
        UNROLL_ELEMENT(UNKNOWNS)                                                                                            \
        for (uint a = 0; a < UNKNOWNS; a++)                                                                            \
            sum[a] = y[k * UNKNOWNS + a];                                                                              \
        const uint place = SPRINGS ? spring_places[k] : 0;                                                             \
        if (place > 0) {                                                                                               \
            ADD_SPRINGS(place - 1, sum)                                                                                \
        }                                                                                                              \
        finish_node(mode, nodes[k], sum, scale, x, b, y, s);                                                           \
    }

KERNEL void summed_store(SUMMED_ARGS, __global const real *restrict x, __global real *restrict y)
{
    SUMMED(ROWS_PRODUCT, x, y, 0)
}

KERNEL void summed_dots(SUMMED_ARGS, __global const real *restrict x, __global real *restrict y,
                        __global acc *restrict partials, uint first_partial, __global const int *restrict done)
{
    __local dots_scratch scratch[GROUP_SIZE];
    count = *done ? 0 : count;
    dots s;
    no_dots(&s);
    SUMMED(ROWS_DOT, x, y, &s)
    leave_dots(&s, scratch, partials, first_partial);
}

KERNEL void summed_residual(SUMMED_ARGS, __global const real *restrict x, __global const real *restrict b,
                            __global real *restrict r)
{
    SUMMED(ROWS_RESIDUAL, b, r, 0)
}
#endif
