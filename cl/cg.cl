/* The two fused kernels of preconditioned conjugate gradients beside the product (csr.cl, spmv_dot_csr).
 *
 *   cg_step:       alpha = rho / p.q;  x += alpha p;  r -= alpha q;  parts of rho' = r.z and of r.r
 *   cg_direction:  beta = rho' / rho;  p = z + beta p
 *
 * where z = d r with the diagonal preconditioner d, or z = r; then r.z = r.r, and only one sum is formed.
 *
 * Scalars: a sum arrives as partial sums that a former kernel left on the device (count > 0), which every group adds by
 * itself in the same order, or as the host's value (count = 0). rho is on the device as one number, from the former
 * cg_direction, if rho_known is 0. One device alone so needs no word from the host.
 *
 * The end: cg_direction sets state[0] when r.r <= limit or is no number, or rho' is not positive; from then on nothing changes, so that
 * x stays the iterate that met the test although the host has already enqueued further iterations. A curvature p.q that
 * is not positive freezes x and r in the same way: cg_step then reports sums of zero. Only cg_direction writes the state,
 * by one work-item that alone reads it there.
 *
 * log[3 slot] = p.q, log[3 slot + 1] = rho' and log[3 slot + 2] = r.r tell the host, later, what happened.
 */

/* z = d r or r, by the kernel's variant. */
#define Z_PLAIN(i, v) (v)
#define Z_DIAGONAL(i, v) (d[i] * (v))

#if SHAPE_CPU
#define STEP_LOOP(WITH_Z)                                                                                              \
    uint i = chunk_begin(n), end = chunk_end(n);                                                                       \
    acc8 rr8 = 0, rz8 = 0;                                                                                             \
    for (; i + 8 <= end; i += 8) {                                                                                     \
        vstore8(vload8(0, x + i) + alpha * vload8(0, p + i), 0, x + i);                                                \
        real8 v = vload8(0, r + i) - alpha * vload8(0, q + i);                                                         \
        vstore8(v, 0, r + i);                                                                                          \
        acc8 w = convert_acc8(v);                                                                                      \
        rr8 += w * w;                                                                                                  \
        if (WITH_Z)                                                                                                    \
            rz8 += w * convert_acc8(vload8(0, d + i) * v);                                                             \
    }                                                                                                                  \
    for (; i < end; i++) {                                                                                             \
        x[i] += alpha * p[i];                                                                                          \
        real v = r[i] - alpha * q[i];                                                                                  \
        r[i] = v;                                                                                                      \
        rr += (acc)v * (acc)v;                                                                                         \
        if (WITH_Z)                                                                                                    \
            rz += (acc)v * (acc)(d[i] * v);                                                                            \
    }                                                                                                                  \
    rr += sum8(rr8);                                                                                                   \
    rz += sum8(rz8);
#else
#define STEP_LOOP(WITH_Z)                                                                                              \
    real x_of[UNROLL], r_of[UNROLL], z_of[UNROLL];                                                                     \
    LOAD_STORE(i, n, x_of[k] = x[i] + alpha * p[i]; r_of[k] = r[i] - alpha * q[i];                                     \
               if (WITH_Z) z_of[k] = d[i] * r_of[k],                                                                   \
               x[i] = x_of[k]; r[i] = r_of[k]; rr += (acc)r_of[k] * (acc)r_of[k];                                      \
               if (WITH_Z) rz += (acc)r_of[k] * (acc)z_of[k])
#endif

/* sums: partials of r.z (or of r.r) in sums[0..groups], with a preconditioner those of r.r in sums[groups..2 groups]. */
#define CG_STEP(NAME, WITH_Z)                                                                                          \
    KERNEL void NAME(uint n, __global const real *restrict d, __global real *restrict x, __global real *restrict r,    \
                     __global const real *restrict p, __global const real *restrict q,                                 \
                     __global const acc *restrict rho_device, uint rho_known, acc rho_value,                           \
                     __global const acc *restrict pq_partials, uint pq_count, acc pq_value,                            \
                     __global acc *restrict sums, __global const int *restrict state, __global acc *restrict log,      \
                     uint slot)                                                                                        \
    {                                                                                                                  \
        __local acc scratch[GROUP_SIZE];                                                                               \
        uint group = get_group_id(0), groups = get_num_groups(0);                                                      \
        int done = state[0];                                                                                           \
        acc rho = rho_known ? rho_value : rho_device[0];                                                               \
        acc pq = total(pq_partials, pq_count, scratch);                                                                \
        if (pq_count == 0)                                                                                             \
            pq = pq_value;                                                                                             \
        if (!done && get_global_id(0) == 0)                                                                            \
            log[3 * slot] = pq;                                                                                        \
        acc rr = 0, rz = 0;                                                                                            \
        if (!done && pq > 0 && isfinite(pq)) {                                                                         \
            real alpha = (real)(rho / pq);                                                                             \
            STEP_LOOP(WITH_Z)                                                                                          \
        }                                                                                                              \
        rr = group_sum(rr, scratch);                                                                                   \
        if (WITH_Z)                                                                                                    \
            rz = group_sum(rz, scratch);                                                                               \
        if (get_local_id(0) == 0) {                                                                                    \
            sums[group] = WITH_Z ? rz : rr;                                                                            \
            if (WITH_Z)                                                                                                \
                sums[groups + group] = rr;                                                                             \
        }                                                                                                              \
    }

CG_STEP(cg_step, 0)
CG_STEP(cg_step_diagonal, 1)

/* sums as cg_step left them, of count groups, or the host's rho_next_value. The sum becomes rho_next_device[0]. */
#define CG_DIRECTION(NAME, WITH_Z, Z)                                                                                  \
    KERNEL void NAME(uint n, __global const real *restrict d, __global const real *restrict r,                         \
                     __global real *restrict p, __global const acc *restrict sums, uint count, acc rho_next_value,     \
                     __global acc *restrict rho_next_device, __global const acc *restrict rho_device, uint rho_known,  \
                     acc rho_value, acc limit, __global int *restrict state, __global acc *restrict log, uint slot)    \
    {                                                                                                                  \
        __local acc scratch[GROUP_SIZE];                                                                               \
        acc rho = rho_known ? rho_value : rho_device[0];                                                               \
        acc rho_next = total(sums, count, scratch);                                                                    \
        acc rr = WITH_Z ? total(sums + count, count, scratch) : rho_next;                                              \
        int go_on = count == 0 || (rr > limit && isfinite(rr) && rho_next > 0);                                        \
        if (count == 0)                                                                                                \
            rho_next = rho_next_value;                                                                                 \
        else if (get_global_id(0) == 0) {                                                                              \
            rho_next_device[0] = rho_next;                                                                             \
            if (!state[0]) {                                                                                           \
                log[3 * slot + 1] = rho_next;                                                                          \
                log[3 * slot + 2] = rr;                                                                                \
                state[0] = !go_on;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        if (go_on) {                                                                                                   \
            real beta = (real)(rho_next / rho);                                                                        \
            SET_EACH(i, n, p, Z(i, r[i]) + beta * p[i])                                                                \
        }                                                                                                              \
    }

CG_DIRECTION(cg_direction, 0, Z_PLAIN)
CG_DIRECTION(cg_direction_diagonal, 1, Z_DIAGONAL)
