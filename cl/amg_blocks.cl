/* Matrices in blocks, of nodes with several unknowns (src/precond/amg/nodes.rs): compressed rows of nodes, and behind each other the blocks of
 * entries, of `height` rows and `width` columns each, row by row. */

/* The most near-null vectors. */
#define MOST_MODES 16

/* A vector of which less than this part of its length squared is not in those before it is in their span. */
#define DEPENDENT 1e-10

/* Where the nodes' rows begin, of a matrix of full blocks of `size` rows and columns. */
KERNEL void block_starts(uint n, uint size, __global const uint *restrict starts, __global uint *restrict to)
{
    EACH_ROW(node, n + 1)
        to[node] = starts[node * size] / (size * size);
}

/* Its columns and blocks. */
KERNEL void blocks_of_rows(uint n, uint lanes, uint size, __global const uint *restrict starts,
                           __global const uint *restrict columns, __global const real *restrict values,
                           __global const uint *restrict nodes, __global uint *restrict to_columns,
                           __global real *restrict to_values)
{
    EACH_SHARED(e, node, n, nodes, lanes) {
        const uint begin = starts[node * size] + (e - nodes[node]) * size, row = (nodes[node + 1] - nodes[node]) * size;
        to_columns[e] = columns[begin] / size;
        for (uint i = 0; i < size; i++)
            for (uint j = 0; j < size; j++)
                to_values[(e * size + i) * size + j] = values[begin + i * row + j];
    }
}

/* Where rows begin, if each node's has `height` of them, of blocks with `width` columns; n is the number of rows. */
KERNEL void row_starts(uint n, uint height, uint width, __global const uint *restrict nodes, __global uint *restrict to)
{
    EACH_ROW(i, n + 1) {
        const uint node = i / height, begin = nodes[node], behind = i < n ? nodes[node + 1] : begin;
        to[i] = (begin * height + (i % height) * (behind - begin)) * width;
    }
}

/* Their columns and values. */
KERNEL void rows_of_blocks(uint n, uint lanes, uint height, uint width, __global const uint *restrict nodes,
                           __global const uint *restrict columns, __global const real *restrict values,
                           __global uint *restrict to_columns, __global real *restrict to_values)
{
    EACH_SHARED(e, node, n, nodes, lanes) {
        const uint length = nodes[node + 1] - nodes[node];
        for (uint i = 0; i < height; i++) {
            const uint to = (nodes[node] * height + i * length + e - nodes[node]) * width;
            for (uint j = 0; j < width; j++) {
                to_columns[to + j] = columns[e] * width + j;
                to_values[to + j] = values[(e * height + i) * width + j];
            }
        }
    }
}

/* The norms of square blocks; 1 on the diagonal. */
KERNEL void block_norms(uint n, uint lanes, uint size, __global const uint *restrict nodes,
                        __global const uint *restrict columns, __global const real *restrict values,
                        __global real *restrict norms)
{
    EACH_SHARED(e, node, n, nodes, lanes) {
        acc sum = 0;
        for (uint k = e * size * size; k < (e + 1) * size * size; k++)
            sum += (acc)values[k] * (acc)values[k];
        norms[e] = columns[e] == node ? 1 : (real)sqrt(sum / size);
    }
}

/* The length of what near-null vectors are at nodes, of so many elements each. */
KERNEL void modes_at_nodes(uint n, uint elements, __global const real *restrict modes, __global real *restrict lengths)
{
    EACH_ROW(node, n) {
        acc sum = 0;
        for (uint k = node * elements; k < (node + 1) * elements; k++)
            sum += (acc)modes[k] * (acc)modes[k];
        lengths[node] = fmax((real)sqrt(sum), FLT_MIN);
    }
}

/* R of B = T R on each aggregate, by Cholesky's factors of B^T B, and as the next near-null vectors. */
KERNEL void bases_factor(uint count, uint unknowns, uint width, __global const uint *restrict starts,
                         __global const uint *restrict members, __global const real *restrict modes,
                         __global acc *restrict factors, __global real *restrict next)
{
    EACH_ROW(k, count) {
        __global acc *r = factors + k * width * width;
        for (uint c = 0; c < width * width; c++)
            r[c] = 0;
        EACH_ENTRY(e, starts, k)
            for (uint i = members[e] * unknowns; i < (members[e] + 1) * unknowns; i++)
                for (uint c = 0; c < width; c++)
                    for (uint d = c; d < width; d++)
                        r[c * width + d] += (acc)modes[i * width + c] * (acc)modes[i * width + d];
        for (uint c = 0; c < width; c++) {
            const acc whole = r[c * width + c];
            acc left = whole;
            for (uint b = 0; b < c; b++)
                left -= r[b * width + c] * r[b * width + c];
            const int is_there = left > DEPENDENT * whole;
            const acc pivot = is_there ? sqrt(left) : 1;
            r[c * width + c] = is_there ? pivot : 0;
            for (uint d = c + 1; d < width; d++) {
                acc sum = r[c * width + d];
                for (uint b = 0; b < c; b++)
                    sum -= r[b * width + c] * r[b * width + d];
                r[c * width + d] = is_there ? sum / pivot : 0;
            }
        }
        for (uint c = 0; c < width * width; c++)
            next[k * width * width + c] = (real)r[c];
    }
}

