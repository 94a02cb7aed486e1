"""Names from files as text that a terminal can show."""

from __future__ import annotations

_WIDEST = 60


def printable(text: str) -> str:
    """Returns text from a file as one short line that cannot control a terminal."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= _WIDEST else f"{safe[: _WIDEST // 2]}...{safe[-_WIDEST // 2 :]}"
