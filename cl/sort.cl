/* A stable sort of keys, and of what belongs to them, by some of their bits: passes over digits, the least significant
 * first. A pass is
 *
 *   sort_count     counts[d * shares + share] = how many keys of the share have the digit d, for d < 2^bits,
 *   scan.cl        by which starts[d * shares + share] is where the first of these goes,
 *   sort_scatter   and keys_to, payload_to have the keys of keys_from, and what belongs to them, in the order of their
 *                  digits.
 *
 * The digit of a key is its `bits` bits from bit `shift` on; bits <= DIGIT_BITS. PAYLOAD_GIVEN: a uint of payload_from
 * belongs to each key; PAYLOAD_INDICES: its place in keys_from; PAYLOAD_NONE: nothing. KEY is uint or ulong. Read n KEY
 * and again n KEY, n uint if they are given; written n KEY and, if there are any, n uint, in runs as long as there are
 * equal digits in a tile.
 *
 * GPU shape (Satish, Harris and Garland 2009, doi 10.1109/IPDPS.2009.5161005): a group sorts the digits of a tile in
 * local memory, each with its place in the tile, by SPLIT_BITS bits at a time. A work-item takes ITEMS keys side by
 * side and has a counter for each of the values of these bits; scanned in the order of values, then work-items,
 * counters tell where each key goes. Then neighbouring work-items write neighbouring keys. Counters are halves of a
 * uint; a tile has less than 2^16 keys. CPU shape: key by key.
 */
#if !defined(KEY) || !defined(DIGIT_BITS)
#error "KEY and DIGIT_BITS must be defined"
#endif

#define PAYLOAD_NONE 0
#define PAYLOAD_GIVEN 1
#define PAYLOAD_INDICES 2

#define DIGITS (1 << DIGIT_BITS)

typedef JOIN(KEY, 4) key_run;

static inline uint digit_of(KEY key, uint shift, uint bits) { return (uint)(key >> shift) & ((1u << bits) - 1); }

