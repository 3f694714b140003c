"""Threads and processes."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.numba.build import building
from tapegen.pipeline import compile

ROOT = Path(__file__).parents[2]


@tg.differentiable(wrt=("x", "k"))
def energy(x, k):
    total = 0.0
    for i in range(x.size):
        total += k * x[i] * x[i]
    return total


def plain(x):
    return np.sum(x**3)


class Spring:
    """Something with a decorated method."""

    def __init__(self, k: float) -> None:
        self.k = k

    @tg.differentiable
    def pull(self, x):
        return self.k * x * x


X = np.array([1.0, 2.0])
GRADIENT = (np.array([6.0, 12.0]), 5.0)


def same(have: Any, want: Any = GRADIENT) -> None:
    for a, b in zip(have, want, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- pickles -------------------------------------------------------------------------------------------------------


def test_pickle_gives_the_function_itself() -> None:
    """A decorated function of a module is found by its name, as plain functions are."""
    again = pickle.loads(pickle.dumps(energy))
    assert again is energy
    assert copy.deepcopy(energy) is energy


def test_pickle_of_gradients() -> None:
    python = tg.differentiable(energy.python, wrt=("x", "k"), backend="python")
    for made, want in (
        (python.grad, GRADIENT),
        (python.value_and_grad, (15.0, GRADIENT)),
        (tg.grad(energy, wrt=(0, 1), backend="python"), GRADIENT),
    ):
        again = pickle.loads(pickle.dumps(made))
        result = again(X, 3.0)
        same(result if want is GRADIENT else result[1])
        assert again.__self__.options == made.__self__.options


def test_pickle_of_functions_that_are_not_decorated() -> None:
    gradient = tg.grad(plain, backend="python")
    again = pickle.loads(pickle.dumps(gradient))
    np.testing.assert_array_equal(again(X), 3.0 * X**2)
    jacobian = pickle.loads(pickle.dumps(tg.jacobian(plain, backend="python")))
    np.testing.assert_array_equal(jacobian(X), 3.0 * X**2)
    product = pickle.loads(pickle.dumps(tg.hessian(plain, backend="python")))
    np.testing.assert_array_equal(product(X), np.diag(6.0 * X))


def test_pickle_of_other_options_and_bound_methods() -> None:
    fast = energy.with_options(wrt="k", backend="python")
    again = pickle.loads(pickle.dumps(fast))
    assert again.options == fast.options
    assert again.grad(X, 3.0) == 5.0
    bound = pickle.loads(pickle.dumps(Spring(2.0).pull.with_options(backend="python")))
    assert bound.grad(3.0) == 12.0


@dataclasses.dataclass
class Point:
    """An object without a hash."""

    k: float

    def pull(self, x):
        return self.k * x * x


def test_pickle_of_a_method_of_an_object_without_a_hash() -> None:
    made = tg.differentiable(Point(2.0).pull, backend="python")
    assert pickle.loads(pickle.dumps(made)).grad(3.0) == 12.0


def test_pickles_hold_no_code() -> None:
    """Names and options; what was compiled stays here."""
    energy.with_options(backend="python").grad(X, 3.0)
    assert len(pickle.dumps(energy)) < 200
    assert len(pickle.dumps(energy.with_options(backend="python").grad)) < 1000


def test_a_pickle_names_what_it_cannot_find() -> None:
    local = tg.differentiable(lambda x: x * x)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(local)


NOTEBOOK = """
import numpy as np
import tapegen as tg
K = 3.0

def helper(x):
    return K * x * x

@tg.differentiable
def energy(x):
    return np.sum(helper(x))
