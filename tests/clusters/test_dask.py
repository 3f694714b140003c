"""Sums over partitions on a cluster of dask, beside the sum in this process."""

from __future__ import annotations

import linecache
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: pip install '.[test]'")
dask = pytest.importorskip("dask")

import tapegen.distributed as td  # noqa: E402
from tapegen.backend.cache import store  # noqa: E402
from tapegen.distributed import gradients, worker_tasks  # noqa: E402
from tests.documentation.pages import DOCS, promised, python_of, run, without_compiling  # noqa: E402


def misfit(p: dict[str, float], part: tuple[Any, Any]) -> float:
    t, y = part
    total = 0.0
    for k in range(t.size):
        total += (p["a"] * np.exp(-p["b"] * t[k]) - y[k]) ** 2
    return total


def weighted(p: Any, x: Any) -> Any:
    return np.sum(p * x * x)


P = {"a": 2.0, "b": 0.5}
RNG = np.random.default_rng(0)
PARTS = [(t := RNG.random(5 + k), np.exp(-t)) for k in range(20)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50, processes=True
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    """A cluster in this process: what it does not tell apart needs no other processes."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50, processes=False
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def here(parts: Any, p: Any = P) -> tuple[Any, Any]:
    """The sum in this process, in the order of the tree."""
    terms: list[Any] = [tg.value_and_grad(misfit, backend="python")(p, part) for part in parts]
    while len(terms) > 1:
        terms = [worker_tasks.added(terms[k : k + 8]) for k in range(0, len(terms), 8)]
    return terms[0]


# ---- values ----------------------------------------------------------------------------------------------------------


def test_the_sum_over_partitions(client: Any) -> None:
    """Bit for bit that of the tree, on every call."""
    f = td.value_and_grad(misfit, client, backend="python")
    value, gradient = f(P, PARTS)
    serial = tg.value_and_grad(misfit, backend="python")
    each = [serial(P, part) for part in PARTS]
    np.testing.assert_allclose(value, sum(v for v, _ in each), rtol=1e-13)
    np.testing.assert_allclose(gradient["a"], sum(g["a"] for _, g in each), rtol=1e-13)
    assert f(P, PARTS) == (value, gradient)
    assert f(P, client.scatter(PARTS)) == (value, gradient)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 65])
def test_trees_of_every_height(threads: Any, count: int) -> None:
    parts = [PARTS[k % 20] for k in range(count)]
    assert td.value_and_grad(misfit, threads, backend="python")(P, parts) == here(parts)


def test_gradients_by_several_arguments_in_structures(threads: Any) -> None:
    @dataclass
    class Model:
        w: Any
        b: float

    def loss(model: Model, scale: float, part: Any) -> Any:
        return scale * np.sum((part @ model.w + model.b) ** 2)

    f = td.value_and_grad(loss, threads, wrt=("scale", 0), backend="python")
    parts = [RNG.random((4, 3)) for _ in range(3)]
    model = Model(np.array([1.0, 2.0, 3.0]), 0.5)
    value, (of_scale, of_model) = f(model, 2.0, parts)
    want, (scale, whole) = tg.value_and_grad(loss, wrt=(1, 0), backend="python")(model, 2.0, np.concatenate(parts))
    np.testing.assert_allclose([value, of_scale, of_model.b], [want, scale, whole.b])
    np.testing.assert_allclose(of_model.w, whole.w)
    assert isinstance(of_model, Model)


def test_functions_may_write_into_their_arguments(threads: Any) -> None:
    """Each call has its own copies: futures keep what they hold."""

    def scaled(p: Any, x: Any) -> Any:
        x *= p
        p[0] = 0.0
        return np.sum(x)

    parts = threads.scatter([np.ones(3), np.ones(3)])
    f = td.value_and_grad(scaled, threads, backend="python")
    for _ in range(2):
        value, gradient = f(np.array([2.0]), parts)
        assert value == 12.0
        assert gradient.tolist() == [6.0]


# ---- collections -----------------------------------------------------------------------------------------------------


def test_blocks_of_arrays(threads: Any) -> None:
    import dask.array as da

    x = np.arange(40.0).reshape(8, 5)
    value, gradient = td.value_and_grad(weighted, threads, backend="python")(2.0, da.from_array(x, chunks=(3, 2)))
    assert (value, gradient) == (2.0 * np.sum(x * x), np.sum(x * x))


def test_bags(threads: Any) -> None:
    import dask.bag as db

    bag = db.from_sequence([1.0, 2.0, 3.0, 4.5], npartitions=3).map(float)
    value, gradient = td.value_and_grad(lambda p, xs: p * sum(xs), threads, backend="python")(2.0, bag)
    assert (value, gradient) == (21.0, 10.5)


def test_dicts_of_arrays(threads: Any) -> None:
    import dask.array as da

    x, y = RNG.random((10, 3)), RNG.random(10)
    loss = lambda w, part: np.sum((part["x"] @ w - part["y"]) ** 2)  # noqa: E731
    f = td.value_and_grad(loss, threads, backend="python")
    w = np.ones(3)
    value, gradient = f(w, {"x": da.from_array(x, chunks=(4, 3)), "y": da.from_array(y, chunks=4)})
    want = tg.value_and_grad(loss, backend="python")(w, {"x": x, "y": y})
    np.testing.assert_allclose(value, want[0])
    np.testing.assert_allclose(gradient, want[1])
    with pytest.raises(tg.BadArgument, match="has chunks"):
        f(w, {"x": da.from_array(x, chunks=(4, 3)), "y": da.from_array(y, chunks=5)})
    with pytest.raises(tg.BadArgument, match="'x' has chunks along axis 1"):
        f(w, {"x": da.from_array(x, chunks=(4, 1)), "y": da.from_array(y, chunks=4)})


def test_xarray(threads: Any) -> None:
    xr = pytest.importorskip("xarray")
    u = xr.DataArray(RNG.random((6, 4)), dims=("t", "x")).chunk({"t": 2})
    assert td.value_and_grad(weighted, threads, backend="python")(1.0, u)[0] == pytest.approx(float((u * u).sum()))
    data = xr.Dataset({"u": u, "w": ("x", np.arange(4.0)), "s": ((), 2.0)}).chunk({"x": 3})
    f = td.value_and_grad(lambda p, b: p * np.sum(b["u"] * b["w"]) * b["s"], threads, backend="python")
    assert f(3.0, data)[0] == pytest.approx(6.0 * float((data["u"] * data["w"]).sum()))
    with pytest.raises(tg.BadArgument, match="nothing here is chunked"):
        f(3.0, data.compute())


def test_data_frames(threads: Any) -> None:
    pytest.importorskip("pyarrow", reason="dask.dataframe needs pyarrow, which is not installed: pip install '.[test]'")
    import dask.dataframe as dd
    import pandas as pd

    frame = pd.DataFrame({"x": np.arange(10.0), "y": np.arange(10.0) + 1.0})
    parts = dd.from_pandas(frame, npartitions=3)
    f = td.value_and_grad(lambda p, part: p * np.sum(part["x"] * part["y"]), threads, backend="python")
    assert f(2.0, parts)[1] == float((frame.x * frame.y).sum())
    assert td.value_and_grad(weighted, threads, backend="python")(1.0, parts["x"])[0] == 285.0


# ---- what travels ----------------------------------------------------------------------------------------------------


def test_functions_of_a_notebook_travel_with_their_source(client: Any) -> None:
    text = "K = 3.0\ndef helper(x):\n    return K * x\ndef f(p, x):\n    return p * sum(helper(x))\n"
    linecache.cache["<cell 7>"] = (len(text), None, text.splitlines(True), "<cell 7>")
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell 7>", "exec"), cell)
    value, gradient = td.value_and_grad(cell["f"], client, backend="python")(2.0, [np.ones(2), np.ones(3)])
    assert (value, gradient) == (30.0, 15.0)


def test_lambdas_and_closures_travel_with_their_source(client: Any) -> None:
    """They are not found by name, although the module is."""

    def power(x: Any, n: float) -> Any:
        return x**n

    parts = [np.ones(2), np.full(3, 2.0)]
    f = td.value_and_grad(lambda p, x: p * np.sum(power(x, 2.0)), client, backend="python")
    assert f(2.0, parts) == (28.0, 14.0)


def test_a_file_of_the_same_name_is_another_file(tmp_path: Path) -> None:
    """A worker that has other text under the name of a file reads the text that was sent."""
    import cloudpickle

    file = tmp_path / "fit.py"
    script: dict[str, Any] = {"__name__": "__main__"}
    text = "def f(p):\n    return 2.0 * p\n"
    file.write_text(text, encoding="utf-8")
    exec(compile(text, str(file), "exec"), script)
    data = cloudpickle.dumps(tg.differentiable(script["f"], backend="python"))
    file.write_text("def f(p):\n    return 3.0 * p\n", encoding="utf-8")
    linecache.checkcache()
    assert cloudpickle.loads(data).grad(1.0) == 2.0


def test_one_worker_of_a_kind_compiles(client: Any, tmp_path: Path) -> None:
    """The others find the machine code in the cache."""

    def count() -> None:
        os.environ.update({store.SWITCH: "1", store.FOLDER: str(tmp_path)})  # other tests have none
        from tapegen.backend.cache.machine_code import MachineCodeCache

        save = MachineCodeCache.save_overload
        MachineCodeCache.compiled = 0

        def counted(self: Any, *args: Any) -> None:
            MachineCodeCache.compiled += 1
            save(self, *args)

        MachineCodeCache.save_overload = counted

    def counted() -> int:
        from tapegen.backend.cache.machine_code import MachineCodeCache

        return MachineCodeCache.compiled

    client.run(count)

    def fresh(p: Any, x: Any) -> Any:
        return p * np.sum(np.sin(x))

    slow = [dask.delayed(_after, pure=False)(0.1, k) for k in range(6)]  # every worker has some
    _, gradient = td.value_and_grad(fresh, client)(1.0, slow)
    assert gradient == pytest.approx(3.0 * sum(np.sin(np.arange(6.0))))
    assert sum(client.run(counted).values()) == 1
    assert len({address for address, found in client.run(lambda: len(worker_tasks._installed)).items() if found}) == 2


def _after(seconds: float, k: int) -> Any:
    import time

    time.sleep(seconds)
    return np.full(3, float(k))


def test_machine_code_reaches_workers_without_a_common_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cloudpickle

    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    data = cloudpickle.dumps(tg.differentiable(misfit, cache=True))
    monkeypatch.setattr(worker_tasks, "_made", {})
    monkeypatch.setattr(worker_tasks, "_installed", set())
    payloads = {"ab" * 32: b"text", "cd" * 32: b"code"}
    monkeypatch.setenv(store.SWITCH, "1")
    monkeypatch.setenv(store.FOLDER, str(there))
    monkeypatch.setattr(tg.Differentiable, "precompile", lambda self, *args: _store(payloads))
    kind, entries = worker_tasks.compiled(data, (P,), PARTS[0])
    assert entries == payloads
    monkeypatch.setattr(tg.Differentiable, "precompile", lambda self, *args: None)
    assert worker_tasks.compiled(data, (P,), PARTS[0]) == (kind, entries)  # known to the process
    monkeypatch.setenv(store.FOLDER, str(elsewhere))
    monkeypatch.setattr(tg.Differentiable, "value_and_grad", lambda self, *args: (1.0, 2.0))
    worker_tasks.partition_gradient(data, (P,), PARTS[0], 0, [("another processor", entries)])
    assert not elsewhere.exists()
    worker_tasks.partition_gradient(data, (P,), PARTS[0], 0, [(kind, entries)])
    kept = store.store()
    assert kept is not None
    assert {key: kept.load(key) for key in payloads} == payloads


def _store(payloads: dict[str, bytes]) -> None:
    kept = store.store()
    assert kept is not None
    for key, payload in payloads.items():
        kept.save(key, payload)


# ---- what fails ------------------------------------------------------------------------------------------------------


def test_workers_that_are_killed(client: Any, tmp_path: Path) -> None:
    """What they held and ran is computed again by others."""

    def load(k: int, mark: Path) -> Any:
        if k == 11 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return PARTS[k]

    parts = [dask.delayed(load, pure=False)(k, tmp_path / "killed") for k in range(20)]
    f = td.value_and_grad(misfit, client, backend="python")
    assert f(P, parts) == here(PARTS)
    assert (tmp_path / "killed").exists()


def test_a_restarted_cluster(threads: Any) -> None:
    """What it held is sent again."""
    f = td.value_and_grad(misfit, threads, backend="python")
    before = f(P, PARTS)
    threads.cancel([f._sent[1]], force=True)  # type: ignore[index]
    assert f(P, PARTS) == before


def test_errors_name_the_partition(threads: Any) -> None:
    def checked(p: Any, x: Any) -> Any:
        if x < 0.0:
            raise ValueError("x is negative")
        return p * x

    with pytest.raises(ValueError, match="x is negative") as caught:
        td.value_and_grad(checked, threads, backend="python")(1.0, [1.0, 2.0, -1.0])
    assert "in partition 2" in caught.value.__notes__


def test_refusals_come_before_anything_runs(threads: Any) -> None:
    f = td.value_and_grad(misfit, threads, backend="python")
    for parts, match in (
        ([], "no partitions"),
        (np.ones(3), "an array has no partitions"),
        ({"x": 3}, "'x' is of type int"),
        (iter(PARTS), "list_iterator"),
        ("text", "type str"),
    ):
        with pytest.raises(tg.BadArgument, match=match):
            f(P, parts)
    with pytest.raises(tg.BadArgument, match="missing"):
        f(PARTS)
    for wrt in (1, -1, "part", (0, "part")):
        with pytest.raises(tg.BadArgument, match="no sum"):
            td.value_and_grad(misfit, threads, wrt=wrt)(P, PARTS)
    with pytest.raises(tg.BadArgument, match="auxiliary"):
        td.value_and_grad(tg.differentiable(misfit, has_aux=True), threads)
    with pytest.raises(tg.BadArgument, match="type str"):
        td.value_and_grad(misfit, "tcp://localhost:8786")


def test_closed_clients(threads: Any) -> None:
    other = distributed.Client(threads.scheduler.address, set_as_default=False)
    f = td.value_and_grad(misfit, other, backend="python")
    other.close()
    with pytest.raises(tg.BadArgument, match="client is closed"):
        f(P, PARTS)
    with pytest.raises(tg.BadArgument, match="client is closed"):
        td.value_and_grad(misfit, other)


def test_the_current_client_is_the_default(threads: Any) -> None:
    with threads.as_current():
        assert td.value_and_grad(misfit, backend="python")(P, PARTS) == here(PARTS)


def test_the_page(
    threads: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "howto/clusters.md"
    without_compiling(monkeypatch)
    monkeypatch.setattr(distributed, "Client", lambda: threads)
    monkeypatch.setattr(gradients, "_usable", lambda client: client)
    run(python_of(page).replace('if __name__ == "__main__":', "if True:"), tmp_path / "page.py")
    assert capsys.readouterr().out.splitlines() == promised(page)


def test_the_example(threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS.parent / "examples"))
    without_compiling(monkeypatch)
    import fit_dask

    monkeypatch.setattr(fit_dask, "HOURS", 2000)
    monkeypatch.setattr(fit_dask, "PART", 500)
    assert fit_dask.main(threads)["worst"] < 0.3
