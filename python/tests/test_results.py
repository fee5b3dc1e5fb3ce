"""What is told of a solve: as an object, as data, as a page's part; progress; files and test matrices."""

import gzip
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from conftest import DATA, has_opencl, system
from scipy.sparse import csr_array, load_npz, save_npz

import declive


def solved(**options):
    a = declive.gallery.jumps(10)
    return declive.solve(a, np.ones(1000), method="cg", **options)


def test_facts(devices):
    result = solved(devices=devices)
    report = result.report()
    json.dumps(report, allow_nan=False)
    assert report["iterations"] == result.iterations == len(result.history) - 1
    assert report["converged"] and report["reason"] == result.reason == "Converged"
    assert (report["method"], report["precond"]) == (result.method, result.precond) == ("cg", "jacobi")
    assert report["matrix"]["rows"] == 1000 and report["matrix"]["hermitian"] and not report["matrix"]["complex"]
    assert report["ranks"][0]["rows"] == 1000 and (report["ranks"][0]["index"] is None) == (devices == "host")
    assert report["seconds"]["solve"] > 0.0 and report["setup"]["method"] == "cg"
    assert len(report["solves"]) == 1 and report["solves"][0]["rel_residual_2"] == result.residual
    assert repr(result).startswith("<declive.Result: converged after ")


def test_the_names_are_those_of_the_command():
    """Where the command has been built, its JSON has the figures by the same names."""
    program = DATA.parent / "target" / "debug" / "declive"
    if not program.exists():
        pytest.skip("the command is not built")
    told = subprocess.run([program, "solve", DATA / "jumps.mtx", "--method", "cg", "--devices", "host", "--json", "--tune", "off"], capture_output=True, check=True)
    command = json.loads(told.stdout)
    report = declive.solve(system("jumps.mtx"), np.ones(720), method="cg", devices="host", tune="off").report()
    same = set(command) & set(report)
    assert {"converged", "reason", "iterations", "rel_residual_2", "backward_error", "seconds", "matrix", "ranks", "solves", "forecast"} <= same
    assert command["iterations"] == report["iterations"]
    assert set(report["matrix"]) <= set(command["matrix"])


def test_html():
    for result in (solved(), declive.Solver(declive.gallery.jumps(6)).solve(np.random.default_rng(1).standard_normal((216, 3))), declive.solve(np.eye(2), [1.0, 2.0])):
        page = ET.fromstring(f"<div>{result._repr_html_()}</div>")
        text = "".join(page.itertext())
        assert result.reason in text and result.method in text
        curves = [one for one in page.iter("{http://www.w3.org/2000/svg}polyline") if one.get("stroke") == "#1f6fb4"]
        assert len(curves) == sum((one.history > 0).sum() > 1 for one in result.columns)
        for curve in curves:
            places = [tuple(map(float, place.split(","))) for place in curve.get("points").split()]
            assert len(places) > 1 and all(0 <= x <= 460 and 0 <= y <= 190 for x, y in places)
            assert places[0][1] < places[-1][1], "it falls"


def test_progress(capsys):
    a = declive.gallery.variable(24)
    result = declive.solve(a, np.ones(a.shape[0]), method="cg", precond="none", devices="host", progress=True, rtol=1e-12)
    shown = capsys.readouterr().err
    assert result.converged and "iterations, residual" in shown and shown.endswith("\r")


def test_devices():
    listed = declive.devices()
    assert listed[-1]["index"] == "host" and [one["index"] for one in listed[:-1]] == list(range(len(listed) - 1))
    assert sum(one["auto"] for one in listed) >= 1
    with pytest.raises(declive.DeviceError, match="host"):
        declive.tune(devices="host")
    with pytest.raises(declive.InputError, match="mixed"):
        declive.tune(precision="mixed")


@pytest.mark.skipif(not has_opencl(), reason="there is no OpenCL device")
def test_tuning():
    found = declive.tune(declive.gallery.poisson2d(30), devices="0")
    assert len(found) == 1 and {"device", "kernels"} <= set(found[0])


@pytest.mark.parametrize("ending", ["mtx", "mtx.gz", "mtx.bz2", "mtx.xz", "mtx.zst", "npz"])
def test_files(tmp_path, ending):
    for a in (system("jumps.mtx"), declive.gallery.gauge2d(5), declive.gallery.fit2d(4)):
        path = tmp_path / f"a.{ending}"
        declive.write(path, a)
        again = declive.read(path)
        assert isinstance(again, csr_array) and again.dtype == a.dtype and again.shape == a.shape
        assert abs(again - a).nnz == 0 and again.has_canonical_format


def test_files_of_others(tmp_path):
    a = system("jumps.mtx")
    save_npz(tmp_path / "a.npz", a)
    assert abs(declive.read(tmp_path / "a.npz") - a).nnz == 0
    declive.write(tmp_path / "b.npz", a)
    assert abs(load_npz(tmp_path / "b.npz") - a).nnz == 0
    assert abs(declive.read(DATA / "jumps.mtx") - a).nnz == 0
    declive.write(str(tmp_path / "c.mtx.gz"), a, symmetry="symmetric", comments=["one", "two"])
    lines = gzip.decompress((tmp_path / "c.mtx.gz").read_bytes()).decode().splitlines()
    assert lines[0].endswith("real symmetric") and lines[1:3] == ["% one", "% two"]


def test_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        declive.read(tmp_path / "none.mtx")
    assert error.value.filename == str(tmp_path / "none.mtx")
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 4\n")
    with pytest.raises(declive.InputError, match=r"bad.mtx:3:3"):
        declive.read(tmp_path / "bad.mtx")
    with pytest.raises(declive.InputError, match="should end in"):
        declive.write(tmp_path / "a.txt", np.eye(2))
    with pytest.raises(declive.InputError, match=r"a\(1,2\)|not symmetric"):
        declive.write(tmp_path / "a.mtx", [[1.0, 2.0], [3.0, 4.0]], symmetry="symmetric")
    assert not (tmp_path / "a.mtx").exists()
    with pytest.raises(ValueError, match="unknown symmetry"):
        declive.write(tmp_path / "a.mtx", np.eye(2), symmetry="odd")
    with pytest.raises(FileNotFoundError):
        declive.write(tmp_path / "nowhere" / "a.mtx", np.eye(2))


def test_all_problems_have_a_function():
    import inspect

    from declive import _declive, gallery

    for name, _, parameters in _declive.problems():
        function = getattr(gallery, name.replace("-", "_"))
        keywords = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
        assert keywords == {*parameters, "scramble"}, name
        assert function(3).nnz > 0
    assert gallery.jumps(4, 3, 2, contrast=10.0, seed=7).shape == (24, 24)
    assert set(gallery.problems()) == {name for name, _, _ in _declive.problems()}
    with pytest.raises(declive.InputError, match="no test system"):
        gallery.make("poisson5d:3")


def test_scipy_is_not_needed_to_solve():
    text = """
import sys
sys.modules["scipy"] = None  # as if it were not there
import declive, numpy as np
x = declive.solve((np.array([2.0, 1.0, 1.0, 3.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 4])), np.array([1.0, 2.0]), devices="host").x
assert np.allclose(x, [0.2, 0.6]), x
try:
    declive.gallery.poisson2d(3)
except ImportError as error:
    assert "install scipy" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", text], check=True)
