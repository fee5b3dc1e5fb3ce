/* Iterations of conjugate gradients that stay on the device: one launch does `count` of them, where a barrier over all groups
 * stands in place of each end of a kernel. Compiled behind the products of one format and cg.cl; RESIDENT says which.
 *
 *   product:  q = A p, parts of p.q and q.q                            barrier over all groups
 *   step:     every group adds all parts, in the same order, and so comes to the same decision;
 *             x, r, p as in cg.cl, parts of r.r and rr                 barrier over all groups
 *
 * The sums r.r and rr lie in two buffers in turns: iteration i of the launch reads rho if i is even, and leaves them in
 * rho_next, or else the other way round. Log and end are those of cg.cl: once there is no step to be made, both states say so,
 * and all groups leave together.
 *
 * A barrier over groups is passed only if all of them are on the device at once, which OpenCL does not promise (Sorensen et
 * al., OOPSLA 2016, doi 10.1145/2983990.2984032). So a launch begins with a muster, where no group waits for long: the last
 * one to come says that all go, or one that has waited too long that all leave. Only the first of the two to speak is heard.
 * A launch that is so refused changes nothing but log[4 log_len], which then is the slot of its first iteration, and all that
 * come after it are refused, too.
 *
 * What one group writes others read: x, r, p, q, dots, rho and rho_next are therefore neither restrict nor const, which would
 * let a compiler read them through caches that nobody keeps coherent.
 */

/* Numbers that all groups share: who has come, who has come to the barrier, what was said. */
#define ARRIVED 0
#define WAITING 1
#define SAID 2
/* Launches say 1 and 2 in turns when they go. */
#define REFUSED 3u
/* How often a group looks, at most, whether all have come: for milliseconds. */
#define MOST_LOOKS (1 << 16)

/* What the work-item wrote, and those whom it has met at a barrier, comes before what follows, for the whole device. NVIDIA's
 * compiler takes instructions of its own. OpenCL C 1.2 has no such thing; its mem_fence serves where all caches are coherent, as
 * on a CPU (src/device/context.rs). */
static inline void device_fence(void)
{
#if COMPUTE_CAPABILITY >= 70
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif defined(COMPUTE_CAPABILITY)
    asm volatile("membar.gl;" ::: "memory");
#elif __OPENCL_C_VERSION__ >= 200
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}

/* Whether all groups are there; the same in all of them. */
static inline int muster(__global volatile uint *words, uint turn, __global acc *refused, uint slot, __local uint *said)
{
    if (get_local_id(0) == 0) {
        uint former = 3 - turn, heard = former;
        if (atomic_inc(words + ARRIVED) == get_num_groups(0) - 1) {
            atomic_xchg(words + ARRIVED, 0u);
            atomic_xchg(words + WAITING, 0u);
            device_fence();
            heard = atomic_cmpxchg(words + SAID, former, turn);
            if (heard == former)
                heard = turn;
        } else {
            for (uint looks = 0; heard == former && looks < MOST_LOOKS; looks++)
                heard = atomic_or(words + SAID, 0u);
            if (heard == former) {
                heard = atomic_cmpxchg(words + SAID, former, REFUSED);
                if (heard == former)
                    *refused = slot;
            }
        }
        device_fence();
        *said = heard;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *said == turn;
}

/* Waits for all groups; it is the barrier number `passed` of the launch, counted from 1. */
static inline void all_groups(__global volatile uint *words, uint passed)
{
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        device_fence();
        uint all = passed * get_num_groups(0), there = atomic_inc(words + WAITING) + 1;
        while (there < all)
            there = atomic_or(words + WAITING, 0u);
        device_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

#define RESIDENT_CSR 1
#define RESIDENT_STENCIL 2
#define RESIDENT_PATTERN 3
#define RESIDENT_SELL 4

/* What the kernel has of the matrix, and how it leaves q and gives the work-item's part of p.q and q.q. */
#define ROWS_LOCAL
#if RESIDENT == RESIDENT_CSR
#define ROWS_ARGS                                                                                                      \
    uint first, uint last, __global const uint2 *restrict blocks, __global const offset_t *restrict row_ptr,           \
        offset_t before, __global const uint *restrict col_idx, __global const real *restrict values
#undef ROWS_LOCAL
#define ROWS_LOCAL __local real products[BLOCK_NNZ];
#define ROWS_TIMES_P csr_rows(ROWS_DOT, first, last, blocks, row_ptr, before, col_idx, values, p, p, q, products)
#elif RESIDENT == RESIDENT_STENCIL
#define ROWS_ARGS STENCIL_ARGS(restrict, const main_kind main_row)
#define ROWS_TIMES_P stencil_rows(ROWS_DOT, 0, 0, 0, STENCIL_PASS, p, p, q)
#elif RESIDENT == RESIDENT_PATTERN
#define ROWS_ARGS STENCIL_ARGS(restrict, const main_kind main_row), uint width, uint band
#define ROWS_TIMES_P stencil_rows(ROWS_DOT, width, band, 0, STENCIL_PASS, p, p, q)
#elif RESIDENT == RESIDENT_SELL
#define ROWS_ARGS SELL_ARGS(restrict)
#define ROWS_TIMES_P sell_rows(ROWS_DOT, SELL_PASS, p, p, q)
#else
#error "RESIDENT must be a format"
#endif

/* Up to `iterations`, the first of which has `slot` in the log. rho as in cg_step; w has weights if is_weighted; turn is 1 and
 * 2 from launch to launch. */
KERNEL void cg_resident(ROWS_ARGS, uint n, uint is_weighted, __global const real *restrict w, __global real *x,
                        __global real *r, __global real *p, __global real *q, __global acc *dots, __global acc *rho,
                        uint rho_count, acc rho_value, __global acc *rho_next, acc limit, __global int *state,
                        __global int *next_state, __global acc *log, uint log_len, uint slot, uint iterations,
                        uint is_owed, real least, __global uint *words, uint turn)
{
    __local acc4 scratch[GROUP_SIZE];
    __local uint said;
    ROWS_LOCAL
    __local acc2 *scratch2 = (__local acc2 *)scratch;
    uint groups = get_num_groups(0);
    int was_done = state[0];
    if (!muster(words, turn, log + 4 * log_len, slot, &said))
        return;
    int go_on = !was_done;
    real owed = cg_owed(log, slot == 0 ? log_len - 1 : slot - 1, is_owed);
    uint i = 0;
    for (; go_on && i < iterations; i++) {
        leave_dots(ROWS_TIMES_P, scratch2, dots, 0);
        all_groups(words, 2 * i + 1);

        __global acc *from = i % 2 ? rho_next : rho, *to = i % 2 ? rho : rho_next;
        uint from_count = i == 0 ? rho_count : groups, at = (slot + i) % log_len;
        acc4 sums = cg_sums(dots, groups, from, from_count, rho_value, scratch);
        go_on = cg_goes_on(sums, from_count, 0, limit, log, at, at == 0 ? log_len - 1 : at - 1);
        real2 scalars = cg_scalars(sums);
        real owes = go_on ? owed_next(scalars, owed, least) : owed;
        if (get_global_id(0) == 0) {
            log[4 * at + 3] = owes;
            if (!go_on)
                state[0] = next_state[0] = 1;
        }
        leave_dots(cg_update(is_weighted, go_on ? n : 0, w, x, r, p, q, scalars, owed, owes), scratch2, to, 0);
        owed = owes;
        all_groups(words, 2 * i + 2);
    }
    for (; i < iterations; i++) {
        if (get_global_id(0) == 0)
            log[4 * ((slot + i) % log_len) + 3] = owed;
    }
}
