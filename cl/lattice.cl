/* Multigrid levels on a lattice (src/precond/amg/lattice), in single precision: the row of a point, a few numbers in a table, follows from the classes of its
 * three coordinates.
 *
 * A work-item goes along a piece of a column of points, so that it has the entries of a row at hand for all that have this row. Columns are of the
 * last direction in the GPU shape, so that neighbouring work-items have neighbouring points, and of the first one in the CPU shape.
 *
 * side, columns    columns next to each other in the first of their two directions, and all of them
 * length, depth    points of a column, and of a piece
 * near, next, far  the distance of elements of neighbouring columns, in both their directions, and of neighbours in a column
 * classes          for each coordinate of the three directions, the one along columns last, a number: the sum for a point is where its row begins in
 *                  `table`; then, for each coordinate along a column, the first one after it of another class
 * distances        of each of `count` entries of a row: how much further the element is that it is multiplied by
 *
 * Entries of which elements lie beyond the lattice are 0: in place of these, that of the point itself is read. */
#define LATTICE                                                                                                        \
    uint side, uint columns, uint length, uint depth, uint near, uint next, uint far, __global const uint *restrict classes, \
        __global const real *restrict table
#define ROWS LATTICE, uint count, __constant int *distances

/* Each piece in turn, from the first on: its column, as `a` and `b` in the directions of these, and the coordinates m to `end` along it. */
#if SHAPE_CPU
#define EACH_PIECE for (uint t = chunk_begin(PIECES), t_end = chunk_end(PIECES); t < t_end; t++)
#define FAR 1
typedef long place; /* what can't wrap around, so that loops along columns are done by vectors */
#else
#define EACH_PIECE for (uint t = get_global_id(0); t < PIECES; t += get_global_size(0))
#define FAR far
typedef uint place;
#endif
#define PIECES (columns * ((length + depth - 1) / depth))
#define PIECE                                                                                                          \
    const uint piece = t / columns, column = t - piece * columns, b = column / side, a = column - b * side,             \
               end = min(piece * depth + depth, length);                                                               \
    __global const uint *along = classes + side + columns / side;                                                      \
    const uint of_column = classes[a] + classes[side + b];                                                             \
    uint m = piece * depth;
#define ORIGIN (a * near + b * next + m * FAR)

/* For each point of a piece, of which the element is `origin`, which is `step` further for the next one: DO, where `sum` is that of the products of `count`
 * entries with the elements of v around it. A count that the compiler knows has all entries in registers, and AHEAD points under way. */
#define EACH_POINT(COUNT, AHEAD, v, step, DO)                                                                          \
    while (m < end) {                                                                                                  \
        __global const real *row = table + of_column + along[m];                                                       \
        const uint stop = min(end, along[length + m]);                                                                 \
        real entry[COUNT];                                                                                             \
        place further[COUNT];                                                                                          \
        UNROLL_BY(COUNT)                                                                                               \
        for (uint k = 0; k < COUNT; k++) {                                                                             \
            entry[k] = row[k];                                                                                         \
            further[k] = entry[k] != 0 ? distances[k] : 0;                                                             \
        }                                                                                                              \
        UNROLL_BY(AHEAD)                                                                                               \
        for (; m < stop; m++, origin += step) {                                                                        \
            real sum = 0;                                                                                              \
            UNROLL_BY(COUNT)                                                                                           \
            for (uint k = 0; k < COUNT; k++)                                                                           \
                sum = fma(entry[k], v[origin + further[k]], sum);                                                      \
            DO;                                                                                                        \
        }                                                                                                              \
    }
/* The same for any other count. */
#define EACH_POINT_OF_ANY(v, step, DO)                                                                                 \
    for (; m < end; m++, origin += step) {                                                                             \
        __global const real *row = table + of_column + along[m];                                                       \
        real sum = 0;                                                                                                  \
        for (uint k = 0; k < count; k++)                                                                               \
            sum = fma(row[k], v[origin + (row[k] != 0 ? distances[k] : 0)], sum);                                      \
        DO;                                                                                                            \
    }
#define EACH_POINT_5(v, step, DO) EACH_POINT(5, 1, v, step, DO)
#define EACH_POINT_7(v, step, DO) EACH_POINT(7, 1, v, step, DO)
#define EACH_POINT_9(v, step, DO) EACH_POINT(9, 1, v, step, DO)
#define EACH_POINT_27(v, step, DO) EACH_POINT(27, 2, v, step, DO)
#define EACH_POINT_27_AHEAD(v, step, DO) EACH_POINT(27, 4, v, step, DO)

/* y = from + c v + d A v, where `from` is 0, or z, or y, as 0, 1 or 2 says. One kernel for each count, as each takes as many registers as it needs. */
#define PRODUCT(NAME, EACH_POINT_OF)                                                                                   \
    KERNEL void NAME(ROWS, uint from, real c, real d, __global const real *restrict v, __global const real *restrict z, \
                     __global real *restrict y)                                                                        \
    {                                                                                                                  \
        EACH_PIECE                                                                                                     \
        {                                                                                                              \
            PIECE                                                                                                      \
            place origin = ORIGIN;                                                                                     \
            EACH_POINT_OF(v, FAR, {                                                                                    \
                const real start = from == 0 ? 0 : from == 1 ? z[origin] : y[origin];                                  \
                y[origin] = fma(d, sum, fma(c, v[origin], start));                                                     \
            })                                                                                                         \
        }                                                                                                              \
    }
