"""CuPy on the systems of .npz files: cuSPARSE's product, CuPy's own cg, and a loop that a careful user writes.

    declive convert --generate poisson3d:100 A.npz
    python3 benches/peers/gpu.py A.npz [MORE.npz] [--precision f32] [--blocks 7] [--iterations 200]

Needs NumPy, SciPy, CuPy and a CUDA device. Prints one JSON document a line, for each file:

    product   y = A x by cupyx's csr_matrix, which is cuSPARSE
    cg        an iteration of cupyx.scipy.sparse.linalg.cg
    loop      an iteration of conjugate gradients in which the host waits for nothing: scalars stay on the device as
              arrays of one element, x and r are updated by one kernel, p by another, cupy.dot makes the dot products

Each is timed in blocks of many calls between two waits for the device, in turns with the others, after blocks for
nothing; times are microseconds a call or an iteration, as [lower quartile, median, upper quartile]. Bytes are counted
by declive's rule: each array that an operation reads counts once, and each that it writes.
"""

import argparse
import inspect
import json
import sys
import time

import cupy
import cupyx.scipy.sparse
import cupyx.scipy.sparse.linalg
import numpy
import scipy.sparse

step = cupy.ElementwiseKernel("T a, T p, T q", "T x, T r", "x += a * p; r -= a * q", "cg_step")
direction = cupy.ElementwiseKernel("T b, T r", "T p", "p = r + b * p", "cg_direction")

# CuPy 14 renamed it, as SciPy did
TOLERANCE = "rtol" if "rtol" in inspect.signature(cupyx.scipy.sparse.linalg.cg).parameters else "tol"


def loop(a, b, iterations):
    """x after some iterations of conjugate gradients from zero."""
    x, r, p = cupy.zeros_like(b), b.copy(), b.copy()
    rho = cupy.dot(r, r)
    for _ in range(iterations):
        q = a @ p
        step(rho / cupy.dot(p, q), p, q, x, r)
        former, rho = rho, cupy.dot(r, r)
        direction(rho / former, r, p)
    return x


def library(a, b, iterations):
    """x after as many of CuPy's own, and how many it made."""
    made = [0]

    def count(_):
        made[0] += 1

    options = {TOLERANCE: 0.0, "atol": 0.0, "maxiter": iterations, "callback": count}
    return cupyx.scipy.sparse.linalg.cg(a, b, **options)[0], made[0]


def seconds(call):
    """Of a call, to when the device has done all."""
    device = cupy.cuda.Device()
    device.synchronize()
    start = time.perf_counter()
    call()
    device.synchronize()
    return time.perf_counter() - start


def measure(path, precision, iterations, blocks):
    host = scipy.sparse.load_npz(path).tocsr()
    dtype = numpy.dtype({"f64": "float64", "f32": "float32"}[precision])
    n, nnz, width = host.shape[0], host.nnz, dtype.itemsize
    a = cupyx.scipy.sparse.csr_matrix(
        (cupy.asarray(host.data, dtype), cupy.asarray(host.indices, "int32"), cupy.asarray(host.indptr, "int32")),
        shape=host.shape,
    )
    # ones would be an eigenvector of some systems
    b, x = (cupy.asarray(numpy.random.default_rng(seed).standard_normal(n), dtype) for seed in (1, 2))

    def products(count):
        for _ in range(count):
            a @ x

    _, made = library(a, b, iterations)  # warms up, too
    loop(a, b, 10)
    products(3)
    # a block of products takes about 20 ms: what the waits cost is nothing beside it
    calls = max(3, min(1000, int(0.02 / (seconds(lambda: products(10)) / 10))))
    turns = {
        "product": (lambda: products(calls), calls),
        "cg": (lambda: library(a, b, iterations), made),
        "loop": (lambda: loop(a, b, iterations), iterations),
    }
    samples = {name: [] for name in turns}
    for block in range(blocks + 1):
        for name, (call, count) in turns.items():
            microseconds = seconds(call) / count * 1e6
            if block:
                samples[name].append(microseconds)

    product = (width + 4) * nnz + 4 * (n + 1) + 2 * n * width
    # beside the product: p and q; p, q, x, r and again x, r; r; r, p and again p
    moved = {"product": product, "cg": None, "loop": product + (2 + 6 + 1 + 3) * n * width}
    times = {}
    for name, values in samples.items():
        lower, median, upper = (float(q) for q in numpy.percentile(values, [25, 50, 75]))
        rate = moved[name] and moved[name] / median / 1e3
        times[name] = {"microseconds": [lower, median, upper], "bytes": moved[name], "gigabytes_per_second": rate}
    residual = b - a @ loop(a, b, iterations)
    return {
        "file": path,
        "n": n,
        "nnz": nnz,
        "precision": precision,
        "blocks": blocks,
        "iterations": iterations,
        "loop_relative_residual": float(cupy.linalg.norm(residual) / cupy.linalg.norm(b)),
        **times,
    }


def device_name():
    return cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="A.npz")
    parser.add_argument("--precision", choices=["f64", "f32"], default="f64")
    parser.add_argument("--iterations", type=int, default=200, help="in each block of the solvers")
    parser.add_argument("--blocks", type=int, default=7, help="that are timed")
    args = parser.parse_args()
    if args.blocks < 1 or args.iterations < 1:
        parser.error("there must be an iteration and a block at least")
    about = {"version": 1, "device": device_name(), "cupy": cupy.__version__}
    for path in args.files:
        try:
            document = about | measure(path, args.precision, args.iterations, args.blocks)
        except (OSError, ValueError, cupy.cuda.memory.OutOfMemoryError) as e:
            sys.exit(f"{path}: {e}")
        print(json.dumps(document), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
