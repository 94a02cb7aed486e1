"""Keeps plans for later runs, in a folder that other users may write to.

The name of a file is the hash of the graph, the request and the program. The contents are not
trusted: the program's checker replays the plan against the graph, and the plan is used only if it
meets the present limit. If a file holds no such plan, the graph is planned again, with a warning.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import ckplan
from ckplan.answer import ask

Accepted = TypeVar("Accepted")

# A plan has a row for each operation, like its graph, and a step and an offset for each run.
_BYTES_FOR_EACH_OF_THE_GRAPH = 16
_LEAST_BYTES = 1 << 20
_MOST_OF_NUMBERS = 1 << 26


class AlienError(Exception):
    """The file is not the requested plan. The text says why."""


def numbers(name: str) -> dict[str, int]:
    """Returns the numbers that were stored by this name; none if there is no such file."""
    folder = _folder()
    try:
        content = None if folder is None else _read(folder / f"{name}.json", _MOST_OF_NUMBERS)
        found = {} if content is None else json.loads(content)
    except (AlienError, OSError, ValueError, RecursionError):
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {key: size for key, size in rows if type(size) is int}


def store_numbers(name: str, rows: dict[str, int]) -> None:
    """Writes numbers into a file, replacing it."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(folder / f"{name}.json", json.dumps(rows, sort_keys=True).encode())


class Kept:
    """The file of one plan. ``graph`` is the joint graph's file, which checks the plan."""

    def __init__(self, key: str, graph: bytes):
        self._graph = graph
        folder = _folder()
        self._path = None if folder is None else folder / f"{key}.json"
        self._most = _LEAST_BYTES + _BYTES_FOR_EACH_OF_THE_GRAPH * len(graph)

    def take(
        self, accept: Callable[[Any], Accepted], most: Callable[[], int | str]
    ) -> Accepted | None:
        """Returns ``accept(plan)`` for a plan with right figures, or None if there is no plan.

        ``accept`` raises AlienError if the plan does not fit the request. ``most`` returns the
        highest peak that the plan may have: bytes, or another limit that ``--fail-on`` takes.
        """
        if self._path is None:
            return None
        try:
            content = _read(self._path, self._most)
            return None if content is None else accept(self._judged(content, most()))
        except (AlienError, OSError) as reason:
            warnings.warn(
                f"{self._path} is not used, and the graph is planned again: {reason}",
                ckplan.PlanWarning,
                stacklevel=2,
            )
            return None

    def store(self, plan: dict[str, Any]) -> None:
        """Writes the file, whole or not at all, replacing anything of the same name."""
        content = json.dumps(plan).encode()
        if self._path is None or len(content) > self._most:
            return
        # A cache that cannot be written only costs time.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._path, content)

    def _judged(self, content: bytes, most: int | str) -> Any:
        """Returns the plan if the program confirms it for the graph, with all its figures."""
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise AlienError("it is no JSON, or nested too deeply") from None
        with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
            plan, graph = Path(folder) / "plan.json", Path(folder) / "graph.json"
            plan.write_bytes(content)
            graph.write_bytes(self._graph)
            limit = f"--fail-on=peak>{most}"
            answer = ask("check", "--no-config", "--quiet", limit, str(plan), str(graph))
        if answer.exit_code != 0:
            said = str(answer.refusal()).replace(f"{folder}/", "")
            raise AlienError("; ".join(line.strip() for line in said.split("\n")[:2]))
        return found


def _folder() -> Path | None:
    """Returns the folder of plans: CKPLAN_CACHE, or a folder of the user; None if that is empty."""
    named = os.environ.get("CKPLAN_CACHE")
    if named is not None:
        return Path(named) if named else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "ckplan" / "torch"


def _read(path: Path, most: int) -> bytes | None:
    """Returns the content of a file, or None if there is none or it must not be read.

    Does not follow links, wait for pipes, read devices, or read more than ``most`` bytes.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise AlienError("it is a link") from error
        return None
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise AlienError("it is no regular file")
        with open(opened, "rb", closefd=False) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise AlienError(str(error)) from error
    finally:
        os.close(opened)
    if len(content) > most:
        raise AlienError(f"no plan of this graph has more than {most} bytes")
    return content


def _replace(path: Path, content: bytes) -> None:
    # The file is created exclusively, under an unpredictable name, for this user alone.
    opened, part = tempfile.mkstemp(".part", f"{path.stem}.", path.parent)
    try:
        with open(opened, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