PRODUCT(lattice_product, EACH_POINT_OF_ANY)
PRODUCT(lattice_product_5, EACH_POINT_5)
PRODUCT(lattice_product_7, EACH_POINT_7)
PRODUCT(lattice_product_9, EACH_POINT_9)
PRODUCT(lattice_product_27, EACH_POINT_27)

/* What is above: the distances of elements, and for each direction, the one along columns last, every how many points there is one of the coarser
 * lattice. */
#define ABOVE uint near_above, uint next_above, uint far_above, uint step_a, uint step_b, uint step_m

#if SHAPE_CPU
#define FAR_ABOVE 1
#else
#define FAR_ABOVE far_above
#endif
#define ORIGIN_ABOVE (a * step_a * near_above + b * step_b * next_above + m * step_m * FAR_ABOVE)

/* b = P' r, at each point of the coarser lattice. */
#define RESTRICT(NAME, EACH_POINT_OF)                                                                                  \
    KERNEL void NAME(ROWS, ABOVE, __global const real *restrict r, __global real *restrict to)                         \
    {                                                                                                                  \
        EACH_PIECE                                                                                                     \
        {                                                                                                              \
            PIECE                                                                                                      \
            place origin = ORIGIN_ABOVE, i = ORIGIN;                                                                   \
            EACH_POINT_OF(r, step_m * FAR_ABOVE, {                                                                      \
                to[i] = sum;                                                                                           \
                i += FAR;                                                                                              \
            })                                                                                                         \
        }                                                                                                              \
    }
RESTRICT(lattice_restrict, EACH_POINT_OF_ANY)
RESTRICT(lattice_restrict_9, EACH_POINT_9)
RESTRICT(lattice_restrict_27, EACH_POINT_27_AHEAD)

/* What the points of a cell have of the four ends in one plane of it: by its nine weights, as in lattice_correct. */
ALWAYS_INLINE real4 of_plane(const real *w, real4 e)
{
    return (real4)(w[0] * e.s0, fma(w[2], e.s1, w[1] * e.s0), fma(w[6], e.s2, w[3] * e.s0),
                   fma(w[8], e.s3, fma(w[7], e.s2, fma(w[5], e.s1, w[4] * e.s0))));
}

/* x += P e, for the points in each cell of the coarser lattice: two in each direction that has steps of two. Rows are those of cells, with 27 weights:
 * in each direction number 0 is what the point at the cell's lower end has of that end, 1 what the one in the middle has of it, and 2 what that has of
 * the upper end. `above_a`, `above_b` and `above_m` are sides above. */
KERNEL void lattice_correct(LATTICE, ABOVE, uint above_a, uint above_b, uint above_m, __global const real *restrict e, __global real *restrict x)
{
    const uint side_b = columns / side;
    EACH_PIECE
    {
        PIECE
        place to = ORIGIN_ABOVE, i = ORIGIN;
        const uint next_a = a + 1 < side ? near : 0, next_b = b + 1 < side_b ? next : 0;
        const uint has_a = step_a == 2 && 2 * a + 1 < above_a, has_b = step_b == 2 && 2 * b + 1 < above_b;
        const uint to_a = near_above, to_b = next_above;
#define ENDS_AT(i) (real4)(e[i], e[(i) + next_a], e[(i) + next_b], e[(i) + next_a + next_b])
        real4 lower = ENDS_AT(i);
        while (m < end) {
            __global const real *row = table + of_column + along[m];
            const uint stop = min(end, along[length + m]);
            real w[27];
            UNROLL_BY(27)
            for (uint k = 0; k < 27; k++)
                w[k] = row[k];
            for (; m < stop; m++, i += FAR, to += step_m * FAR_ABOVE) {
                const place behind = i + (m + 1 < length ? FAR : 0);
                const real4 upper = ENDS_AT(behind);
                const real4 here = of_plane(w, lower);
                x[to] += here.s0;
                if (has_a)
                    x[to + to_a] += here.s1;
                if (has_b)
                    x[to + to_b] += here.s2;
                if (has_a && has_b)
                    x[to + to_a + to_b] += here.s3;
                if (step_m == 2 && 2 * m + 1 < above_m) {
                    const real4 between = of_plane(w + 9, lower) + of_plane(w + 18, upper);
                    const place at = to + FAR_ABOVE;
                    x[at] += between.s0;
                    if (has_a)
                        x[at + to_a] += between.s1;
                    if (has_b)
                        x[at + to_b] += between.s2;
                    if (has_a && has_b)
                        x[at + to_a + to_b] += between.s3;
                }
                lower = upper;
            }
        }
    }
}
