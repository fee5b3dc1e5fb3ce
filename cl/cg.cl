/* The one fused kernel of conjugate gradients beside the product, which leaves p.q and q.q (csr.cl, stencil.cl); resident.cl
 * makes several steps of it.
 *
 *   alpha = rho / p.q;  beta = alpha q.q / p.q - 1;  x += alpha p;  r -= alpha q;  p = r + beta p;  parts of r.r
 *
 * x is read and written in half of the elements only, those of every other run of TURN, which take turns: for the other half
 * alpha p is put off until the next step, which has alpha p = alpha / beta (p' - r') at hand, p' and r' being p and r after this
 * step. So a step moves 6 numbers for each element in place of 7. `owed` is alpha / beta, positive where it is the even runs that
 * are owed, negative where it is the odd ones, and 0 if none are: with a beta below `least`, for which the difference would have
 * too few digits, nothing is put off. cg_complete gives x what it is owed.
 *
 * beta = r'.r' / r.r is known before r' is: r'.r' = r.r - 2 alpha r.q + alpha^2 q.q, and r.q = p.q since q is orthogonal to
 * the former direction (Rupp, Weinbub, Juengel, Grasser, ACM Trans. Math. Softw. 43 (2016) 11, doi 10.1145/2907944). Rounding
 * does not add up, as the next alpha is formed from r.r as computed. A beta that comes out below 0, where r has become small
 * at once, counts as 0.
 *
 * cg_step is for a device alone: p.q and q.q arrive as partial sums that the product left on the device, which every group
 * adds by itself in the same order, and so does rho, but in the first iteration, where it is the host's value (count = 0). So
 * no word from the host is needed. Among several ranks the host has the sums, and gives alpha and beta to cg_step_given, which
 * so are the same on all ranks, whatever they form sums in. It takes no more arguments than it needs: each array costs the
 * driver of NVIDIA (580.159) 0.5 us a launch, and 0.9 with four devices at once, while the sums of all ranks wait.
 *
 * rr is what the test looks at: r.r, or with weights w the sum of w r^2.
 *
 * The end: when the rr that the former step left is at most the limit or no number, or r.r is not positive, or p.q is not
 * positive, nothing changes any more, so that x stays the iterate that met the test although the host has already enqueued
 * further iterations. Whoever is first in the launch says so to the next kernels in next_state; those of an iteration read
 * what was so said by the one before.
 *
 * log[4 slot] = p.q tells the host, later, what happened, and of the former iteration log[4 former_slot + 1] = r.r and
 * log[4 former_slot + 2] = rr. log[4 slot + 3] is what x is owed then, whether or not there was a step.
 */

/* Elements side by side of which x is updated or put off together. */
#define TURN 4096
#define IS_EVEN(i) ((i) / TURN % 2 == 0)

/* What element i of x is owed. */
static inline real owed_at(uint i, real owed) { return fmax(IS_EVEN(i) ? owed : -owed, (real)0); }

static inline real finite_or_0(real v) { return isfinite(v) ? v : 0; }

/* Whether alpha p of element i is put off, so that `owes` will be owed. */
static inline int is_put_off(uint i, real owes) { return IS_EVEN(i) ? owes > 0 : owes < 0; }

/* What x will be owed after a step. */
static inline real owed_next(real2 scalars, real owed, real least)
{
    real ratio = scalars.s0 / scalars.s1;
    return scalars.s1 >= least ? (owed > 0 ? -ratio : ratio) : 0;
}

/* The four numbers of a step. dots: pairs of parts of p.q and q.q; rho: pairs of parts of r.r and rr. */
static inline acc4 cg_sums(__global const acc *dots, uint dots_count, __global const acc *rho, uint rho_count,
                           acc rho_value, __local acc4 *scratch)
{
    acc4 sums = 0;
    /* in one loop, so that what is loaded is waited for together */
    for (uint i = get_local_id(0); i < max(dots_count, rho_count); i += GROUP_SIZE) {
        acc2 dots_i = i < dots_count ? vload2(i, dots) : (acc2)0;
        acc2 rho_i = i < rho_count ? vload2(i, rho) : (acc2)0;
        sums += (acc4)(dots_i, rho_i);
    }
    sums = group_sum4(sums, scratch);
    if (rho_count == 0)
        sums.s2 = rho_value;
    return sums;
}

