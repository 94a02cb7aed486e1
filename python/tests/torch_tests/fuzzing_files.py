"""Fuzzes the reader of files from outside: damaged snapshots, JSON files and caches.

    python -m torch_tests.fuzzing_files SECONDS [SEED]

Whatever a file holds, it is read as the standard library reads it, or refused in words.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_tests.recording import Recorder

from ckplan.torch import untrusted_files
from ckplan.torch.errors import SnapshotError
from ckplan.torch.snapshots import snapshot_file
from ckplan.torch.snapshots.windows import place, windows
from ckplan.torch.untrusted_files import RefusedError

SLOW_SECONDS = 10.0
"""No damaged file of a few kB may take as long."""

_OPCODES = b"()]}.0NKMJGXIFVLTUhjgqrptldaesuR\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95c"


class Fuzzer:
    """Damages files and reads them. The same seed tries the same files."""

    def __init__(self, seed: int, folder: Path):
        self._draw = random.Random(seed)
        self._path = folder / "file"
        recorder = Recorder()
        for key in range(6):
            recorder.allocate(key, 1000 << key)
        recorder.free(3)
        self._snapshot = recorder.content()
        self._pickles = [
            pickle.dumps(self._snapshot, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)
        ]
        self.accepted = self.refused = 0

    def try_one(self) -> None:
        """Tries one file of each kind."""
        begun = time.monotonic()
        draw = self._draw
        self._read_pickle(self._damaged(draw.choice(self._pickles)))
        self._read_pickle(pickle.dumps(self._changed(self._snapshot), draw.randrange(6)))
        self._read_pickle(bytes(draw.choice(_OPCODES) for _ in range(draw.randrange(60))) + b".")
        self._read_json(self._damaged(json.dumps(self._snapshot).encode()))
        self._read_json(json.dumps(self._changed(self._snapshot)).encode())
        self._read_numbers(json.dumps(self._changed({"a": 1, "b": 2**40, "c": 0})).encode())
        assert time.monotonic() - begun < SLOW_SECONDS

    def _read_pickle(self, content: bytes) -> None:
        self._path.write_bytes(content)
        try:
            found = untrusted_files.pickle_value(content)
        except RefusedError:
            self._refuse()
        else:
            assert same(found, pickle.loads(content)), content
        try:
            history = snapshot_file.read(self._path)
        except SnapshotError as error:
            assert "\n" not in str(error)
            return
        self.accepted += 1
        windows(history.events)
        for event in history.events:
            place(event.frames)
            assert 0 <= event.bytes < 2**63 and 0 <= event.address < 2**64
        for segment in history.segments:
            assert all(0 <= block.requested_bytes < 2**63 for block in segment.blocks)
        history.bytes_before()

    def _read_json(self, content: bytes) -> None:
        try:
            found = untrusted_files.json_value(content)
        except RefusedError:
            self._refuse()
            return
        self.accepted += 1
        assert same(found, json.loads(content)), content

    def _read_numbers(self, content: bytes) -> None:
        try:
            found = untrusted_files.whole_numbers(untrusted_files.json_value(content), 0, 2**40)
        except RefusedError:
            self._refuse()
            return
        self.accepted += 1
        assert all(type(row) is int and 0 <= row <= 2**40 for row in found.values())

    def _refuse(self) -> None:
        self.refused += 1

    def _damaged(self, content: bytes) -> bytes:
        """Returns a file in which bytes are changed, inserted, removed or repeated."""
        draw, found = self._draw, bytearray(content)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(found) + 1)
            end = min(len(found), at + draw.choice((1, 1, 2, 8, 60)))
            kind = draw.randrange(5)
            if kind == 0:
                found[at:end] = b""
            elif kind == 1:
                found[at:at] = found[at:end] * draw.choice((1, 2, 200))
            elif kind == 2:
                found[at:end] = bytes(draw.randrange(256) for _ in range(end - at))
            elif kind == 3:
                found[at:at] = draw.choice(_NASTY)
            else:
                found[at : at + 1] = bytes([draw.choice(_OPCODES)])
        return bytes(found)

    def _changed(self, value: Any) -> Any:
        """Returns a copy with a few places replaced, or shared between several parents."""
        draw = self._draw
        if draw.random() < 0.02:
            return draw.choice(_VALUES)()
        if isinstance(value, dict):
            found = {key: self._changed(row) for key, row in value.items()}
            if draw.random() < 0.02 and found:
                found.pop(draw.choice(list(found)))
            return found
        if isinstance(value, list):
            rows = [self._changed(row) for row in value]
            return rows * draw.choice((2, 50)) if draw.random() < 0.02 else rows
        return value


def same(first: Any, second: Any) -> bool:
    """Returns whether two values are equal, also in their types."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_NASTY = (b"}r\xff\xff\xff\xff", b"\x8b\xff\xff\xff\x7f", b"(" * 500, b"[" * 500, b"1" * 400, b"NaN",
          b"1e999", b"\\ud800", b"h\x00" * 100, b"\x85" * 1000, b"cos\nsystem\n", b'"a":1,"a":1,')  # fmt: skip
_VALUES = (
    lambda: None, lambda: True, lambda: False, lambda: -1, lambda: 2**63, lambda: 2**64,
    lambda: 10**400, lambda: 0.5, lambda: 1e308, lambda: "", lambda: "alloc", lambda: "\x1b[2J",
    list, dict, lambda: _nested(70), lambda: _nested(30),
)  # fmt: skip


def run(seed: int, count: int | None = None, seconds: float = 0.0) -> Fuzzer:
    """Tries ``count`` files of each kind, or as many as ``seconds`` allow."""
    end = time.monotonic() + seconds
    with TemporaryDirectory(prefix="ckplan-") as folder:
        fuzzer = Fuzzer(seed, Path(folder))
        tried = 0
        while tried < count if count is not None else time.monotonic() < end:
            fuzzer.try_one()
            tried += 1
    return fuzzer


def main() -> int:
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print(f"seed {seed}")
    found = run(seed, seconds=float(sys.argv[1]))
    print(f"{found.accepted} files read, {found.refused} refused, no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
