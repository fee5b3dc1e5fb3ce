/* Yee's scheme for Maxwell's equations: src/fdtd/slab.rs has the layout of arrays.
 *
 *   hx hy hz     room for a plane before the own cells, which is the halo: element cell + plane
 *   ex ey ez     the halo is behind: element cell
 *   index        the material of each own cell
 *   factors      of each material a, b / dx, b / dy, b / dz: 4 elements
 *
 * A launch updates `rows` rows of nx cells, from the cell `first` on, which begins a row. `wall` is the number of own cells whose plane is
 * the wall: a plane, or 0. Each sum and product is rounded as on the host, so that the bits are the same.
 *
 * GPU shape: a work-item has a cell, and its neighbour the next one. CPU shape: a work-item has some rows.
 */
#if SHAPE_CPU
#define EACH_CELL                                                                                                      \
    for (uint row = (uint)((ulong)rows * get_group_id(0) / get_num_groups(0)),                                         \
              row_end = (uint)((ulong)rows * (get_group_id(0) + 1) / get_num_groups(0));                               \
         row < row_end; row++)                                                                                         \
        for (uint x = 0, cell = first + row * nx; x < nx; x++, cell++)
#else
#define EACH_CELL                                                                                                      \
    for (uint item = get_global_id(0), cell = first + item, x = cell % nx; item < rows * nx;                           \
         item += get_global_size(0), cell = first + item, x = cell % nx)
#endif

/* The factors of a cell's material. */
#define FACTORS __constant const real *f = factors + 4 * index[cell];

/* Hz of Ex and Ey. Reads 3 elements a cell, writes 1. */
KERNEL void fdtd_te_h(uint first, uint rows, uint nx, __global real *restrict hz, __global const real *restrict ex,
                      __global const real *restrict ey, __global const uchar *restrict index,
                      __constant const real *factors)
{
    EACH_CELL {
        FACTORS
        const uint h = cell + nx;
        hz[h] = f[0] * hz[h] + (f[2] * (ex[cell + nx] - ex[cell]) - f[1] * (ey[cell + 1] - ey[cell]));
    }
}

/* Ex and Ey of Hz. Reads 3, writes 2. */
KERNEL void fdtd_te_e(uint first, uint rows, uint nx, uint wall, __global const real *restrict hz,
                      __global real *restrict ex, __global real *restrict ey, __global const uchar *restrict index,
                      __constant const real *factors)
{
    EACH_CELL {
        FACTORS
        const uint h = cell + nx;
        const real new_x = f[0] * ex[cell] + f[2] * (hz[h] - hz[h - nx]);
        const real new_y = f[0] * ey[cell] - f[1] * (hz[h] - hz[h - 1]);
        ex[cell] = cell < wall ? (real)0 : new_x;
        ey[cell] = x == 0 ? (real)0 : new_y;
    }
}

/* Hx and Hy of Ez. Reads 3, writes 2. */
KERNEL void fdtd_tm_h(uint first, uint rows, uint nx, __global real *restrict hx, __global real *restrict hy,
                      __global const real *restrict ez, __global const uchar *restrict index,
                      __constant const real *factors)
{
    EACH_CELL {
        FACTORS
        const uint h = cell + nx;
        hx[h] = f[0] * hx[h] - f[2] * (ez[cell + nx] - ez[cell]);
        hy[h] = f[0] * hy[h] + f[1] * (ez[cell + 1] - ez[cell]);
    }
}

/* Ez of Hx and Hy. Reads 3, writes 1. */
KERNEL void fdtd_tm_e(uint first, uint rows, uint nx, uint wall, __global const real *restrict hx,
                      __global const real *restrict hy, __global real *restrict ez,
                      __global const uchar *restrict index, __constant const real *factors)
{
    EACH_CELL {
        FACTORS
        const uint h = cell + nx;
        const real new_z = f[0] * ez[cell] + (f[1] * (hy[h] - hy[h - 1]) - f[2] * (hx[h] - hx[h - nx]));
        ez[cell] = x == 0 || cell < wall ? (real)0 : new_z;
    }
}

/* H of E in three dimensions, planes of `plane` cells. Reads 6, writes 3. */
KERNEL void fdtd_3d_h(uint first, uint rows, uint nx, uint plane, __global real *restrict hx,
                      __global real *restrict hy, __global real *restrict hz, __global const real *restrict ex,
                      __global const real *restrict ey, __global const real *restrict ez,
                      __global const uchar *restrict index, __constant const real *factors)
{
    EACH_CELL {
        FACTORS
        const uint h = cell + plane;
        const real x0 = ex[cell], y0 = ey[cell], z0 = ez[cell];
        hx[h] = f[0] * hx[h] + (f[3] * (ey[cell + plane] - y0) - f[2] * (ez[cell + nx] - z0));
        hy[h] = f[0] * hy[h] + (f[1] * (ez[cell + 1] - z0) - f[3] * (ex[cell + plane] - x0));
        hz[h] = f[0] * hz[h] + (f[2] * (ex[cell + nx] - x0) - f[1] * (ey[cell + 1] - y0));
    }
}

