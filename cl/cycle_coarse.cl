/* The coarse levels of a multigrid cycle in one launch, with a barrier over all groups (persistent.cl, behind which this is compiled) after
 * each step. A launch in whose beginning not all groups are there is done by the first group alone.
 *
 * A step multiplies a matrix by a vector, row by row, and makes something of each sum. All vectors lie in v, all matrices one after the
 * other in starts, columns and values, and `steps` has STEP_WORDS numbers for each step:
 *
 *   0, 1   what is made of sums; rows
 *   2      lanes of a row, a power of two
 *   3, 4   where the matrix begins in `starts`, and in `columns` and `values`
 *   5      where the vector begins that it multiplies
 *   6-9    where the level's b, x, r and t begin
 *   10     c and d, as floats: the smoother adds c r + d A r to x, for the residual r
 *
 * What groups write others read: neither restrict nor const.
 */
#define STEP_WORDS 12

/* t = A b */
#define STEP_PRODUCT 0
/* x = c b + d t, and what is left: r = b - A x, for the product of t */
#define STEP_FROM_ZERO 1
/* b = R r of the level above, or x = A^-1 b */
#define STEP_RESTRICT 2
#define STEP_SOLVE 3
/* x -= (-P) e */
#define STEP_CORRECT 4
/* r = b - A x */
#define STEP_RESIDUAL 5
/* x += c r + d A r; on the first level xs gets x, too */
#define STEP_SMOOTH 6
#define STEP_SMOOTH_FIRST 7

/* Waits for all groups, if there are several; it is the barrier number `passed` of the launch. */
static inline void meet(__global volatile uint *words, uint groups, uint passed)
{
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0 && groups > 1) {
        const uint all = passed * groups;
        uint there = come_to(words + WAITING) + 1;
        while (there < all)
            there = look_at(words + WAITING);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

/* What a step makes of the sum of a row. */
static inline void finish(__global const uint *step, uint row, real sum, __global real *v, __global real *xs)
{
    __global real *b = v + step[6] + row, *x = v + step[7] + row, *r = v + step[8] + row, *t = v + step[9] + row;
    const real c = as_float(step[10]), d = as_float(step[11]);
    switch (step[0]) {
    case STEP_PRODUCT: *t = sum; break;
    case STEP_FROM_ZERO:
        *x = c * *b + d * *t;
        *r = *b - c * *t - d * sum;
        break;
    case STEP_RESTRICT: *b = sum; break;
    case STEP_SOLVE: *x = sum; break;
    case STEP_CORRECT: *x -= sum; break;
    case STEP_RESIDUAL: *r = *b - sum; break;
    default: *x += c * *r + d * sum;
    }
    if (step[0] == STEP_SMOOTH_FIRST)
        xs[row] = *x;
}

KERNEL void cycle_coarse(uint count, __global const uint *restrict steps, __global const uint *restrict starts,
                         __global const uint *restrict columns, __global const real *restrict values, __global real *v,
                         __global real *xs, __global volatile uint *words, uint turn, __global acc *refused)
{
    __local real scratch[GROUP_SIZE];
    __local uint said;
    uint groups = get_num_groups(0);
    if (!all_are_there(words, turn, refused, 1, &said))
        groups = 1;
    if (get_group_id(0) >= groups)
        count = 0;
    for (uint number = 0; number < count; number++) {
        __global const uint *step = steps + number * STEP_WORDS, *own = starts + step[3];
        const uint n = step[1], lanes = step[2], entries = step[4], lane = get_local_id(0) % lanes;
        __global real *from = v + step[5];
        const uint together = GROUP_SIZE / lanes;
        for (uint first = get_group_id(0) * together; first < n; first += groups * together) {
            const uint row = first + get_local_id(0) / lanes;
            const uint end = row < n ? own[row + 1] : 0;
            real sum = 0;
            UNROLL_BY(4)
            for (uint e = row < n ? own[row] + lane : 0; e < end; e += lanes)
                sum += values[entries + e] * from[columns[entries + e]];
            scratch[get_local_id(0)] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (row < n && lane == 0) {
                for (uint k = 1; k < lanes; k++)
                    sum += scratch[get_local_id(0) + k];
                finish(step, row, sum, v, xs);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        meet(words, groups, number + 1);
    }
}
