/* The fused kernels of those conjugate gradients that multiply the matrix with a vector other than the direction, and have A p
 * by recurrence. alpha and beta come from the host, the same on all ranks. Where beta = 0, a direction begins: what it and
 * its products held before is not read.
 *
 * single_step (Chronopoulos and Gear, J. Comput. Appl. Math. 25 (1989) 153, doi 10.1016/0377-0427(89)90045-9), with q = A r:
 *
 *   p = r + beta p;  s = q + beta s;  x += alpha p;  r -= alpha s;  parts of r.r and of what the test looks at
 *
 * pipelined_step (Ghysels and Vanroose, Parallel Comput. 40 (2014) 224, doi 10.1016/j.parco.2013.06.001), with t = A r, which
 * comes by recurrence, too, z = A s and q = A t:
 *
 *   z = q + beta z;  s = t + beta s;  p = r + beta p;  x += alpha p;  r -= alpha s;  t -= alpha z;
 *   parts of r.r, of what the test looks at, of r.t, and 0
 *
 * What the test looks at is r.r, or with weights w the sum of w r^2.
 */

/* a + beta d, or a where a direction begins. */
#define RECUR(a, d) (beta == 0 ? (a) : (a) + beta * (d))

static inline acc2 single_update(const int with_w, uint n, __global const real *w, __global real *x, __global real *r,
                                 __global real *p, __global real *s, __global const real *q, real alpha, real beta)
{
    acc2 sums = 0;
#if SHAPE_CPU
    uint i = chunk_begin(n), end = chunk_end(n);
    acc8 rho8 = 0, rr8 = 0;
    for (; i + 8 <= end; i += 8) {
        real8 r8 = vload8(0, r + i);
        real8 p8 = RECUR(r8, vload8(0, p + i));
        real8 s8 = RECUR(vload8(0, q + i), vload8(0, s + i));
        r8 -= alpha * s8;
        vstore8(p8, 0, p + i);
        vstore8(s8, 0, s + i);
        vstore8(vload8(0, x + i) + alpha * p8, 0, x + i);
        vstore8(r8, 0, r + i);
        acc8 vv = convert_acc8(r8) * convert_acc8(r8);
        rho8 += vv;
        if (with_w)
            rr8 += convert_acc8(vload8(0, w + i)) * vv;
    }
    for (; i < end; i++) {
        p[i] = RECUR(r[i], p[i]);
        s[i] = RECUR(q[i], s[i]);
        x[i] += alpha * p[i];
        r[i] -= alpha * s[i];
        acc vv = (acc)r[i] * (acc)r[i];
        sums.s0 += vv;
        if (with_w)
            sums.s1 += (acc)w[i] * vv;
    }
    sums += (acc2)(sum8(rho8), sum8(rr8));
#else
    real x_of[UNROLL], r_of[UNROLL], p_of[UNROLL], s_of[UNROLL], w_of[UNROLL];
    LOAD_STORE(i, n, real r_i = r[i]; p_of[k] = RECUR(r_i, p[i]); s_of[k] = RECUR(q[i], s[i]);
               x_of[k] = x[i] + alpha * p_of[k]; r_of[k] = r_i - alpha * s_of[k]; if (with_w) w_of[k] = w[i],
               p[i] = p_of[k]; s[i] = s_of[k]; x[i] = x_of[k]; r[i] = r_of[k];
               acc vv = (acc)r_of[k] * (acc)r_of[k]; sums.s0 += vv; if (with_w) sums.s1 += (acc)w_of[k] * vv)
#endif
    if (!with_w)
        sums.s1 = sums.s0;
    return sums;
}

#define CG_SINGLE_STEP(NAME, WITH_W)                                                                                   \
    KERNEL void NAME(uint n, __global const real *restrict w, __global real *restrict x, __global real *restrict r,    \
                     __global real *restrict p, __global real *restrict s, __global const real *restrict q,            \
                     real alpha, real beta, __global acc *restrict sums)                                               \
    {                                                                                                                  \
        __local acc2 scratch[GROUP_SIZE];                                                                              \
        leave_dots(single_update(WITH_W, n, w, x, r, p, s, q, alpha, beta), scratch, sums, 0);                         \
    }

CG_SINGLE_STEP(single_step, 0)
CG_SINGLE_STEP(single_step_weighted, 1)

