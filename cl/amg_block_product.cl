/* Products C = A B of matrices in blocks, of which the rows of nodes of C are known, in the order of their columns.
 *
 * A group makes a node's rows, as many blocks at a time as there is room for sums in local memory. Blocks of A are taken one after the
 * other, with a barrier between them; the blocks of B's rows that each leads to are all added to other sums, by as many work-items as
 * they have elements. So sums are formed in the order of A's entries, as on the host, whatever runs when.
 */
/* The sums of a block that is in none of those that there is room for. */
#define ELSEWHERE 0xFFFFFFFFu

/* Where a column is among n, one at least, in their order; n or more if it is not there. */
static inline uint place_of(uint column, __local const uint *columns, uint n)
{
    uint low = 0;
    for (uint high = n; high - low > 1;) {
        const uint middle = (low + high) / 2;
        if (columns[middle] <= column)
            low = middle;
        else
            high = middle;
    }
    return columns[low] == column ? low : ELSEWHERE;
}

/* Blocks of A have HEIGHT x DEPTH elements, those of B DEPTH x WIDTH: compiled in, so that loops over them are none. There is room for the
 * sums of BLOCKS blocks. */
#define SIZE (HEIGHT * WIDTH)

KERNEL void blocks_product(uint n, __global const uint *restrict a_starts, __global const uint *restrict a_columns,
                           __global const real *restrict a_values, __global const uint *restrict b_starts,
                           __global const uint *restrict b_columns, __global const real *restrict b_values,
                           __global const uint *restrict c_starts, __global const uint *restrict c_columns,
                           __global real *restrict c_values)
{
    __local real sums[BLOCKS * SIZE];
    __local uint own[BLOCKS], places[GROUP_SIZE];
    const uint lane = get_local_id(0);
    for (uint node = get_group_id(0); node < n; node += get_num_groups(0)) {
        const uint e_begin = a_starts[node], e_end = a_starts[node + 1], c_end = c_starts[node + 1];
        for (uint first = c_starts[node]; first < c_end; first += BLOCKS) {
            const uint count = min((uint)BLOCKS, c_end - first);
            for (uint k = lane; k < count; k += GROUP_SIZE)
                own[k] = c_columns[first + k];
            for (uint k = lane; k < count * SIZE; k += GROUP_SIZE)
                sums[k] = 0;
            /* what a step needs is loaded one and two steps before */
            uint middle = e_begin < e_end ? a_columns[e_begin] : 0, f_begin = 0, f_end = 0;
            if (e_begin < e_end) {
                f_begin = b_starts[middle];
                f_end = b_starts[middle + 1];
            }
            middle = e_begin + 1 < e_end ? a_columns[e_begin + 1] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint e = e_begin; e < e_end; e++) {
                const uint next = e + 2 < e_end ? a_columns[e + 2] : 0;
                const uint next_begin = e + 1 < e_end ? b_starts[middle] : 0, next_end = e + 1 < e_end ? b_starts[middle + 1] : 0;
                for (uint f = f_begin; f < f_end; f += GROUP_SIZE) {
                    const uint together = min((uint)GROUP_SIZE, f_end - f);
                    if (lane < together)
                        places[lane] = place_of(b_columns[f + lane], own, count);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    for (uint k = lane; k < together * SIZE; k += GROUP_SIZE) {
                        const uint block = k / SIZE, element = k % SIZE, place = places[block];
                        if (place != ELSEWHERE) {
                            const uint left = (e * HEIGHT + element / WIDTH) * DEPTH, to = place * SIZE + element;
                            const uint right = (f + block) * (DEPTH * WIDTH) + element % WIDTH;
                            real sum = sums[to];
                            UNROLL_BY(DEPTH)
                            for (uint m = 0; m < DEPTH; m++)
                                sum += a_values[left + m] * b_values[right + m * WIDTH];
                            sums[to] = sum;
                        }
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                middle = next;
                f_begin = next_begin;
                f_end = next_end;
            }
            for (uint k = lane; k < count * SIZE; k += GROUP_SIZE)
                c_values[first * SIZE + k] = sums[k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
