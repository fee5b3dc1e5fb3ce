/* Batches of block tridiagonal systems A_i x_{i-1} + B_i x_i + C_i x_{i+1} = d_i, i = 0 .. blocks - 1, with blocks of order ORDER.
 *
 * Systems are interleaved: number k of a system's array is element k * systems + system. Of A, B, C a block has ORDER * ORDER numbers, row
 * by row, of d and x ORDER.
 *
 * Defined by the host (src/kernels/block_tridiagonal.rs), beside what prelude.cl needs:
 *   ORDER  rows of a block, 1 to 8
 *   SIDE   rows and columns of a tile that is turned
 *
 * The groups of these kernels have several work-items, on processors, too.
 */

/* Small blocks are in registers, where nothing is looked up by a number that is not known when this is compiled. */
#if ORDER <= 4
#define UNROLLED UNROLL_BY(ORDER)
#else
#define UNROLLED
#endif
#define SQUARE (ORDER * ORDER)

/* Solves with the dense matrix a for all columns of `many`, and for the vector `one`, by elimination with exchanges of rows: the largest of what
 * is left of a column comes up, by exchanges with one row after the other. Returns 1 + the column that has no pivot, or 0. */
static inline uint solve_block(real a[ORDER][ORDER], real many[ORDER][ORDER], real one[ORDER])
{
    uint failed = 0;
    UNROLLED
    for (uint k = 0; k < ORDER; k++) {
        UNROLLED
        for (uint i = k + 1; i < ORDER; i++) {
            const real new = a[i][k];
            const int is_larger = fabs(new) > fabs(a[k][k]) || isnan(new);
            UNROLLED
            for (uint j = 0; j < ORDER; j++) {
                const real up = a[i][j], more_up = many[i][j];
                a[i][j] = is_larger ? a[k][j] : up;
                a[k][j] = is_larger ? up : a[k][j];
                many[i][j] = is_larger ? many[k][j] : more_up;
                many[k][j] = is_larger ? more_up : many[k][j];
            }
            const real up = one[i];
            one[i] = is_larger ? one[k] : up;
            one[k] = is_larger ? up : one[k];
        }
        if (failed == 0 && (a[k][k] == 0 || !isfinite(a[k][k])))
            failed = k + 1;
        const real inverse = 1 / a[k][k];
        UNROLLED
        for (uint j = 0; j < ORDER; j++) {
            a[k][j] *= inverse;
            many[k][j] *= inverse;
        }
        one[k] *= inverse;
        UNROLLED
        for (uint i = 0; i < ORDER; i++) {
            if (i == k)
                continue;
            const real factor = a[i][k];
            UNROLLED
            for (uint j = 0; j < ORDER; j++) {
                a[i][j] -= factor * a[k][j];
                many[i][j] -= factor * many[k][j];
            }
            one[i] -= factor * one[k];
        }
    }
    return failed;
}

/* Elimination down and up (Thomas 1949, with blocks), one work-item a system. Rows are exchanged within diagonal blocks only. `upper` is as long
 * as B. failed[system] becomes 1 + the row that has no pivot, or 0; without one, x has infinities or NaN. Of a block, reads
 * 4 SQUARE + 2 ORDER numbers, and writes SQUARE + 2 ORDER. */
KERNEL void block_thomas(uint systems, uint blocks, __global const real *restrict a, __global const real *restrict b,
                         __global const real *restrict c, __global const real *restrict d, __global real *restrict x,
                         __global real *restrict upper, __global uint *restrict failed)
{
    for (uint system = get_global_id(0); system < systems; system += get_global_size(0)) {
        real ahead[ORDER][ORDER], value[ORDER], own[ORDER];
        uint first_failed = 0;
        UNROLLED
        for (uint r = 0; r < ORDER; r++) {
            value[r] = 0;
            UNROLLED
            for (uint k = 0; k < ORDER; k++)
                ahead[r][k] = 0;
        }
        for (uint i = 0; i < blocks; i++) {
            const uint block = i * SQUARE * systems + system, row = i * ORDER * systems + system;
            real pivot[ORDER][ORDER];
            UNROLLED
            for (uint r = 0; r < ORDER; r++) {
                own[r] = d[row + r * systems];
                UNROLLED
                for (uint j = 0; j < ORDER; j++)
                    pivot[r][j] = b[block + (r * ORDER + j) * systems];
                UNROLLED
                for (uint k = 0; k < ORDER; k++) {
                    const real lower = a[block + (r * ORDER + k) * systems];
                    UNROLLED
                    for (uint j = 0; j < ORDER; j++)
                        pivot[r][j] -= lower * ahead[k][j];
                    own[r] -= lower * value[k];
                }
            }
            UNROLLED
            for (uint r = 0; r < ORDER; r++) {
                UNROLLED
                for (uint k = 0; k < ORDER; k++)
                    ahead[r][k] = c[block + (r * ORDER + k) * systems];
            }
            const uint without = solve_block(pivot, ahead, own);
            if (without > 0 && first_failed == 0)
                first_failed = i * ORDER + without;
            UNROLLED
            for (uint r = 0; r < ORDER; r++) {
                value[r] = own[r];
                x[row + r * systems] = own[r];
                UNROLLED
                for (uint k = 0; k < ORDER; k++)
                    upper[block + (r * ORDER + k) * systems] = ahead[r][k];
            }
        }
        for (uint i = blocks; i-- > 1;) {
            const uint block = (i - 1) * SQUARE * systems + system, row = (i - 1) * ORDER * systems + system;
            UNROLLED
            for (uint r = 0; r < ORDER; r++) {
                own[r] = x[row + r * systems];
                UNROLLED
                for (uint k = 0; k < ORDER; k++)
                    own[r] -= upper[block + (r * ORDER + k) * systems] * value[k];
            }
            UNROLLED
            for (uint r = 0; r < ORDER; r++) {
                value[r] = own[r];
                x[row + r * systems] = own[r];
            }
        }
        failed[system] = first_failed;
    }
}

/* y[j * rows + i] = x[i * cols + j]: systems that lie one after the other are interleaved, or the other way round, by tiles in local memory. */
KERNEL void block_turn(uint rows, uint cols, __global const real *restrict x, __global real *restrict y)
{
    __local real tile[SIDE][SIDE + 1];
    const uint across = (cols + SIDE - 1) / SIDE, tiles = (rows + SIDE - 1) / SIDE * across;
    for (uint t = get_group_id(0); t < tiles; t += get_num_groups(0)) {
        const uint i0 = t / across * SIDE, j0 = t % across * SIDE;
        for (uint e = get_local_id(0); e < SIDE * SIDE; e += GROUP_SIZE) {
            const uint i = e / SIDE, j = e % SIDE;
            if (i0 + i < rows && j0 + j < cols)
                tile[i][j] = x[(i0 + i) * cols + j0 + j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = get_local_id(0); e < SIDE * SIDE; e += GROUP_SIZE) {
            const uint i = e % SIDE, j = e / SIDE;
            if (i0 + i < rows && j0 + j < cols)
                y[(j0 + j) * rows + i0 + i] = tile[i][j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
