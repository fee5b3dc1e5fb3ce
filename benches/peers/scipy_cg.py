"""SciPy on the systems of .npz files: its sparse product alone, and an iteration of its cg.

    declive convert --generate poisson3d:100 A.npz
    python3 benches/peers/scipy_cg.py A.npz [MORE.npz] [--iterations 50] [--blocks 5]

The product is what bounds it: one thread, 64-bit floats, 32-bit indices. Prints one JSON document a line, for each
file: microseconds as [lower quartile, median, upper quartile].
"""

import argparse
import json
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before it is loaded; on short vectors more threads mostly wait

import numpy
import scipy
import scipy.sparse
from scipy.sparse.linalg import cg

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("files", nargs="+", metavar="A.npz")
parser.add_argument("--iterations", type=int, default=50, help="in each block")
parser.add_argument("--blocks", type=int, default=5, help="that are timed")
args = parser.parse_args()


def quartiles(call, blocks):
    """Microseconds of what `call` counts, after two calls for nothing."""
    samples = []
    for _ in range(blocks + 2):
        start = time.perf_counter()
        count = call()
        samples.append((time.perf_counter() - start) * 1e6 / count)
    return {"microseconds": [float(q) for q in numpy.percentile(samples[2:], [25, 50, 75])]}


for path in args.files:
    a = scipy.sparse.load_npz(path).tocsr()
    assert a.indices.dtype == a.indptr.dtype == numpy.int32
    n = a.shape[0]
    # ones would be an eigenvector of some systems
    b, x = (numpy.random.default_rng(seed).standard_normal(n) for seed in (1, 2))

    def product():
        a @ x
        return 1

    def iterations():
        made = [0]

        def count(_):
            made[0] += 1

        cg(a, b, rtol=0.0, atol=0.0, maxiter=args.iterations, callback=count)
        return made[0]

    about = {"version": 1, "scipy": scipy.__version__, "file": path, "n": n, "nnz": int(a.nnz)}
    times = {"product": quartiles(product, 4 * args.blocks), "cg": quartiles(iterations, args.blocks)}
    print(json.dumps(about | times), flush=True)
