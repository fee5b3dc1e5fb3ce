"""The report of the command `declive solve --json` is what its JSON Schema says."""

import copy
import json
import os
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "docs" / "report.schema.json").read_text()))


def report(arguments):
    """The report of a solve on the host."""
    command = os.environ["DECLIVE_COMMAND"]
    environment = {**os.environ, "OCL_ICD_VENDORS": "/nonexistent"}
    run = subprocess.run(
        [command, "solve", "--json", *arguments.split()], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


def test_it_is_a_schema():
    Draft202012Validator.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize(
    "arguments",
    [
        "data/jumps.mtx",
        "data/jumps.mtx -b data/jumps-b.mtx --method cg --devices host,host",
        "data/jumps.mtx --method cg --max-iters 1",
        "data/poisson2d.mtx --method cg --rhs random:1..3 --shares 2:1 --devices host,host",
        "data/poisson2d.mtx --method dense --condition",
        "data/graph-laplacian.mtx --backward-error 1e-12",
        "--generate poisson3d:12 --precond amg",
        "--generate convection3d:8 --precond ilu0 --restart 10 --method gmres",
        "--generate convection3d:6 --precond transversal --devices host",
        "--generate jumps:16,scramble=3 --method cg --reorder rcm",
        "--generate stokes2d:10 --devices host --time-limit 1m",
        "--generate fit2d:20",
        "--generate markov:20",
        "--generate poisson3d:16 --devices host --precision mixed",
    ],
)
def test_reports_follow_it(arguments):
    errors = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in VALIDATOR.iter_errors(report(arguments))]
    assert not errors


def test_other_documents_do_not():
    good = report("data/jumps.mtx")
    assert VALIDATOR.is_valid(good)
    for path, value in [
        (["converged"], None),
        (["unknown"], 1),
        (["version"], 2),
        (["iterations"], -1),
        (["seconds", "solve"], "long"),
        (["options", "precision"], "f16"),
    ]:
        changed = copy.deepcopy(good)
        *folder, name = path
        place = changed
        for key in folder:
            place = place[key]
        if value is None:
            del place[name]
        else:
            place[name] = value
        assert not VALIDATOR.is_valid(changed), path