KERNEL void sort_count(uint n, uint shift, uint bits, __global const KEY *keys, __global uint *counts)
{
#if SHAPE_CPU
    uint count[DIGITS];
    for (uint d = 0; d < DIGITS; d++)
        count[d] = 0;
    for (uint i = share_begin(n, get_group_id(0)), end = share_begin(n, get_group_id(0) + 1); i < end; i++)
        count[digit_of(keys[i], shift, bits)]++;
#else
    __local uint count[DIGITS];
    const uint lane = get_local_id(0);
    for (uint d = lane; d < DIGITS; d += GROUP_SIZE)
        count[d] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_TILE (n, at, here) {
        if (here == TILE) {
            key_run runs[ITEMS / 4];
            UNROLL_ALL
            for (uint r = 0; r < ITEMS / 4; r++)
                runs[r] = ((__global const key_run *)(keys + at))[r * GROUP_SIZE + lane];
            UNROLL_ALL
            for (uint r = 0; r < ITEMS / 4; r++) {
                atomic_inc(&count[digit_of(runs[r].s0, shift, bits)]);
                atomic_inc(&count[digit_of(runs[r].s1, shift, bits)]);
                atomic_inc(&count[digit_of(runs[r].s2, shift, bits)]);
                atomic_inc(&count[digit_of(runs[r].s3, shift, bits)]);
            }
        } else {
            for (uint i = lane; i < here; i += GROUP_SIZE)
                atomic_inc(&count[digit_of(keys[at + i], shift, bits)]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (uint d = get_local_id(0); d < 1u << bits; d += GROUP_SIZE)
        counts[d * get_num_groups(0) + get_group_id(0)] = count[d];
}

#if !SHAPE_CPU
#define SPLIT_BITS (DIGIT_BITS < 6 ? DIGIT_BITS : (DIGIT_BITS + 1) / 2)
/* Counters of a work-item, as pairs. */
#define PAIRS (1 << (SPLIT_BITS - 1))
/* Places in local memory, some of which are left out, so that neighbouring work-items go to different banks.
 * What depends on the work-item is a pointer, and what lies behind it at constant distances a number of its own: that
 * takes fewest registers. */
#define PADDED(i) ((i) + (i) / 32)
#define RUN_OF(lane) (PADDED((lane) * ITEMS))
#define POOL_ROW PADDED(GROUP_SIZE)
#define COUNTERS(i) ((i) + (i) / PAIRS)
#define COUNTER_ROW COUNTERS(GROUP_SIZE)
#define POOL (PADDED(TILE) > COUNTER_ROW * PAIRS ? PADDED(TILE) : COUNTER_ROW * PAIRS)
typedef union {
    uint both;
    ushort each[2];
} pair;
/* The counter of a value, of the pairs of a work-item: lower halves are of the smaller half of the values. */
#ifdef __ENDIAN_LITTLE__
#define LOWER 0
#else
#define LOWER 1
#endif
#define COUNTER(pairs, value) ((pairs)[(value) % PAIRS * COUNTER_ROW].each[(value) / PAIRS ^ LOWER])
/* A digit, and below it a place in the tile. */
#define WORD(digit, place) ((digit) << 16 | (place))
#define DIGIT(word) ((word) >> 16)
#define PLACE_IN_TILE(word) ((word)&0xFFFF)

GROUP_SCAN(scan_pairs, uint, 1)

/* The words of a tile, of which a work-item has ITEMS side by side, come into the pool in the order of SPLIT_BITS bits
 * from `bit` on. */
ALWAYS_INLINE void split(const uint *words, uint bit, __local uint *pool, __local uint *scratch)
{
    const uint lane = get_local_id(0);
    __local pair *own = (__local pair *)(pool + COUNTERS(lane));
    __local pair *in_order = (__local pair *)(pool + COUNTERS(lane * PAIRS));
    uint rank[ITEMS], s = 0, all;
    UNROLL_ALL
    for (uint k = 0; k < PAIRS; k++)
        own[k * COUNTER_ROW].both = 0;
    UNROLL_ALL
    for (uint k = 0; k < ITEMS; k++) {
        const uint value = words[k] >> bit & (2 * PAIRS - 1);
        rank[k] = COUNTER(own, value)++;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (uint k = 0; k < PAIRS; k++)
        s += in_order[k].both;
    scan_pairs(&s, &all, scratch);
    s += all << 16; /* the upper halves come behind all the lower ones */
    UNROLL_ALL
    for (uint k = 0; k < PAIRS; k++) {
        const uint count = in_order[k].both;
        in_order[k].both = s;
        s += count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (uint k = 0; k < ITEMS; k++) {
        const uint value = words[k] >> bit & (2 * PAIRS - 1);
        rank[k] += COUNTER(own, value);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (uint k = 0; k < ITEMS; k++)
        pool[PADDED(rank[k])] = words[k];
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The digits of the `here` keys of a tile in order, each with its place, in the pool. Behind the keys come the largest
 * digits. */
ALWAYS_INLINE void sort_tile(uint here, __global const KEY *keys, uint shift, uint bits, __local uint *pool,
                             __local uint *scratch)
{
    const uint first = get_local_id(0) * ITEMS;
    uint words[ITEMS];
    UNROLL_ALL
    for (uint k = 0; k < ITEMS; k += 4) {
        if (here == TILE) {
            const key_run run = ((__global const key_run *)keys)[(first + k) / 4];
            words[k] = WORD(digit_of(run.s0, shift, bits), first + k);
            words[k + 1] = WORD(digit_of(run.s1, shift, bits), first + k + 1);
            words[k + 2] = WORD(digit_of(run.s2, shift, bits), first + k + 2);
            words[k + 3] = WORD(digit_of(run.s3, shift, bits), first + k + 3);
        } else {
            UNROLL_ALL
            for (uint i = k; i < k + 4; i++) {
                const uint digit = first + i < here ? digit_of(keys[first + i], shift, bits) : (1u << bits) - 1;
                words[i] = WORD(digit, first + i);
            }
        }
    }
    for (uint bit = 0; bit < max(bits, 1u); bit += SPLIT_BITS) {
        if (bit > 0) {
            UNROLL_ALL
            for (uint k = 0; k < ITEMS; k++)
                words[k] = (pool + RUN_OF(get_local_id(0)))[k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        split(words, 16 + bit, pool, scratch);
    }
}

/* Puts a VALUE of each word of a tile where its key goes. Some loads are under way before the first store. */
#define UNDER_WAY 8
#define MOVE_TILE(TYPE, VALUE, to)                                                                                     \
    UNROLL_ALL                                                                                                         \
    for (uint some = 0; some < ITEMS; some += UNDER_WAY) {                                                             \
        TYPE values[UNDER_WAY];                                                                                        \
        UNROLL_ALL                                                                                                     \
        for (uint k = 0; k < UNDER_WAY; k++) {                                                                         \
            const uint word = words[some + k];                                                                         \
            values[k] = (int)lane < (int)here - (int)((some + k) * GROUP_SIZE) ? VALUE : 0;                            \
        }                                                                                                              \
        UNROLL_ALL                                                                                                     \
        for (uint k = 0; k < UNDER_WAY; k++) {                                                                         \
            if ((int)lane < (int)here - (int)((some + k) * GROUP_SIZE))                                                \
                to[first[DIGIT(words[some + k])] + (some + k) * GROUP_SIZE + lane] = values[k];                        \
        }                                                                                                              \
    }
#endif

KERNEL void sort_scatter(uint n, uint shift, uint bits, uint payload, __global const uint *restrict starts,
                         __global const KEY *restrict keys_from, __global KEY *restrict keys_to,
                         __global const uint *restrict payload_from, __global uint *restrict payload_to)
{
#if SHAPE_CPU
    uint next[DIGITS];
    for (uint d = 0; d < 1u << bits; d++)
        next[d] = starts[d * get_num_groups(0) + get_group_id(0)];
    for (uint i = share_begin(n, get_group_id(0)), end = share_begin(n, get_group_id(0) + 1); i < end; i++) {
        const KEY key = keys_from[i];
        const uint to = next[digit_of(key, shift, bits)]++;
        keys_to[to] = key;
        if (payload != PAYLOAD_NONE)
            payload_to[to] = payload == PAYLOAD_GIVEN ? payload_from[i] : i;
    }
#else
    /* next: where the next key of each digit goes; first: where it would go if it were the tile's first, modulo 2^32 */
    __local uint pool[POOL], scratch[2 * GROUP_SIZE], next[DIGITS], first[DIGITS];
    const uint lane = get_local_id(0);
    /* elements lane, lane + GROUP_SIZE, ... of the pool, and those behind them */
    __local const uint *own = pool + PADDED(lane), *behind = pool + PADDED(lane + 1);
    for (uint d = lane; d < 1u << bits; d += GROUP_SIZE)
        next[d] = starts[d * get_num_groups(0) + get_group_id(0)];
    EACH_TILE (n, at, here) {
        uint words[ITEMS];
        sort_tile(here, keys_from + at, shift, bits, pool, scratch);
        UNROLL_ALL
        for (uint k = 0; k < ITEMS; k++) {
            words[k] = own[k * POOL_ROW];
            if (k == 0 && lane == 0)
                first[DIGIT(words[k])] = next[DIGIT(words[k])];
            if ((k + 1 < ITEMS || lane + 1 < GROUP_SIZE) && DIGIT(behind[k * POOL_ROW]) != DIGIT(words[k]))
                first[DIGIT(behind[k * POOL_ROW])] = next[DIGIT(behind[k * POOL_ROW])] - k * GROUP_SIZE - (lane + 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_ALL
        for (uint k = 0; k < ITEMS; k++) {
            const int left = (int)here - (int)(k * GROUP_SIZE + 1);
            if (left == (int)lane || left > (int)lane && DIGIT(behind[k * POOL_ROW]) != DIGIT(words[k]))
                next[DIGIT(words[k])] = first[DIGIT(words[k])] + k * GROUP_SIZE + (lane + 1);
        }
        MOVE_TILE(KEY, keys_from[at + PLACE_IN_TILE(word)], keys_to)
        if (payload == PAYLOAD_GIVEN) {
            MOVE_TILE(uint, payload_from[at + PLACE_IN_TILE(word)], payload_to)
        } else if (payload == PAYLOAD_INDICES) {
            MOVE_TILE(uint, at + PLACE_IN_TILE(word), payload_to)
        }
    }
#endif
}
