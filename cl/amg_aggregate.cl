/* Aggregates (src/precond/amg/independent.rs, aggregate.rs): roots are rows no two of which are within two steps in the graph of strong
 * couplings. Only integers are compared, and what others may change meanwhile is not looked at: the same result whatever runs when. */

/* Of a row in no aggregate, and of one that has none yet. */
#define NONE 0xFFFFFFFFu
#define FREE 0xFFFFFFFEu

/* States: of a root, and of what can't be one. */
#define IN 0u
#define OUT 0xFFFFFFFFu
/* Of a row that takes no part, in place of the least state around it: that is never 0. */
#define ASIDE 0u

/* The fewest rows of an aggregate of what the first roots have left, and the most aggregates that a row chooses from. */
#define FEWEST 5
#define MOST_CHOICES 64

#define GRAPH_ARGS uint n, __global const uint *restrict graph, __global const uint *restrict neighbours

/* A number for a row in a round, which no other has then, and which is no state. */
static inline uint priority(uint row, uint round)
{
    uint x = row + 1 + round * 0x9e3779b9u;
    do {
        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
        x ^= x >> 16;
    } while (x == IN || x == OUT);
    return x;
}

/* Rows without neighbours are in no aggregate, unless other ranks have such. */
KERNEL void roots_begin(ROWS_ARGS, __global const real *restrict largest, __global const uint *restrict graph,
                        __global uint *restrict roots)
{
    EACH_ROW(i, n) {
        int has = graph[i] < graph[i + 1];
        for (uint e = starts[i], end = starts[i + 1]; e < end && !has; e++)
            has = is_strong(i, columns[e], values[e], largest);
        roots[i] = has ? FREE : NONE;
    }
}

/* Rows that are free take part. */
KERNEL void independent_begin(uint n, __global const uint *restrict roots, __global uint *restrict states,
                              __global uint *restrict least)
{
    EACH_ROW(i, n) {
        const int takes_part = roots[i] == FREE;
        states[i] = takes_part ? priority(i, 0) : OUT;
        least[i] = takes_part ? OUT - 1 : ASIDE;
    }
}

/* least[i] = the least state of a row and its neighbours; OUT if that is IN, and then for ever. undecided[round] is 0 if nothing is left. */
KERNEL void independent_least(GRAPH_ARGS, uint round, __global const uint *restrict undecided,
                              __global const uint *restrict states, __global uint *restrict least)
{
    if (!undecided[round])
        return;
    EACH_ROW(i, n) {
        if (least[i] != ASIDE && least[i] != OUT) {
            uint seen = states[i];
            EACH_ENTRY(e, graph, i)
                seen = min(seen, states[neighbours[e]]);
            least[i] = seen == IN ? OUT : seen;
        }
    }
}

/* What has the least state within two steps is in; what has one that is in there is out; others draw again. */
KERNEL void independent_decide(GRAPH_ARGS, uint round, __global uint *restrict undecided,
                               __global const uint *restrict least, __global uint *restrict states)
{
    if (!undecided[round])
        return;
    uint left = 0;
    EACH_ROW(i, n) {
        const uint own = states[i];
        if (own != IN && own != OUT) {
            int is_least = least[i] == own, is_out = least[i] == OUT;
            for (uint e = graph[i], end = graph[i + 1]; e < end && !is_out; e++) {
                const uint seen = least[neighbours[e]];
                is_out = seen == OUT;
                is_least &= seen == own || seen == ASIDE;
            }
            states[i] = is_out ? OUT : is_least ? IN : priority(i, round + 1);
            left |= !is_out && !is_least;
        }
    }
    if (left)
        atomic_or(&undecided[round + 1], 1u);
}

/* Roots with few free neighbours are none. */
KERNEL void roots_of_many(GRAPH_ARGS, __global const uint *restrict roots, __global uint *restrict states)
{
    EACH_ROW(i, n) {
        if (states[i] == IN) {
            uint size = 1;
            EACH_ENTRY(e, graph, i)
                size += roots[neighbours[e]] == FREE;
            if (size < FEWEST)
                states[i] = OUT;
        }
    }
}

/* A root takes its free neighbours. */
KERNEL void roots_take(GRAPH_ARGS, __global const uint *restrict states, __global uint *restrict roots)
{
    EACH_ROW(i, n) {
        if (roots[i] == FREE) {
            uint root = states[i] == IN ? i : FREE;
            for (uint e = graph[i], end = graph[i + 1]; e < end && root == FREE; e++)
                root = states[neighbours[e]] == IN ? neighbours[e] : FREE;
            roots[i] = root;
        }
    }
}

/* sizes[r] counts the rows whose root is r. */
KERNEL void root_sizes(uint n, __global const uint *restrict roots, __global uint *restrict sizes)
{
    EACH_ROW(i, n)
        if (roots[i] < FREE)
            atomic_inc(&sizes[roots[i]]);
}

/* The root that a row is coupled to most strongly, of equals that of fewer rows, or the first; the row itself if there is none. */
static inline uint strongest(uint i, uint n, __global const uint *starts, __global const uint *columns,
                             __global const real *values, __global const real *largest, __global const uint *roots,
                             __global const uint *sizes)
{
    uint found[MOST_CHOICES], count = 0;
    real sums[MOST_CHOICES];
    EACH_ENTRY(e, starts, i) {
        const uint j = columns[e], root = j < n ? roots[j] : NONE;
        if (root < FREE && is_strong(i, j, values[e], largest)) {
            uint k = 0;
            while (k < count && found[k] != root)
                k++;
            if (k < count) {
                sums[k] += fabs(values[e]);
            } else if (count < MOST_CHOICES) {
                found[k] = root;
                sums[k] = fabs(values[e]);
                count++;
            }
        }
    }
    uint best = 0;
    for (uint k = 1; k < count; k++) {
        const uint size = sizes[found[k]], of_best = sizes[found[best]];
        const int is_better = size < of_best || size == of_best && found[k] < found[best];
        if (sums[k] > sums[best] || sums[k] == sums[best] && is_better)
            best = k;
    }
    return count ? found[best] : i;
}

/* Rows that are still free join others. is_root tells which rows are roots then. */
KERNEL void roots_join(ROWS_ARGS, __global const real *restrict largest, __global const uint *restrict roots,
                       __global const uint *restrict sizes, __global uint *restrict joined,
                       __global uint *restrict is_root)
{
    EACH_ROW(i, n) {
        const uint own = roots[i];
        const uint root = own == FREE ? strongest(i, n, starts, columns, values, largest, roots, sizes) : own;
        joined[i] = root;
        is_root[i] = root == i;
    }
}

/* Aggregates in the order of their roots. */
KERNEL void aggregates_number(uint n, __global const uint *restrict joined, __global const uint *restrict numbers,
                              __global uint *restrict aggregates)
{
    EACH_ROW(i, n)
        aggregates[i] = joined[i] == NONE ? NONE : numbers[joined[i]];
}
