"""`tapegen check` and `tapegen explain`."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tapegen.cli import main
from tapegen.cli.target import load_function

KERNEL = '''
import math
import numpy as np


def helper(x):
    return np.sin(x) * x


def march(u0, k, n):
    """A loop that records."""
    u = u0.copy()
    for i in range(1, u.size):
        r = u[i - 1] * u[i]
        u[i] = u[i] + k * helper(r)
    return np.sum(u)


def fails(x):
    raise ValueError("never " + "<b>")


def root(x, *, y):
    return math.log(x) * y["a"] + x ** y["b"]


def refused(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 2 * x
'''


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    (tmp_path / "kernel_of_check.py").write_text(KERNEL, encoding="utf-8")
    return str(tmp_path / "kernel_of_check.py")


def check(kernel: str, name: str, types: str, *more: str) -> int:
    return main(["check", f"{kernel}::{name}", "--args", types, "--backend", "python", "--points", "2", *more])


def test_right_derivatives(kernel: str, capsys: pytest.CaptureFixture) -> None:
    assert check(kernel, "march", "f8[:], f8, i8") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["function", "argument", "mode", "points", "verdict"]
    modes = ("reverse", "forward")
    assert rows[1:] == [["march", name, mode, "2", "right"] for name in ("u0", "k") for mode in modes]


def test_only_the_arguments_of_wrt(kernel: str, capsys: pytest.CaptureFixture) -> None:
    assert check(kernel, "march", "f8[:], f8, i8", "--wrt", "1") == 0
    assert re.findall(r"march +(\w+)", capsys.readouterr().out) == ["k", "k"]
    assert check(kernel, "march", "f8[:], f8, i8", "--wrt", "n") == 1
    assert "'n' is not an argument that holds floats" in capsys.readouterr().err


def test_points_without_a_value_do_not_count(kernel: str, capsys: pytest.CaptureFixture) -> None:
    """A logarithm of a negative number; structures by keyword."""
    assert check(kernel, "root", "f8, y={'a': f8, 'b': f8}", "--seed", "2") == 0
    said = capsys.readouterr().out
    assert re.search(r"root +x +reverse +1 +right \(no value at 1 more points\)", said)
    assert check(kernel, "fails", "f8") == 1
    assert "not checked: the function has no value" in capsys.readouterr().out


def test_refusals_are_verdicts(kernel: str, capsys: pytest.CaptureFixture) -> None:
    assert check(kernel, "refused", "f8") == 1
    said = capsys.readouterr().out
    assert re.search(r"refused: .*kernel_of_check.py:\d+: whether the body of 'try' raises", said)


def test_wrong_derivatives_are_found(
    kernel: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from tapegen.rules import registry

    rule = registry._RULES[np.sin]
    monkeypatch.setitem(registry._RULES, np.sin, type(rule)(rule.func, rule.kind, lambda x: 2.0 * np.cos(x)))
    assert check(kernel, "march", "f8[:], f8, i8") == 1
    said = capsys.readouterr().out
    assert re.search(r"march +u0 +reverse +0 +WRONG at point 0: ", said)


def test_functions_with_signatures(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text = """
    from tapegen import differentiable

    @differentiable(signatures=["f8", "f4"])
    def double(x):
        return x + x
    """
    (tmp_path / "signed.py").write_text(textwrap.dedent(text), encoding="utf-8")
    assert main(["check", str(tmp_path / "signed.py"), "--points", "1", "--backend", "python"]) in (0, 1)
    assert capsys.readouterr().out.count("double") == 4


def test_explain_names_what_is_recorded_why_and_where(kernel: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["explain", f"{kernel}::march", "--args", "f8[:], f8, i8", "--wrt", "u0,k", "--size", "50"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"with respect to +u0, k", said)
    assert re.search(r"active +u0, k, u", said)
    recorded = [line.split() for line in said.splitlines() if " recorded " in line and ":" in line]
    assert recorded
    assert recorded[0][2] == "392"  # 49 iterations of 8 bytes


class Page(html.parser.HTMLParser):
    """What a browser would load and show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[str] = []
        self.shown: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs} & {"src", "srcset", "href", "onload", "onclick", "data"}

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def page_of(target: str, types: str, out: Path) -> Page:
    assert main(["explain", target, "--args", types, "--html", str(out)]) == 0
    return Page(out.read_text(encoding="utf-8"))


