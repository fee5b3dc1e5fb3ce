"""Other programs on the files that benches/matrix_market times, in turns with declive.

    cargo bench --bench matrix_market --no-run          # prints the path of the program
    python3 benches/peers/matrix_market.py PROGRAM --dir target/bench-data [--size 100] [--rounds 7] [--json FILE]

Needs SciPy, and fast_matrix_market 1.7 for its rows. In every round each program does each operation once, on the same
file, which the system has in memory, with as many threads as this process may use cores. Only the call itself is timed,
within each process, after a first one for nothing. What is written goes to a new file in --out. Prints one JSON
document: all samples, medians, and ratios of medians to declive's.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import scipy
import scipy.io
import scipy.io._fast_matrix_market as scipy_mm
import scipy.sparse

try:
    import fast_matrix_market as fmm
except ImportError:
    fmm = None

CORES = len(os.sched_getaffinity(0))
scipy_mm.PARALLELISM = CORES  # otherwise it may take those that this process may not use

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("program", help="the program that `cargo bench --bench matrix_market --no-run` makes")
parser.add_argument("--dir", type=Path, required=True, help="where the files are, or are made")
parser.add_argument("--out", type=Path, default=Path("/dev/shm"), help="where files are written")
parser.add_argument("--size", type=int, default=100, help="points along each axis of the grid")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--only", nargs="*", help="operations, of: read-mtx read-gz read-npz write-mtx write-general write-npz")
parser.add_argument("--json", type=Path, help="file for the result")
args = parser.parse_args()


def declive(operation):
    """Seconds of one operation, warmed up in a process of its own."""
    command = [args.program, operation, "--samples", "1", "--size", str(args.size), "--threads", str(CORES)]
    run = subprocess.run([*command, "--dir", args.dir, "--out", args.out], capture_output=True, check=False)
    if run.returncode:
        sys.exit(run.stderr.decode())
    [result] = json.loads(run.stdout)["results"]
    return result["seconds"][0], result["bytes"]


def timed(call):
    """Seconds of a call, whose result is dropped later."""
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    del result
    return seconds


def writing(call, ending):
    """Seconds of writing a new file, which does not stay."""
    path = args.out / f"peer-bench-{os.getpid()}{ending}"
    try:
        return timed(lambda: call(path))
    finally:
        path.unlink(missing_ok=True)


def file(ending):
    return str(args.dir / f"grid{args.size}.{ending}")


for operation in {"read-mtx", "read-npz"} | {"read-gz"} & set(args.only or ["read-gz"]):  # makes the files
    declive(operation)

csr = scipy.sparse.load_npz(file("npz"))
assert csr.has_sorted_indices and csr.indices.dtype == numpy.int32
assert (csr != scipy.io.mmread(file("mtx")).tocsr()).nnz == 0
lower = scipy.sparse.tril(csr.tocsc()).tocoo()  # what a writer of the symmetric file needs, made beforehand

PEERS = {
    "read-mtx": {"scipy mmread": lambda: timed(lambda: scipy.io.mmread(file("mtx")))},
    "read-gz": {"scipy mmread": lambda: timed(lambda: scipy.io.mmread(file("mtx.gz")))},
    "read-npz": {"scipy load_npz": lambda: timed(lambda: scipy.sparse.load_npz(file("npz")))},
    "write-mtx": {
        "scipy mmwrite": lambda: writing(lambda path: scipy.io.mmwrite(path, lower, symmetry="symmetric"), ".mtx")
    },
    "write-general": {
        "scipy mmwrite": lambda: writing(lambda path: scipy.io.mmwrite(path, csr, symmetry="general"), ".mtx")
    },
    "write-npz": {
        "scipy save_npz": lambda: writing(lambda path: scipy.sparse.save_npz(path, csr, compressed=False), ".npz")
    },
}
if fmm:
    PEERS["read-mtx"] |= {
        "fast_matrix_market": lambda: timed(lambda: fmm.mmread(file("mtx"), parallelism=CORES)),
        # declive ends with compressed rows, mmread with triplets
        "fast_matrix_market, to CSR": lambda: timed(lambda: fmm.mmread(file("mtx"), parallelism=CORES).tocsr()),
    }
    PEERS["read-gz"] |= {"fast_matrix_market": lambda: timed(lambda: fmm.mmread(file("mtx.gz"), parallelism=CORES))}
    PEERS["write-mtx"] |= {
        "fast_matrix_market": lambda: writing(
            lambda path: fmm.mmwrite(path, lower, symmetry="symmetric", parallelism=CORES), ".mtx"
        )
    }
    PEERS["write-general"] |= {
        "fast_matrix_market": lambda: writing(
            lambda path: fmm.mmwrite(path, csr, symmetry="general", parallelism=CORES), ".mtx"
        )
    }

operations = args.only or list(PEERS)
samples = {operation: {"declive": [], **{name: [] for name in PEERS[operation]}} for operation in operations}
size = {}
load = [os.getloadavg()[0]]
for operation in operations:
    for peer in PEERS[operation].values():
        peer()
    for _ in range(args.rounds):
        seconds, size[operation] = declive(operation)
        samples[operation]["declive"].append(seconds)
        for name, peer in PEERS[operation].items():
            samples[operation][name].append(peer())
load.append(os.getloadavg()[0])

results = []
for operation, of in samples.items():
    medians = {name: statistics.median(values) for name, values in of.items()}
    for name, values in of.items():
        times, spread = medians[name] / medians["declive"], f"{min(values) * 1e3:.0f} to {max(values) * 1e3:.0f}"
        rate = size[operation] / medians[name] / 1e9
        print(
            f"{operation:14}{name:28}{medians[name] * 1e3:9.1f} ms ({spread:14}) {rate:6.2f} GB/s {times:6.2f} × declive",
            file=sys.stderr,
        )
        results.append(
            {
                "operation": operation,
                "program": name,
                "bytes": size[operation],
                "seconds": values,
                "median": medians[name],
                "gigabytes_per_second": rate,
                "of_declive": times,
            }
        )
document = {
    "version": 1,
    "processor": next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), None),
    "cores": CORES,
    "load": load,
    "size": args.size,
    "versions": {
        "python": sys.version.split()[0],
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "fast_matrix_market": getattr(fmm, "__version__", None),
    },
    "results": results,
}
text = json.dumps(document, indent=2)
if args.json:
    args.json.write_text(text + "\n")
else:
    print(text)