/* E of H in three dimensions, ny rows in a plane. Reads 6, writes 3. */
KERNEL void fdtd_3d_e(uint first, uint rows, uint nx, uint ny, uint wall, __global const real *restrict hx,
                      __global const real *restrict hy, __global const real *restrict hz,
                      __global real *restrict ex, __global real *restrict ey, __global real *restrict ez,
                      __global const uchar *restrict index, __constant const real *factors)
{
    const uint plane = nx * ny;
    EACH_CELL {
        FACTORS
        const uint h = cell + plane;
        const uint y = cell / nx % ny;
        const real x0 = hx[h], y0 = hy[h], z0 = hz[h];
        const real new_x = f[0] * ex[cell] + (f[2] * (z0 - hz[h - nx]) - f[3] * (y0 - hy[h - plane]));
        const real new_y = f[0] * ey[cell] + (f[3] * (x0 - hx[h - plane]) - f[1] * (z0 - hz[h - 1]));
        const real new_z = f[0] * ez[cell] + (f[1] * (y0 - hy[h - 1]) - f[2] * (x0 - hx[h - nx]));
        ex[cell] = y == 0 || cell < wall ? (real)0 : new_x;
        ey[cell] = x == 0 || cell < wall ? (real)0 : new_y;
        ez[cell] = x == 0 || y == 0 ? (real)0 : new_z;
    }
}

/* The part of 0..n that a work-item has: neighbours on a GPU, a chunk on a CPU. */
#if SHAPE_CPU
#define EACH_ITEM(i, n)                                                                                                \
    for (uint i = (uint)((ulong)(n) * get_group_id(0) / get_num_groups(0)),                                            \
              i##_end = (uint)((ulong)(n) * (get_group_id(0) + 1) / get_num_groups(0));                                \
         i < i##_end; i++)
#else
#define EACH_ITEM(i, n) for (uint i = get_global_id(0); i < (n); i += get_global_size(0))
#endif

/* What absorbing layers along an axis add to one component: psi = b psi + c d, target += sign factor ((1/k - 1) d + psi), d the difference
 * of the source's elements cell + far and cell + near. The layers are a box of its own of width x height x ... cells, of which a launch does
 * `count` from `begin` on; along `axis` those from `low` on are `shift` cells farther in the slab. `profile` has b, c and 1/k - 1 of each
 * cell along the axis. Where a bit of `walls` is set, the target is 0 in the first cells along that axis. */
KERNEL void fdtd_layer(uint begin, uint count, uint width, uint height, uint axis, uint low, uint shift, uint nx,
                       uint nxny, uint walls, uint to, uint far, uint near, real sign, __global real *restrict target,
                       __global const real *restrict source, __global real *restrict psi,
                       __global const real *restrict profile, __global const uchar *restrict index,
                       __constant const real *factors)
{
    EACH_ITEM(i, count)
    {
        const uint item = begin + i;
        uint x = item % width;
        uint y = item / width % height;
        uint z = item / (width * height);
        const uint depth = axis == 0 ? x : axis == 1 ? y : z;
        const uint jump = depth < low ? 0 : shift;
        x += axis == 0 ? jump : 0;
        y += axis == 1 ? jump : 0;
        z += axis == 2 ? jump : 0;
        const bool is_on_wall = ((walls & 1) && x == 0) || ((walls & 2) && y == 0) || ((walls & 4) && z == 0);
        if (!is_on_wall) {
            const uint cell = z * nxny + y * nx + x;
            const real d = source[cell + far] - source[cell + near];
            const real new_psi = profile[3 * depth] * psi[item] + profile[3 * depth + 1] * d;
            psi[item] = new_psi;
            target[cell + to] += sign * (factors[4 * index[cell] + 1 + axis] * (profile[3 * depth + 2] * d + new_psi));
        }
    }
}

/* Sets a box of cells to a value, or adds it: width x height x ... of them, `count` in all, from the element `first` on. */
KERNEL void fdtd_source(uint count, uint width, uint height, uint first, uint nx, uint nxny, uint is_hard, real value,
                        __global real *restrict target)
{
    EACH_ITEM(i, count)
    {
        const uint at = first + i / (width * height) * nxny + i / width % height * nx + i % width;
        target[at] = is_hard ? value : target[at] + value;
    }
}
