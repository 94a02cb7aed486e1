"""Caches the chosen candidate for a joint graph, so that a later process lowers only that one.

A file is untrusted: its recipe is lowered and replayed again, and used only if the peak is the
same.
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
from ckplan.torch.inductor.candidate_search import KNOB, PLAIN, PLAN, Candidate, Evaluate, Recipe
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.request import Request, program_version
from ckplan.torch.untrusted_files import INT64

_KINDS = (PLAIN, KNOB, PLAN)

_LEAST = -1
"""Represents the limit ``"min"`` in a file."""

_MOST = {
    "kind": len(_KINDS) - 1, "value": INT64, "near": 1, "fused": 1, "draws": 1, "peak_bytes": INT64
}  # fmt: skip
"""The fields of a file, and the maximum of each."""


@dataclasses.dataclass(frozen=True)
class RefusedLimit:
    """A limit that no candidate fits in, the smallest peak found, and the number of rounds."""

    most: int
    least: Candidate
    rounds: int


_refused: dict[str, RefusedLimit] = {}
"""Limits found infeasible in this process, by the names of choices without their limit."""


class CachedChoice:
    """The file of one choice, named by everything that it depends on."""

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

    def refused(self, most: int) -> RefusedLimit | None:
        """Returns an equal or larger limit that was infeasible in this process.

        Files do not record this: a forged one could hide a plan that exists.
        """
        known = _refused.get(self._name)
        return None if known is None or most > known.most else known

    def refuse(self, most: int, least: Candidate, rounds: int) -> None:
        if self.refused(most) is None:
            _refused[self._name] = RefusedLimit(most, dataclasses.replace(least, step=None), rounds)

    def take(self, evaluate: Evaluate, plain: Candidate, most: int | None) -> Candidate | None:
        """Returns the cached choice if its replay confirms the file and fits in the limit."""
        row = cache.load_numbers(self._name, _LEAST, INT64)
        if set(row) != set(_MOST) or any(not _is_within(name, row) for name in _MOST):
            return None
        if most is not None and row["peak_bytes"] > most:
            return None  # The search shall report that it does not fit.
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
