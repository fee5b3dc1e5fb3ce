/* Iterations of several ranks without the host: sums over all ranks and halos are exchanged through live memory (words.cl), in launches of
 * several iterations, which are what persistent.cl does on one device, or where a pass of its own launch begins. Compiled behind
 * persistent.cl; src/backend/source writes the kernels.
 *
 * *Sums.* The last group to come where sums are awaited adds the partial sums of its rank, puts them into live memory, takes the
 * totals, and tells the other groups; in a launch of one pass the first group does. *Halos.* Products put what other ranks need of them
 * into live memory, row by row (prelude.cl). Once all of a product is there a flag says so. Groups take pieces of the halo before they
 * do with them what passes do with owned elements; in a launch of one pass there are groups in front that do nothing else. Between two
 * exchanges there is a sum (src/comm/live/halos.rs).
 *
 * *Waits are bounded.* A rank that waits in vain says so behind the log, and takes NaN for what has not come, which ends the run as any
 * number does that is not finite. A launch begins with a check that all groups of all ranks are there; if not, all leave and
 * nothing has changed.
 */

/* A number that all groups share, behind those of persistent.cl: what ranks have said. */
#define RANKS_SAID 3

/* Numbers behind the log, before totals. */
#define BEHIND 2

typedef struct {
    __global volatile uint *words;
    __global volatile ulong *memory;
    /* Numbers behind the log: what was refused, and whether a rank was lost. Behind them words: the totals of the last sum. */
    __global acc *refused;
    /* The first elements of the pieces of the halo, and its end. */
    __global const uint *firsts;
    /* Elements that are sent, those of the halo, and pieces of it. */
    uint sent, halo, pieces;
    /* Barriers passed, and the numbers of the next sum and of the exchange. */
    uint passed, sum, exchange;
    uint ranks, most_looks;
} together;

/* Words of a line, each a work-item's: that of the number of values, then the values. */
static inline void put_values(together *t, uint count, acc own)
{
    const uint k = get_local_id(0);
    if (k <= count)
        put_word(word_of(t->memory, 0, t->sum, (int)k - 1), k == 0 ? count : as_ulong((double)own), t->sum);
}

/* A word, once that of this number has come, or what is there after so many looks. */
static inline ulong2 await_word(__global volatile ulong *word, uint number, uint most_looks)
{
    ulong2 seen = load_word(word);
    for (uint looks = 1; !has_come(seen, number) && looks < most_looks; looks++)
        seen = load_word(word);
    return seen;
}

/* The bits in the word of this number, once it is there; `otherwise` if it does not come within so many looks. */
static inline ulong take_word(together *t, __global volatile ulong *word, uint number, uint most_looks, ulong otherwise)
{
    const ulong2 seen = await_word(word, number, most_looks);
    if (has_come(seen, number))
        return bits_of(seen);
    t->refused[1] = 1;
    return otherwise; /* so that the run ends */
}

/* One value of a sum, by one work-item. */
static inline void put_answer(together *t, double value)
{
    put_word(word_of(t->memory, 0, t->sum, -1), 1, t->sum);
    put_word(word_of(t->memory, 0, t->sum, 0), as_ulong(value), t->sum);
}

