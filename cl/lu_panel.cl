/* P A = L U of a tall block of columns with partial pivoting, in one launch. Compiled behind persistent.cl, whose barrier over groups each
 * column needs once.
 *
 * Defined by the host (src/kernels/lu_panel.rs), beside what prelude.cl asks for:
 *   ITEM_ROWS    rows of a work-item
 *   NARROW       columns that it has in registers at a time
 *   MOST_WIDE    columns of the widest block
 *
 * Rows stay where they are in A while they change places. A work-item has the same places of P A throughout; `origin` tells which row of A is
 * there now. NARROW columns are factorised at a time:
 *   - for each column every group offers its row with the largest element; all groups then find the best of these, and the work-items of
 *     the two places exchange registers. The column goes from the first register to the last, and the others move up.
 *   - The rows of NARROW pivots make up U of the other columns, in each group for itself, and all rows below are updated by it.
 * In the end each row goes to its place. Each element is changed by one fused multiply-add after the other, in the order of the pivots, so the
 * bits do not depend on groups or NARROW.
 */

#if GROUP_SIZE < NARROW
#error "a group has a work-item for each column in registers"
#endif

#define NONE 0xffffffffu
/* Elements of a row that are read before any is stored. */
#define AT_ONCE 8

/* What groups offer: entry g is of group g, a row, its place and its origin; entry `groups` is the row that stands where the pivot goes.
 * Two columns use two halves in turn. */
#define OFFERED(groups) ((groups) + 1)

/* Work-items that find the largest size in a part of the group's; all then look at what these have found. */
#define FINDERS (GROUP_SIZE < 16 ? GROUP_SIZE : 16)
#define OF_A_FINDER (GROUP_SIZE / FINDERS)

/* The largest of `count` sizes, a power of two, and the first place that has it, in pairs: a chain of comparisons would take longer. */
#define LARGEST_OF(count, s, p)                                                                                        \
    UNROLL_BY(5)                                                                                                       \
    for (uint apart = (count) / 2; apart > 0; apart /= 2) {                                                            \
        UNROLL_BY(16)                                                                                                  \
        for (uint l = 0; l < apart; l++) {                                                                             \
            const bool is_other = s[l + apart] > s[l] || (s[l + apart] == s[l] && p[l + apart] < p[l]);                \
            s[l] = is_other ? s[l + apart] : s[l];                                                                     \
            p[l] = is_other ? p[l + apart] : p[l];                                                                     \
        }                                                                                                              \
    }

/* The largest size of a group, and the first place that has it. */
ALWAYS_INLINE void find_largest(real *size, uint *place, __local real *sizes, __local uint *places)
{
    const uint lane = get_local_id(0);
    sizes[lane] = *size;
    places[lane] = *place;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < FINDERS) {
        real s[OF_A_FINDER];
        uint p[OF_A_FINDER];
        UNROLL_BY(OF_A_FINDER)
        for (uint l = 0; l < OF_A_FINDER; l++) {
            s[l] = sizes[lane + l * FINDERS];
            p[l] = places[lane + l * FINDERS];
        }
        LARGEST_OF(OF_A_FINDER, s, p)
        sizes[lane] = s[0];
        places[lane] = p[0];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    real s[FINDERS];
    uint p[FINDERS];
    UNROLL_BY(FINDERS)
    for (uint l = 0; l < FINDERS; l++) {
        s[l] = sizes[l];
        p[l] = places[l];
    }
    LARGEST_OF(FINDERS, s, p)
    *size = s[0];
    *place = p[0];
}

/* A has m rows and w <= m columns, element (i, j) at a_at + i + j * lda, and is destroyed. out[0] becomes 1 if not all groups were on the
 * device at once, and nothing else happens; else 0. out[1] is the number of the column, counted from 1, that has no pivot, or 0; out[2 + k] the
 * row that changed places with row k. L U goes to panel_at, by columns of m rows, and its first w rows to block_at. */
