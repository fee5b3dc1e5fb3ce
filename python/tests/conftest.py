"""What the tests share: residuals that they form themselves, the systems of the repository, and devices."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmread
from scipy.sparse import csr_array

import declive

DATA = Path(__file__).resolve().parents[2] / "data"


def residual(a, b, x):
    """‖b − A x‖ / ‖b‖ in double precision."""
    return np.linalg.norm(b - a @ x) / np.linalg.norm(b)


def system(name):
    """A matrix of the repository as SciPy reads it."""
    return csr_array(mmread(DATA / name))


def has_opencl():
    return len(declive.devices()) > 1


@pytest.fixture(params=["host", "0"])
def devices(request):
    """The host, and the first OpenCL device if there is one."""
    if request.param != "host" and not has_opencl():
        pytest.skip("there is no OpenCL device")
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(5)
