/* C = beta C + alpha A B of dense matrices by columns: element (i, j) of X is x[x_at + i + j * ldx].
 *
 * Defined by the host (src/kernels/gemm.rs), beside what prelude.cl asks for:
 *   TILE_M, TILE_N   the tile of C that a group computes
 *   TILE_K           columns of A and rows of B that are in local memory at a time
 *   ITEM_M, ITEM_N   the elements of a tile that a work-item has in registers, ITEM_M a multiple of LANE_WIDE and ITEM_N of LANE_HIGH
 *   LANE_WIDE        neighbouring elements of a column that a work-item has, and reads at once: 1, 2 or 4
 *   LANE_HIGH        the same along a row
 *   BUFFERS          2: the next tiles come into local memory while these are multiplied; 1: after it
 *   PAD              elements between columns in local memory, a multiple of LANE_WIDE and LANE_HIGH
 *   MMA              1: the matrix instructions of NVIDIA's for double precision, from compute capability 9.0 on; LANE_WIDE, LANE_HIGH are 1
 *
 * Each element of C is summed in the order of k, by fused multiply-add: the bits are the same for any tiles, in both shapes, and on the
 * host. m, n and k may be anything. beta = 0 does not read C.
 *
 * Tiles above the diagonal can be left out: with `block` > 0, column j of C is column first + j / block * stride + j % block of a square
 * matrix, of which C's rows are those from 0 on; what is above the diagonal there is left as it is, or not, tile by tile.
 *
 * Flops 2 m n k. A GPU reads each element of A n / TILE_N times and of B m / TILE_M times, mostly from its cache, and of C once.
 */
#define ARGUMENTS                                                                                                      \
    uint m, uint n, uint k, real alpha, real beta, uint block, uint stride, uint first, __global const real *a,       \
        ulong a_at, uint lda, __global const real *b, ulong b_at, uint ldb, __global real *c, ulong c_at, uint ldc

/* What a tile is for that ends before row `last` and begins with column j. */
#define IS_ABOVE(last, j) (block && (last) <= first + (j) / block * stride + (j) % block)

/* The new element of a sum and the old one. */
#define FINISHED(sum, old) (beta == 0 ? alpha * (sum) : fma(alpha, (sum), beta * (old)))

#if SHAPE_CPU

/* A group is one work-item, with a share of the tiles. A column of the tile is one or more vectors. */
#define WIDE_M 8
#define VECTORS (TILE_M / WIDE_M)

static inline void gemm_edge(uint rows, uint cols, uint k, real alpha, real beta, __global const real *a, uint lda,
                             __global const real *b, uint ldb, __global real *c, uint ldc)
{
    for (uint j = 0; j < cols; j++)
        for (uint i = 0; i < rows; i++) {
            real sum = 0;
            for (uint p = 0; p < k; p++)
                sum = fma(a[i + (ulong)p * lda], b[p + (ulong)j * ldb], sum);
            __global real *to = c + i + (ulong)j * ldc;
            *to = FINISHED(sum, *to);
        }
}

static inline void gemm_tile(uint k, real alpha, real beta, __global const real *a, uint lda, __global const real *b,
                             uint ldb, __global real *c, uint ldc)
{
    real8 sum[TILE_N][VECTORS];
    UNROLL_BY(TILE_N)
    for (uint j = 0; j < TILE_N; j++) {
        UNROLL_BY(VECTORS)
        for (uint i = 0; i < VECTORS; i++)
            sum[j][i] = 0;
    }
    for (uint p = 0; p < k; p++) {
        real8 of_a[VECTORS];
        UNROLL_BY(VECTORS)
        for (uint i = 0; i < VECTORS; i++)
            of_a[i] = vload8(i, a + (ulong)p * lda);
        UNROLL_BY(TILE_N)
        for (uint j = 0; j < TILE_N; j++) {
            const real8 of_b = b[p + (ulong)j * ldb];
            UNROLL_BY(VECTORS)
            for (uint i = 0; i < VECTORS; i++)
                sum[j][i] = fma(of_a[i], of_b, sum[j][i]);
        }
    }
    UNROLL_BY(TILE_N)
    for (uint j = 0; j < TILE_N; j++) {
        UNROLL_BY(VECTORS)
        for (uint i = 0; i < VECTORS; i++) {
            __global real *to = c + (ulong)j * ldc;
            vstore8(beta == 0 ? alpha * sum[j][i] : fma((real8)alpha, sum[j][i], beta * vload8(i, to)), i, to);
        }
    }
}

