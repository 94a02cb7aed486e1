"""Keeps plans for later runs, in a folder that other users may write to.

The name of a file is the hash of the graph, the request and the program. The contents are not
trusted: the program's checker replays the plan against the graph, and the plan is used only if it
meets the present limit. If a file holds no such plan, the graph is planned again, with a warning.
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
from ckplan.answer import ask
from ckplan.torch import untrusted
from ckplan.torch.untrusted import RefusedError

Accepted = TypeVar("Accepted")

# A plan has a row for each operation, like its graph, and a step and an offset for each run.
_BYTES_FOR_EACH_OF_THE_GRAPH = 16
_LEAST_BYTES = 1 << 20
_MOST_OF_NUMBERS = 1 << 26


def numbers(name: str, least: int, most: int) -> dict[str, int]:
    """Returns the numbers that were stored by this name; none if there is no such file.

    A file with anything but numbers within the range counts as absent.
    """
    folder = _folder()
    if folder is None:
        return {}
    try:
        content = _read(folder / f"{name}.json", _MOST_OF_NUMBERS)
        return {} if content is None else untrusted.whole_numbers(
            untrusted.json_value(content), least, most
        )
    except (RefusedError, OSError):
        return {}


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

        ``accept`` raises RefusedError if the plan does not fit the request. ``most`` returns the
        highest peak that the plan may have: bytes, or another limit that ``--fail-on`` takes.
        """
        if self._path is None:
            return None
        try:
            content = _read(self._path, self._most)
            return None if content is None else accept(self._judged(content, most()))
        except (RefusedError, OSError) as reason:
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
        found = untrusted.json_value(content)
        with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
            plan, graph = Path(folder) / "plan.json", Path(folder) / "graph.json"
            # The program judges what was parsed here, so that both read the same plan.
            plan.write_text(json.dumps(found), encoding="utf-8")
            graph.write_bytes(self._graph)
            limit = f"--fail-on=peak>{most}"
            answer = ask("check", "--no-config", "--quiet", limit, str(plan), str(graph))
        if answer.exit_code != 0:
            said = str(answer.refusal()).replace(f"{folder}/", "")
            raise RefusedError("; ".join(line.strip() for line in said.split("\n")[:2]))
        return found


def _folder() -> Path | None:
    """Returns the folder of plans: CKPLAN_CACHE, or a folder of the user; None if that is empty."""
    named = os.environ.get("CKPLAN_CACHE")
    if named is not None:
        return Path(named) if named else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "ckplan" / "torch"


def _read(path: Path, most: int) -> bytes | None:
    """Returns the content of a file, or None if there is no file. Raises RefusedError, OSError."""
    try:
        return untrusted.file_bytes(path, most, follows_links=False)
    except FileNotFoundError:
        return None


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
