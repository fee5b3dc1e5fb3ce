"""declive and other programs on the same systems in the same run, as a table.

    cargo build --release
    python3 benches/peers/compare.py --declive target/release/declive              # a GPU; needs CuPy
    python3 benches/peers/compare.py --declive target/release/declive --cpu        # the processor; needs SciPy
    python3 benches/peers/compare.py --declive … --only 64³ jumps --json out.json  # two systems
    python3 benches/peers/compare.py --declive … --matrices DIR                    # files, too

Each system is generated once, as a .npz file that every program reads. First, system by system from the smallest, come
declive with --format auto and the peers: gpu.py, or with --cpu scipy_cg.py and, where --kryst names the program in
benches/peers/kryst, that. Then come declive's other formats. What has not begun after --seconds is left out, and said
to be.

declive makes --iterations iterations without a tolerance, for a random right-hand side: once for nothing, which lets it
find its launch parameters, then --runs times with those. Where this is more than the system has digits for, and the
method began again from the true residual, fewer are made. The table has medians, with the least and the largest in
brackets; all samples are in the JSON document. product is that of the fastest peer, alone, and ratio the fastest peer's
time of an iteration over declive's.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# name and problem, from the smallest to the largest; what is too large for a file is made in memory
GPU = {
    "7-point 64³": "poisson3d:64",
    "7-point 100³": "poisson3d:100",
    "dense rows": "dense-rows:1000000",
    "random": "random-spd:1000000",
    "jumps": "jumps:150",
    "band": "band:1000000,width=12",
    "power law": "graph-laplacian:4000000,skew=3",
    "tetrahedra": "tetrahedra:74",
    "7-point 215³": "poisson3d:215",
    "variable 215³": "variable:215",
    "hexahedra": "elasticity3d:70",
    "27-point 150³": "poisson3d27:150",
}
LARGE = {"7-point 464³": "poisson3d:464"}
CPU = {
    "7-point 100³": "poisson3d:100",
    "tetrahedra": "tetrahedra:45",
    "hexahedra": "elasticity3d:40",
}
FEWEST_ENTRIES = 100_000  # of a file of --matrices
ENDINGS = (".mtx", ".npz", ".mtx.gz", ".mtx.bz2", ".mtx.xz", ".mtx.zst", ".tar.gz")


class Failed(Exception):
    """A program ended in an error, which this is."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--declive", type=Path, required=True, metavar="PATH", help="the program")
    parser.add_argument("--cpu", action="store_true", help="the processor instead of a GPU, with peers for it")
    parser.add_argument("--devices", nargs="+", metavar="LIST", help="for declive [gpu; with --cpu host and cpu]")
    parser.add_argument("--precision", choices=["f64", "f32"], default="f64")
    parser.add_argument("--formats", nargs="+", metavar="FORMAT", help="of declive, beside auto [all that it has]")
    parser.add_argument("--precond", default="none", help="of declive; peers have none")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="systems and files whose names contain one of these")
    parser.add_argument("--systems", nargs="+", default=[], metavar="PROBLEM", help="more, as of 'declive generate'")
    parser.add_argument("--matrices", type=Path, metavar="DIR", help="of files, those of 10⁵ entries or more")
    parser.add_argument("--large", choices=["alone", "peers"], help="7-point 464³, too, without or with peers")
    parser.add_argument("--iterations", type=int, help="of a run [300; with --cpu 60]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=330, help="after which nothing more begins")
    parser.add_argument("--python", default=sys.executable, help="for the peers")
    parser.add_argument("--kryst", type=Path, metavar="PATH", help="the program in benches/peers/kryst, built")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--dir", type=Path, help="for the files, which then stay and serve again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all measurements")
    args = parser.parse_args()
    args.declive = args.declive.resolve()  # what is run is named by a path
    args.devices = args.devices or (["host", "cpu"] if args.cpu else ["gpu"])
    args.iterations = args.iterations or (60 if args.cpu else 300)
    if args.runs < 1 or args.iterations < 1:
        parser.error("there must be a run and an iteration at least")
    if args.matrices and not args.matrices.is_dir():
        parser.error(f"--matrices {args.matrices}: there is no such directory")
    return args


def output(*command, may_end_with=(0,)):
    """What a program prints."""
    try:
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except OSError as e:
        raise Failed(f"{command[0]}: {e.strerror}") from e
    if run.returncode not in may_end_with:
        words = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        told = next((line for line in words if line.startswith("error: ")), words[-1])
        raise Failed(told.removeprefix("error: "))
    return run.stdout


def formats(declive):
    """All that `declive solve --format` takes but auto."""
    run = subprocess.run([declive, "solve", "--format", "?", "-"], capture_output=True, text=True, check=False)
    found = re.search(r"\[possible values: (.*?)\]", run.stderr, re.DOTALL)
    return [f for f in re.split(r",\s*", found[1]) if f != "auto"] if found else []


def systems(args):
    """Names, and for each the arguments that name its matrix, and whether it is written to a file."""
    chosen = {name: (["--generate", spec], True) for name, spec in (CPU if args.cpu else GPU).items()}
    if args.large:
        chosen |= {name: (["--generate", spec], args.large == "peers") for name, spec in LARGE.items()}
    if args.matrices:
        files = sorted(f for f in args.matrices.iterdir() if f.name.endswith(ENDINGS))
        chosen |= {f.name: ([f], True) for f in sorted(files, key=lambda f: f.stat().st_size)}
    if args.only is not None:
        chosen = {name: of for name, of in chosen.items() if any(part in name for part in args.only)}
    return chosen | {spec: (["--generate", spec], True) for spec in args.systems}


class System:
    """A system, and what was measured."""

    def __init__(self, name, source, written, directory):
        self.name, self.source, self.written = name, source, written
        self.path = directory / (re.sub(r"[^A-Za-z0-9.=]+", "_", str(source[-1])) + ".npz")
        self.n = self.nnz = None
        self.declive, self.peers, self.notes = [], {}, []

    @property
    def generated(self):
        return self.source[0] == "--generate"

    def write(self, declive):
        """Makes the file; whether it has enough entries, where nobody asked for this system by name."""
        if not self.written or self.path.exists():
            return True
        report = json.loads(output(declive, "convert", "--json", *self.source, self.path))
        if self.generated or report["matrix"]["nnz"] >= FEWEST_ENTRIES:
            return True
        self.path.unlink()
        return False

    def matrix(self):
        return [self.path] if self.written else self.source

    def solve(self, args, devices, form, iterations, tune):
        """The report of declive. It exits with 1, as no tolerance is met."""
        command = [args.declive, "solve", *self.matrix(), "--devices", devices, "--format", form, "--tune", tune]
        command += ["--precision", args.precision, "--precond", args.precond, "--json", "--rtol", "0"]
        command += ["--rhs", "random:1"]  # ones would be an eigenvector of some systems
        command += ["--max-iters", iterations, *(["--assume-symmetric"] if self.generated else [])]
        return json.loads(output(*command, may_end_with=(0, 1)))

    def measure(self, args, devices, form):
        """declive's time of an iteration."""
        first = self.solve(args, devices, form, args.iterations, "quick")
        self.n, self.nnz = first["matrix"]["rows"], first["matrix"]["nnz"]
        if first["reason"] not in ("MaxIters", "Stagnation", "Converged") or first["iterations"] == 0:
            raise Failed(first["reason_text"])
        count = args.iterations
        if first["restarts"] or first["iterations"] < count:
            count = max(1, first["iterations"] // (first["restarts"] + 2))
        reports = [self.solve(args, devices, form, count, "stored") for _ in range(args.runs)]
        samples = [report["microseconds_per_iteration"] for report in reports]
        median, last = statistics.median(samples), reports[-1]
        self.declive.append(
            {
                "devices": devices,
                "asked": form,
                "format": "+".join(dict.fromkeys(rank["format"] for rank in last["ranks"])),
                "ranks": [rank["device"] for rank in last["ranks"]],
                "iterations": count,
                "restarts": [report["restarts"] for report in reports],
                "microseconds": samples,
                "median": median,
                "bytes": last["bytes_per_iteration"],
                "gigabytes_per_second": last["bytes_per_iteration"] / median / 1e3,
            }
        )

    def run_peers(self, args):
        """What the peers print of this file: a document a line, of which the last counts. They make as many iterations:
        far beyond its digits the numbers of a method are no longer those of a solve."""
        programs = {"cupy": [args.python, HERE / "gpu.py", "--precision", args.precision]}
        if args.cpu:
            programs = {"scipy": [args.python, HERE / "scipy_cg.py"]}
            if args.kryst:
                programs["kryst"] = [args.kryst.resolve()]
        count = min(of["iterations"] for of in self.declive)
        for name, command in programs.items():
            try:
                self.peers[name] = json.loads(output(*command, "--iterations", count, self.path).splitlines()[-1])
            except (Failed, IndexError, ValueError) as e:
                self.note(f"{name}: {e}")

    def note(self, text):
        self.notes.append(text)
        print(f"{self.name}: {text}", file=sys.stderr)

    def iterations_of_peers(self):
        """Quartiles of an iteration, by name."""
        found = {}
        for name, of in self.peers.items():
            for solver in ("cg", "loop"):
                if solver in of:
                    found[f"{name} {solver}"] = of[solver]["microseconds"]
        return found

    def document(self):
        return {
            "name": self.name,
            "source": str(self.source[-1]),
            "n": self.n,
            "nnz": self.nnz,
            "declive": self.declive,
            "peers": self.peers,
            "notes": self.notes,
        }


def spread(samples):
    return f"{statistics.median(samples):.1f} ({min(samples):.1f}–{max(samples):.1f})"


def table(measured):
    """Lines of the table, a system after the other, what it chose itself before the formats that it was told."""
    peers = list(dict.fromkeys(peer for system in measured for peer in system.iterations_of_peers()))
    products = any("product" in of for system in measured for of in system.peers.values())
    head = ["system", "rows", "entries", "devices", "format", "declive µs", "GB/s"]
    head += [f"{peer} µs" for peer in peers] + (["product µs"] if products else []) + ["ratio"]
    rows = [head]
    for system in measured:
        times = system.iterations_of_peers()
        for of in system.declive:
            form = of["format"] + ("" if of["asked"] != "auto" else " (auto)")
            row = [system.name, f"{system.n:,}", f"{system.nnz:,}", of["devices"], form, spread(of["microseconds"])]
            row.append(f"{of['gigabytes_per_second']:.1f}")
            row += [f"{times[peer][1]:.1f}" if peer in times else "" for peer in peers]
            product = [of["product"]["microseconds"][1] for of in system.peers.values() if "product" in of]
            if products:
                row.append(f"{min(product):.1f}" if product else "")
            row.append(f"{min(t[1] for t in times.values()) / of['median']:.2f}" if times else "")
            rows.append(row)
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    left = {0, 3, 4}
    lines = []
    for row in rows:
        cells = [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return lines


def commit():
    try:
        return output("git", "-C", HERE, "rev-parse", "HEAD").strip()
    except Failed:
        return None


def run(args, directory):
    start = time.monotonic()
    measured = []

    def late():
        return time.monotonic() - start > args.seconds

    for name, (source, written) in systems(args).items():
        system = System(name, source, written, directory)
        measured.append(system)
        if late():
            system.note(f"left out, {args.seconds:.0f} s are over")
            continue
        try:
            if not system.write(args.declive):
                measured.pop()
                continue
            for devices in args.devices:
                system.measure(args, devices, "auto")
            if written and not args.no_peers:
                system.run_peers(args)
        except Failed as e:
            system.note(str(e))
        for line in table([system])[1:]:
            print(line, file=sys.stderr, flush=True)
    for system in (s for s in measured if s.declive):
        for devices in args.devices:
            for form in args.formats or formats(args.declive):
                known = any(of["devices"] == devices and of["format"] == form for of in system.declive)
                if known:
                    continue
                if late():
                    system.note(f"--format {form} left out, {args.seconds:.0f} s are over")
                    continue
                try:
                    system.measure(args, devices, form)
                except Failed as e:
                    system.note(str(e))
    return measured, time.monotonic() - start


def main():
    args = arguments()
    temporary = None if args.dir else tempfile.TemporaryDirectory(prefix="declive-compare-")
    directory = args.dir or Path(temporary.name)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        version = output(args.declive, "--version").strip()
        devices = json.loads(output(args.declive, "devices", "--json"))["devices"]
        measured, seconds = run(args, directory)
    except Failed as e:
        sys.exit(str(e))
    finally:
        if temporary:
            temporary.cleanup()
    notes = [f"{system.name}: {note}" for system in measured for note in system.notes]
    print("\n".join(table(measured) + ([""] + notes if notes else [])))
    if args.json:
        document = {
            "version": 1,
            "declive": version,
            "commit": commit(),
            "cores": len(os.sched_getaffinity(0)),
            "devices": [{key: device[key] for key in ("name", "kind", "driver")} for device in devices],
            "precision": args.precision,
            "precond": args.precond,
            "runs": args.runs,
            "seconds": seconds,
            "systems": [system.document() for system in measured],
        }
        args.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
