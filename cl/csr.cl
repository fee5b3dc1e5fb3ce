/* Products with a block of rows in compressed sparse row form.
 *
 * Rows come in row blocks, runs of consecutive rows that the host has cut (src/operator/row_blocks.rs). A launch works on
 * the row blocks first..last of the list, so that those that need nothing from other devices can run first. Columns and
 * values may be those of a segment of rows, all of which these row blocks then lie in: `before` entries come before it.
 *
 * GPU shape, after CSR-Stream and CSR-Vector of Greathouse and Daga (SC14, doi 10.1109/SC.2014.68): a block has at most
 * GROUP_SIZE rows, fewer if rows are to have several lanes, and BLOCK_NNZ entries. The group reads its entries in storage order, so
 * that the loads coalesce however short the rows are, and leaves the products in local memory; then each row is summed, by one lane in
 * the order of the columns, or by several lanes if the block has few rows. Barriers stand in no branch: some CPU runtimes can't compile
 * that. A row longer than BLOCK_NNZ is a block of its own, which the whole group sums.
 *
 * With several columns, more bytes of x are read than of the matrix, and its entries where they are: a slot of PARTS work-items takes a
 * row, or of a block with few rows several slots take one.
 *
 * CPU shape: a group takes a contiguous run of row blocks, row by row.
 */

/* Local memory of a group: the products of a row block, or with several columns a sum of each work-item. */
#if COLUMNS == 1
#define CSR_LOCAL __local real *products
#define CSR_MEMORY __local real products[BLOCK_NNZ];
#define CSR_PASS products
#else
#define CSR_LOCAL __local wide *sums
#define CSR_MEMORY __local wide sums[GROUP_SIZE];
#define CSR_PASS sums
#endif

#if SHAPE_CPU

static inline const dots *csr_rows(int mode, uint first, uint last, __global const uint2 *blocks,
                    __global const uint *row_ptr, uint before, __global const uint *col_idx,
                    __global const real *values, __global const real *x,
                    __global const real *b, __global real *y, CSR_LOCAL, dots *s SENDING)
{
    uint count = last - first;
    uint begin = first + (uint)((ulong)count * get_group_id(0) / get_num_groups(0));
    uint end = first + (uint)((ulong)count * (get_group_id(0) + 1) / get_num_groups(0));
    for (uint k = begin; k < end; k++) {
        uint at = row_ptr[blocks[k].s0] - before;
        for (uint row = blocks[k].s0; row < blocks[k].s1; row++) {
            uint row_end = row_ptr[row + 1] - before;
            wide sum = 0;
            IN_ORDER
            for (; at < row_end; at++)
                sum += values[at] * ROW(x, col_idx[at]);
            finish_row(mode, row, sum, x, b, y, s SEND);
        }
    }
    return s;
}

#elif COLUMNS == 1