/* Whether there is a step to be made; the log gets what there is to tell. */
static inline int cg_goes_on(acc4 sums, uint rho_count, int was_done, acc limit, __global acc *log, uint slot,
                             uint former_slot)
{
    acc pq = sums.s0, rr = sums.s3;
    int met = rho_count > 0 && !(rr > limit && isfinite(rr) && sums.s2 > 0);
    if (get_global_id(0) == 0) {
        if (!was_done && rho_count > 0) {
            log[4 * former_slot + 1] = sums.s2;
            log[4 * former_slot + 2] = rr;
        }
        if (!was_done && !met)
            log[4 * slot] = pq;
    }
    return !was_done && !met && pq > 0 && isfinite(pq);
}

/* alpha and beta. */
static inline real2 cg_scalars(acc4 sums)
{
    acc step = sums.s2 / sums.s0;
    return (real2)((real)step, (real)fmax(step * (sums.s1 / sums.s0) - 1, (acc)0));
}

/* What x is owed by the step in a slot of the log, unless it is nothing. */
static inline real cg_owed(__global const acc *log, uint slot, uint is_owed)
{
    return is_owed ? (real)log[4 * slot + 3] : 0;
}

/* The step with alpha and beta, on n elements, with what x is owed and will be owed: the work-item's part of r.r and rr. */
static inline acc2 cg_update(const int with_w, uint n, __global const real *w, __global real *x, __global real *r,
                             __global real *p, __global const real *q, real2 scalars, real owed, real owes)
{
    real alpha = scalars.s0, beta = scalars.s1;
    acc2 s = 0;
#if SHAPE_CPU
    uint i = chunk_begin(n), end = chunk_end(n);
    acc8 rho8 = 0, rr8 = 0;
    for (; i + 8 <= end; i += 8) {
        real8 p8 = vload8(0, p + i), r8 = vload8(0, r + i);
        real8 v = r8 - alpha * vload8(0, q + i);
        if (!is_put_off(i, owes))
            vstore8(vload8(0, x + i) + (alpha * p8 + owed_at(i, owed) * (p8 - r8)), 0, x + i);
        vstore8(v, 0, r + i);
        vstore8(v + beta * p8, 0, p + i);
        acc8 vv = convert_acc8(v) * convert_acc8(v);
        rho8 += vv;
        if (with_w)
            rr8 += convert_acc8(vload8(0, w + i)) * vv;
    }
    for (; i < end; i++) {
        real v = r[i] - alpha * q[i];
        if (!is_put_off(i, owes))
            x[i] += alpha * p[i] + owed_at(i, owed) * (p[i] - r[i]);
        r[i] = v;
        p[i] = v + beta * p[i];
        s.s0 += (acc)v * (acc)v;
        if (with_w)
            s.s1 += (acc)w[i] * ((acc)v * (acc)v);
    }
    s += (acc2)(sum8(rho8), sum8(rr8));
#else
    real x_of[UNROLL], r_of[UNROLL], p_of[UNROLL], w_of[UNROLL];
    LOAD_STORE(i, n, real p_i = p[i]; real r_i = r[i];
               if (!is_put_off(i, owes)) x_of[k] = x[i] + (alpha * p_i + owed_at(i, owed) * (p_i - r_i));
               r_of[k] = r_i - alpha * q[i]; p_of[k] = r_of[k] + beta * p_i; if (with_w) w_of[k] = w[i],
               if (!is_put_off(i, owes)) x[i] = x_of[k]; r[i] = r_of[k]; p[i] = p_of[k];
               acc vv = (acc)r_of[k] * (acc)r_of[k]; s.s0 += vv;
               if (with_w) s.s1 += (acc)w_of[k] * vv)
#endif
    if (!with_w)
        s.s1 = s.s0;
    return s;
}

