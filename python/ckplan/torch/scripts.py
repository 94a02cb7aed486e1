"""Imports the user's file or module, and calls its functions, for ``python -m ckplan.torch``.

Whatever happens in the user's code, the error names the file, the line and what to do.
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

_GUARD = 'put what should not run then under: if __name__ == "__main__":'

_OWN_ERRORS: tuple[type[BaseException], ...] = tuple(
    kind for kind in vars(errors).values() if isinstance(kind, type)
)


class ScriptError(Exception):
    """The user's file cannot be used. The text says why, and where."""


class _TrainsError(BaseException):
    """A step of an optimizer while a file is imported. Code that catches Exception lets it pass."""


def found(name: str) -> tuple[ModuleType, Callable[..., Any]]:
    """Returns the module and the function that ``MODULE:FUNCTION`` names.

    Raises ScriptError, and ValueError for what is no such name.
    """
    place, separator, function = name.rpartition(":")
    if not separator or not place or not function:
        raise ValueError(f"{name} has no function: write MODULE:FUNCTION or FILE.py:FUNCTION")
    module = _from_file(Path(place)) if place.endswith(".py") else _by_name(place)
    make = called(module, function)
    if not callable(make):
        raise ScriptError(
            f"{function} of {_place(module)} is not a function that makes the model: "
            f"it has the type {type(make).__name__}"
        )
    return module, make


def named(module: ModuleType, name: str, remedy: str = "") -> Any:
    """Returns what a module has by this name. ``remedy`` says what to do if it has none."""
    if not hasattr(module, name):
        own = [row for row, value in vars(module).items() if callable(value) and row[:1] != "_"]
        near = difflib.get_close_matches(name, own, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; {remedy}" if remedy else ""
        raise ScriptError(f"{_place(module)} has no {name!r}{hint}")
    return getattr(module, name)


def called(module: ModuleType, name: str, remedy: str = "") -> Any:
    """Returns what a module has by this name; a function's errors will be in words."""
    function = named(module, name, remedy)
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _in_words(f"{name}() of {_place(module)}"):
            return function(*args, **kwargs)

    return call


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ScriptError(f"{path} does not exist" if not path.exists() else f"{path} is not a file")
    # A file may be called like a module that is in use, as random.py is.
    name = path.stem if path.stem not in sys.modules else f"ckplan_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "the name ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        with _importing(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _by_name(name: str) -> ModuleType:
    sys.path.insert(0, "")  # As for a script, modules of the present folder are found.
    if not all(part.isidentifier() for part in name.split(".")):
        raise ScriptError(f"{name} is not the name of a module; for a file, write FILE.py:FUNCTION")
    with _importing(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise ScriptError(
        f"there is no module {name} in this folder or on sys.path; for a file, write FILE.py:FUNCTION"
    )


@contextlib.contextmanager
def _importing(name: str) -> Iterator[None]:
    """Imports as a script would be imported: it sees no arguments, and what it prints is no answer."""

    def stop(*_: Any) -> None:
        raise _TrainsError

    exit_now, process = os._exit, os.getpid()

    def leave(code: int) -> NoReturn:
        if os.getpid() != process:  # A process that the import has forked.
            exit_now(code)
        raise SystemExit(code)

    os._exit = leave  # type: ignore[assignment]
    arguments, sys.argv = sys.argv, [name]
    hook = register_optimizer_step_pre_hook(stop)
    try:
        with contextlib.redirect_stdout(sys.stderr), _in_words(name, is_import=True):
            yield
    finally:
        hook.remove()
        os._exit = exit_now
        sys.argv = arguments


@contextlib.contextmanager
def _in_words(what: str, is_import: bool = False) -> Iterator[None]:
    """Turns whatever the user's code raises into a ScriptError, except an interrupt."""
    when = "when it is imported" if is_import else "when it is called"
    try:
        yield
    except KeyboardInterrupt:
        raise
    except _TrainsError as error:
        raise ScriptError(f"{what} begins to train {when}{_line(error)}; {_GUARD}") from None
    except SystemExit as error:
        how = f"with the exit code {error.code}" if isinstance(error.code, int) else ""
        how = how or ("with the exit code 0" if error.code is None else f"saying {error.code!r:.60}")
        advice = f"; {_GUARD}" if is_import else ""
        raise ScriptError(f"{what} ends the program {when}, {how}{_line(error)}{advice}") from None
    except _OWN_ERRORS:
        raise
    except BaseException as error:
        said = " ".join(str(error).split())[:300]
        cause = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise ScriptError(f"{what} fails {when}{_line(error)}: {cause}") from error


def _line(error: BaseException) -> str:
    """Returns where the user's own code was, outside of Python's and other libraries."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    libraries = (*{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}, "<frozen")
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*libraries, str(Path(__file__).parents[1])))
    ]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__