static inline acc4 pipelined_update(const int with_w, uint n, __global const real *w, __global real *x,
                                    __global real *r, __global real *t, __global real *p, __global real *s,
                                    __global real *z, __global const real *q, real alpha, real beta)
{
    acc4 sums = 0;
#if SHAPE_CPU
    uint i = chunk_begin(n), end = chunk_end(n);
    acc8 gamma8 = 0, rr8 = 0, delta8 = 0;
    for (; i + 8 <= end; i += 8) {
        real8 r8 = vload8(0, r + i), t8 = vload8(0, t + i);
        real8 p8 = RECUR(r8, vload8(0, p + i));
        real8 s8 = RECUR(t8, vload8(0, s + i));
        real8 z8 = RECUR(vload8(0, q + i), vload8(0, z + i));
        r8 -= alpha * s8;
        t8 -= alpha * z8;
        vstore8(p8, 0, p + i);
        vstore8(s8, 0, s + i);
        vstore8(z8, 0, z + i);
        vstore8(vload8(0, x + i) + alpha * p8, 0, x + i);
        vstore8(r8, 0, r + i);
        vstore8(t8, 0, t + i);
        acc8 v = convert_acc8(r8), vv = v * v;
        gamma8 += vv;
        delta8 += v * convert_acc8(t8);
        if (with_w)
            rr8 += convert_acc8(vload8(0, w + i)) * vv;
    }
    for (; i < end; i++) {
        p[i] = RECUR(r[i], p[i]);
        s[i] = RECUR(t[i], s[i]);
        z[i] = RECUR(q[i], z[i]);
        x[i] += alpha * p[i];
        r[i] -= alpha * s[i];
        t[i] -= alpha * z[i];
        acc vv = (acc)r[i] * (acc)r[i];
        sums.s0 += vv;
        sums.s2 += (acc)r[i] * (acc)t[i];
        if (with_w)
            sums.s1 += (acc)w[i] * vv;
    }
    sums += (acc4)(sum8(gamma8), sum8(rr8), sum8(delta8), 0);
#else
    real x_of[UNROLL], r_of[UNROLL], t_of[UNROLL], p_of[UNROLL], s_of[UNROLL], z_of[UNROLL], w_of[UNROLL];
    LOAD_STORE(i, n, real r_i = r[i]; real t_i = t[i]; p_of[k] = RECUR(r_i, p[i]); s_of[k] = RECUR(t_i, s[i]);
               z_of[k] = RECUR(q[i], z[i]); x_of[k] = x[i] + alpha * p_of[k]; r_of[k] = r_i - alpha * s_of[k];
               t_of[k] = t_i - alpha * z_of[k]; if (with_w) w_of[k] = w[i],
               p[i] = p_of[k]; s[i] = s_of[k]; z[i] = z_of[k]; x[i] = x_of[k]; r[i] = r_of[k]; t[i] = t_of[k];
               acc vv = (acc)r_of[k] * (acc)r_of[k]; sums.s0 += vv; sums.s2 += (acc)r_of[k] * (acc)t_of[k];
               if (with_w) sums.s1 += (acc)w_of[k] * vv)
#endif
    if (!with_w)
        sums.s1 = sums.s0;
    return sums;
}

#define CG_PIPELINED_STEP(NAME, WITH_W)                                                                                \
    KERNEL void NAME(uint n, __global const real *restrict w, __global real *restrict x, __global real *restrict r,    \
                     __global real *restrict t, __global real *restrict p, __global real *restrict s,                  \
                     __global real *restrict z, __global const real *restrict q, real alpha, real beta,                \
                     __global acc *restrict sums)                                                                      \
    {                                                                                                                  \
        __local acc4 scratch[GROUP_SIZE];                                                                              \
        acc4 parts = group_sum4(pipelined_update(WITH_W, n, w, x, r, t, p, s, z, q, alpha, beta), scratch);            \
        if (get_local_id(0) == 0)                                                                                      \
            vstore4(parts, get_group_id(0), sums);                                                                     \
    }

CG_PIPELINED_STEP(pipelined_step, 0)
CG_PIPELINED_STEP(pipelined_step_weighted, 1)

/* d = a + beta d; v -= alpha d on a halo, the n elements from begin on: what the owners of these elements do to them. */
KERNEL void recur_halo(uint begin, uint n, __global real *restrict v, __global real *restrict d,
                       __global const real *restrict a, real alpha, real beta)
{
    v += begin;
    d += begin;
    a += begin;
#if SHAPE_CPU
    for (uint i = chunk_begin(n), end = chunk_end(n); i < end; i++) {
        d[i] = RECUR(a[i], d[i]);
        v[i] -= alpha * d[i];
    }
#else
    real v_of[UNROLL], d_of[UNROLL];
    LOAD_STORE(i, n, d_of[k] = RECUR(a[i], d[i]); v_of[k] = v[i] - alpha * d_of[k], d[i] = d_of[k]; v[i] = v_of[k])
#endif
}
