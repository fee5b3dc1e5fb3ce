"""LAPACK, through SciPy, beside declive's tridiagonal and dense solvers on the processor.

    pip install scipy
    python3 benches/peers/lapack.py --declive target/release/declive            # times
    python3 benches/peers/lapack.py --declive target/release/declive --check    # answers
    python3 benches/peers/lapack.py --declive target/release/declive --check --devices 0

Times are the best of several runs, by as many threads as each takes; many tridiagonal systems are one long one for LAPACK, whose couplings
are 0. Answers of `declive solve` are compared at orders around those of groups and blocks: they may differ by the condition number
times rounding.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--declive", default="target/release/declive", metavar="PROGRAM")
parser.add_argument("--check", action="store_true", help="compare answers")
parser.add_argument("--devices", default="host", help="of declive's, for --check")
parser.add_argument("--orders", type=int, nargs="*", default=[500, 1000, 2000, 4000], help="of dense matrices")
args = parser.parse_args()
random = np.random.default_rng(1)
EPSILON = np.finfo(float).eps


def best(call, runs=5):
    """Seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def declive(*arguments):
    done = subprocess.run([args.declive, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def report(*arguments):
    code, out, err = declive(*arguments, "--json")
    if code:
        sys.exit(err)
    return json.loads(out)


def table(head, rows):
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print()


def tridiagonal_times():
    rows = []
    for systems, size in ((4096, 1024), (65536, 128), (1, 10_000_000)):
        n = systems * size
        lower, upper = random.uniform(-1, 1, n - 1), random.uniform(-1, 1, n - 1)
        lower[size - 1 :: size] = upper[size - 1 :: size] = 0
        diagonal, b = random.uniform(2, 3, n), random.uniform(-1, 1, n)
        symmetric = best(lambda: lapack.dptsv(diagonal, lower, b), 3)
        general = best(lambda: lapack.dgtsv(lower, diagonal, upper, b), 3)
        found = report("bench", "tridiagonal", "--systems", str(systems), "--size", str(size), "--devices", "host", "--repeat", "3")
        mine = {entry["method"]: entry["time"]["low"] for entry in found["entries"]}
        fastest = min(mine["thomas"], mine["partition"])
        cells = [general, symmetric, mine["pivoting"], mine["thomas"], mine["partition"]]
        rows.append(
            [f"{systems:,} of {size:,}", *(f"{1e3 * cell:.1f}" for cell in cells)]
            + [f"{general / mine['pivoting']:.2f}", f"{general / fastest:.2f}"]
        )
    head = ["systems", "dgtsv ms", "dptsv ms", "pivoting ms", "thomas ms", "partition ms", "dgtsv / pivoting", "dgtsv / best"]
    table(head, rows)


def dense_times():
    rows = []
    for n in args.orders:
        a = random.uniform(-0.5, 0.5, (n, n))
        symmetric = a + a.T
        definite = symmetric + n * np.eye(n)
        theirs = {
            "lu": best(lambda: linalg.lu_factor(a, check_finite=False), 3),
            "cholesky": best(lambda: linalg.cho_factor(definite, lower=True, check_finite=False), 3),
            "ldlt": best(lambda: lapack.dsytrf(symmetric, lower=1, lwork=64 * n), 3),
        }
        found = report("bench", "blas", "--size", str(n), "--devices", "host", "--repeat", "3")
        for one in found["factorisations"]:
            if one["devices"]:
                continue
            kind, mine = one["kind"], one["times"]["factorise"]
            rate = [1e-9 * one["flops"] / seconds for seconds in (theirs[kind], mine)]
            rows.append([f"{n:,}", kind, *(f"{value:.1f}" for value in rate), f"{theirs[kind] / mine:.2f}"])
    table(["order", "factors", "LAPACK GFLOP/s", "declive GFLOP/s", "declive faster by"], rows)


class Check:
    """Counts what differs."""

    def __init__(self, folder):
        self.folder, self.done, self.bad = folder, 0, 0

    def say(self, what, is_right, detail=""):
        self.done += 1
        if not is_right:
            self.bad += 1
            print(f"WRONG: {what}: {detail}")

    def solve(self, what, method, matrix, b, expected, condition, *more):
        a_file, b_file, x_file = (os.path.join(self.folder, name) for name in ("A.mtx", "b.mtx", "x.mtx"))
        write(a_file, matrix)
        write(b_file, np.asarray(b)[:, None])
        code, out, err = declive(
            "solve", a_file, "-b", b_file, "-o", x_file, "--method", method, "--devices", args.devices, "--rtol", "1e-10", *more
        )
        if code:
            return self.say(what, False, err or out)
        x = read(x_file)
        error = np.abs(x - expected).max() / np.abs(expected).max()
        self.say(what, error <= 50 * len(b) * EPSILON * condition, f"differs by {error:.1e}")


def write(path, matrix):
    """An array, or (n, rows, columns, values)."""
    with open(path, "w") as out:
        if isinstance(matrix, tuple):
            n, rows, columns, values = matrix
            out.write(f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(values)}\n")
            out.writelines(f"{i + 1} {j + 1} {v!r}\n" for i, j, v in zip(rows.tolist(), columns.tolist(), values.tolist()))
        else:
            out.write(f"%%MatrixMarket matrix array real general\n{matrix.shape[0]} {matrix.shape[1]}\n")
            out.writelines(f"{v!r}\n" for v in matrix.T.ravel().tolist())


def read(path):
    with open(path) as lines:
        text = [line for line in lines if not line.startswith("%")]
    return np.array([float(line) for line in text[1:]])


def bands(n, lower, diagonal, upper):
    i = np.arange(n)
    rows, columns = np.concatenate([i, i[1:], i[:-1]]), np.concatenate([i, i[:-1], i[1:]])
    return n, rows, columns, np.concatenate([diagonal, lower, upper])


def check_tridiagonal(check):
    sizes = [*range(1, 20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 1_000_000]
    for n in sizes:
        lower, upper = random.uniform(-1, 1, max(n - 1, 0)), random.uniform(-1, 1, max(n - 1, 0))
        b = random.uniform(-1, 1, n)
        # dominant, and with pivots that only exchanges of rows find
        for name, diagonal in (("dominant", random.uniform(2, 3, n)), ("general", random.uniform(-0.3, 0.3, n))):
            banded = np.zeros((3, n))
            banded[0, 1:], banded[1], banded[2, :-1] = upper, diagonal, lower
            x = linalg.solve_banded((1, 1), banded, b)
            # how much a change of b by rounding changes x
            changed = linalg.solve_banded((1, 1), banded, b * (1 + EPSILON * random.uniform(-1, 1, n)))
            condition = max(10.0, np.abs(changed - x).max() / np.abs(x).max() / EPSILON)
            check.solve(f"tridiagonal, {name}, n = {n}", "tridiagonal", bands(n, lower, diagonal, upper), b, x, condition)


def check_dense(check):
    for n in (1, 2, 3, 7, 16, 17, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 300, 385):
        a = random.uniform(-0.5, 0.5, (n, n))
        for name, matrix in (
            ("general", a),
            ("symmetric", a + a.T),
            ("definite", a + a.T + 2 * n * np.eye(n)),
            ("zero diagonal", a - np.diag(np.diag(a)) + np.eye(n)[::-1]),
        ):
            b = random.uniform(-1, 1, n)
            if n == 1 and name == "zero diagonal":
                continue
            check.solve(f"dense, {name}, n = {n}", "dense", matrix, b, linalg.solve(matrix, b), np.linalg.cond(matrix, 1))
    for n in (4, 6, 8):
        hilbert = linalg.hilbert(n)
        b = hilbert @ np.ones(n)
        check.solve(f"Hilbert's, n = {n}", "dense", hilbert, b, linalg.solve(hilbert, b), np.linalg.cond(hilbert, 1))
    wilkinson = np.eye(40) - np.tril(np.ones((40, 40)), -1)
    wilkinson[:, -1] = 1
    x = random.integers(-9, 10, 40).astype(float)  # LAPACK's own would need refinement
    check.solve("growing pivots", "dense", wilkinson, wilkinson @ x, x, np.linalg.cond(wilkinson, 1))
    singular = np.ones((5, 5))
    a_file = os.path.join(check.folder, "A.mtx")
    write(a_file, singular)
    b_file = os.path.join(check.folder, "b.mtx")
    write(b_file, np.arange(5.0)[:, None])
    code, out, err = declive("solve", a_file, "-b", b_file, "--method", "dense", "--devices", args.devices)
    check.say("singular", code == 1 and "column 2" in out + err, f"exit code {code}: {out}{err}")


if args.check:
    with tempfile.TemporaryDirectory() as folder:
        check = Check(folder)
        check_tridiagonal(check)
        check_dense(check)
    print(f"{check.done - check.bad} of {check.done} answers are those of LAPACK")
    sys.exit(bool(check.bad))
tridiagonal_times()
dense_times()
