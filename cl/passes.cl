/* What generated passes need beside the prelude: src/backend/source.rs writes the rest.
 *
 * A pass sets vectors to linear combinations and leaves sums of products of elements, by tiles (prelude.cl). In the GPU shape a
 * work-item may have several tiles side by side, and goes from their last elements to the first: products go from the first to the
 * last, and leave the last in the cache.
 */

/* This work-item's part of a total of partial sums: on a CPU all of it; on a GPU the first LANES have all of it. */
static inline acc part_of_total(__global const acc *partials, uint count, uint stride)
{
    acc s = 0;
    if (get_local_id(0) < LANES)
        for (uint i = get_local_id(0); i < count; i += LANES)
            s += partials[i * stride];
    return s;
}
