/* Prepended to every program: types, the two shapes of a kernel, sums over a work-group.
 *
 * Defined by the host (src/kernels/mod.rs):
 *   REAL         element of matrix and vectors: float or double
 *   ACC          element of sums: double where the device has it, else float
 *   GROUP_SIZE   work-items of a work-group, a power of two; 1 in the CPU shape
 *   BLOCK_NNZ    entries of a row block that fit into local memory (csr.cl)
 *   SHAPE_CPU    1 or 0
 *   COLUMNS      columns of the vectors of products, and WIDE, those that a work-item takes: 1 if not defined
 *   RUN          elements side by side of which x is updated or its update deferred together (passes.cl)
 *
 * GPU shape: neighbouring work-items take neighbouring elements, so that accesses coalesce; a group sums by a tree in
 * local memory. CPU shape: a group is one work-item, which takes a contiguous chunk, so that a core streams through
 * memory with vector instructions; barriers and local memory, dear on a CPU, are not used.
 *
 * Numbers of elements stay below 2^31 on a rank, so that index arithmetic in 32 bits does not overflow.
 */
#if !defined(REAL) || !defined(ACC) || !defined(GROUP_SIZE) || !defined(BLOCK_NNZ) || !defined(SHAPE_CPU)
#error "REAL, ACC, GROUP_SIZE, BLOCK_NNZ and SHAPE_CPU must be defined"
#endif

#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

/* Each product and each sum is rounded, so that all formats of a matrix give the same bits. */
#pragma OPENCL FP_CONTRACT OFF

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

typedef REAL real;
typedef ACC acc;
typedef JOIN(REAL, 2) real2;
typedef JOIN(REAL, 4) real4;
typedef JOIN(REAL, 8) real8;
typedef JOIN(ACC, 2) acc2;
typedef JOIN(ACC, 4) acc4;
typedef JOIN(ACC, 8) acc8;
#define convert_acc2 JOIN(convert_, JOIN(ACC, 2))
#define convert_acc8 JOIN(convert_, JOIN(ACC, 8))

/* For functions whose arrays, or a kernel's parameter that they look at, would else be in memory. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))

/* The part of 0..n that a group of the CPU shape works on, cut at multiples of 8. */
static inline uint chunk_begin(uint n) { return min(n, (uint)((ulong)(n / 8 + 1) * get_group_id(0) / get_num_groups(0)) * 8); }
static inline uint chunk_end(uint n) { return min(n, (uint)((ulong)(n / 8 + 1) * (get_group_id(0) + 1) / get_num_groups(0)) * 8); }

/* Asks the compiler to unroll the loop that follows. What does not know the pragma does without. */
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(times) PRAGMA(unroll times)

/* Asks the compiler to sum in the loop that follows as it is written, one element after the other: Intel's for CPUs (2026.22.10)
 * else sums every few elements apart, in the loops of single work-items. */
#if SHAPE_CPU
#define IN_ORDER PRAGMA(clang loop vectorize(disable))
#else
#define IN_ORDER
#endif

/* GPU shape: does DO for each element i of 0..n that the work-item has, from the last to the first: products begin with the first rows,
 * so that a cache still has the last of what a product has read and written, and then the first of what the next one reads. */
#define EACH(i, n, DO)                                                                                                 \
    for (uint i##_left = (n + get_global_size(0) - 1) / get_global_size(0); i##_left-- > 0;) {                         \
        uint i = get_global_id(0) + i##_left * get_global_size(0);                                                     \
        if (i < n) {                                                                                                   \
            DO;                                                                                                        \
        }                                                                                                              \
    }

