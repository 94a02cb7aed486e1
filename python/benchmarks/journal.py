"""Saves benchmark results to a file, line by line, so that an interrupted run can resume.

``--journal FILE`` names the file. Each line holds a row's name, the package versions and options
that it was computed with, and its result. Run the same command again to compute the missing rows
and print the whole table. Rows with other versions or options are computed again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Adds ``--journal`` to a command line."""
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="file of finished rows, to resume from"
    )


class Journal:
    """The finished rows, by name."""

    def __init__(self, path: Path | None, packages: Iterable[str], options: object = None):
        """``options`` are those of the command line that change rows."""
        self._path = path
        self._about = {name: _version(name) for name in packages} | {"options": repr(options)}
        self._rows: dict[str, Any] = {}
        if path is not None and path.exists():
            lines = [line for line in path.read_text().splitlines(True) if line.endswith("\n")]
            # An unfinished line was being written when the run was interrupted.
            path.write_text("".join(lines))
            rows = map(json.loads, lines)
            self._rows = {row["name"]: row["found"] for row in rows if row["of"] == self._about}

    def row(self, name: str, find: Callable[[], Any]) -> Any:
        """Returns a known row, or computes it with ``find`` and saves it as JSON."""
        if name not in self._rows:
            found = json.loads(json.dumps(find()))
            if self._path is not None:
                line = {"name": name, "of": self._about, "found": found}
                with self._path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            self._rows[name] = found
        return self._rows[name]

    def has(self, name: str) -> bool:
        """Returns whether a row is known."""
        return name in self._rows

    def rows(self, prefix: str) -> dict[str, Any]:
        """Returns the known rows whose names begin with ``prefix``, by the rest of their names."""
        size = len(prefix)
        return {name[size:]: row for name, row in self._rows.items() if name.startswith(prefix)}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
