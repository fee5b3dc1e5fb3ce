"""declive's own choice of method and preconditioner beside fixed ones, as a table.

    cargo build --release
    python3 benches/peers/auto.py --declive target/release/declive                  # problems of the gallery, three sizes each
    python3 benches/peers/auto.py --declive … --matrices DIR --json out.json        # files, too
    python3 benches/peers/auto.py --declive … --only jumps:100 --devices host       # one system, on the processor

Of each system first come the fixed choices, then auto: *first* with --tune off, which knows nothing of it, and *again* after a solve that
remembers. All runs go to --rtol 1e-8 for b = A·random, and count if declive verified that. Each is made twice, so that
kernels are compiled and files are in memory, and the second counts: seconds of upload, set-up and iterations. A choice that
takes more than --seconds, or fails, is left out. The end has the geometric mean of auto over the best fixed choice, the largest ratio, and systems
that a fixed choice solves and auto does not.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DEFINITE = [
    "poisson2d:100", "poisson2d:400", "poisson2d:1000",
    "poisson3d:30", "poisson3d:100", "poisson3d:250",
    "anisotropic:30", "anisotropic:100", "anisotropic:200",
    "jumps:30", "jumps:100", "jumps:200",
    "variable:30", "variable:100", "variable:200",
    "reservoir:30x60x20", "reservoir:60x110x43", "reservoir:120x220x85",
    "circuit:100", "circuit:400", "circuit:1200",
    "elasticity3d-jumps:12", "elasticity3d-jumps:40", "elasticity3d-jumps:70",
    "tetrahedra:10", "tetrahedra:40", "tetrahedra:80",
]  # fmt: skip
SYMMETRIC = ["gauge2d:200", "helmholtz3d:24", "helmholtz3d:60", "stokes2d:40", "stokes2d:150"]
GENERAL = ["convection3d:30", "convection3d:100", "convection3d:200", "helmholtz3d-absorbing:40"]
ENDINGS = (".mtx", ".mtx.gz", ".npz")
PARTS = ("upload", "precond", "solve")

# method and preconditioner, by what they are for
SYMMETRIC_BY = [("minres", "jacobi"), ("minres", "none"), ("direct", None)]
FIXED = {
    "definite": [("cg", p) for p in ("jacobi", "amg", "fsai")] + SYMMETRIC_BY,
    "symmetric": SYMMETRIC_BY,
    "general": [(m, p) for m in ("idr", "bicgstab2") for p in ("jacobi", "ilu0", "transversal")]
    + [("gmres", "amg"), ("direct", None)],
}


def run(args, system, more, cache):
    """Seconds and the report of a solve, or None."""
    command = [args.declive, "solve", *system, "--rhs", "A*random:7", "--rtol", "1e-8", "--json", "--quiet", *more]
    if args.devices:
        command += ["--devices", args.devices]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=args.seconds, env=os.environ | {"DECLIVE_CACHE_DIR": cache}
        )
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return None
    if done.returncode != 0 or not report["converged"]:
        return None
    return sum(report["seconds"][part] for part in PARTS), report


def second(*of):
    """That of the second of two runs."""
    return run(*of) and run(*of)


def measure(args, name, system, kind, cache):
    """A row of the table."""
    fixed = {}
    for method, precond in FIXED[kind]:
        choice = ["--method", method, *(["--precond", precond] if precond else []), "--tune", "off"]
        if done := second(args, system, choice, cache):
            fixed[f"{method}, {precond}" if precond else method] = done[0]
    with tempfile.TemporaryDirectory() as fresh:
        first = second(args, system, ["--tune", "off"], cache)
        run(args, system, [], fresh)
        again = run(args, system, [], fresh)
    best = min(fixed, key=fixed.get, default=None)
    row = {"system": name, "fixed": fixed, "best": best}
    for what, done in (("first", first), ("again", again)):
        row[what] = done and done[0]
        row[f"{what}_by"] = done and [switch["to"] for switch in done[1]["switches"]]
    return row


def ratio(row, what):
    return row[what] / row["fixed"][row["best"]] if row[what] and row["best"] else None


def shown(value, digits):
    return "—" if value is None else f"{value:.{digits}f}"


def summary(rows, what):
    """The mean and the worst of the ratios."""
    ratios = {row["system"]: r for row in rows if (r := ratio(row, what))}
    if not ratios:
        return f"{what}: nothing to compare"
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = max(ratios, key=ratios.get)
    lost = [row["system"] for row in rows if row["best"] and row[what] is None]
    unsolved = f"; not solved: {', '.join(lost)}" if lost else ""
    return f"{what}: geometric mean {mean:.2f} of {len(ratios)}, at most {ratios[worst]:.2f} ({worst}){unsolved}"


def systems(args):
    """Name, arguments and kind of each."""
    kinds = {"definite": DEFINITE, "symmetric": SYMMETRIC, "general": GENERAL}
    for kind, specs in kinds.items():
        yield from ((spec, ["--generate", spec], kind) for spec in specs)
    for file in sorted(Path(args.matrices).iterdir()) if args.matrices else []:
        if not file.name.endswith(ENDINGS):
            continue
        told = subprocess.run([args.declive, "info", str(file), "--json"], capture_output=True, text=True)
        facts = json.loads(told.stdout) if told.returncode == 0 else None
        if not facts or facts["matrix"]["rows"] != facts["matrix"]["columns"]:
            continue
        # definite ones are told by cg, which others fail with
        kind = "definite" if facts["symmetry"]["hermitian"]["holds"] else "general"
        yield file.name.split(".")[0], [str(file)], kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--declive", required=True, help="the program")
    parser.add_argument("--devices", help="as in declive solve; without it, declive chooses")
    parser.add_argument("--matrices", help="a folder of .mtx and .npz files")
    parser.add_argument("--only", nargs="*", help="parts of names: no other systems")
    parser.add_argument("--seconds", type=float, default=20, help="that a run may take")
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    rows = []
    print("| system | best fixed choice | s | `auto`, first | ratio | `auto`, again | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for name, system, kind in systems(args):
            if args.only and not any(part in name for part in args.only):
                continue
            row = measure(args, name, system, kind, cache)
            rows.append(row)
            best = row["fixed"].get(row["best"])
            cells = [f"`{name}`", row["best"] or "none", shown(best, 4)]
            for what in ("first", "again"):
                cells += [shown(row[what], 4), shown(ratio(row, what), 2)]
            print("|", " | ".join(cells), "|", flush=True)
            if args.json:
                Path(args.json).write_text(json.dumps(rows, indent=1))
    for what in ("first", "again"):
        print(summary(rows, what))


if __name__ == "__main__":
    sys.exit(main())
