"""Caches plans in a folder that other users may write to.

A file is named by the hash of the graph, the request and the program. Its contents are untrusted:
the program checks the plan against the graph, and the plan is used only if it is within the current
limit. Otherwise the graph is planned again, with a warning.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import ckplan
from ckplan.invocation import run_program
from ckplan.torch import untrusted_files
from ckplan.torch.untrusted_files import RefusedError

Accepted = TypeVar("Accepted")

# A plan has a row for each operation, like its graph, and a step and an offset for each run.
_MAX_BYTES_PER_GRAPH_BYTE = 16
_MIN_LIMIT = 1 << 20
_MAX_NUMBERS_BYTES = 1 << 26


def load_numbers(name: str, least: int, most: int) -> dict[str, int]:
    """Returns the numbers stored under a name, or none if there is no valid file.

    A file is valid if it holds only whole numbers from ``least`` to ``most``.
    """
    folder = _folder()
    if folder is None:
        return {}
    try:
        content = _read(folder / f"{name}.json", _MAX_NUMBERS_BYTES)
        return (
            {}
            if content is None
            else untrusted_files.whole_numbers(untrusted_files.json_value(content), least, most)
        )
    except (RefusedError, OSError):
        return {}


def store_numbers(name: str, rows: dict[str, int]) -> None:
    """Stores numbers under a name, replacing earlier ones."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(folder / f"{name}.json", json.dumps(rows, sort_keys=True).encode())


class CachedPlan:
    """One plan in the cache, and the joint graph, as a file, that it is checked against."""

    def __init__(self, key: str, graph: bytes):
        self._graph = graph
        folder = _folder()
        self._path = None if folder is None else folder / f"{key}.json"
        self._most = _MIN_LIMIT + _MAX_BYTES_PER_GRAPH_BYTE * len(graph)

    def load(
        self, accept: Callable[[Any], Accepted], most: Callable[[], int | str]
    ) -> Accepted | None:
        """Returns ``accept(plan)`` for a valid plan, or None if there is none.

        ``accept`` raises RefusedError if the plan does not answer the request. ``most`` returns
        the limit for the plan's peak: bytes, or anything else that ``--fail-on`` takes.
        """
        if self._path is None:
            return None
        try:
            content = _read(self._path, self._most)
            return None if content is None else accept(self._check_plan(content, most()))
        except (RefusedError, OSError) as reason:
            warnings.warn(
                f"ignoring {self._path} and planning the graph again: {reason}",
                ckplan.PlanWarning,
                stacklevel=2,
            )
            return None

    def store(self, plan: dict[str, Any]) -> None:
        """Writes the file atomically, replacing an earlier one."""
        content = json.dumps(plan).encode()
        if self._path is None or len(content) > self._most:
            return
        # Without a cache, planning only takes longer.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._path, content)

    def _check_plan(self, content: bytes, most: int | str) -> Any:
        """Returns the plan if the program finds it and its figures valid for the graph."""
        found = untrusted_files.json_value(content)
        with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
            plan, graph = Path(folder) / "plan.json", Path(folder) / "graph.json"
            # The program checks what was parsed here, so both read the same plan.
            plan.write_text(json.dumps(found), encoding="utf-8")
            graph.write_bytes(self._graph)
            limit = f"--fail-on=peak>{most}"
            answer = run_program("check", "--no-config", "--quiet", limit, str(plan), str(graph))
        if answer.exit_code != 0:
            said = str(answer.error()).replace(f"{folder}/", "")
            raise RefusedError("; ".join(line.strip() for line in said.split("\n")[:2]))
        return found


def _folder() -> Path | None:
    """Returns the cache folder: CKPLAN_CACHE, or the user's; None if CKPLAN_CACHE is empty."""
    named = os.environ.get("CKPLAN_CACHE")
    if named is not None:
        return Path(named) if named else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "ckplan" / "torch"


def _read(path: Path, most: int) -> bytes | None:
    """Returns the content of a file, or None if there is no file. Raises RefusedError, OSError."""
    try:
        return untrusted_files.file_bytes(path, most, follows_links=False)
    except FileNotFoundError:
        return None


def _replace(path: Path, content: bytes) -> None:
    # mkstemp: an unpredictable name, readable by this user alone.
    opened, part = tempfile.mkstemp(".part", f"{path.stem}.", path.parent)
    try:
        with open(opened, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
