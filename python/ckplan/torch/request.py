"""What was asked of ``ckplan.torch.compile``, and the plan of one graph that answers it."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import subprocess
from dataclasses import dataclass
from typing import Any

import ckplan
from ckplan.torch import cache
from ckplan.torch.graph import JointGraph

_OPTIMIZER_STATE = {"sgd": 0, "momentum": 1, "adam": 2}

_UNIT_LETTERS = "BKMGTik "

# What plans of joint graphs say of the request beside the algorithm, the budget and the effort. The
# program reads the graph as the plan says, so a plan that says anything else is of another problem.
_REQUEST = {
    "objective": "time",
    "paper_budget_bytes": None,
    "cost_model": "graph",
    "cost_unit": "1",
    "autograd": "minimal",
    "optimizer": "sgd",
    "align_bytes": 1,
    "liveness": True,
}


@dataclass(frozen=True)
class Request:
    """The arguments of ``compile`` that a plan depends on."""

    budget: int | str | None = None
    total: int | str | None = None
    algo: str = "best"
    effort: str = "quick"
    optimizer: str = "sgd"
    costs: str = "roofline"
    compiler: str = "eager"
    time_limit: str | None = None
    returns: str = "all"

    def __post_init__(self) -> None:
        if (self.budget is None) == (self.total is None):
            raise ValueError('say how much memory: either budget="60%" or total="16GiB"')
        if isinstance(self.limit, bool) or not isinstance(self.limit, int | str):
            raise ValueError(f'{self.words()}: write "60%", "16GiB", "min" or a number of bytes')
        if self.compiler not in ("eager", "inductor"):
            raise ValueError(f'compiler is "eager" or "inductor", not {self.compiler!r}')
        if self.returns not in ("all", "loss"):
            raise ValueError(f'returns is "all" or "loss", not {self.returns!r}')
        if self.returns == "loss" and self.compiler != "eager":
            raise ValueError('returns="loss" needs compiler="eager"')
        if self.optimizer not in _OPTIMIZER_STATE:
            raise ValueError(f"optimizer is one of {', '.join(_OPTIMIZER_STATE)}")
        if isinstance(self.total, str) and self.total.endswith("%"):
            raise ValueError("total is a number of bytes, such as 16GiB; shares are for budget")

    @property
    def limit(self) -> int | str:
        """The limit, whatever it is on."""
        limit = self.budget if self.total is None else self.total
        assert limit is not None
        return limit

    @property
    def is_relative(self) -> bool:
        """Whether the limit depends on the graph: ``"60%"`` or ``"min"``."""
        return isinstance(self.limit, str) and (self.limit == "min" or self.limit.endswith("%"))

    @property
    def optimizer_state(self) -> int:
        """Bytes of the optimizer's state for each byte of a trained parameter."""
        return _OPTIMIZER_STATE[self.optimizer]

    def words(self) -> str:
        """The limit in words, for people."""
        return f"budget {self.budget}" if self.total is None else f"total {self.total}"


@dataclass(frozen=True)
class Plan:
    """The plan of one graph: its steps are ids of operations."""

    steps: list[int]
    peak_bytes: int
    keep_all_peak_bytes: int
    budget_bytes: int | None
    added_cost: int
    step_cost: int
    lower_bound_cost: int | None
    status: str
    guarantee: str

    @property
    def added_share(self) -> float:
        """Added time as a share of one run of each operation."""
        return self.added_cost / self.step_cost if self.step_cost else 0.0


def parse_bytes(amount: int | str) -> int:
    """Returns the bytes of 16GiB, 16GB or 12345. Raises ValueError."""
    if isinstance(amount, int):
        return amount
    text = amount.strip()
    number = text.rstrip(_UNIT_LETTERS)
    unit = text[len(number) :].strip().upper()
    powers = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
    stem = unit.removesuffix("B").removesuffix("I")
    if stem not in powers or not number:
        raise ValueError(f"{amount!r} is no size: write 16GiB, 16GB or a number of bytes")
    base = 1024 if "I" in unit else 1000
    return int(float(number) * base ** powers[stem])


def least_bytes(error: ckplan.InfeasibleError) -> int | None:
    """The least budget that the program names where it finds no plan; None if it names none."""
    named = re.search(r"try --budget (\d+)\b", str(error))
    return int(named[1]) if named else None


def make_plan(graph: JointGraph, request: Request, limit: int | str) -> Plan:
    """Plans the graph, or takes the plan from the cache.

    ``limit`` is a number of bytes or what ``--budget`` takes. Raises ckplan.PlanError, among them
    ckplan.InfeasibleError.
    """
    content = graph.to_bytes()
    options = {"algo": request.algo, "time_limit": request.time_limit}
    if request.algo == "best":
        options["effort"] = request.effort
    kept = cache.Kept(_key(content, limit, options), content)
    plan = kept.take(lambda found: _accept(found, content, request, limit))
    if plan is None:
        made = ckplan.plan(content, budget=limit, **options)
        kept.store(made)
        plan = _read(made)
    return plan


def _read(plan: dict[str, Any]) -> Plan:
    result = plan["result"]
    return Plan(
        steps=[step[1] for step in plan["schedule"]["steps"]],
        peak_bytes=result["peak_bytes"],
        keep_all_peak_bytes=result["baseline_peak_bytes"],
        budget_bytes=plan["request"]["budget_bytes"],
        added_cost=result["overhead_cost"],
        step_cost=result["forward_cost"] + result["backward_cost"],
        lower_bound_cost=result["lower_bound_cost"],
        status=result["status"],
        guarantee=result["guarantee"],
    )


def _accept(found: Any, content: bytes, request: Request, limit: int | str) -> Plan:
    """The plan of a file, all of whose figures are right, if it answers what is asked now."""
    asked = {k: v for k, v in found["request"].items() if k not in ("budget_bytes", "effort")}
    if asked != {**_REQUEST, "algorithm": request.algo}:
        raise cache.AlienError("it answers another request")
    plan = _read(found)
    most = _most_bytes(limit, plan.keep_all_peak_bytes, content)
    if plan.peak_bytes > most:
        raise cache.AlienError(f"it needs {plan.peak_bytes} bytes, where {most} are asked for")
    return plan


def _most_bytes(limit: int | str, keep_all: int, content: bytes) -> int:
    """What a plan for the limit may need, counted as the program does."""
    if limit == "min":
        # Nobody knows the least but who seeks it anew. Greedy eviction takes milliseconds, and no
        # plan of least memory needs more.
        greedy = ckplan.plan(content, budget="min", algo="dtr")
        return int(greedy["result"]["peak_bytes"])
    if isinstance(limit, str) and limit.endswith("%"):
        return math.floor(keep_all * float(limit[:-1]) / 100)
    return parse_bytes(limit)


@functools.lru_cache(maxsize=1)
def _program_version() -> str:
    program = ckplan.find_program()
    text = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
    facts = program.stat()
    # Two builds of one version may plan differently.
    return f"{text.stdout.strip()} {facts.st_size} {facts.st_mtime_ns}"


def _key(content: bytes, limit: int | str, options: dict[str, Any]) -> str:
    asked = json.dumps([_program_version(), str(limit), options], sort_keys=True)
    return hashlib.sha256(asked.encode() + b"\0" + content).hexdigest()
