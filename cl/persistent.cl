/* Iterations of a method that stay on the device: one launch does several of them, with a barrier over all groups where something is
 * needed that other groups have left. Compiled behind the products of one format and passes.cl, and before the kernel itself, which
 * src/backend/source/persistent.rs writes; FORMAT says which format.
 *
 * A barrier over groups is passed only if all of them are on the device at once, which OpenCL does not promise (Sorensen et
 * al., OOPSLA 2016, doi 10.1145/2983990.2984032). So a launch begins with a check, where no group waits for long: the last
 * one to come says that all go, or one that has waited too long that all leave. Only the first of the two to speak is heard.
 * A launch that is so refused changes nothing but `refused`, which then is the number of its first iteration, and all that
 * come after it are refused, too.
 *
 * What one group writes others read: vectors, partial sums and the log are therefore neither restrict nor const, which would
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
 * compiler takes instructions of its own. OpenCL C 1.2 has no such thing: without, there is one group (src/device/context.rs). */
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

/* Adds to what all groups see: what comes before it is seen by who comes after. How much it was. */
static inline uint come_to(__global volatile uint *word)
{
    uint former;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(former) : "l"(word) : "memory");
#else
    device_fence();
    former = atomic_inc(word);
    device_fence();
#endif
    return former;
}

/* What all groups see, and all that came before it. A fence would wait for the work-item's own stores, too. */
static inline uint look_at(__global volatile uint *word)
{
    uint seen;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
#else
    seen = atomic_or(word, 0u);
    device_fence();
#endif
    return seen;
}

/* Whether all groups are there; the same in all of them. */
static inline int all_are_there(__global volatile uint *words, uint turn, __global acc *refused, uint slot, __local uint *said)
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
        uint all = passed * get_num_groups(0), there = come_to(words + WAITING) + 1;
        while (there < all)
            there = look_at(words + WAITING);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

/* What the kernel has of the matrix, and how it leaves y = A x and gives the work-item's part of x.y and y.y: macros in the file of
 * the products, whose names begin with the format's. */
#define ROWS_ARGS JOIN(FORMAT, _ROWS_ARGS)
#define ROWS_LOCAL JOIN(FORMAT, _ROWS_LOCAL)
#define ROWS_TIMES JOIN(FORMAT, _ROWS_TIMES)
