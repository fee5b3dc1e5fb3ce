/* Kernels that answer the host, or kernels on other devices, while they run: by words.cl. Every wait is bounded: after `most_looks`
 * in vain a kernel gives up.
 */
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
