"""Where the programs are that this package runs: ``ckplan``, and ``ckexec`` where it is built."""

from __future__ import annotations

import os
from pathlib import Path


class ProgramNotFoundError(FileNotFoundError):
    """There is no program to run. The message says where it was looked for."""


def find_program(name: str = "ckplan") -> Path:
    """Returns the path of the program ``name``.

    Looks, in this order, at the environment variable ``CKPLAN_PROGRAM`` (``CKEXEC_PROGRAM`` for
    ``ckexec``), into this package, where ``pip install`` puts it, and along ``PATH``. A variable
    that is set but names no program is an error, so that a misspelt path is never passed over.
    """
    variable = f"{name.upper()}_PROGRAM"
    named = os.environ.get(variable)
    if named:
        if _is_executable(Path(named)):
            return Path(named)
        raise ProgramNotFoundError(f"{variable}={named} is not an executable file")
    packaged = Path(__file__).parent / "bin" / name
    if _is_executable(packaged):
        return packaged
    on_path = _find_on_path(name)
    if on_path is not None:
        return on_path
    raise ProgramNotFoundError(
        f"no program {name}: {variable} is not set, {packaged} does not exist, and PATH has none; "
        f"install this package with pip, or build {name} and set {variable} to its path"
    )


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _find_on_path(name: str) -> Path | None:
    for folder in os.get_exec_path():
        path = Path(folder) / name
        if folder and _is_executable(path) and not _is_script(path):
            return path
    return None


def _is_script(path: Path) -> bool:
    """Whether it is a script, such as this package's own entry point, which would call itself."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"