/* Whether all groups of all ranks are there; the same in all of them. A launch after the end of the run asks no other rank. */
static inline int all_ranks_are_there(together *t, int is_on, uint turn, uint slot, __local uint *said)
{
    if (get_local_id(0) == 0) {
        const uint former = 3 - turn;
        uint heard = former;
        if (atomic_inc(t->words + ARRIVED) == get_num_groups(0) - 1) {
            atomic_xchg(t->words + ARRIVED, 0u);
            atomic_xchg(t->words + WAITING, 0u);
            device_fence();
            heard = atomic_cmpxchg(t->words + SAID, former, turn);
            if (heard == former) {
                heard = turn;
                if (is_on) {
                    put_answer(t, 1);
                    const ulong2 seen = await_word(word_of(t->memory, 1, t->sum, 0), t->sum, t->most_looks);
                    if (!has_come(seen, t->sum) || as_double(bits_of(seen)) != t->ranks) {
                        heard = REFUSED;
                        *t->refused = slot;
                        atomic_xchg(t->words + SAID, REFUSED);
                    }
                }
                device_fence();
                atomic_xchg(t->words + RANKS_SAID, heard);
            }
        } else {
            for (uint looks = 0; heard == former && looks < MOST_LOOKS; looks++)
                heard = atomic_or(t->words + SAID, 0u);
            if (heard == former) {
                heard = atomic_cmpxchg(t->words + SAID, former, REFUSED);
                if (heard == former) {
                    heard = REFUSED;
                    *t->refused = slot;
                    if (is_on) {
                        put_answer(t, 0);
                    }
                }
            }
            if (heard == turn) {
                heard = former;
                while (heard == former)
                    heard = atomic_or(t->words + RANKS_SAID, 0u);
            }
        }
        device_fence();
        *said = heard;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    t->sum++;
    return *said == turn;
}

/* Comes to a barrier; says in `is_last` whether this is the last group, so that all that others have left before is there. (In local
 * memory: PoCL 3.1 loses what is read before a barrier and used behind it.) */
static inline void come(together *t, __local uint *is_last)
{
    t->passed++;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        *is_last = come_to(t->words + WAITING) + 1 == t->passed * get_num_groups(0);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

/* The word in which the device's groups find total k of the last sum. */
static inline __global volatile ulong *told(together *t, uint k) { return (__global volatile ulong *)t->refused + BEHIND + k * WORD; }

/* What a sum that does not come is: so that the run ends. */
#define NO_TOTAL as_ulong((double)NAN)

/* Looks after which who hears gives up: long after who tells, though a look at the device's own memory takes less time. If some gave up and
 * others heard the totals a moment later, these would wait at a barrier that nobody else comes to. */
static inline uint looks_of_hearers(const together *t)
{
    return t->most_looks < UINT_MAX / 64 ? 64 * t->most_looks : UINT_MAX;
}

/* One group takes the totals and tells the others. If all looked for themselves, the bus would have no time for anything else. */
static inline void tell_totals(together *t, uint count)
{
    const uint k = get_local_id(0);
    if (k < count) {
        if (t->words)
            device_fence(); /* for all that groups have left before they came */
        put_word(told(t, k), take_word(t, word_of(t->memory, 1, t->sum, k), t->sum, t->most_looks, NO_TOTAL), t->sum);
    }
}

/* All have the totals then. */
static inline void hear_totals(together *t, int is_on, uint count, __local acc *totals)
{
    const uint k = get_local_id(0);
    if (is_on && k < count) {
        totals[k] = (acc)as_double(take_word(t, told(t, k), t->sum, looks_of_hearers(t), NO_TOTAL));
        if (t->words)
            device_fence();
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    t->sum++;
}

/* Numbers of 64 bits from one flag to the next; so few elements of a halo arrive as words, as values of sums do:
 * src/comm/live/halos.rs. */
#define FLAG 8
#define FEW 8192

/* Flags of a halo that arrives in so many pieces, and numbers of 64 bits of a slot. */
static inline uint flags_of(uint elements, uint pieces) { return elements <= FEW ? 0 : pieces; }
static inline uint slot_of(uint elements, uint flags)
{
    return flags == 0 ? elements * WORD : flags * FLAG + (elements + FLAG - 1) / FLAG * FLAG;
}

/* The flag of what is sent in this exchange; the elements are behind it. */
static inline __global volatile ulong *sent_slot(together *t)
{
    return t->memory + 4 * LINE + t->exchange % 2 * slot_of(t->sent, 1);
}

/* Says that all of the product is there, of which products have put what is sent: a work-item does, within a launch once all groups have
 * come. */
static inline void raise_sent(together *t)
{
    while (t->words && look_at(t->words + WAITING) < t->passed * get_num_groups(0))
        ;
    raise(sent_slot(t), t->exchange);
}

/* Takes pieces of the halo of v, every `groups`th from `group` on, once they are there. If they have flags, one work-item waits for each. */
static inline void take_halo(together *t, int is_on, __global real *v, uint n, uint group, uint groups)
{
    const uint flags = flags_of(t->halo, t->pieces), pieces = is_on ? t->pieces : 0;
    __global volatile ulong *from =
        t->memory + 4 * LINE + 2 * slot_of(t->sent, 1) + t->exchange % 2 * slot_of(t->halo, flags);
    for (uint piece = group; piece < pieces; piece += groups) {
        if (get_local_id(0) == 0 && flags > 0) {
            for (uint looks = 1; raised(from + piece * FLAG) != t->exchange && looks < t->most_looks; looks++)
                ;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint k = t->firsts[piece] + get_local_id(0); k < t->firsts[piece + 1]; k += GROUP_SIZE) {
            const ulong otherwise = bits_of_element((real)NAN);
            v[n + k] = element_of(flags == 0 ? take_word(t, from + k * WORD, t->exchange, t->most_looks, otherwise)
                                             : ((__global const ulong *)from)[flags * FLAG + k]);
        }
        if (get_local_id(0) == 0 && flags > 0 && raised(from + piece * FLAG) != t->exchange) {
            t->refused[1] = 1;
            v[n + t->firsts[piece]] = (real)NAN; /* so that the run ends */
        }
    }
}