static inline const dots *csr_rows(int mode, uint first, uint last, __global const uint2 *blocks,
                    __global const uint *row_ptr, uint before, __global const uint *col_idx,
                    __global const real *values, __global const real *x,
                    __global const real *b, __global real *y, CSR_LOCAL, dots *s SENDING)
{
    uint lane = get_local_id(0);
    for (uint k = first + get_group_id(0); k < last; k += get_num_groups(0)) {
        uint row_begin = blocks[k].s0, rows = blocks[k].s1 - row_begin;
        uint begin = row_ptr[row_begin] - before, end = row_ptr[row_begin + rows] - before;
        /* a power of two of lanes for each row */
        uint lanes = GROUP_SIZE;
        while (lanes * rows > GROUP_SIZE)
            lanes /= 2;
        uint row = lane / lanes, part = lane % lanes;
        uint at = 0, to = 0;
        if (rows == 1 && end - begin > BLOCK_NNZ) {
            /* a long row: every lane a share of it */
            real sum = 0;
            for (uint e = begin + lane; e < end; e += GROUP_SIZE)
                sum += values[e] * x[col_idx[e]];
            products[lane] = sum;
            at = lane;
            to = lane + 1;
        } else {
            for (uint e = lane; e < (uint)(end - begin); e += GROUP_SIZE)
                products[e] = values[begin + e] * x[col_idx[begin + e]];
            if (row < rows) {
                at = (uint)(row_ptr[row_begin + row] - before - begin) + part;
                to = (uint)(row_ptr[row_begin + row + 1] - before - begin);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        real sum = 0;
        for (; at < to; at += lanes)
            sum += products[at];
        barrier(CLK_LOCAL_MEM_FENCE);

        /* where a row has several lanes, their sums meet in a tree */
        if (lanes > 1)
            products[lane] = sum;
        for (uint apart = lanes / 2; apart > 0; apart /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (part < apart) {
                sum += products[lane + apart];
                products[lane] = sum;
            }
        }
        if (row < rows && part == 0)
            finish_row(mode, row_begin + row, sum, x, b, y, s SEND);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return s;
}

#else

/* Entries of a row that are loaded together: a GPU that has fewer under way waits for its memory. */
#define CSR_BATCH 4

/* The sum of every step-th entry from `at` on, in the order of the columns. */
static inline wide csr_sum(uint at, uint end, uint step, __global const uint *col_idx,
                           __global const real *values, __global const real *x)
{
    wide sum = 0;
    for (; at < end; at += CSR_BATCH * step) {
        uint column[CSR_BATCH];
        real value[CSR_BATCH];
        wide xs[CSR_BATCH];
        UNROLL_BY(CSR_BATCH)
        for (uint u = 0; u < CSR_BATCH; u++) {
            column[u] = at + u * step < end ? col_idx[at + u * step] : 0;
            value[u] = at + u * step < end ? values[at + u * step] : 0;
        }
        UNROLL_BY(CSR_BATCH)
        for (uint u = 0; u < CSR_BATCH; u++)
            xs[u] = at + u * step < end ? ROW(x, column[u]) : (wide)0;
        UNROLL_BY(CSR_BATCH)
        for (uint u = 0; u < CSR_BATCH; u++)
            if (at + u * step < end)
                sum += value[u] * xs[u];
    }
    return sum;
}

static inline const dots *csr_rows(int mode, uint first, uint last, __global const uint2 *blocks,
                    __global const uint *row_ptr, uint before, __global const uint *col_idx,
                    __global const real *values, __global const real *x,
                    __global const real *b, __global real *y, CSR_LOCAL, dots *s SENDING)
{
    const uint lane = get_local_id(0);
    for (uint k = first + get_group_id(0); k < last; k += get_num_groups(0)) {
        const uint row_begin = blocks[k].s0, rows = blocks[k].s1 - row_begin;
        /* a power of two of slots for each row, one if there are more rows than slots */
        uint slots = SLOTS;
        while (slots > 1 && slots * rows > SLOTS)
            slots /= 2;
        const uint part = LOCAL_SLOT % slots;
        for (uint before_turn = 0; before_turn < rows; before_turn += SLOTS / slots) {
            const uint row = before_turn + LOCAL_SLOT / slots;
            wide sum = 0;
            if (row < rows) {
                const uint at = row_ptr[row_begin + row] - before, end = row_ptr[row_begin + row + 1] - before;
                sum = csr_sum(at + part, end, slots, col_idx, values, x);
            }
            /* where a row has several slots, their sums meet in a tree */
            for (uint apart = slots / 2; apart > 0; apart /= 2) {
                sums[lane] = sum;
                barrier(CLK_LOCAL_MEM_FENCE);
                if (part < apart)
                    sum += sums[lane + apart * PARTS];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (row < rows && part == 0)
                finish_row(mode, row_begin + row, sum, x, b, y, s SEND);
        }
    }
    return s;
}

#endif

/* y = A x (Bueno 2013, section 4.2.3). */
KERNEL void spmv_csr(uint first, uint last, __global const uint2 *restrict blocks,
                     __global const uint *restrict row_ptr, uint before, __global const uint *restrict col_idx,
                     __global const real *restrict values, __global const real *restrict x, __global real *restrict y)
{
    CSR_MEMORY
    csr_rows(ROWS_PRODUCT, first, last, blocks, row_ptr, before, col_idx, values, x, x, y, CSR_PASS, 0 SEND_NOTHING);
}

/* y = A x, and the part of x.y and of y.y in the rows of group g in partials[2 COLUMNS (first_partial + g)] and
 * behind; y stays if *done is set. */
KERNEL void spmv_dot_csr(uint first, uint last, __global const uint2 *restrict blocks,
                         __global const uint *restrict row_ptr, uint before,
                         __global const uint *restrict col_idx, __global const real *restrict values,
                         __global const real *restrict x,
                         __global real *restrict y, __global acc *restrict partials, uint first_partial,
                         __global const int *restrict done SENDS_ARGS)
{
    CSR_MEMORY
    __local dots_scratch scratch[GROUP_SIZE];
    SENDS_HERE
    last = *done ? first : last;
    dots s;
    csr_rows(ROWS_DOT, first, last, blocks, row_ptr, before, col_idx, values, x, x, y, CSR_PASS, no_dots(&s) SEND);
    leave_dots(&s, scratch, partials, first_partial);
}

/* r = b - A x. */
KERNEL void residual_csr(uint first, uint last, __global const uint2 *restrict blocks,
                         __global const uint *restrict row_ptr, uint before,
                         __global const uint *restrict col_idx, __global const real *restrict values,
                         __global const real *restrict x,
                         __global const real *restrict b, __global real *restrict r)
{
    CSR_MEMORY
    csr_rows(ROWS_RESIDUAL, first, last, blocks, row_ptr, before, col_idx, values, x, b, r, CSR_PASS, 0 SEND_NOTHING);
}

/* For persistent.cl. */
#define CSR_ROWS_ARGS                                                                                                  \
    uint first, uint last, __global const uint2 *restrict blocks, __global const uint *restrict row_ptr,           \
        uint before, __global const uint *restrict col_idx, __global const real *restrict values
#define CSR_ROWS_LOCAL CSR_MEMORY dots of_rows;
#define CSR_ROWS_TIMES(x, y)                                                                                          \
    csr_rows(ROWS_DOT, first, last, blocks, row_ptr, before, col_idx, values, x, x, y, products, no_dots(&of_rows) SEND)
