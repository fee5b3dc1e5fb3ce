"""Threads, signals and forks: what happens while a solve runs, in processes of their own."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

#: A solve that would take minutes.
LONG = """
import declive, numpy as np
a = declive.gallery.poisson3d(60)
solver = declive.Solver(a, method="cg", precond="none", devices="host", rtol=0.0, atol=1e-300, max_iters=10**9)
"""


def python(text, **keywords):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120, **keywords)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_interrupts():
    text = LONG + """
import os, signal, threading, time
def interrupt():
    time.sleep(1.0)
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    solver.solve(np.ones(a.shape[0]) + np.arange(a.shape[0]))
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent)
b = np.ones(a.shape[0])
again = solver.solve(b, rtol=1e-6)
print(again.converged, np.linalg.norm(b - a @ again.x) <= 1.01e-6 * np.linalg.norm(b))
"""
    run = python(text)
    first, second = run.stdout.splitlines()
    assert first.startswith("interrupted") and float(first.split()[1]) < 1.0, run
    assert second == "True True", run


def test_other_threads_of_python_run_meanwhile():
    text = LONG + """
import threading
done = threading.Event()
def work():
    solver.solve(np.ones(a.shape[0]), time_limit=1.5)
    done.set()
threading.Thread(target=work).start()
count = 0
while not done.wait(0.01):
    count += 1
print(count)
"""
    run = python(text)
    assert int(run.stdout) > 30, run


def test_threads_may_have_solvers_of_their_own_or_share_one():
    text = """
import declive, numpy as np, threading
a = declive.gallery.jumps(10)
shared = declive.Solver(a, method="cg", devices="host")
right = []
def work(seed):
    b = np.random.default_rng(seed).standard_normal(1000)
    for solver in (shared, declive.Solver(a, method="cg", devices="host")):
        x = solver.solve(b).x
        right.append(np.linalg.norm(b - a @ x) <= 1.01e-8 * np.linalg.norm(b))
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(right), len(right))
"""
    assert python(text).stdout.split() == ["8", "8"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_forks_after_a_solve():
    text = """
import declive, numpy as np, os, warnings
warnings.simplefilter("ignore")
a = np.array([[2.0, 1.0], [1.0, 3.0]])
solver = declive.Solver(a, method="cg")
assert solver.solve(np.ones(2)).converged
child = os.fork()
if child == 0:
    for work in (lambda: solver.solve(np.ones(2)), lambda: declive.solve(a, np.ones(2)), declive.devices):
        try:
            work()
        except RuntimeError as error:
            assert "forked" in str(error) and "spawn" in str(error)
        else:
            os._exit(1)
    del solver
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), solver.solve(np.ones(2)).converged)
"""
    run = python(text)
    assert run.stdout.split() == ["0", "True"], run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_forks_before():
    text = """
import declive, numpy as np, os
child = os.fork()
ok = declive.solve(np.eye(2), np.ones(2)).converged
if child == 0:
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ok)
"""
    assert python(text).stdout.split() == ["0", "True"]


def test_import_is_quick():
    run = python("import sys, declive; print('scipy' in sys.modules, 'IPython' in sys.modules)")
    assert run.stdout.split() == ["False", "False"], run


def test_interruption_of_products():
    """Ctrl-C in the middle of a product of Python's."""
    text = """
import declive, numpy as np, os, signal, threading, time
class Slow:
    shape, dtype = (100, 100), np.dtype(float)
    def matvec(self, x):
        time.sleep(0.02)
        return np.arange(1.0, 101.0) * x
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    declive.solve(Slow(), np.arange(100.0), rtol=0.0, atol=1e-300, precond="none")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start)
"""
    start = time.monotonic()
    run = python(text)
    assert run.stdout.startswith("interrupted") and time.monotonic() - start < 10.0, run