def test_the_page_shows_both_sweeps_and_the_functions(kernel: str, tmp_path: Path) -> None:
    page = page_of(f"{kernel}::march", "f8[:], f8, i8", tmp_path / "report.html")
    text = "".join(page.shown)
    for part in ("u[i] = u[i] + k * helper(r)", "return np.sin(x) * x", "u0_bar", "backward sweep", "legend"):
        assert part in text
    assert not {"link", "img", "iframe", "object", "script"} & set(page.tags)


HOSTILE = '''
def f(x):
    """</pre><script>alert(1)</script><img src=x onerror=alert(1)>"""
    y = x * x  # </div><script>alert("&amp;")</script> \u202e'"
    return y
'''


def test_hostile_text_is_text(tmp_path: Path) -> None:
    file = tmp_path / "a<b>&'\".py"
    file.write_text(HOSTILE, encoding="utf-8")
    page = page_of(f"{file}::f", "f8", tmp_path / "<script>.html")
    assert "script" not in page.tags
    text = "".join(page.shown)
    assert '</div><script>alert("&amp;")</script> \\u202e' in text
    assert "a<b>&'\".py" in text
    assert "\u202e" not in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no browser")
def test_the_page_in_a_browser(kernel: str, tmp_path: Path) -> None:
    """A line under the pointer is marked together with all that belongs to its statement, in the color of the theme."""
    out = tmp_path / "report.html"
    text = page_of(f"{kernel}::march", "f8[:], f8, i8", out).text
    key = re.findall(r'<div class="(s\d+)"><span class="place">[ 0-9]+</span> *r = ', text)[0]
    # a browser without a person has no pointer: a class takes its place, and a script tells which lines are marked
    text = (
        text.replace(":hover", ".pointed").replace("default-src 'none';", "").replace(f'"{key}"', f'"{key} pointed"', 1)
    )
    script = """<script>document.title = [...document.querySelectorAll("tr, pre > div")]
      .filter(each => getComputedStyle(each).backgroundColor == "rgb(255, 243, 191)")
      .map(each => each.tagName + each.className.split(" ")[0]).join()</script>"""
    out.write_text(text.replace("</body>", script + "</body>"), encoding="utf-8")
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        + ["--enable-logging=stderr", "--dump-dom", f"file://{out}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    marked = re.search("<title>(.*)</title>", done.stdout)[1].split(",")
    assert {f"DIV{key}", f"TR{key}"} == set(marked)
    assert "CONSOLE" not in done.stderr  # nothing was blocked, nothing failed


@pytest.mark.parametrize("command", ["show", "write", "build", "check", "explain", "rules", "cache", "completion"])
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert f"tapegen {command} " in said.partition("examples:")[2] or command == "rules"


def test_exit_codes(kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as end:
        main(["explain"])
    assert end.value.code == 2
    assert main(["explain", str(tmp_path / "nothing.py::f")]) == 1
    assert main(["explain", kernel]) == 1
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    assert main(["show", f"{tmp_path}/broken.py::f"]) == 1
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    assert main(["show", f"{tmp_path}/leaves.py::f"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "leaves.py:2 failed: SystemExit" in said


def test_unexpected_errors_are_one_block(
    kernel: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a\x1b[31m")

    monkeypatch.setattr("tapegen.cli.explain.page", broken)
    arguments = ["explain", f"{kernel}::march", "--args", "f8[:], f8, i8", "--html", "x.html"]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith("RuntimeError: a\\x1b[31m\n")
    assert "Traceback" not in said
    monkeypatch.setenv("TAPEGEN_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(arguments)


def test_modules_in_packages_are_imported_as_their_own(tmp_path: Path) -> None:
    package = tmp_path / "springs_of_check"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "law.py").write_text("K = 2.0\n", encoding="utf-8")
    (package / "model.py").write_text("from .law import K\n\n\ndef pull(x):\n    return K * x\n", encoding="utf-8")
    function = load_function(f"{package / 'model.py'}::pull")
    assert function.python.__module__ == "springs_of_check.model"
