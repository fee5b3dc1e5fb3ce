/* Kernels that answer the host, or kernels on other devices, while they run: through live memory (src/device/live.rs), whose words
 * and lines src/comm/live.rs describes. A value travels as two numbers of 64 bits, of which each has half of its bits and
 * the number of the sum, so that no fence is needed. Every wait is bounded: after `most_looks` in vain a kernel gives up.
 */
#define WORD 2
#define LINE 16
#define MOST_VALUES (LINE / WORD - 1)

/* A word at once, past the caches of the device. NVIDIA's compiler takes instructions of its own for accesses that other devices and
 * the processor see; elsewhere the device has to show that volatile ones do. */
static inline void put_word(__global volatile ulong *word, ulong bits, uint number)
{
    const ulong low = bits << 32 | number, high = bits >> 32 << 32 | number;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(low) : "memory");
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word + 1), "l"(high) : "memory");
#else
    word[0] = low;
    word[1] = high;
#endif
}

/* A word: what is in its two halves. */
static inline ulong2 load_word(__global volatile ulong *word)
{
    ulong low, high;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(word) : "memory");
#else
    low = word[0];
    high = word[1];
#endif
    return (ulong2)(low, high);
}

/* Whether it is that of sum `number`, and the bits of its value. */
static inline int has_come(ulong2 word, uint number) { return (uint)word.s0 == number && (uint)word.s1 == number; }
static inline ulong bits_of(ulong2 word) { return word.s1 >> 32 << 32 | word.s0 >> 32; }

/* The word of value `k` of sum `number`, or of its total; that of k = -1 has the number of values. */
static inline __global volatile ulong *word_of(__global volatile ulong *memory, int is_total, uint number, int k)
{
    return memory + (number % 2 + 2 * is_total) * LINE + (k + 1) * WORD;
}

/* Answers each of `rounds` numbers of the host by one more, and tells how many. One work-item does. */
KERNEL void live_echo(__global volatile ulong *memory, uint rounds, uint most_looks, __global uint *answered)
{
    if (get_global_id(0) > 0)
        return;
    uint r = 0;
    for (uint looks = 0; r < rounds && looks < most_looks; looks++) {
        const ulong2 word = load_word(word_of(memory, 1, r + 1, 0));
        if (has_come(word, r + 1)) {
            put_word(word_of(memory, 0, r + 1, -1), 1, r + 1);
            put_word(word_of(memory, 0, r + 1, 0), bits_of(word) + 1, r + 1);
            looks = 0;
            r++;
        }
    }
    *answered = r;
}

/* A rank's part of `rounds` sums, from sum `first` on, by one group: value k, one of `values`, of sum s is (s % 1024 + k) times the
 * `weight` of the rank, and all weights add up to `weights`. Leaves how many sums were met, and how many totals were wrong. Each
 * work-item has a word of its own, where there are enough, so that all of a line come with one access: over a bus each takes a
 * microsecond.
 */
KERNEL void live_sums(__global volatile ulong *memory, uint first, uint rounds, uint values, uint weight, uint weights,
                      uint most_looks, __global uint *met)
{
#ifdef USE_FP64
    __local uint leaves, wrong;
    if (get_local_id(0) == 0)
        leaves = wrong = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint r = 0;
    while (r < rounds) {
        const uint number = first + r;
        for (int k = get_local_id(0); k <= (int)values; k += GROUP_SIZE) {
            const double value = (double)(number % 1024 + k - 1) * weight;
            put_word(word_of(memory, 0, number, k - 1), k == 0 ? values : as_ulong(value), number);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* all have put theirs before one waits: work-items may run one after the other */
        for (int k = get_local_id(0); k <= (int)values; k += GROUP_SIZE) {
            const double total = (double)(number % 1024 + k - 1) * weights;
            ulong2 word = load_word(word_of(memory, 1, number, k - 1));
            for (uint looks = 1; !has_come(word, number) && looks < most_looks; looks++)
                word = load_word(word_of(memory, 1, number, k - 1));
            if (!has_come(word, number))
                atomic_inc(&leaves);
            else if (bits_of(word) != (k == 0 ? values : as_ulong(total)))
                atomic_inc(&wrong);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (leaves > 0)
            break;
        r++;
    }
    if (get_local_id(0) == 0) {
        met[0] = r;
        met[1] = wrong;
    }
#endif
}