KERNEL void lu_panel(uint m, uint w, __global real *a, ulong a_at, uint lda, __global real *out, ulong block_at,
                     ulong panel_at, __global real *offers, __global uint *offered_places, __global volatile uint *words,
                     uint turn)
{
    __local real sizes[GROUP_SIZE], pivot_row[NARROW], top_row[NARROW];
    __local uint places[GROUP_SIZE];
    __local real lower[NARROW * NARROW], upper[NARROW * MOST_WIDE];
    __local uint pivots[NARROW];
    __local uint said;
    if (!all_are_there(words, turn, out, 1, &said))
        return;

    const uint lane = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    const uint first = group * (GROUP_SIZE * ITEM_ROWS) + lane;
    a += a_at;
    uint origin[ITEM_ROWS];
    UNROLL_BY(ITEM_ROWS)
    for (uint r = 0; r < ITEM_ROWS; r++)
        origin[r] = first + r * GROUP_SIZE;

    uint passed = 0, failed = 0;
    for (uint from = 0; from < w; from += NARROW) {
        const uint wide = min((uint)NARROW, w - from), next = from + wide;
        real row[ITEM_ROWS][NARROW];
        UNROLL_BY(ITEM_ROWS)
        for (uint r = 0; r < ITEM_ROWS; r++) {
            const uint place = first + r * GROUP_SIZE;
            UNROLL_BY(NARROW)
            for (uint c = 0; c < NARROW; c++)
                row[r][c] = place < m && c < wide ? a[origin[r] + (ulong)(from + c) * lda] : (real)0;
        }

        for (uint k = 0; k < wide; k++) {
            const uint column = from + k;
            real size = -1;
            uint chosen = NONE;
            UNROLL_BY(ITEM_ROWS)
            for (uint r = 0; r < ITEM_ROWS; r++) {
                const uint place = first + r * GROUP_SIZE;
                if (place >= column && place < m && fabs(row[r][0]) > size) {
                    size = fabs(row[r][0]);
                    chosen = place;
                }
            }
            find_largest(&size, &chosen, sizes, places);

            const uint at = passed % 2 * OFFERED(groups);
            UNROLL_BY(ITEM_ROWS)
            for (uint r = 0; r < ITEM_ROWS; r++) {
                const uint place = first + r * GROUP_SIZE;
                if (place == chosen) {
                    UNROLL_BY(NARROW)
                    for (uint c = 0; c < NARROW; c++)
                        offers[(at + group) * NARROW + c] = row[r][c];
                    offered_places[2 * (at + group) + 1] = origin[r];
                }
                if (place == column) {
                    UNROLL_BY(NARROW)
                    for (uint c = 0; c < NARROW; c++)
                        offers[(at + groups) * NARROW + c] = row[r][c];
                    offered_places[2 * (at + groups) + 1] = origin[r];
                }
            }
            if (lane == 0)
                offered_places[2 * (at + group)] = chosen;
            all_groups(words, ++passed);

            const uint top = at + groups;
            size = -1;
            chosen = NONE;
            for (uint other = lane; other < groups; other += GROUP_SIZE) {
                const uint place = offered_places[2 * (at + other)];
                const real its = fabs(offers[(at + other) * NARROW]);
                if (place != NONE && (its > size || (its == size && place < chosen))) {
                    size = its;
                    chosen = place;
                }
            }
            find_largest(&size, &chosen, sizes, places);
            // from here on numbers may be infinite or none; the rows are still some rows
            if (failed == 0 && !(size > 0 && size < INFINITY))
                failed = column + 1;
            const uint best = chosen == NONE ? top : at + chosen / (GROUP_SIZE * ITEM_ROWS);
            const uint pivot = offered_places[2 * best + 1], replaced = offered_places[2 * top + 1];
            if (lane < NARROW) {
                const real of_pivot = offers[best * NARROW + lane];
                pivot_row[lane] = of_pivot;
                top_row[lane] = offers[top * NARROW + lane];
                // the last elements of the row are those of L
                if (lane >= NARROW - k)
                    lower[(lane - (NARROW - k)) * NARROW + k] = of_pivot;
            }
            if (lane == 0)
                pivots[k] = pivot;
            if (group == 0 && lane == 0)
                out[2 + column] = chosen;
            barrier(CLK_LOCAL_MEM_FENCE);
            const real inverse = 1 / pivot_row[0];
            UNROLL_BY(ITEM_ROWS)
            for (uint r = 0; r < ITEM_ROWS; r++) {
                const uint place = first + r * GROUP_SIZE;
                if (place == column || place == chosen) {
                    const int is_pivot = place == column;
                    UNROLL_BY(NARROW)
                    for (uint c = 0; c < NARROW; c++)
                        row[r][c] = is_pivot ? pivot_row[c] : top_row[c];
                    origin[r] = is_pivot ? pivot : replaced;
                }
                const int is_below = place > column;
                const real l = is_below ? row[r][0] * inverse : (real)0, kept = is_below ? l : row[r][0];
                UNROLL_BY(NARROW)
                for (uint c = 1; c < NARROW; c++)
                    row[r][c - 1] = is_below && c < NARROW - k ? fma(-l, pivot_row[c], row[r][c]) : row[r][c];
                row[r][NARROW - 1] = kept;
            }
        }
        // columns that the block has not move up, too
        for (uint k = wide; k < NARROW; k++) {
            UNROLL_BY(ITEM_ROWS)
            for (uint r = 0; r < ITEM_ROWS; r++) {
                const real kept = row[r][0];
                UNROLL_BY(NARROW)
                for (uint c = 1; c < NARROW; c++)
                    row[r][c - 1] = row[r][c];
                row[r][NARROW - 1] = kept;
            }
        }

        UNROLL_BY(ITEM_ROWS)
        for (uint r = 0; r < ITEM_ROWS; r++) {
            if (first + r * GROUP_SIZE < m) {
                UNROLL_BY(NARROW)
                for (uint c = 0; c < NARROW; c++)
                    if (c < wide)
                        a[origin[r] + (ulong)(from + c) * lda] = row[r][c];
            }
        }

        // U of the columns behind: nobody changes these rows any more
        const uint rest = w - next;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint c = lane; c < rest; c += GROUP_SIZE) {
            real u[NARROW];
            UNROLL_BY(NARROW)
            for (uint k = 0; k < NARROW; k++)
                u[k] = a[pivots[k] + (ulong)(next + c) * lda];
            for (uint k = 0; k < NARROW; k++) {
                const real solved = u[0];
                UNROLL_BY(NARROW)
                for (uint p = 1; p < NARROW; p++)
                    u[p - 1] = k + p < NARROW ? fma(-lower[k * NARROW + k + p], solved, u[p]) : (real)0;
                upper[c * NARROW + k] = solved;
                if (group == 0) {
                    out[panel_at + from + k + (ulong)(next + c) * m] = solved;
                    out[block_at + from + k + (ulong)(next + c) * w] = solved;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL_BY(ITEM_ROWS)
        for (uint r = 0; r < ITEM_ROWS; r++) {
            const uint place = first + r * GROUP_SIZE, below = place >= next && place < m ? rest : 0;
            for (uint c = 0; c < below; c += AT_ONCE) {
                __global real *at = a + origin[r] + (ulong)(next + c) * lda;
                real old[AT_ONCE];
                UNROLL_BY(AT_ONCE)
                for (uint l = 0; l < AT_ONCE; l++)
                    old[l] = c + l < below ? at[(ulong)l * lda] : (real)0;
                UNROLL_BY(AT_ONCE)
                for (uint l = 0; l < AT_ONCE; l++) {
                    const uint of_column = min(c + l, below - 1);
                    UNROLL_BY(NARROW)
                    for (uint k = 0; k < NARROW; k++)
                        old[l] = fma(-row[r][k], upper[of_column * NARROW + k], old[l]);
                }
                UNROLL_BY(AT_ONCE)
                for (uint l = 0; l < AT_ONCE; l++)
                    if (c + l < below)
                        at[(ulong)l * lda] = old[l];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (group == 0 && lane == 0) {
        out[0] = 0;
        out[1] = failed;
    }
    UNROLL_BY(ITEM_ROWS)
    for (uint r = 0; r < ITEM_ROWS; r++) {
        const uint place = first + r * GROUP_SIZE;
        // the rest of the pivots' rows is there
        const uint end = place >= m ? 0 : min(w, place / NARROW * NARROW + NARROW);
        for (uint c = 0; c < end; c += AT_ONCE) {
            real old[AT_ONCE];
            UNROLL_BY(AT_ONCE)
            for (uint l = 0; l < AT_ONCE; l++)
                old[l] = c + l < end ? a[origin[r] + (ulong)(c + l) * lda] : (real)0;
            UNROLL_BY(AT_ONCE)
            for (uint l = 0; l < AT_ONCE; l++)
                if (c + l < end) {
                    out[panel_at + place + (ulong)(c + l) * m] = old[l];
                    if (place < w)
                        out[block_at + place + (ulong)(c + l) * w] = old[l];
                }
        }
    }
}
