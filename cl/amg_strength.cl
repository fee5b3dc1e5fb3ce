/* Multigrid by smoothed aggregation, set up on a device: what couples strongly, and the graph of it. src/precond/amg has what all of
 * amg_*.cl computes, on the host: the same integers and, but for sums over all rows, the same bits of all numbers.
 *
 * Matrices are compressed rows with a diagonal of 1. There is no shape for CPUs, which are set up by the host.
 *
 * Either a work-item takes a row, or a group takes a row block, as csr.cl does: STAGED entries at most, unless it is a single longer row,
 * of 256 rows at most. First all work-items load entries, several neighbouring ones those of a row, and leave in local memory what is to be
 * known of each; then each row is gone through by one of them, in the order of its columns.
 */
#if SHAPE_CPU
#error "amg_*.cl has no shape for CPUs"
#endif

#define ROWS_ARGS                                                                                                      \
    uint n, __global const uint *restrict starts, __global const uint *restrict columns, __global const real *restrict values
#define EACH_ROW(i, n) for (uint i = get_global_id(0); i < (n); i += get_global_size(0))
#define EACH_ENTRY(e, starts, i) for (uint e = starts[i], e##_end = starts[i + 1]; e < e##_end; e++)

#define STAGED 2048
#define BLOCKS_ARGS                                                                                                    \
    uint n, __global const uint2 *restrict blocks, __global const uint *restrict starts,                               \
        __global const uint *restrict columns, __global const real *restrict values

/* Does what follows for each of n row blocks: of `rows` rows from row_begin on, whose entries begin at block_begin. A row has `lanes`. */
#define EACH_BLOCK_OF(n)                                                                                               \
    for (uint k = get_group_id(0), row_begin, rows, block_begin, block_end, lanes;                                     \
         k < (n) && (row_begin = blocks[k].s0, rows = blocks[k].s1 - row_begin, block_begin = starts[row_begin],        \
                     block_end = starts[row_begin + rows], lanes = lanes_of(rows), 1);                                  \
         k += get_num_groups(0))

/* Does what follows for each STAGED entries of it, from `at` on, of which number e is staged at e - at. */
#define EACH_STAGE(at) for (uint at = block_begin; at < block_end; at += STAGED)