KERNEL void gemm(ARGUMENTS)
{
    const uint across = (m + TILE_M - 1) / TILE_M, down = (n + TILE_N - 1) / TILE_N;
    const ulong tiles = (ulong)across * down;
    const ulong end = tiles * (get_group_id(0) + 1) / get_num_groups(0);
    for (ulong tile = tiles * get_group_id(0) / get_num_groups(0); tile < end; tile++) {
        const uint i = (uint)(tile % across) * TILE_M, j = (uint)(tile / across) * TILE_N;
        const uint rows = min(m - i, (uint)TILE_M), cols = min(n - j, (uint)TILE_N);
        if (IS_ABOVE(i + rows, j))
            continue;
        __global const real *of_a = a + a_at + i;
        __global const real *of_b = b + b_at + (ulong)j * ldb;
        __global real *of_c = c + c_at + i + (ulong)j * ldc;
        if (rows == TILE_M && cols == TILE_N)
            gemm_tile(k, alpha, beta, of_a, lda, of_b, ldb, of_c, ldc);
        else
            gemm_edge(rows, cols, k, alpha, beta, of_a, lda, of_b, ldb, of_c, ldc);
    }
}

#else

#define LANES_M (TILE_M / ITEM_M)
#define LANES_N (TILE_N / ITEM_N)
#if LANES_M * LANES_N != GROUP_SIZE || TILE_M * TILE_K % GROUP_SIZE || TILE_N * TILE_K % GROUP_SIZE
#error "the tiles are not those of GROUP_SIZE work-items"
#endif
#define LOADS_A (TILE_M * TILE_K / GROUP_SIZE)
#define LOADS_B (TILE_N * TILE_K / GROUP_SIZE)
#define STRIDE_A (TILE_M + PAD)
#define STRIDE_B (TILE_N + PAD)
/* Columns of C that are read before any is stored. */
#if ITEM_N % 4 == 0
#define AT_ONCE 4
#elif ITEM_N % 2 == 0
#define AT_ONCE 2
#else
#define AT_ONCE 1
#endif

#if MMA
/* 32 neighbours share WIDE x HIGH elements, in blocks of 16 x 8: each has rows g and g + 8 of a block, columns 2 t and 2 t + 1. A block of A
 * is 16 x 4 and of B 4 x 8; the instruction adds the four products to each sum one after the other. Columns of local memory begin 4 banks
 * of 8 bytes apart, so that 16 neighbours read from as many banks. */
#define WIDE (8 * ITEM_M)
#define HIGH (4 * ITEM_N)
#define PLACE                                                                                                          \
    const uint group = lane / 32, g = lane % 32 / 4, t = lane % 4;                                                     \
    const uint first_m = group % (TILE_M / WIDE) * WIDE + g, first_n = group / (TILE_M / WIDE) * HIGH;
