"""Imports the user's file or module, and calls its functions, for ``python -m ckplan.torch``.

Errors in the user's code become messages with the file, the line and what to do.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from torch.optim.optimizer import register_optimizer_step_pre_hook

from ckplan.torch import errors

_GUARD = 'move code that must not run on import under: if __name__ == "__main__":'

_OWN_ERRORS: tuple[type[BaseException], ...] = tuple(
    kind for kind in vars(errors).values() if isinstance(kind, type)
)


class ScriptError(Exception):
    """The user's file cannot be used. The text says where and why."""


class _TrainsError(BaseException):
    """An optimizer step during import. A BaseException, so that user code does not catch it."""


def find_function(name: str) -> tuple[ModuleType, Callable[..., Any]]:
    """Returns the module and the function that ``MODULE:FUNCTION`` names.

    Raises ScriptError, or ValueError if ``name`` has another form.
    """
    place, separator, function = name.rpartition(":")
    if not separator or not place or not function:
        raise ValueError(f"{name} is not a function: write MODULE:FUNCTION or FILE.py:FUNCTION")
    module = _from_file(Path(place)) if place.endswith(".py") else _by_name(place)
    make = called(module, function)
    if not callable(make):
        raise ScriptError(
            f"{function} in {_module_place(module)} must be a function that returns the model, not "
            f"a {type(make).__name__}"
        )
    return module, make


def named(module: ModuleType, name: str, remedy: str = "") -> Any:
    """Returns a module's attribute. ``remedy`` tells the user what to do if it is missing."""
    if not hasattr(module, name):
        functions = [
            row for row, value in vars(module).items() if callable(value) and row[:1] != "_"
        ]
        near = difflib.get_close_matches(name, functions, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; {remedy}" if remedy else ""
        raise ScriptError(f"{_module_place(module)} has no {name!r}{hint}")
    return getattr(module, name)


def called(module: ModuleType, name: str, remedy: str = "") -> Any:
    """Returns a module's attribute; if it is a function, its errors become ScriptErrors."""
    function = named(module, name, remedy)
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _report_errors(f"{name}() of {_module_place(module)}"):
            return function(*args, **kwargs)

    return call


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ScriptError(
            f"{path} does not exist" if not path.exists() else f"{path} is not a file"
        )
    # The file may have the name of a loaded module, such as random.py.
    name = path.stem if path.stem not in sys.modules else f"ckplan_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "the name ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        with _prepare_import(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _by_name(name: str) -> ModuleType:
    sys.path.insert(0, "")  # As for a script, the current folder is searched.
    if not all(part.isidentifier() for part in name.split(".")):
        raise ScriptError(f"{name} is not the name of a module; for a file, write FILE.py:FUNCTION")
    with _prepare_import(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise ScriptError(
        f"no module {name} in this folder or on sys.path; for a file, write FILE.py:FUNCTION"
    )


@contextlib.contextmanager
def _prepare_import(name: str) -> Iterator[None]:
    """Prepares an import: no arguments, output to stderr, no training, no exit."""

    def stop(*_: Any) -> None:
        raise _TrainsError

    exit_now, process = os._exit, os.getpid()

    def leave(code: int) -> NoReturn:
        if os.getpid() != process:  # In a process that the import forked.
            exit_now(code)
        raise SystemExit(code)

    os._exit = leave  # type: ignore[assignment]
    arguments, sys.argv = sys.argv, [name]
    hook = register_optimizer_step_pre_hook(stop)
    try:
        with contextlib.redirect_stdout(sys.stderr), _report_errors(name, is_import=True):
            yield
    finally:
        hook.remove()
        os._exit = exit_now
        sys.argv = arguments


@contextlib.contextmanager
def _report_errors(what: str, is_import: bool = False) -> Iterator[None]:
    """Turns whatever the user's code raises into a ScriptError, except an interrupt."""
    when = "when it is imported" if is_import else "when it is called"
    try:
        yield
    except KeyboardInterrupt:
        raise
    except _TrainsError as error:
        raise ScriptError(f"{what} starts training {when}{_line(error)}; {_GUARD}") from None
    except SystemExit as error:
        how = f"with the exit code {error.code}" if isinstance(error.code, int) else ""
        how = how or (
            "with the exit code 0" if error.code is None else f"saying {error.code!r:.60}"
        )
        advice = f"; {_GUARD}" if is_import else ""
        raise ScriptError(f"{what} exits {when}, {how}{_line(error)}{advice}") from None
    except _OWN_ERRORS:
        raise
    except BaseException as error:
        text = " ".join(str(error).split())[:300]
        cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise ScriptError(f"{what} fails {when}{_line(error)}: {cause}") from error


def _line(error: BaseException) -> str:
    """Returns " (file:line)" of the innermost frame in the user's user_frames code."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    libraries = (
        *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
        "<frozen",
    )
    user_frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*libraries, str(Path(__file__).parents[1])))
    ]
    if not user_frames:
        return ""
    return f" ({Path(user_frames[-1].filename).name}:{user_frames[-1].lineno})"


def _module_place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__