/* Does what follows for each entry e of these that the work-item loads, in row i. */
#define EACH_LOADED(e, i, at)                                                                                          \
    for (uint i = row_begin + get_local_id(0) / lanes, e = i - row_begin < rows ? max(starts[i], at) + get_local_id(0) % lanes : UINT_MAX, \
              e##_end = i - row_begin < rows ? min(starts[i + 1], at + STAGED) : 0;                                    \
         e < e##_end; e += lanes)

/* The row that the work-item goes through, if there is one; does what follows for each of its staged entries. */
#define OWN_ROW (row_begin + (uint)get_local_id(0))
#define HAS_ROW (get_local_id(0) < rows)
#define EACH_OWN(e, at)                                                                                                \
    for (uint e = HAS_ROW ? max(starts[OWN_ROW], at) - at : 1, e##_end = HAS_ROW ? min(starts[OWN_ROW + 1], at + STAGED) - at : 0; \
         e < e##_end; e++)

/* A power of two of lanes for each row. */
static inline uint lanes_of(uint rows)
{
    uint lanes = GROUP_SIZE;
    while (lanes * rows > GROUP_SIZE)
        lanes /= 2;
    return lanes;
}

/* Rounded once: of floats alone, devices may round quotients and roots as they like. */
#define QUOTIENT(a, b) ((real)((acc)(a) / (acc)(b)))
#define ROOT(a) ((real)sqrt((acc)(a)))

#define THETA 0.25f
#define DOMINANT 0.1f

/* Whether v at (i, j) is strong. */
static inline int is_strong(uint i, uint j, real v, __global const real *largest)
{
    return i != j && v * v > THETA * THETA * (largest[i] * largest[j]);
}

/* largest[i] = max |a_ij| beside the diagonal, or infinity if all of them together are far below it, weighted by b. Of each group,
 * bounds[2 g] and behind get the largest sum of a row, not weighted and weighted. */
KERNEL void strength(BLOCKS_ARGS, __global const real *restrict b, __global real *restrict largest,
                     __global real *restrict bounds)
{
    /* |a_ij|, with the sign of the diagonal turned, and |a_ij| b_j */
    __local real sizes[STAGED], shares[STAGED];
    real2 most = 0;
    EACH_BLOCK_OF(n) {
        real own = 0, others = 0, plain = 0, weighted = 0;
        EACH_STAGE(at) {
            EACH_LOADED(e, i, at) {
                const real size = fabs(values[e]);
                const uint j = columns[e];
                sizes[e - at] = j == i ? -size : size;
                shares[e - at] = size * b[j];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            EACH_OWN(e, at) {
                const real size = sizes[e], share = shares[e];
                plain += fabs(size);
                weighted += share;
                own = fmax(own, size);
                others += size < 0 ? 0 : share;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (HAS_ROW) {
            const real own_b = b[OWN_ROW];
            largest[OWN_ROW] = others < DOMINANT * own_b ? INFINITY : own;
            most = fmax(most, (real2)(plain, QUOTIENT(weighted, own_b)));
        }
    }
    const uint lane = get_local_id(0);
    __local real2 scratch[GROUP_SIZE];
    scratch[lane] = most;
    for (uint apart = GROUP_SIZE / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < apart)
            scratch[lane] = fmax(scratch[lane], scratch[lane + apart]);
    }
    if (lane == 0)
        vstore2(scratch[0], get_group_id(0), bounds);
}

/* Goes through the entries of row i of A and of its transpose together, both in the order of columns: for each column that either has, DO, where it is
 * in A if `here`, at e, and in the transpose if `there`, at f. */
#define ACROSS_ARGS                                                                                                    \
    uint n, __global const uint *restrict starts, __global const uint *restrict columns, __global const uint *restrict starts_across, \
        __global const uint *restrict columns_across
#define EACH_ACROSS(i, DO)                                                                                             \
    for (uint e = starts[i], e_end = starts[i + 1], f = starts_across[i], f_end = starts_across[i + 1]; e < e_end || f < f_end;) { \
        const uint own = e < e_end ? columns[e] : UINT_MAX, other = f < f_end ? columns_across[f] : UINT_MAX;          \
        const uint column = min(own, other), here = own == column, there = other == column;                            \
        DO;                                                                                                            \
        e += here;                                                                                                     \
        f += there;                                                                                                    \
    }

/* How many entries the rows of the mean of A and its transpose have. */
KERNEL void mean_lengths(ACROSS_ARGS, __global uint *restrict lengths)
{
    EACH_ROW(i, n) {
        uint length = 0;
        EACH_ACROSS(i, length += column < UINT_MAX)
        lengths[i] = length;
    }
}

/* These rows. */
KERNEL void mean_rows(ACROSS_ARGS, __global const real *restrict values, __global const real *restrict values_across,
                      __global const uint *restrict starts_mean, __global uint *restrict columns_mean,
                      __global real *restrict values_mean)
{
    EACH_ROW(i, n) {
        uint to = starts_mean[i];
        EACH_ACROSS(i, {
            columns_mean[to] = column;
            values_mean[to++] = 0.5f * ((here ? values[e] : 0) + (there ? values_across[f] : 0));
        })
    }
}

/* How many strong neighbours rows have among the first `owned`: those behind are other ranks'. */
KERNEL void graph_lengths(BLOCKS_ARGS, uint owned, __global const real *restrict largest,
                          __global uint *restrict lengths)
{
    __local uchar strong[STAGED];
    EACH_BLOCK_OF(n) {
        uint length = 0;
        EACH_STAGE(at) {
            EACH_LOADED(e, i, at)
                strong[e - at] = columns[e] < owned && is_strong(i, columns[e], values[e], largest);
            barrier(CLK_LOCAL_MEM_FENCE);
            EACH_OWN(e, at)
                length += strong[e];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (HAS_ROW)
            lengths[OWN_ROW] = length;
    }
}

/* These, from graph[i] on. */
KERNEL void graph_neighbours(BLOCKS_ARGS, uint owned, __global const real *restrict largest,
                             __global const uint *restrict graph, __global uint *restrict neighbours)
{
    /* where they are strong, else UINT_MAX */
    __local uint strong[STAGED];
    EACH_BLOCK_OF(n) {
        uint next = HAS_ROW ? graph[OWN_ROW] : 0;
        EACH_STAGE(at) {
            EACH_LOADED(e, i, at) {
                const uint j = columns[e];
                strong[e - at] = j < owned && is_strong(i, j, values[e], largest) ? j : UINT_MAX;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            EACH_OWN(e, at) {
                if (strong[e] != UINT_MAX)
                    neighbours[next++] = strong[e];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

/* Rows in blocks for products (csr.cl): of each 256 rows as few as there can be, with at most most_rows rows and most_entries entries, or a
 * single longer row. lengths gets how many; then blocks get first and last row, from firsts[k] on. */
#define CHUNK 256

#define EACH_BLOCK(k, n, begin, end)                                                                                   \
    for (uint begin = k * CHUNK, behind = min(n, begin + CHUNK), end = block_end(starts, begin, behind, most_rows, most_entries); \
         begin < behind; begin = end, end = block_end(starts, begin, behind, most_rows, most_entries))

static inline uint block_end(__global const uint *starts, uint begin, uint behind, uint most_rows, uint most_entries)
{
    uint end = begin + 1;
    while (end < behind && end - begin < most_rows && starts[end + 1] - starts[begin] <= most_entries)
        end++;
    return end;
}

KERNEL void blocks_count(uint n, __global const uint *restrict starts, uint most_rows, uint most_entries,
                         __global uint *restrict lengths)
{
    EACH_ROW(k, (n + CHUNK - 1) / CHUNK) {
        uint length = 0;
        EACH_BLOCK(k, n, begin, end)
            length++;
        lengths[k] = length;
    }
}

KERNEL void blocks_cut(uint n, __global const uint *restrict starts, uint most_rows, uint most_entries,
                       __global const uint *restrict firsts, __global uint2 *restrict blocks)
{
    EACH_ROW(k, (n + CHUNK - 1) / CHUNK) {
        uint at = firsts[k];
        EACH_BLOCK(k, n, begin, end)
            blocks[at++] = (uint2)(begin, end);
    }
}

/* Lanczos' process. v = numbers from -1 to 1 as if by chance. */
KERNEL void lanczos_begin(uint n, __global real *restrict v)
{
    EACH_ROW(i, n) {
        ulong x = ((ulong)i + 1) * 0x9e3779b97f4a7c15ul;
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93ul;
        x ^= x >> 32;
        v[i] = (real)((acc)(uint)x / (acc)0xffffffffu * 2 - 1);
    }
}

/* w = A v - beta before; partials get each group's part of w.v. */
KERNEL void lanczos_product(BLOCKS_ARGS, real beta, __global const real *restrict v, __global const real *restrict before,
                            __global real *restrict w, __global acc *restrict partials)
{
    __local real products[STAGED];
    __local acc scratch[GROUP_SIZE];
    acc sum = 0;
    EACH_BLOCK_OF(n) {
        real own = 0;
        EACH_STAGE(at) {
            EACH_LOADED(e, i, at)
                products[e - at] = values[e] * v[columns[e]];
            barrier(CLK_LOCAL_MEM_FENCE);
            EACH_OWN(e, at)
                own += products[e];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (HAS_ROW) {
            own -= beta * before[OWN_ROW];
            w[OWN_ROW] = own;
            sum += (acc)own * (acc)v[OWN_ROW];
        }
    }
    sum = group_sum(sum, scratch);
    if (get_local_id(0) == 0)
        partials[get_group_id(0)] = sum;
}

/* w -= alpha v; partials get each group's part of w.w. */
KERNEL void lanczos_remove(uint n, real alpha, __global const real *restrict v, __global real *restrict w,
                           __global acc *restrict partials)
{
    __local acc scratch[GROUP_SIZE];
    acc sum = 0;
    EACH_ROW(i, n) {
        const real own = w[i] - alpha * v[i];
        w[i] = own;
        sum += (acc)own * (acc)own;
    }
    sum = group_sum(sum, scratch);
    if (get_local_id(0) == 0)
        partials[get_group_id(0)] = sum;
}

/* w *= factor. */
KERNEL void lanczos_scale(uint n, real factor, __global real *restrict w)
{
    EACH_ROW(i, n)
        w[i] *= factor;
}
