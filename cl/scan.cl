/* Exclusive prefix sums, with the total behind them. SUM, the type of what is left, is uint or ulong; sums are modulo
 * 2^32 or 2^64.
 *
 *   scan_sums     sums[share] = the sum of from[i] over the share, in 64 bits
 *   scan_apply    to[i] = from[0] + ... + from[i - 1] for i <= n, where sums is what scan_shares has made of them
 *
 * from and to may be the same array. Read n uint and again n uint, written n + 1 SUM.
 *
 * GPU shape: a work-item takes four elements side by side of each of ITEMS / 4 rows of a tile, so that accesses
 * coalesce; the group scans the sums of all rows at once. CPU shape: element by element.
 */
#ifndef SUM
#error "SUM must be defined"
#endif

#if !SHAPE_CPU
#define SCAN_ROWS (ITEMS / 4)
typedef JOIN(SUM, 4) sum_run;
GROUP_SCAN(scan_rows, SUM, SCAN_ROWS)
#endif

KERNEL void scan_sums(uint n, __global const uint *from, __global ulong *sums)
{
    const uint begin = share_begin(n, get_group_id(0)), end = share_begin(n, get_group_id(0) + 1);
    __local ulong scratch[GROUP_SIZE];
    ulong sum = 0;
#if SHAPE_CPU
    for (uint i = begin; i < end; i++)
        sum += from[i];
#else
    const uint lane = get_local_id(0);
    __global const uint4 *runs = (__global const uint4 *)from;
    UNROLL_BY(4)
    for (uint i = begin / 4 + lane; i < end / 4; i += GROUP_SIZE) {
        const uint4 run = runs[i];
        sum += (ulong)run.s0 + run.s1 + run.s2 + run.s3;
    }
    for (uint i = lane; i < end % 4; i += GROUP_SIZE)
        sum += from[end / 4 * 4 + i];
#endif
    leave_share(sum, scratch, sums);
}

KERNEL void scan_apply(uint n, __global const ulong *sums, __global const uint *from, __global SUM *to)
{
    SUM before = (SUM)sums[get_group_id(0)];
#if SHAPE_CPU
    for (uint i = share_begin(n, get_group_id(0)), end = share_begin(n, get_group_id(0) + 1); i < end; i++) {
        const uint own = from[i];
        to[i] = before;
        before += own;
    }
#else
    __local SUM scratch[2 * SCAN_ROWS * GROUP_SIZE];
    const uint lane = get_local_id(0);
    EACH_TILE (n, at, here) {
        uint own[ITEMS];
        SUM s[SCAN_ROWS], all[SCAN_ROWS];
        UNROLL_ALL
        for (uint r = 0; r < SCAN_ROWS; r++) {
            const uint place = r * GROUP_SIZE + lane;
            if (here == TILE) {
                const uint4 run = ((__global const uint4 *)(from + at))[place];
                own[4 * r] = run.s0;
                own[4 * r + 1] = run.s1;
                own[4 * r + 2] = run.s2;
                own[4 * r + 3] = run.s3;
            } else {
                UNROLL_ALL
                for (uint k = 0; k < 4; k++)
                    own[4 * r + k] = 4 * place + k < here ? from[at + 4 * place + k] : 0;
            }
            s[r] = (SUM)own[4 * r] + own[4 * r + 1] + own[4 * r + 2] + own[4 * r + 3];
        }
        scan_rows(s, all, scratch);
        UNROLL_ALL
        for (uint r = 0; r < SCAN_ROWS; r++) {
            const uint place = r * GROUP_SIZE + lane;
            sum_run run;
            run.s0 = before + s[r];
            run.s1 = run.s0 + own[4 * r];
            run.s2 = run.s1 + own[4 * r + 1];
            run.s3 = run.s2 + own[4 * r + 2];
            before += all[r];
            if (here == TILE) {
                ((__global sum_run *)(to + at))[place] = run;
            } else {
                const SUM each[] = {run.s0, run.s1, run.s2, run.s3};
                UNROLL_ALL
                for (uint k = 0; k < 4; k++)
                    if (4 * place + k < here)
                        to[at + 4 * place + k] = each[k];
            }
        }
    }
#endif
    if (get_global_id(0) == 0)
        to[n] = (SUM)sums[get_num_groups(0)];
}