"""


@pytest.mark.parametrize("where", ["file", "cell"])
def test_cloudpickle_of_main(tmp_path: Path, where: str) -> None:
    """Functions of a script or notebook travel with their text."""
    pytest.importorskip("cloudpickle")
    send = """
    import linecache, sys
    text = NOTEBOOK
    if WHERE == "cell":
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
        exec(compile(text, "<cell 1>", "exec"))
    else:
        open("script.py", "w").write(text)
        exec(compile(text, "script.py", "exec"))
    import cloudpickle
    energy.grad(np.ones(3))
    for made in (energy, energy.grad, tg.grad(energy)):
        sys.stdout.buffer.write(cloudpickle.dumps(made))
    """
    send = textwrap.dedent(send).replace("NOTEBOOK", repr(NOTEBOOK)).replace("WHERE", repr(where))
    data = process(send, tmp_path)
    receive = "import sys, pickle, numpy as np\nx = np.array([1.0, 2.0])\nfile = sys.stdin.buffer\n"
    receive += "f, grad, other = pickle.load(file), pickle.load(file), pickle.load(file)\n"
    receive += "print(f(x), f.grad(x), grad(x), other(x))"
    (tmp_path / "script.py").unlink(missing_ok=True)
    assert process(receive, tmp_path, data).decode().split("\n")[0] == "15.0 [ 6. 12.] [ 6. 12.] [ 6. 12.]"


def process(code: str, folder: Path, data: bytes = b"", *, timeout: float = 120, **env: str) -> bytes:
    """What a process writes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=data,
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# ---- processes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_multiprocessing(method: str, tmp_path: Path) -> None:
    module = """
    import multiprocessing, sys
    import numpy as np
    import tapegen as tg

    @tg.differentiable
    def energy(x, k):
        return k * np.sum(x * x)

    if __name__ == "__main__":
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            calls = [(np.ones(2) * n, 2.0) for n in (1.0, 2.0, 3.0)]
            print([found.tolist() for found in pool.starmap(energy.grad, calls)])
            print(pool.starmap(energy, calls))
            print(pool.starmap(tg.grad(energy, wrt=1), calls))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(module), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py", method],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert json.loads(first) == [[4.0, 4.0], [8.0, 8.0], [12.0, 12.0]]
    assert "4.0" in second
    assert "8.0" in third


def test_joblib() -> None:
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(energy.grad)(X, k) for k in (1.0, 2.0))
    assert [float(gradient[1]) for gradient in found] == [5.0, 5.0]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(scheduler: str) -> None:
    import dask

    calls = [dask.delayed(energy.grad)(X, k) for k in (1.0, 3.0)]
    found = dask.compute(*calls, scheduler=scheduler, num_workers=2)
    same(found[1])
    assert [float(gradient[1]) for gradient in found] == [5.0, 5.0]


def test_fork_after_compiling(tmp_path: Path) -> None:
    code = """
    import os, numpy as np, tapegen as tg
    import sys; sys.path.insert(0, ".")
    from kernel import f
    g = tg.grad(f)
    assert g(2.0) == 4.0
    child = os.fork()
    if child == 0:
        ok = g(3.0) == 6.0 and tg.grad(f, wrt=0, boundscheck=False)(np.float64(5.0)) == 10.0
        os._exit(0 if ok else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    (tmp_path / "kernel.py").write_text("def f(x):\n    return x * x\n", encoding="utf-8")
    assert process(textwrap.dedent(code), tmp_path).strip() == b"0"


def test_fork_while_another_thread_compiles(tmp_path: Path) -> None:
    """The child starts between two compilations, and compiles itself."""
    code = """
    import os, signal, threading, time, numpy as np, tapegen as tg
    import sys; sys.path.insert(0, ".")
    import kernel
    inside = threading.Event()
    from tapegen.pipeline import compile as compiler
    differentiate = compiler.derive_reverse
    def slow(*args, **kwargs):
        inside.set()
        time.sleep(0.3)
        return differentiate(*args, **kwargs)
    compiler.derive_reverse = slow
    thread = threading.Thread(target=lambda: tg.grad(kernel.f)(2.0))
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if tg.grad(kernel.g)(3.0) == 27.0 else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    thread.join()
    print(code)
    """
    text = "def f(x):\n    return x * x\n\n\ndef g(x):\n    return x * x * x\n"
    (tmp_path / "kernel.py").write_text(text, encoding="utf-8")
    assert process(textwrap.dedent(code), tmp_path).strip() == b"0"


# ---- threads -------------------------------------------------------------------------------------------------------


def together(count: int, call: Callable[[int], Any]) -> list[Any]:
    """The results of threads that begin at the same moment."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(k: int) -> None:
        barrier.wait()
        results[k] = call(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    return results


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_threads_that_call_first_together(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    derived: list[int] = []
    differentiate = compile.derive_reverse

    def counted(*args: Any, **kwargs: Any) -> Any:
        derived.append(1)
        time.sleep(0.05)  # another thread comes in
        return differentiate(*args, **kwargs)

    monkeypatch.setattr(compile, "derive_reverse", counted)
    function = tg.differentiable(energy.python, wrt=("x", "k"), backend=backend)
    for found in together(8, lambda k: function.grad(X, 3.0)):
        same(found)
    assert len(derived) == 1
    (program,) = function._specializer._programs
    if backend == "numba":
        assert len(program.parts.built["joint"].signatures) == 1


def test_threads_with_different_types() -> None:
    function = tg.differentiable(energy.python, wrt="x", backend="python")
    kinds: list[Any] = [X, X.astype(np.float32), np.ones((4,))[::2], np.ones(1)]
    found = together(8, lambda k: function.grad(kinds[k % 4], 3.0))
    for k, gradient in enumerate(found):
        assert gradient.dtype == kinds[k % 4].dtype
        np.testing.assert_array_equal(gradient, 6.0 * kinds[k % 4])


def test_calls_while_python_ends(tmp_path: Path) -> None:
    code = """
    import atexit, numpy as np, tapegen as tg
    import sys; sys.path.insert(0, ".")
    from kernel import f
    g = tg.grad(f)
    atexit.register(lambda: print(g(np.float64(2.0)), flush=True))
    g(1.0)
    """
    (tmp_path / "kernel.py").write_text("def f(x):\n    return x * x\n", encoding="utf-8")
    assert process(textwrap.dedent(code), tmp_path).strip() == b"4.0"


def test_interrupt_while_compiling_lets_the_lock_go() -> None:
    function = tg.differentiable(energy.python, wrt="x", backend="python")
    with pytest.MonkeyPatch.context() as patch:

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            raise KeyboardInterrupt

        patch.setattr(compile, "derive_reverse", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function.grad(X, 3.0)
    assert not building.is_locked()
    np.testing.assert_array_equal(together(1, lambda k: function.grad(X, 3.0))[0], GRADIENT[0])


def test_other_threads_run_during_a_compiled_call() -> None:
    def iterated(x, n):
        s = 0.0
        for _ in range(n):
            s = np.sin(s + 0.3 * x)
        return s

    f = tg.differentiable(iterated, backend="numba", cache=False)
    f.value_and_grad(0.5, 10)
    began, ended = threading.Event(), threading.Event()

    def run() -> None:
        began.set()
        f.value_and_grad(0.5, 8_000_000)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    began.wait()
    count = 0
    while not ended.wait(0.001):
        count += 1
    thread.join()
    assert count > 40  # the call takes about a second, in which a call that holds the interpreter leaves no turn
