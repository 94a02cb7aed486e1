"""Reads untrusted files safely: memory snapshots, plans, graphs, and the cache.

No code in a file runs, and no reader recurses: JSON's depth is checked before it is parsed, and
pickles are read by a loop that supports only the opcodes of plain data. The size of the result is
bounded: an object that is referred to N times counts N times.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

MOST_BYTES = 4 << 30
"""The size limit of a file."""
MOST_JSON_BYTES = 256 << 20
"""The size limit of a JSON file, the same as the program's."""
MOST_DEPTH = 64
"""The limit for nested lists and dictionaries. Snapshots have 6 levels, plans fewer."""
INT64 = 2**63 - 1
UINT64 = 2**64 - 1

_COPIES = 128
"""The limit of objects per byte of a file. The events of a snapshot share stacks: one of 1000 calls
that all events share comes to about 100."""
_SLACK = 1 << 20
"""How many objects any file may have, however small."""


class RefusedError(ValueError):
    """A file, or something in it, is invalid. The text says why."""


def file_bytes(
    path: str | os.PathLike[str], most: int = MOST_BYTES, follows_links: bool = True
) -> bytes:
    """Returns the content of a regular file of at most ``most`` bytes. Raises RefusedError,
    OSError.

    Pipes and devices are rejected without opening them for reading.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW)
    except OSError:
        if not follows_links and Path(path).is_symlink():
            raise RefusedError("it is a link") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise RefusedError("it is not a regular file")
        with open(opened, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(opened)
    if len(content) > most:
        raise RefusedError(f"it is larger than the limit of {most} bytes")
    return content


# ---- JSON ----

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TEXT = re.compile(rb'"[^"]*"')
_BRACKETS = b"[]{}"
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_DIGITS = len(str(UINT64)) + 1


def json_value(content: bytes) -> Any:
    """Parses a JSON file. Raises RefusedError.

    Rejects what JSON parsers disagree on: repeated keys, NaN and infinity, integers beyond 64 bits,
    and encodings other than UTF-8.
    """
    if _depth(content) > MOST_DEPTH:
        raise RefusedError(f"it is nested more than {MOST_DEPTH} levels deep")
    try:
        return json.loads(
            content.decode(),
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except RefusedError:
        raise
    except ValueError as error:
        raise RefusedError(f"it is not JSON in UTF-8 ({error})") from None


def _depth(content: bytes) -> int:
    """Returns the depth of brackets outside of strings, in linear time.

    A parser stops at a backslash outside of strings, or at an unterminated string.
    """
    outside = _TEXT.sub(b"", _ESCAPE.sub(b"", content))
    depth = deepest = 0
    for byte in outside.translate(None, _ALL_BUT_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RefusedError(f"it has the key {repeated!r:.60} twice in one object")
    return found


def _whole(text: str) -> int:
    if len(text) > _DIGITS or not -INT64 - 1 <= int(text) <= UINT64:
        raise RefusedError(f"{text:.25} is beyond 64 bits")
    return int(text)


def _fraction(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise RefusedError(f"{text:.25} is beyond the range of floating-point numbers")
    return number


def _constant(text: str) -> NoReturn:
    raise RefusedError(f"{text} is not a number")


# ---- Pickles of plain data ----


def pickle_value(content: bytes) -> Any:
    """Reads a pickle of None, booleans, numbers and strings in lists, tuples and dictionaries.

    Keys must be strings or integers, since hashing other keys could recurse arbitrarily deep.
    Raises RefusedError.
    """
    found = _Pickle(content).value()
    check_size(found, len(content))
    return found


def check_size(value: Any, size: int) -> None:
    """Raises RefusedError for a value that is too large for ``size`` bytes, too deep, or cyclic.

    An object that is referred to several times counts each time.
    """
    most = _COPIES * size + _SLACK
    counts: dict[int, tuple[int, int]] = {}
    """By id of a container: the number of objects in it, including itself, and its depth."""
    open_ones: set[int] = set()
    stack = [value]
    while stack:
        top = stack[-1]
        if id(top) in counts or not isinstance(top, _CONTAINERS):
            stack.pop()
            continue
        inner = [item for item in _items(top) if isinstance(item, _CONTAINERS)]
        if id(top) not in open_ones:
            open_ones.add(id(top))
            waiting = [item for item in inner if id(item) not in counts]
            if any(id(item) in open_ones for item in waiting):
                raise RefusedError("it has a list or dictionary that contains itself")
            if waiting:
                stack.extend(waiting)
                continue
        open_ones.discard(id(top))
        stack.pop()
        rows = [counts[id(item)] for item in inner]
        count = 1 + sum(row[0] for row in rows) + _width(top) - len(inner)
        depth = 1 + max((row[1] for row in rows), default=0)
        if depth > MOST_DEPTH:
            raise RefusedError(f"it is nested more than {MOST_DEPTH} levels deep")
        if count > most:
            raise RefusedError(
                f"it expands to more than {most} objects, because it refers to the same ones many "
                "times"
            )
        counts[id(top)] = count, depth


_CONTAINERS = (list, tuple, dict)


def _items(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _width(container: Any) -> int:
    return 2 * len(container) if isinstance(container, dict) else len(container)


class _Mark:
    """Marks the beginning of a list, a tuple or a dictionary on the stack."""


_MARK = _Mark()

_CALLS = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"i": "INST", b"o": "OBJ", b"R": "REDUCE",
    b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"b": "BUILD",
    b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4",
}  # fmt: skip
_OUTSIDE = {b"P": "PERSID", b"Q": "BINPERSID", b"\x97": "NEXT_BUFFER"}


class _Pickle:
    """Reads one pickle of any protocol."""

    def __init__(self, content: bytes):
        self._content = content
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def value(self) -> Any:
        """Reads the pickle, and returns its object."""
        handlers, content = self._handlers(), self._content
        while True:
            code = content[self._at : self._at + 1]
            handler = handlers.get(code)
            if handler is None:
                break
            self._at += 1
            handler()
        if code != b".":
            self._refuse(code)
        if len(self._stack) != 1 or self._marks:
            raise RefusedError(f"its pickle ends at byte {self._at} with unfinished objects")
        return self._stack[0]

    def _refuse(self, code: bytes) -> NoReturn:
        if not code:
            raise RefusedError("its pickle is cut off")
        if code in _CALLS:
            raise RefusedError(
                f"byte {self._at} names code to be called ({_CALLS[code]}), which is never run"
            )
        if code in _OUTSIDE:
            raise RefusedError(f"byte {self._at} refers to something outside the file")
        raise RefusedError(f"byte {self._at}, {code!r}, is not part of a pickle of plain data")

    def _handlers(self) -> dict[bytes, Callable[[], None]]:
        push = self._stack.append
        return {
            b"\x80": self._protocol,
            b"\x95": self._frame,
            b"(": self._mark,
            b"N": lambda: push(None),
            b"\x88": lambda: push(True),
            b"\x89": lambda: push(False),
            b"K": lambda: push(self._number(1)),
            b"M": lambda: push(self._number(2)),
            b"J": lambda: push(int.from_bytes(self._take(4), "little", signed=True)),
            b"\x8a": lambda: push(self._long(self._number(1))),
            b"\x8b": lambda: push(self._long(self._number(4))),
            b"G": lambda: push(self._float()),
            b"\x8c": lambda: push(self._text(self._number(1))),
            b"X": lambda: push(self._text(self._number(4))),
            b"\x8d": lambda: push(self._text(self._number(8))),
            b"I": lambda: push(self._int_line()),
            b"L": lambda: push(self._whole_line()),
            b"F": lambda: push(self._float_line()),
            b"V": lambda: push(self._text_line()),
            b"]": lambda: push([]),
            b"}": lambda: push({}),
            b")": lambda: push(()),
            b"\x85": lambda: self._tuple(1),
            b"\x86": lambda: self._tuple(2),
            b"\x87": lambda: self._tuple(3),
            b"t": lambda: push(tuple(self._to_mark())),
            b"l": lambda: push(self._to_mark()),
            b"d": lambda: self._fill({}, self._to_mark(), is_new=True),
            b"a": lambda: self._extend(self._pop(1)),
            b"e": lambda: self._extend(self._to_mark()),
            b"s": lambda: self._fill(None, self._pop(2)),
            b"u": lambda: self._fill(None, self._to_mark()),
            b"\x94": lambda: self._put(len(self._memo)),
            b"q": lambda: self._put(self._number(1)),
            b"r": lambda: self._put(self._number(4)),
            b"p": lambda: self._put(self._whole_of(self._line())),
            b"h": lambda: self._get(self._number(1)),
            b"j": lambda: self._get(self._number(4)),
            b"g": lambda: self._get(self._whole_of(self._line())),
        }

    def _take(self, count: int) -> bytes:
        found = self._content[self._at : self._at + count]
        if len(found) != count:
            raise RefusedError("its pickle is cut off")
        self._at += count
        return found

    def _protocol(self) -> None:
        if self._number(1) > 5:
            raise RefusedError(f"byte {self._at} names a pickle protocol above 5")

    def _frame(self) -> None:
        if self._number(8) > len(self._content) - self._at:
            raise RefusedError("its pickle is cut off")

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _long(self, count: int) -> int:
        if count > 9:
            raise RefusedError(f"byte {self._at} has a whole number beyond 64 bits")
        return self._within(int.from_bytes(self._take(count), "little", signed=True))

    def _within(self, number: int) -> int:
        if not -INT64 - 1 <= number <= UINT64:
            raise RefusedError(f"byte {self._at} has a whole number beyond 64 bits")
        return number

    def _float(self) -> float:
        return self._finite(struct.unpack(">d", self._take(8))[0])

    def _finite(self, number: float) -> float:
        if not math.isfinite(number):
            raise RefusedError(f"byte {self._at} has a number that is not finite")
        return number

    def _text(self, count: int) -> str:
        try:
            return self._take(count).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise RefusedError(f"byte {self._at} has a string that is not UTF-8") from None

    def _line(self) -> bytes:
        end = self._content.find(b"\n", self._at)
        if end < 0:
            raise RefusedError("its pickle is cut off")
        found, self._at = self._content[self._at : end], end + 1
        return found

    def _int_line(self) -> int | bool:
        line = self._line()
        return line == b"01" if line in (b"00", b"01") else self._whole_of(line)

    def _whole_line(self) -> int:
        return self._whole_of(self._line().removesuffix(b"L"))

    def _whole_of(self, line: bytes) -> int:
        if not re.fullmatch(rb"-?(?:0|[1-9][0-9]{0,19})", line):
            raise RefusedError(f"byte {self._at} has no 64-bit whole number")
        return self._within(int(line))

    def _float_line(self) -> float:
        line = self._line()
        if not re.fullmatch(rb"-?[0-9]{1,20}(?:\.[0-9]{0,30})?(?:e[-+]?[0-9]{1,3})?", line):
            raise RefusedError(f"byte {self._at} has no finite number")
        return self._finite(float(line))

    def _text_line(self) -> str:
        try:
            return self._line().decode("raw-unicode-escape")
        except UnicodeDecodeError:
            raise RefusedError(f"byte {self._at} has a string with an invalid escape") from None

    def _mark(self) -> None:
        self._marks.append(len(self._stack))
        self._stack.append(_MARK)

    def _to_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedError(f"byte {self._at} ends a list that has not begun")
        begin = self._marks.pop()
        found = self._stack[begin + 1 :]
        del self._stack[begin:]
        return found

    def _pop(self, count: int) -> list[Any]:
        first = len(self._stack) - count
        if first < (self._marks[-1] + 1 if self._marks else 0):
            raise RefusedError(f"byte {self._at} takes more objects than there are")
        found = self._stack[first:]
        del self._stack[first:]
        return found

    def _tuple(self, count: int) -> None:
        self._stack.append(tuple(self._pop(count)))

    def _top(self, kind: type, what: str) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise RefusedError(f"byte {self._at} adds to something that is not a {what}")
        return self._stack[-1]

    def _extend(self, items: list[Any]) -> None:
        self._top(list, "list").extend(items)

    def _fill(self, into: dict[Any, Any] | None, items: list[Any], is_new: bool = False) -> None:
        if is_new:
            self._stack.append(into)
        target = self._top(dict, "dictionary")
        if len(items) % 2:
            raise RefusedError(f"byte {self._at} has a key without a value")
        for position in range(0, len(items), 2):
            key = items[position]
            if type(key) is not str and type(key) is not int:
                raise RefusedError(
                    f"byte {self._at} has a key that is neither a string nor a whole number"
                )
            if key in target:
                raise RefusedError(f"byte {self._at} has a key twice in one dictionary")
            target[key] = items[position + 1]

    def _put(self, place: int) -> None:
        # Python's own reader allocates all places up to this one.
        is_place = 0 <= place <= len(self._content)
        if not is_place or not self._stack or self._stack[-1] is _MARK:
            raise RefusedError(f"byte {self._at} refers to an object that is not there")
        self._memo[place] = self._stack[-1]

    def _get(self, place: int) -> None:
        if place not in self._memo:
            raise RefusedError(f"byte {self._at} refers to an object that is not there")
        self._stack.append(self._memo[place])


# ---- Validation of parsed values ----


def whole_number(value: Any, what: str, least: int = 0, most: int = INT64) -> int:
    """Returns an integer within a range; booleans are not integers. Raises RefusedError."""
    if type(value) is not int:
        raise RefusedError(f"{what} is not a whole number")
    if not least <= value <= most:
        raise RefusedError(f"{what} is {value}, outside {least} to {most}")
    return value


def whole_numbers(value: Any, least: int = 0, most: int = INT64) -> dict[str, int]:
    """Returns a dictionary of integers within a range. Raises RefusedError."""
    rows = mapping(value, "it")
    return {key: whole_number(row, f"{key!r:.60}", least, most) for key, row in rows.items()}


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Returns ``value`` if it is a dictionary. Raises RefusedError."""
    if not isinstance(value, dict):
        raise RefusedError(f"{what} is not a dictionary")
    return value


def items(value: Any, what: str) -> list[Any]:
    """Returns ``value`` if it is a list. Raises RefusedError."""
    if not isinstance(value, list):
        raise RefusedError(f"{what} is not a list")
    return value


def text(value: Any, what: str) -> str:
    """Returns ``value`` if it is a string. Raises RefusedError."""
    if not isinstance(value, str):
        raise RefusedError(f"{what} is not a string")
    return value
