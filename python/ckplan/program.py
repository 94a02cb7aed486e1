"""Finds the programs that this package runs: ``ckplan``, and ``ckexec`` if it is built."""

from __future__ import annotations

import os
from pathlib import Path


class ProgramNotFoundError(FileNotFoundError):
    """The program was not found. The message lists the places searched."""


def find_program(name: str = "ckplan") -> Path:
    """Returns the path of the program ``name``.

    Searches, in this order, the environment variable ``CKPLAN_PROGRAM`` (``CKEXEC_PROGRAM`` for
    ``ckexec``), this package, where ``pip install`` puts the program, and ``PATH``. Raises
    ProgramNotFoundError, also if the variable is set to a path that is not a program.
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
        f"{name} not found: {variable} is not set, {packaged} does not exist, and it is not on PATH; "
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
    """Returns whether the file is a script, such as this package's entry point, not the program."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"