/* The blocks of T: t R = b in each row. `nodes` tells where each node has its block, if it has one. */
KERNEL void bases_rows(uint n, uint unknowns, uint width, __global const uint *restrict aggregates,
                       __global const uint *restrict nodes, __global const real *restrict modes,
                       __global const acc *restrict factors, __global real *restrict t)
{
    EACH_ROW(i, n) {
        const uint node = i / unknowns, aggregate = aggregates[node];
        if (aggregate != NONE) {
            __global const acc *r = factors + aggregate * width * width;
            const uint to = (nodes[node] * unknowns + i % unknowns) * width;
            acc exact[MOST_MODES];
            for (uint c = 0; c < width; c++) {
                const acc pivot = r[c * width + c];
                acc sum = modes[i * width + c];
                for (uint b = 0; b < c; b++)
                    sum -= exact[b] * r[b * width + c];
                exact[c] = pivot > 0 ? sum / pivot : 0;
                t[to + c] = (real)exact[c];
            }
        }
    }
}

/* P = T - omega A T of A T, in its place. */
KERNEL void blocks_smoothed(uint n, uint lanes, uint size, real omega, __global const uint *restrict starts,
                            __global const uint *restrict columns, __global const uint *restrict aggregates,
                            __global const uint *restrict nodes, __global const real *restrict t,
                            __global real *restrict values)
{
    EACH_SHARED(e, node, n, starts, lanes) {
        const int is_own = columns[e] == aggregates[node];
        for (uint k = 0; k < size; k++) {
            const real own = is_own ? t[nodes[node] * size + k] : 0;
            values[e * size + k] = own - omega * values[e * size + k];
        }
    }
}

/* Blocks of height x width, transposed, that are in other places now. */
KERNEL void blocks_at(uint n, uint height, uint width, __global const uint *restrict places,
                      __global const real *restrict values, __global real *restrict to)
{
    EACH_ROW(e, n)
        for (uint i = 0; i < height; i++)
            for (uint j = 0; j < width; j++)
                to[(e * width + j) * height + i] = values[(places[e] * height + i) * width + j];
}

/* What the next matrix, of n rows in blocks of size x size, is scaled by so that its diagonal is 1; 0 for columns of P in the null
 * space. The transpose of P has blocks of size x width. Changes the next near-null vectors, of which there are `size`, to match. */
KERNEL void block_factors(uint n, uint size, uint width, __global const uint *restrict starts,
                          __global const uint *restrict columns, __global const real *restrict values,
                          __global const uint *restrict r_starts, __global const real *restrict r_values,
                          __global real *restrict factors, __global real *restrict modes)
{
    EACH_ROW(i, n) {
        const uint node = i / size, own = i % size;
        real diagonal = 0, length = 0;
        EACH_ENTRY(e, starts, node)
            diagonal = columns[e] == node ? values[(e * size + own) * size + own] : diagonal;
        EACH_ENTRY(e, r_starts, node)
            for (uint k = (e * size + own) * width; k < (e * size + own + 1) * width; k++)
                length += r_values[k] * r_values[k];
        const real factor = diagonal > NULL_SPACE * length ? QUOTIENT(1, ROOT(diagonal)) : 0;
        factors[i] = factor;
        for (uint k = i * size; k < (i + 1) * size; k++)
            modes[k] = factor > 0 ? QUOTIENT(modes[k], factor) : 0;
    }
}

/* The matrix. */
KERNEL void blocks_scale_both(uint n, uint lanes, uint size, __global const uint *restrict starts,
                              __global const uint *restrict columns, __global const real *restrict factors,
                              __global real *restrict values)
{
    EACH_SHARED(e, node, n, starts, lanes)
        for (uint i = 0; i < size; i++)
            for (uint j = 0; j < size; j++) {
                const uint row = node * size + i, column = columns[e] * size + j, k = (e * size + i) * size + j;
                values[k] = row == column ? 1 : values[k] * (factors[row] * factors[column]);
            }
}

/* The rows of the transpose of P, in blocks of height x width. */
KERNEL void blocks_scale_rows(uint n, uint lanes, uint height, uint width, __global const uint *restrict starts,
                              __global const real *restrict factors, __global real *restrict values)
{
    EACH_SHARED(e, node, n, starts, lanes)
        for (uint k = 0; k < height * width; k++)
            values[e * height * width + k] *= factors[node * height + k / width];
}

/* The columns of P, with the other sign. */
KERNEL void blocks_scale_columns(uint n, uint height, uint width, __global const uint *restrict columns,
                                 __global const real *restrict factors, __global real *restrict values)
{
    EACH_ROW(e, n)
        for (uint k = 0; k < height * width; k++)
            values[e * height * width + k] = -(values[e * height * width + k] * factors[columns[e] * width + k % width]);
}
