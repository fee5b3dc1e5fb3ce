"""The Python package beside SciPy, pyamg, pyamgcl and CuPy: seconds from a matrix to a solution, set-up included, as a table.

    pip install ./python scipy pyamg           # pyamgcl and CuPy, too, where they can be had
    python3 benches/peers/python.py            # problems of the gallery
    python3 benches/peers/python.py --only poisson3d:64 --devices host --runs 5 --rtol 1e-8 --json out.json

Each peer gets the same csr matrix and a random right-hand side, and counts if the b − A x that is recomputed here is below 1.1 rtol. One run
for nothing comes first, then --runs in turns; the table has medians. What takes more than --seconds for nothing is not repeated. On a GPU, give each its
process, by --peers: two libraries that have contexts on it slow each other down.
"""

import argparse
import inspect
import json
import statistics
import time
import warnings

import numpy as np
import scipy.sparse.linalg as linalg

import declive

PROBLEMS = ["poisson3d:64", "variable:64", "tetrahedra:24", "circuit:300", "elasticity3d-jumps:20"]


def peers(problem, a, devices):
    """Functions of b and rtol that give x, by name."""
    found = {
        "declive": lambda b, rtol: declive.solve(a, b, rtol=rtol, devices=devices).x,
        "declive amg": lambda b, rtol: declive.solve(a, b, rtol=rtol, method="cg", precond="amg", devices=devices).x,
        "scipy cg": lambda b, rtol: linalg.cg(a, b, rtol=rtol, maxiter=20000)[0],
    }
    inverse = 1.0 / a.diagonal()
    diagonal = linalg.LinearOperator(a.shape, matvec=lambda r: inverse * r, dtype=float)
    found["scipy cg, diagonal"] = lambda b, rtol: linalg.cg(a, b, rtol=rtol, maxiter=20000, M=diagonal)[0]
    try:
        import pyamg
    except ImportError:
        pass
    else:

        def smoothed(b, rtol):
            levels = pyamg.smoothed_aggregation_solver(a, B=constants(problem, a))
            return linalg.cg(a, b, rtol=rtol, M=levels.aspreconditioner(), maxiter=2000)[0]

        found["pyamg sa"] = smoothed
    try:
        import pyamgcl
    except ImportError:
        pass
    else:

        def amgcl(smoother):
            prm = {"relax.type": smoother, "coarsening.aggr.block_size": unknowns(problem)}

            def solve(b, rtol):
                levels = pyamgcl.amg(a, prm)
                return pyamgcl.solver(levels, {"type": "cg", "tol": rtol, "maxiter": 2000})(b)

            return solve

        found.update({f"pyamgcl {smoother}": amgcl(smoother) for smoother in ("spai0", "ilu0", "chebyshev")})
    try:
        import cupy
    except ImportError:
        pass
    else:
        found.update(on_gpu(a, cupy))
    return found


def on_gpu(a, cupy):
    """CuPy's cg, by itself and with the diagonal: the matrix goes to the GPU with each solve, and x comes back."""
    import cupyx.scipy.sparse
    import cupyx.scipy.sparse.linalg as gpu

    tolerance = "rtol" if "rtol" in inspect.signature(gpu.cg).parameters else "tol"

    def solve(b, rtol, preconditioned):
        on_device = cupyx.scipy.sparse.csr_matrix(a)
        inverse = 1.0 / on_device.diagonal() if preconditioned else None
        options = {tolerance: rtol, "maxiter": 20000}
        if preconditioned:
            options["M"] = gpu.LinearOperator(a.shape, matvec=lambda r: inverse * r, dtype=float)
        return gpu.cg(on_device, cupy.asarray(b), **options)[0].get()

    return {
        "cupy cg": lambda b, rtol: solve(b, rtol, False),
        "cupy cg, diagonal": lambda b, rtol: solve(b, rtol, True),
    }


def norm(v):
    """Without BLAS, whose threads spin for a while when they are done, and take processors from whoever comes next."""
    return float(np.square(v).sum()) ** 0.5


def unknowns(problem):
    """How many a node has."""
    return 3 if problem.startswith(("tetrahedra", "elasticity3d")) else 1


def constants(problem, a):
    """A constant for each unknown of a node."""
    of_node = unknowns(problem)
    return np.tile(np.eye(of_node), (a.shape[0] // of_node, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=PROBLEMS)
    parser.add_argument("--peers", nargs="+", help="those whose names begin so, such as cupy; default: all")
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rtol", type=float, default=1e-8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    table = {}
    for problem in args.only:
        a = declive.gallery.make(problem)
        a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
        b = np.random.default_rng(1).standard_normal(a.shape[0])
        functions, times = peers(problem, a, args.devices), {}
        if args.peers:
            functions = {name: one for name, one in functions.items() if name.startswith(tuple(args.peers))}
        for run in range(args.runs + 1):
            for name, function in functions.items():
                if run > 0 and (name not in times or times[name] is None):
                    continue
                start = time.perf_counter()
                x = function(b, args.rtol)
                seconds = time.perf_counter() - start
                solves = norm(b - a @ x) <= 1.1 * args.rtol * norm(b)
                if run == 0:
                    times[name] = [] if solves and seconds <= args.seconds else None
                else:
                    times[name].append(seconds)
        table[problem] = {name: statistics.median(all) if all else None for name, all in times.items()}
        print(f"{problem}, {a.shape[0]:,} rows, {a.nnz:,} entries", flush=True)
        for name, seconds in table[problem].items():
            print(f"  {name:20} " + (f"{seconds:8.3f} s" if seconds else "  not solved, or too slow"), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