/* y[i] = value for each element i of 0..n. */
#if SHAPE_CPU
#define SET_EACH(i, n, y, value)                                                                                       \
    for (uint i = chunk_begin(n), i##_end = chunk_end(n); i < i##_end; i++)                                            \
        y[i] = value;
#else
#define SET_EACH(i, n, y, value) EACH(i, n, y[i] = value)
#endif

/* Sum of s over the work-group, for each work-item over every EVERY-th, counted from itself; scratch has GROUP_SIZE elements and may be
 * reused after. For one number, and for vectors that are summed element by element. GPU shape: FAN numbers at a time, since it is
 * barriers that cost time here. */
#if SHAPE_CPU
#define GROUP_SUM(NAME, TYPE, EVERY)                                                                                   \
    static inline TYPE NAME(TYPE s, __local TYPE *scratch) { return s; }
#else
#define FAN 8
#define GROUP_SUM(NAME, TYPE, EVERY)                                                                                   \
    static inline TYPE NAME(TYPE s, __local TYPE *scratch)                                                             \
    {                                                                                                                  \
        uint lane = get_local_id(0), n = GROUP_SIZE;                                                                   \
        scratch[lane] = s;                                                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        for (; n > FAN * (EVERY); n /= FAN) {                                                                          \
            if (lane < n / FAN) {                                                                                      \
                UNROLL_BY(FAN)                                                                                         \
                for (uint k = 1; k < FAN; k++)                                                                         \
                    s += scratch[lane + k * (n / FAN)];                                                                \
                scratch[lane] = s;                                                                                     \
            }                                                                                                          \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        }                                                                                                              \
        s = scratch[lane % (EVERY)];                                                                                   \
        for (uint k = EVERY; k < n; k += EVERY)                                                                        \
            s += scratch[lane % (EVERY) + k];                                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        return s;                                                                                                      \
    }
#endif
GROUP_SUM(group_sum, acc, 1)
GROUP_SUM(group_sum2, acc2, 1)

/* Sum of the eight elements, pairwise. */
static inline acc sum8(acc8 v)
{
    return ((v.s0 + v.s1) + (v.s2 + v.s3)) + ((v.s4 + v.s5) + (v.s6 + v.s7));
}

/* Vectors of products have COLUMNS columns side by side: element (row, c) is number row * COLUMNS + c. A work-item takes WIDE of them,
 * so that PARTS neighbouring ones share a row, of which ROW(v, i) is what the work-item takes of row i. Each stays with its part. */
#ifndef COLUMNS
#define COLUMNS 1
#endif
#ifndef WIDE
#define WIDE COLUMNS
#endif
#define PARTS (COLUMNS / WIDE)
#if WIDE > 1
typedef JOIN(REAL, WIDE) wide;
typedef JOIN(ACC, WIDE) wide_acc;
#define to_wide JOIN(convert_, JOIN(REAL, WIDE))
#define to_wide_acc JOIN(convert_, JOIN(ACC, WIDE))
#else
typedef real wide;
typedef acc wide_acc;
#define to_wide JOIN(convert_, REAL)
#define to_wide_acc JOIN(convert_, ACC)
#endif
#define ROW(v, i) (((__global wide *)(v))[(i) * PARTS + get_local_id(0) % PARTS])
GROUP_SUM(part_sum, wide_acc, PARTS)

/* Work-items that take the same part of rows: their number, and which of them this one is, in the group and in all groups. */
#define SLOTS (GROUP_SIZE / PARTS)
#define LOCAL_SLOT ((uint)get_local_id(0) / PARTS)
#define SLOT ((uint)get_global_id(0) / PARTS)
#define ALL_SLOTS ((uint)get_global_size(0) / PARTS)

/* A work-item's part of x.y and of y.y, column by column. Functions are given where it is, which they return, or 0 if there is none. */
typedef struct {
    wide_acc xy, yy;
} dots;

static inline dots *no_dots(dots *s)
{
    s->xy = 0;
    s->yy = 0;
    return s;
}

/* What a product does with the sum of a row. */
#define ROWS_PRODUCT 0  /* y = A x */
#define ROWS_DOT 1      /* y = A x, and the row's part of x.y and of y.y */
#define ROWS_RESIDUAL 2 /* y = b - A x */

/* An element of a halo travels as a number of 64 bits. */
#ifdef USE_FP64
static inline ulong bits_of_double(double value) { return as_ulong(value); }
static inline double double_of(ulong bits) { return as_double(bits); }
#endif
static inline ulong bits_of_float(float value) { return as_uint(value); }
static inline float float_of(ulong bits) { return as_float((uint)bits); }
#define bits_of_element JOIN(bits_of_, REAL)
#define element_of JOIN(REAL, _of)

/* With SENDS, ROWS_DOT also puts what other ranks need of y into live memory, as soon as it is formed: element y[row] into to[place] for each
 * of the row's places, which are places[places[row]] .. places[places[row + 1]]. Rows begin..end have none, and are left out there. */
#ifndef SENDS
#define SENDS 0
#endif
#if SENDS
typedef struct {
    __global ulong *to;
    __global const uint *places;
    uint begin, end;
} sending;

static inline void send_row(const sending *send, uint row, real value)
{
    if (!send || row >= send->begin && row < send->end)
        return;
    const uint k = row < send->begin ? row : row - (send->end - send->begin);
    for (uint at = send->places[k]; at < send->places[k + 1]; at++)
        send->to[send->places[at]] = bits_of_element(value);
}

/* What functions are given of it, a kernel's arguments, and what it makes of them. */
#define SENDING , const sending *send
#define SEND , send
#define SEND_NOTHING , 0
#define SENDS_ARGS                                                                                                     \
    , __global volatile ulong *memory, uint slot, __global const uint *indices, uint first_place, uint begin, uint end
#define SENDS_HERE                                                                                                     \
    const sending here = {(__global ulong *)memory + slot, indices + first_place, begin, end};                         \
    const sending *send = &here;
#else
#define SENDING
#define SEND
#define SEND_NOTHING
#define SENDS_ARGS
#define SENDS_HERE
#endif

/* Leaves what the mode asks for of a row whose sum is given, and adds the row's part of dot products to s. */
static inline void finish_row(int mode, uint row, wide sum, __global const real *x, __global const real *b, __global real *y,
                              dots *s SENDING)
{
    if (mode == ROWS_RESIDUAL) {
        ROW(y, row) = ROW(b, row) - sum;
        return;
    }
    ROW(y, row) = sum;
    if (mode == ROWS_DOT) {
        const wide_acc value = to_wide_acc(sum);
#if SENDS
        send_row(send, row, sum);
#endif
        s->xy += to_wide_acc(ROW(x, row)) * value;
        s->yy += value * value;
    }
}

/* Leaves a group's part of x.y, column by column, and behind it that of y.y. */
#if COLUMNS == 1
typedef acc2 dots_scratch; /* both at once */
#else
typedef wide_acc dots_scratch;
#endif
static inline void leave_dots(const dots *s, __local dots_scratch *scratch, __global acc *partials, uint first_partial)
{
    const uint group = first_partial + get_group_id(0), lane = get_local_id(0);
#if COLUMNS == 1
    const acc2 sums = group_sum2((acc2)(s->xy, s->yy), scratch);
    if (lane == 0)
        vstore2(sums, group, partials);
#else
    const wide_acc xy = part_sum(s->xy, scratch), yy = part_sum(s->yy, scratch);
    if (lane < PARTS) {
        ((__global wide_acc *)partials)[2 * group * PARTS + lane] = xy;
        ((__global wide_acc *)partials)[(2 * group + 1) * PARTS + lane] = yy;
    }
#endif
}
