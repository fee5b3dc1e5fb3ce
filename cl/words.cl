/* Words in live memory (src/device/live.rs), through which running kernels, the host and kernels on other devices tell each other
 * values: src/comm/live.rs describes them. A value travels with the number of its sum, or of its exchange, so that no fence is
 * needed.
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

/* An element of a halo, with the number of its exchange: as a word, or in single precision in one number of 64 bits. */
#ifdef USE_FP64
static inline void put_double(__global volatile ulong *word, double value, uint number)
{
    const ulong bits = as_ulong(value), low = bits << 32 | number, high = bits >> 32 << 32 | number;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(word), "l"(low), "l"(high) : "memory");
#else
    word[0] = low;
    word[1] = high;
#endif
}

static inline int take_double(__global volatile ulong *word, double *value, uint number)
{
    const ulong2 seen = load_word(word);
    *value = as_double(bits_of(seen));
    return has_come(seen, number);
}
#endif

static inline void put_float(__global volatile ulong *word, float value, uint number)
{
    const ulong bits = (ulong)as_uint(value) << 32 | number;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
#else
    *word = bits;
#endif
}

static inline int take_float(__global volatile ulong *word, float *value, uint number)
{
    ulong seen;
#if COMPUTE_CAPABILITY >= 70
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
#else
    seen = *word;
#endif
    *value = as_float((uint)(seen >> 32));
    return (uint)seen == number;
}
#define put_element JOIN(put_, REAL)
#define take_element JOIN(take_, REAL)

/* The word of value `k` of sum `number`, or of its total; that of k = -1 has the number of values. */
static inline __global volatile ulong *word_of(__global volatile ulong *memory, int is_total, uint number, int k)
{
    return memory + (number % 2 + 2 * is_total) * LINE + (k + 1) * WORD;
}