/* rho_next: the pairs of parts that this step leaves. */
#define CG_STEP(NAME, WITH_W)                                                                                          \
    KERNEL void NAME(uint n, __global const real *restrict w, __global real *restrict x, __global real *restrict r,    \
                     __global real *restrict p, __global const real *restrict q,                                       \
                     __global const acc *restrict dots, uint dots_count,                                               \
                     __global const acc *restrict rho, uint rho_count, acc rho_value, acc limit,                       \
                     __global acc *restrict rho_next, __global const int *restrict state,                              \
                     __global int *restrict next_state, __global acc *restrict log, uint slot, uint former_slot,       \
                     uint is_owed, real least)                                                                         \
    {                                                                                                                  \
        __local acc4 scratch[GROUP_SIZE];                                                                              \
        __local acc2 scratch2[GROUP_SIZE];                                                                             \
        acc4 sums = cg_sums(dots, dots_count, rho, rho_count, rho_value, scratch);                                     \
        int go_on = cg_goes_on(sums, rho_count, state[0], limit, log, slot, former_slot);                              \
        real2 scalars = cg_scalars(sums);                                                                              \
        real owed = cg_owed(log, former_slot, is_owed), owes = go_on ? owed_next(scalars, owed, least) : owed;       \
        if (get_global_id(0) == 0) {                                                                                   \
            next_state[0] = !go_on;                                                                                    \
            log[4 * slot + 3] = owes;                                                                                  \
        }                                                                                                              \
        acc2 s = 0;                                                                                                    \
        if (go_on)                                                                                                     \
            s = cg_update(WITH_W, n, w, x, r, p, q, scalars, owed, owes);                                              \
        leave_dots(s, scratch2, rho_next, 0);                                                                          \
    }

CG_STEP(cg_step, 0)
CG_STEP(cg_step_weighted, 1)

/* The same with given alpha and beta, and what x is owed and will be owed. */
KERNEL void cg_step_given(uint n, __global real *restrict x, __global real *restrict r, __global real *restrict p,
                          __global const real *restrict q, real alpha, real beta, real owed, real owes,
                          __global acc *restrict rho_next)
{
    __local acc2 scratch[GROUP_SIZE];
    leave_dots(cg_update(0, n, q, x, r, p, q, (real2)(alpha, beta), owed, owes), scratch, rho_next, 0);
}

KERNEL void cg_step_given_weighted(uint n, __global const real *restrict w, __global real *restrict x,
                                   __global real *restrict r, __global real *restrict p,
                                   __global const real *restrict q, real alpha, real beta, real owed, real owes,
                                   __global acc *restrict rho_next)
{
    __local acc2 scratch[GROUP_SIZE];
    leave_dots(cg_update(1, n, w, x, r, p, q, (real2)(alpha, beta), owed, owes), scratch, rho_next, 0);
}

/* Gives x what it is owed, by a slot of the log or by the host. Where p or r is no number, that is nothing. */
KERNEL void cg_complete(uint n, __global real *restrict x, __global const real *restrict r,
                        __global const real *restrict p, __global const acc *restrict log, uint slot, uint is_logged,
                        real owed)
{
    owed = is_logged ? cg_owed(log, slot, 1) : owed;
    SET_EACH(i, n, x, x[i] + finite_or_0(owed_at(i, owed) * (p[i] - r[i])))
}

/* r -= alpha q; p = r + beta p on a halo, the n elements from begin on: what the owners of these elements do to them. */
KERNEL void cg_halo(uint begin, uint n, __global real *restrict r, __global real *restrict p,
                    __global const real *restrict q, real alpha, real beta)
{
    r += begin;
    p += begin;
    q += begin;
#if SHAPE_CPU
    for (uint i = chunk_begin(n), end = chunk_end(n); i < end; i++) {
        r[i] -= alpha * q[i];
        p[i] = r[i] + beta * p[i];
    }
#else
    real r_of[UNROLL], p_of[UNROLL];
    LOAD_STORE(i, n, r_of[k] = r[i] - alpha * q[i]; p_of[k] = r_of[k] + beta * p[i], r[i] = r_of[k]; p[i] = p_of[k])
#endif
}
