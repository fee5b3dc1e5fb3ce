/* Iterations that stay on several devices: what persistent.cl does on one, with sums over all ranks and halos exchanged meanwhile,
 * through live memory (words.cl). Compiled behind persistent.cl; src/backend/source/persistent.rs writes the kernel.
 *
 * *Sums.* The last group to come where sums are awaited adds the partial sums of its rank, puts them into live memory, takes the
 * totals, and tells the other groups. *Halos.* All groups put what other ranks need of a product into live memory, once all
 * have come; each work-item takes elements of the halo before it does with them what passes do with owned elements. Words
 * of halos have two slots, in turns: between two exchanges there is a sum (src/comm/live/halos.rs).
 *
 * *Waits are bounded.* A rank that waits in vain says so in `lost`, and takes NaN for what has not come, which ends the run as any
 * number does that is not finite. A launch begins with a check that all groups of all ranks are there; if not, all leave and
 * nothing has changed.
 */

/* Numbers that all groups share, behind those of persistent.cl: what ranks have said, and the last barrier to whose sum the totals are
 * there. */
#define RANKS_SAID 3
#define TOLD 4

typedef struct {
    __global volatile uint *words;
    __global volatile ulong *memory;
    /* Totals of the last sum. */
    __global acc *totals;
    /* Numbers behind the log: what was refused, and whether a rank was lost. */
    __global acc *refused;
    __global const uint *send;
    /* Barriers passed, the numbers of the next sum and of the last exchange. */
    uint passed, sum, exchange;
    uint ranks, most_looks;
    /* Elements that are sent, and those of the halo. */
    uint sent, halo;
} together;

/* Words of a line, each a work-item's: that of the number of values, then the values. */
static inline void put_values(together *t, uint count, acc own)
{
    const uint k = get_local_id(0);
    if (k <= count)
        put_word(word_of(t->memory, 0, t->sum, (int)k - 1), k == 0 ? count : as_ulong((double)own), t->sum);
}

/* The total of value k, or NaN if it does not come. */
static inline acc take_total(together *t, uint k)
{
    __global volatile ulong *word = word_of(t->memory, 1, t->sum, k);
    ulong2 seen = load_word(word);
    for (uint looks = 1; !has_come(seen, t->sum) && looks < t->most_looks; looks++)
        seen = load_word(word);
    if (has_come(seen, t->sum))
        return (acc)as_double(bits_of(seen));
    t->refused[1] = 1;
    return (acc)NAN;
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
            atomic_xchg(t->words + TOLD, 0u);
            device_fence();
            heard = atomic_cmpxchg(t->words + SAID, former, turn);
            if (heard == former) {
                heard = turn;
                if (is_on) {
                    put_word(word_of(t->memory, 0, t->sum, -1), 1, t->sum);
                    put_word(word_of(t->memory, 0, t->sum, 0), as_ulong(1.0), t->sum);
                    __global volatile ulong *word = word_of(t->memory, 1, t->sum, 0);
                    ulong2 seen = load_word(word);
                    for (uint looks = 1; !has_come(seen, t->sum) && looks < t->most_looks; looks++)
                        seen = load_word(word);
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
                        put_word(word_of(t->memory, 0, t->sum, -1), 1, t->sum);
                        put_word(word_of(t->memory, 0, t->sum, 0), as_ulong(0.0), t->sum);
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

/* Comes to a barrier; says whether this is the last group, so that all that others have left before is there. (In local memory: PoCL 3.1
 * loses what is read before a barrier and used behind it.) */
static inline void come(together *t, __local uint *said)
{
    t->passed++;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        *said = come_to(t->words + WAITING) + 1 == t->passed * get_num_groups(0);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

/* Waits until all groups have come. */
static inline void all_have_come(together *t)
{
    if (get_local_id(0) == 0) {
        while (look_at(t->words + WAITING) < t->passed * get_num_groups(0))
            ;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

/* Waits for the totals, which the last group takes. If all groups looked for themselves, the bus would have no time for anything else. */
static inline void take_totals(together *t, int is_on, __local const uint *is_last, uint count)
{
    const uint k = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE); /* all have put theirs before one waits: work-items may run one after the other */
    if (is_on && *is_last && k < count)
        t->totals[k] = take_total(t, k);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (k == 0) {
        if (*is_last)
            show(t->words + TOLD, t->passed);
        while (look_at(t->words + TOLD) < t->passed)
            ;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    t->sum++;
}

/* Bits of an element in a halo's words: one word of 64 bits in single precision, two in double. */
#define IS_DOUBLE (sizeof(real) == 8)
#define HALO_WORD (IS_DOUBLE ? WORD : 1)

/* Where a slot of what is sent begins, and one of the halo. */
#define SENT_AT(t, number) ((t)->memory + 4 * LINE + ((number) % 2) * (t)->sent * HALO_WORD)
#define HALO_AT(t, number) ((t)->memory + 4 * LINE + 2 * (t)->sent * HALO_WORD + ((number) % 2) * (t)->halo * HALO_WORD)

/* Puts what other ranks need of v. */
static inline void send_halo(together *t, int is_on, __global real *v)
{
    t->exchange++;
    __global volatile ulong *to = SENT_AT(t, t->exchange);
    for (uint k = get_global_id(0), end = is_on ? t->sent : 0; k < end; k += get_global_size(0)) {
        const real value = v[t->send[k]];
        put_element(to + k * HALO_WORD, value, t->exchange);
    }
}

/* Takes this work-item's elements of the halo of v. */
static inline void take_halo(together *t, int is_on, __global real *v, uint n)
{
    __global volatile ulong *from = HALO_AT(t, t->exchange);
    for (uint k = get_global_id(0), end = is_on ? t->halo : 0; k < end; k += get_global_size(0)) {
        real value;
        uint looks = 0;
        while (!take_element(from + k * HALO_WORD, &value, t->exchange) && ++looks < t->most_looks)
            ;
        if (looks == t->most_looks)
            t->refused[1] = 1;
        v[n + k] = looks == t->most_looks ? (real)NAN : value;
    }
}
