"""Files of users that cannot be imported, exit, or train, as ``estimate`` finds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from torch_tests.test_estimate import MODULE

from ckplan.torch import __main__ as command

GUARD = 'move code that must not run on import under: if __name__ == "__main__":'

FILES = {
    "import sys\nsys.exit(0)\n": "exits when it is imported, with the exit code 0 (made.py:2); "
    + GUARD,
    "import os\nos._exit(0)\n": "with the exit code 0 (made.py:2)",
    "exit()\n": "with the exit code 0 (made.py:1)",
    "raise SystemExit\n": "with the exit code 0 (made.py:1)",
    "raise SystemExit(7)\n": "with the exit code 7 (made.py:1)",
    "import sys\nsys.exit('no data')\n": "saying 'no data' (made.py:2)",
    "def f():\n    quit(3)\nf()\n": "with the exit code 3 (made.py:2)",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()\n": (
        "with the exit code 2 (made.py:4)"
    ),
    "class Stop(BaseException): pass\nraise Stop('now')\n": "fails when it is imported (made.py:2): Stop: now",
    "import asyncio\nraise asyncio.CancelledError\n": "made.py:2): CancelledError",
    "raise GeneratorExit\n": "made.py:1): GeneratorExit",
    "1 / 0\n": "made.py:1): ZeroDivisionError: division by zero",
    "x = (\n": "made.py:1): SyntaxError: '(' was never closed",
    "import no_such_module\n": "ModuleNotFoundError: No module named 'no_such_module'",
    "open('no_such_file')\n": "FileNotFoundError",
    "raise ValueError('a\\nb')\n": "made.py:1): ValueError: a b",
    "undefined\n": "NameError: name 'undefined' is not defined",
    "import torch\np = torch.zeros(1, requires_grad=True)\n(p * 2).backward()\n"
    "try:\n    torch.optim.SGD([p]).step()\nexcept Exception:\n    pass\n": (
        "starts training when it is imported (made.py:5); " + GUARD
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.py"


@pytest.mark.parametrize("text", FILES)
@pytest.mark.parametrize("is_name", [False, True])
def test_a_file_that_cannot_be_imported_is_an_error_in_words(
    path, text, is_name, capsys, monkeypatch
):
    path.write_text(text)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "made", raising=False)
    model = "made:make_model" if is_name else f"{path}:make_model"
    assert command.main(["estimate", model]) == 3
    out, error = capsys.readouterr()
    assert out == ""
    line = error.splitlines()[-1]
    assert line.startswith(f"ckplan.torch: {'made' if is_name else path} ") and FILES[text] in line


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (
            "def make_model(): exit(0)",
            [],
            "make_model() of {path} exits when it is called, with the exit code 0",
        ),
        ("def make_model(): return 1 / 0", [], "made.py:14): ZeroDivisionError: division by zero"),
        (
            "def inputs(batch=1): raise KeyError('x')",
            [],
            "inputs() of {path} fails when it is called (made.py:14): KeyError",
        ),
        (
            "make_model = 3",
            [],
            "make_model in {path} must be a function that returns the model, not a int",
        ),
        (
            "del inputs",
            [],
            "{path} has no 'inputs'; write inputs(), which returns the arguments of forward, or name "
            "another with --inputs",
        ),
        ("", ["--inputs", "input"], "has no 'input'; did you mean 'inputs'?"),
        ("", ["--loss", "los"], "has no 'los'; did you mean 'loss'?"),
    ],
)
def test_functions_that_are_missing_or_fail(path, change, arguments, said, capsys):
    path.write_text(f"{MODULE}\n{change}\n")
    given = ["--loss", "loss"] if "--loss" not in arguments else []
    assert command.main(["estimate", f"{path}:make_model", *given, *arguments]) == 3
    assert said.format(path=path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("no_such_one:make", 3, "no module no_such_one in this folder"),
        ("json.no_such_one:make", 3, "no module json.no_such_one"),
        ("a/b:make", 3, "a/b is not the name of a module; for a file, write FILE.py:FUNCTION"),
        ("made.py", 2, "write MODULE:FUNCTION or FILE.py:FUNCTION"),
        (":make", 2, "write MODULE:FUNCTION"),
        ("made.py:", 2, "write MODULE:FUNCTION"),
    ],
)
def test_names_that_are_no_files(model, code, said, capsys):
    assert command.main(["estimate", model]) == code
    assert said in capsys.readouterr().err


def test_a_file_sees_no_arguments_and_what_it_prints_is_not_the_answer(path, capsys):
    path.write_text(f"{MODULE}\nimport sys\nprint('hello', sys.argv)\n")
    model = f"{path}:make_model"
    assert command.main(["estimate", model, "--loss", "loss", "--format", "json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out)["sizes"] == {"batch": 4}
    assert f"hello ['{path}']" in error


def test_a_file_may_have_the_name_of_a_module(tmp_path, capsys):
    path = tmp_path / "torch.py"
    path.write_text("x = 1\n")
    before = sys.modules["torch"]
    assert command.main(["estimate", f"{path}:make_model"]) == 3
    assert f"{path} has no 'make_model'" in capsys.readouterr().err
    assert sys.modules["torch"] is before


def test_an_interrupt_ends_with_its_exit_code(path):
    path.write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "ckplan.torch", "estimate", f"{path}:make_model"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ckplan.torch: interrupted\n")
