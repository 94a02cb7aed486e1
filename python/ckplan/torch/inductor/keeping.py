"""Keeps what the rounds have chosen for a joint graph, so that a later process lowers it alone.

The content of a file is not trusted: the recipe is lowered and replayed again, and used only if it
comes to the same peak.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping

import ckplan
import torch

from ckplan.torch import cache
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import private
from ckplan.torch.inductor.lowered import NotReplayedError
from ckplan.torch.inductor.rounds import KNOB, PLAIN, PLAN, Candidate, Evaluate, Recipe
from ckplan.torch.request import Request, program_version
from ckplan.torch.untrusted import INT64

_KINDS = (PLAIN, KNOB, PLAN)

_LEAST = -1
"""Stands for the limit ``"min"`` of a plan in a file."""

_MOST = {
    "kind": len(_KINDS) - 1, "value": INT64, "near": 1, "fused": 1, "draws": 1, "peak_bytes": INT64
}  # fmt: skip
"""The fields of a file, and the most that each may be."""


@dataclasses.dataclass(frozen=True)
class Refused:
    """A limit in bytes that nothing keeps, and the least that was found, in how many rounds."""

    most: int
    least: Candidate
    rounds: int


_refused: dict[str, Refused] = {}
"""What this process has refused, by the names of choices without a limit."""


class KeptChoice:
    """The file of one choice, by all that it depends on."""

    def __init__(self, captured: JointGraph, request: Request, limit: int | str = ""):
        facts = [
            program_version(),
            torch.__version__,
            private.settings(),
            torch.get_num_threads(),
            str(limit),
            repr(dataclasses.replace(request, budget="min", total=None)),
        ]
        text = json.dumps(facts).encode() + b"\0" + captured.to_bytes()
        self._name = f"inductor-{hashlib.sha256(text).hexdigest()}"

    def refused(self, most: int) -> Refused | None:
        """Returns what this process has refused, if it was as much or more.

        It is not in a file: that could have a process refuse what there is a plan for.
        """
        known = _refused.get(self._name)
        return None if known is None or most > known.most else known

    def refuse(self, most: int, least: Candidate, rounds: int) -> None:
        if self.refused(most) is None:
            _refused[self._name] = Refused(most, dataclasses.replace(least, step=None), rounds)

    def take(self, evaluate: Evaluate, plain: Candidate, most: int | None) -> Candidate | None:
        """Returns the kept choice if its replay is what the file says, and within the limit."""
        row = cache.numbers(self._name, _LEAST, INT64)
        if set(row) != set(_MOST) or any(not _is_within(name, row) for name in _MOST):
            return None
        if most is not None and row["peak_bytes"] > most:
            return None  # It was refused; the search shall find it again.
        flags = (bool(row[name]) for name in ("near", "fused", "draws"))
        recipe = Recipe(_KINDS[row["kind"]], _value(row), *flags)
        try:
            found = plain if recipe.kind == PLAIN else evaluate(recipe)
        except (NotReplayedError, ckplan.PlanError):
            return None
        if found is None or found.peak_bytes != row["peak_bytes"]:
            return None
        return found if most is None or found.peak_bytes <= most else None

    def store(self, chosen: Candidate) -> None:
        recipe = chosen.recipe
        value = 1000 * recipe.value if recipe.kind == KNOB else recipe.value
        row = {
            "kind": _KINDS.index(recipe.kind),
            "value": _LEAST if value == "min" else int(value),
            "near": int(recipe.near),
            "fused": int(recipe.fused),
            "draws": int(recipe.draws),
            "peak_bytes": chosen.peak_bytes,
        }
        cache.store_numbers(self._name, row)


def _is_within(name: str, row: Mapping[str, int]) -> bool:
    most = _MOST[name]
    if name == "value" and row["kind"] != _KINDS.index(PLAN):
        most = 1000  # A knob is at most 1.
    least = _LEAST if name == "value" and row["kind"] == _KINDS.index(PLAN) else 0
    return least <= row[name] <= most


def _value(row: dict[str, int]) -> float | int | str:
    if _KINDS[row["kind"]] == KNOB:
        return row["value"] / 1000
    return "min" if row["value"] == _LEAST else row["value"]
