/* Products C = A B of matrices in blocks, of which the rows of nodes of C are known, in the order of their columns.
 *
 * A group makes a node's rows, as many blocks at a time as there is room for sums in local memory. Blocks of A are taken one after the
 * other, with a barrier between them; the blocks of B's rows that each leads to are all added to other sums, by as many work-items as
 * they have elements. So sums are formed in the order of A's entries, as on the host, whatever runs when.
 */
#define ROOM 4096

/* The sums of a block that is in none of those that there is room for. */
#define ELSEWHERE 0xFFFFFFFFu

/* Where a column is among n in their order. */
static inline uint place_of(uint column, __global const uint *columns, uint n)
{
    uint low = 0;
    for (uint high = n; high - low > 1;) {
        const uint middle = (low + high) / 2;
        if (columns[middle] <= column)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Blocks of A have HEIGHT x DEPTH elements, those of B DEPTH x WIDTH: compiled in, so that loops over them are none. */
#define SIZE (HEIGHT * WIDTH)

KERNEL void blocks_product(uint n, __global const uint *restrict a_starts, __global const uint *restrict a_columns,
                           __global const real *restrict a_values, __global const uint *restrict b_starts,
                           __global const uint *restrict b_columns, __global const real *restrict b_values,
                           __global const uint *restrict c_starts, __global const uint *restrict c_columns,
                           __global real *restrict c_values)
{
    __local real sums[ROOM];
    __local uint places[GROUP_SIZE];
    const uint lane = get_local_id(0), most = ROOM / SIZE;
    for (uint node = get_group_id(0); node < n; node += get_num_groups(0)) {
        const uint c_begin = c_starts[node], c_length = c_starts[node + 1] - c_begin;
        const uint e_begin = a_starts[node], e_end = a_starts[node + 1];
        for (uint first = 0; first < c_length; first += most) {
            const uint count = min(most, c_length - first);
            for (uint k = lane; k < count * SIZE; k += GROUP_SIZE)
                sums[k] = 0;
            uint middle = e_begin < e_end ? a_columns[e_begin] : 0;
            for (uint e = e_begin; e < e_end; e++) {
                const uint f_begin = b_starts[middle], f_end = b_starts[middle + 1];
                middle = e + 1 < e_end ? a_columns[e + 1] : 0;
                for (uint f = f_begin; f < f_end; f += GROUP_SIZE) {
                    const uint together = min((uint)GROUP_SIZE, f_end - f);
                    if (lane < together) {
                        const uint place = place_of(b_columns[f + lane], c_columns + c_begin, c_length);
                        places[lane] = place >= first && place < first + count ? (place - first) * SIZE : ELSEWHERE;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    for (uint k = lane; k < together * SIZE; k += GROUP_SIZE) {
                        const uint block = k / SIZE, element = k % SIZE, to = places[block];
                        if (to != ELSEWHERE) {
                            const uint left = (e * HEIGHT + element / WIDTH) * DEPTH;
                            const uint right = (f + block) * (DEPTH * WIDTH) + element % WIDTH;
                            real sum = sums[to + element];
                            UNROLL_BY(DEPTH)
                            for (uint m = 0; m < DEPTH; m++)
                                sum += a_values[left + m] * b_values[right + m * WIDTH];
                            sums[to + element] = sum;
                        }
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
            }
            for (uint k = lane; k < count * SIZE; k += GROUP_SIZE)
                c_values[(c_begin + first) * SIZE + k] = sums[k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
