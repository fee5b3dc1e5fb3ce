"""SciPy on the system that benches/iteration.rs solves: its sparse product alone, and an iteration of its cg.

    python3 benches/peers/scipy_cg.py 100        # poisson3d:100

The product is what bounds it: one thread, 64-bit floats, 32-bit indices. Prints medians in microseconds.
"""
import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg


def poisson3d(m):
    d = sp.diags([-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1)], [-1, 0, 1])
    i = sp.identity(m)
    a = sp.kron(sp.kron(d, i), i) + sp.kron(sp.kron(i, d), i) + sp.kron(sp.kron(i, i), d)
    a = a.tocsr()
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    return a


def median_us(f, repeat):
    samples = []
    for _ in range(repeat + 2):
        start = time.perf_counter()
        count = f()
        samples.append((time.perf_counter() - start) * 1e6 / count)
    return statistics.median(samples[2:])


for m in map(int, sys.argv[1:] or ["100"]):
    a = poisson3d(m)
    x, b = np.random.default_rng(1).standard_normal(m**3), np.ones(m**3)

    def product():
        a @ x
        return 1

    def iterations(count=50):
        done = [0]
        cg(a, b, rtol=0.0, atol=0.0, maxiter=count, callback=lambda _: done.__setitem__(0, done[0] + 1))
        return done[0]

    print(f"poisson3d:{m}: product {median_us(product, 20):.1f} µs, cg {median_us(iterations, 5):.1f} µs an iteration")
