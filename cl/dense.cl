/* Blocks of dense matrices by columns: element (i, j) of X is x[x_at + i + j * ldx].
 *
 * GPU shape: neighbouring work-items have neighbouring rows. CPU shape: a group is one work-item.
 */

/* The part of 0..n that a work-item has: neighbours on a GPU, a chunk on a CPU. */
#if SHAPE_CPU
#define EACH_ITEM(i, n)                                                                                                \
    for (ulong i = (ulong)(n) * get_group_id(0) / get_num_groups(0),                                                   \
               i##_end = (ulong)(n) * (get_group_id(0) + 1) / get_num_groups(0);                                       \
         i < i##_end; i++)
#else
#define EACH_ITEM(i, n) for (ulong i = get_global_id(0); i < (ulong)(n); i += get_global_size(0))
#endif

/* Y = X, of rows x cols elements. */
KERNEL void dense_copy(uint rows, uint cols, __global const real *x, ulong x_at, uint ldx, __global real *y, ulong y_at,
                       uint ldy)
{
    EACH_ITEM(item, (ulong)rows * cols)
    {
        const uint i = (uint)(item % rows), j = (uint)(item / rows);
        y[y_at + i + (ulong)j * ldy] = x[x_at + i + (ulong)j * ldx];
    }
}

/* Y (i, j) = X (row, i), of rows x cols elements, where the row of column j is first + j / block * stride + j % block: the rows of L that
 * belong to columns which are cyclically among others become those of the transpose of L. If `scaled`, row i of Y is multiplied by X (i, i):
 * D L^T, where D is on the diagonal of L. */
KERNEL void dense_mirror(uint rows, uint cols, uint block, uint stride, uint first, uint scaled, __global const real *x,
                         ulong x_at, uint ldx, __global real *y, ulong y_at, uint ldy)
{
    /* neighbours have neighbouring rows of X */
    EACH_ITEM(item, (ulong)rows * cols)
    {
        const uint j = (uint)(item % cols), i = (uint)(item / cols);
        const uint row = first + j / block * stride + j % block;
        const real factor = scaled ? x[x_at + i + (ulong)i * ldx] : 1;
        y[y_at + i + (ulong)j * ldy] = factor * x[x_at + row + (ulong)i * ldx];
    }
}

/* Moves rows in each of `cols` columns: row moves[2 k] becomes what row moves[2 k + 1] was, for each k below `count`, which is at most
 * MOST_MOVES. A group has a column at a time, and reads all before it writes any. */
#define MOVES_EACH ((MOST_MOVES + GROUP_SIZE - 1) / GROUP_SIZE)
KERNEL void dense_move_rows(uint cols, uint count, __global const uint *moves, __global real *x, ulong x_at, uint ldx)
{
    real held[MOVES_EACH];
    const uint lane = get_local_id(0);
    for (uint j = get_group_id(0); j < cols; j += get_num_groups(0)) {
        __global real *column = x + x_at + (ulong)j * ldx;
        for (uint l = 0; l < MOVES_EACH; l++) {
            const uint k = lane + l * GROUP_SIZE;
            if (k < count)
                held[l] = column[moves[2 * k + 1]];
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (uint l = 0; l < MOVES_EACH; l++) {
            const uint k = lane + l * GROUP_SIZE;
            if (k < count)
                column[moves[2 * k]] = held[l];
        }
    }
}
