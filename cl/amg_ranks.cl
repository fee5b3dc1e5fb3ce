/* Levels whose rows are cut between ranks (src/precond/amg/on_device/ranks.rs): what others are told, and columns by their numbers among all
 * ranks, which become those of this rank: first its own, then those of others in their order. */

/* to[k] = from[list[k]]. */
KERNEL void numbers_at(uint n, __global const uint *restrict list, __global const uint *restrict from,
                       __global uint *restrict to)
{
    EACH_ROW(k, n)
        to[k] = from[list[k]];
}

KERNEL void elements_at(uint n, __global const uint *restrict list, __global const real *restrict from,
                        __global real *restrict to)
{
    EACH_ROW(k, n)
        to[k] = from[list[k]];
}

/* Aggregates by their numbers among all ranks, where this rank's begin with `first`. */
KERNEL void aggregates_among_all(uint n, uint first, __global const uint *restrict own, __global uint *restrict all)
{
    EACH_ROW(i, n)
        all[i] = own[i] < FREE ? own[i] + first : own[i];
}

/* How many entries the rows of a list have, and these rows one behind the other, from to_starts on. */
KERNEL void listed_lengths(uint n, __global const uint *restrict list, __global const uint *restrict starts,
                           __global uint *restrict lengths)
{
    EACH_ROW(k, n)
        lengths[k] = starts[list[k] + 1] - starts[list[k]];
}

KERNEL void listed_rows(uint n, __global const uint *restrict list, __global const uint *restrict starts,
                        __global const uint *restrict columns, __global const real *restrict values,
                        __global const uint *restrict to_starts, __global uint *restrict to_columns,
                        __global real *restrict to_values)
{
    EACH_ROW(k, n) {
        uint at = to_starts[k];
        EACH_ENTRY(e, starts, list[k]) {
            to_columns[at] = columns[e];
            to_values[at++] = values[e];
        }
    }
}

/* Of n entries, columns from `first` on, `owned` of them, as this rank numbers them; `owned` for those of others. */
KERNEL void owned_columns(uint n, uint first, uint owned, __global const uint *restrict columns,
                          __global uint *restrict to)
{
    EACH_ROW(e, n)
        to[e] = min(columns[e] - first, owned);
}

/* Marks the columns of n entries that are others', of which several entries may have the same. */
KERNEL void others_mark(uint n, uint first, uint owned, __global const uint *restrict columns,
                        __global uint *restrict marks)
{
    EACH_ROW(e, n) {
        if (columns[e] - first >= owned)
            atomic_or(&marks[columns[e]], 1u);
    }
}

/* Those that are marked, of n columns, in their order. */
KERNEL void others_list(uint n, __global const uint *restrict marks, __global const uint *restrict places,
                        __global uint *restrict list)
{
    EACH_ROW(j, n) {
        if (marks[j])
            list[places[j]] = j;
    }
}

/* Columns of n entries as this rank numbers them. */
KERNEL void columns_of_rank(uint n, uint first, uint owned, __global const uint *restrict places,
                            __global uint *restrict columns)
{
    EACH_ROW(e, n) {
        const uint own = columns[e] - first;
        columns[e] = own < owned ? own : owned + places[columns[e]];
    }
}

/* And back. */
KERNEL void columns_among_all(uint n, uint first, uint owned, __global const uint *restrict others,
                              __global uint *restrict columns)
{
    EACH_ROW(e, n)
        columns[e] = columns[e] < owned ? columns[e] + first : others[columns[e] - owned];
}
