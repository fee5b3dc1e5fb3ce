/* Words in live memory (src/device/live.rs), through which running kernels, the host and kernels on other devices tell each other
 * values: src/comm/live.rs describes them. A value of a sum travels with the number of the sum, so that no fence is needed; elements of halos are many, and have flags.
 */
#define WORD 2
#define LINE 32
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

/* Lets others see a number, and before it all that the group has written before a barrier. */
static inline void raise(__global volatile ulong *flag, ulong number)
{
#if COMPUTE_CAPABILITY >= 70
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(number) : "memory");
#else
#if __OPENCL_C_VERSION__ >= 300 && defined(__opencl_c_atomic_scope_all_devices) || __OPENCL_C_VERSION__ == 200
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_all_svm_devices);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
    *flag = number;
#endif
}

/* A number that others have raised: what they have written before is seen from now on, by the group behind a barrier. */
static inline ulong raised(__global volatile ulong *flag)
{
    ulong number;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(number) : "l"(flag) : "memory");
#else
    number = *flag;
#if __OPENCL_C_VERSION__ >= 300 && defined(__opencl_c_atomic_scope_all_devices) || __OPENCL_C_VERSION__ == 200
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, memory_scope_all_svm_devices);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
#endif
    return number;
}

/* The word of value `k` of sum `number`, or of its total; that of k = -1 has the number of values. */
static inline __global volatile ulong *word_of(__global volatile ulong *memory, int is_total, uint number, int k)
{
    return memory + (number % 2 + 2 * is_total) * LINE + (k + 1) * WORD;
}