#define ROW(i) (first_m + (i) / 2 * 16 + (i) % 2 * 8)
#define COL(j) (first_n + (j) / 2 * 8 + 2 * t + (j) % 2)
#define MULTIPLY(tile_a, tile_b)                                                                                       \
    UNROLL_BY(TILE_K / 4)                                                                                              \
    for (uint p = 0; p < TILE_K; p += 4) {                                                                             \
        __local const real *of_a = (tile_a) + (p + t) * STRIDE_A + first_m;                                            \
        __local const real *of_b = (tile_b) + (p + t) * STRIDE_B + first_n + g;                                        \
        real left[ITEM_M], right[ITEM_N / 2];                                                                          \
        UNROLL_BY(ITEM_M)                                                                                              \
        for (uint i = 0; i < ITEM_M; i++)                                                                              \
            left[i] = of_a[8 * i];                                                                                     \
        UNROLL_BY(ITEM_N)                                                                                              \
        for (uint j = 0; j < ITEM_N / 2; j++)                                                                          \
            right[j] = of_b[8 * j];                                                                                    \
        UNROLL_BY(ITEM_N)                                                                                              \
        for (uint j = 0; j < ITEM_N; j += 2) {                                                                         \
            UNROLL_BY(ITEM_M)                                                                                          \
            for (uint i = 0; i < ITEM_M; i += 2)                                                                       \
                asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"    \
                    : "+d"(sum[j][i]), "+d"(sum[j + 1][i]), "+d"(sum[j][i + 1]), "+d"(sum[j + 1][i + 1])               \
                    : "d"(left[i]), "d"(left[i + 1]), "d"(right[j / 2]));                                              \
        }                                                                                                              \
    }
#else
/* A work-item has LANE_WIDE rows of every LANES_M * LANE_WIDE and LANE_HIGH columns of every LANES_N * LANE_HIGH, so that neighbours read
 * neighbouring elements of local memory. */
#define PLACE const uint first_m = lane % LANES_M * LANE_WIDE, first_n = lane / LANES_M * LANE_HIGH;
#define ROW(i) (first_m + (i) / LANE_WIDE * LANES_M * LANE_WIDE + (i) % LANE_WIDE)
#define COL(j) (first_n + (j) / LANE_HIGH * LANES_N * LANE_HIGH + (j) % LANE_HIGH)

/* Reads LANE elements of local memory at once. */
#define READ_1(to, from) (to)[0] = (from)[0];
#define READ_2(to, from) vstore2(*(__local const real2 *)(from), 0, to);
#define READ_4(to, from) vstore4(*(__local const real4 *)(from), 0, to);
#define READ(lane) JOIN(READ_, lane)
#define MULTIPLY(tile_a, tile_b)                                                                                       \
    UNROLL_BY(TILE_K)                                                                                                  \
    for (uint p = 0; p < TILE_K; p++) {                                                                                \
        __local const real *of_a = (tile_a) + p * STRIDE_A + first_m;                                                  \
        __local const real *of_b = (tile_b) + p * STRIDE_B + first_n;                                                  \
        real left[ITEM_M], right[ITEM_N];                                                                              \
        UNROLL_BY(ITEM_M)                                                                                              \
        for (uint i = 0; i < ITEM_M; i += LANE_WIDE) {                                                                 \
            READ(LANE_WIDE)(left + i, of_a + i * LANES_M)                                                              \
        }                                                                                                              \
        UNROLL_BY(ITEM_N)                                                                                              \
        for (uint j = 0; j < ITEM_N; j += LANE_HIGH) {                                                                 \
            READ(LANE_HIGH)(right + j, of_b + j * LANES_N)                                                             \
        }                                                                                                              \
        UNROLL_BY(ITEM_N)                                                                                              \
        for (uint j = 0; j < ITEM_N; j++) {                                                                            \
            UNROLL_BY(ITEM_M)                                                                                          \
            for (uint i = 0; i < ITEM_M; i++)                                                                          \
                sum[j][i] = fma(left[i], right[j], sum[j][i]);                                                         \
        }                                                                                                              \
    }
#endif

/* Which elements of the tiles a work-item moves: neighbours take neighbouring ones in global memory. */
#define ROW_OF_A(l) ((lane + (l) * GROUP_SIZE) % TILE_M)
#define K_OF_A(l) ((lane + (l) * GROUP_SIZE) / TILE_M)
#define COL_OF_B(l) ((lane + (l) * GROUP_SIZE) / TILE_K)
#define K_OF_B(l) ((lane + (l) * GROUP_SIZE) % TILE_K)

/* Fetches the tiles from column and row `from` on. Rows and columns behind the end are those at the end, whose sums nobody stores;
 * behind the end of k there are zeros. */
#define FETCH(from, IS_INSIDE)                                                                                         \
    UNROLL_BY(LOADS_A)                                                                                                 \
    for (uint l = 0; l < LOADS_A; l++) {                                                                               \
        const uint p = (from) + K_OF_A(l);                                                                             \
        next_a[l] = IS_INSIDE(p) ? a[min(i0 + ROW_OF_A(l), m - 1) + (ulong)p * lda] : (real)0;                         \
    }                                                                                                                  \
    UNROLL_BY(LOADS_B)                                                                                                 \
    for (uint l = 0; l < LOADS_B; l++) {                                                                               \
        const uint p = (from) + K_OF_B(l);                                                                             \
        next_b[l] = IS_INSIDE(p) ? b[p + (ulong)min(j0 + COL_OF_B(l), n - 1) * ldb] : (real)0;                                 \
    }
#define ANY(p) true
#define BELOW_K(p) ((p) < k)

#define KEEP(buffer)                                                                                                   \
    UNROLL_BY(LOADS_A)                                                                                                 \
    for (uint l = 0; l < LOADS_A; l++)                                                                                 \
        tiles_a[((buffer) * TILE_K + K_OF_A(l)) * STRIDE_A + ROW_OF_A(l)] = next_a[l];                                 \
    UNROLL_BY(LOADS_B)                                                                                                 \
    for (uint l = 0; l < LOADS_B; l++)                                                                                 \
        tiles_b[((buffer) * TILE_K + K_OF_B(l)) * STRIDE_B + COL_OF_B(l)] = next_b[l];

/* A group has a tile; neighbouring groups have tiles below each other. */
KERNEL void gemm(ARGUMENTS)
{
    __local real tiles_a[BUFFERS * TILE_K * STRIDE_A] __attribute__((aligned(32)));
    __local real tiles_b[BUFFERS * TILE_K * STRIDE_B] __attribute__((aligned(32)));
    const uint lane = get_local_id(0);
    PLACE
    const uint across = (m + TILE_M - 1) / TILE_M;
    const uint i0 = (uint)get_group_id(0) % across * TILE_M, j0 = (uint)get_group_id(0) / across * TILE_N;
    if (IS_ABOVE(min(i0 + TILE_M, m), j0))
        return;
    a += a_at;
    b += b_at;
    c += c_at;
    real sum[ITEM_N][ITEM_M], next_a[LOADS_A], next_b[LOADS_B];
    UNROLL_BY(ITEM_N)
    for (uint j = 0; j < ITEM_N; j++) {
        UNROLL_BY(ITEM_M)
        for (uint i = 0; i < ITEM_M; i++)
            sum[j][i] = 0;
    }

    const uint steps = (k + TILE_K - 1) / TILE_K;
    FETCH(0, BELOW_K)
    KEEP(0)
    for (uint step = 0; step < steps; step++) {
        const uint here = BUFFERS == 2 ? step % 2 : 0, there = BUFFERS == 2 ? 1 - here : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint from = (step + 1) * TILE_K;
        if (from + TILE_K <= k) {
            FETCH(from, ANY)
        } else if (from < k) {
            FETCH(from, BELOW_K)
        }
        MULTIPLY(tiles_a + here * TILE_K * STRIDE_A, tiles_b + here * TILE_K * STRIDE_B)
#if BUFFERS == 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (from < k) {
            KEEP(there)
        }
    }

    // all old elements of some columns are read before the first is replaced, so that their reads overlap
    UNROLL_BY(ITEM_N)
    for (uint j = 0; j < ITEM_N; j += AT_ONCE) {
        real old[AT_ONCE][ITEM_M];
        UNROLL_BY(AT_ONCE)
        for (uint l = 0; l < AT_ONCE; l++) {
            UNROLL_BY(ITEM_M)
            for (uint i = 0; i < ITEM_M; i++) {
                const uint row = i0 + ROW(i), col = j0 + COL(j + l);
                old[l][i] = beta != 0 && row < m && col < n ? c[row + (ulong)col * ldc] : (real)0;
            }
        }
        UNROLL_BY(AT_ONCE)
        for (uint l = 0; l < AT_ONCE; l++) {
            UNROLL_BY(ITEM_M)
            for (uint i = 0; i < ITEM_M; i++) {
                const uint row = i0 + ROW(i), col = j0 + COL(j + l);
                if (row < m && col < n)
                    c[row + (ulong)col * ldc] = FINISHED(sum[j + l][i], old[l][i]);
            }
        }
    }
}

#endif

/* The same, a work-item for each element of C, which reads its row of A and column of B: what tiles are compared with. */
KERNEL void gemm_naive(ARGUMENTS)
{
    for (ulong item = get_global_id(0); item < (ulong)m * n; item += get_global_size(0)) {
        const uint i = (uint)(item % m), j = (uint)(item / m);
        if (IS_ABOVE(i + 1, j))
            continue;
        real sum = 0;
        for (uint p = 0; p < k; p++)
            sum = fma(a[a_at + i + (ulong)p * lda], b[b_at + p + (ulong)j * ldb], sum);
        __global real *to = c + c_at + i + (ulong)j * ldc;
        *to = FINISHED(sum, *to);
    }
}
