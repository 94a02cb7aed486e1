"""The arguments of ``ckplan.torch.compile``, and the plan of one graph within them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypedDict

import ckplan
from ckplan.invocation import run_program
from ckplan.planning import share_meant
from ckplan.torch import cache
from ckplan.torch.bounds import Bounds, validated_bounds
from ckplan.torch.constraints import FIELDS, Patterns, parse_patterns
from ckplan.torch.graph import JointGraph
from ckplan.torch.offload.steps import Placement, Step, Transfer, step_of
from ckplan.torch.untrusted_files import RefusedError

# The smallest step: it computes the gradient of one number. Its plan shows how the program
# understands a request.
_SMALLEST_STEP = {
    "schema_version": "1.0",
    "kind": "joint",
    "name": "step",
    "optimized_tensors": [[1, 2, 1]],
    "values": [{"id": 0, "bytes": 2, "kind": "parameter_gradient"}],
    "ops": [{"id": 0, "cost": 0, "reads": [], "writes": [0]}],
    "results": [0],
}


class Options(TypedDict, total=False):
    """The keyword arguments of ``compile``, except ``fullgraph``."""

    total: int | str | None
    memory: int | str | None
    algo: str
    compiler: str
    costs: str
    effort: str
    optimizer: str
    master_weights: bool
    time_limit: str | None
    returns: str
    keep: Patterns
    recompute: Patterns
    never_rerun: Patterns
    bounds: Bounds | None
    offload: str | None
    host_memory: int | str | None
    never_offload: Patterns


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
    master_weights: bool = False
    keep: Patterns = ()
    recompute: Patterns = ()
    never_rerun: Patterns = ()
    bounds: Bounds | None = None
    offload: str | None = None
    host_memory: int | str | None = None
    never_offload: Patterns = ()
    memory: int | str | None = None

    def __post_init__(self) -> None:
        limits = (self.budget, self.total, self.memory)
        if sum(limit is not None for limit in limits) != 1:
            raise ValueError('set one memory limit: budget="60%", total="16GiB" or memory="24GiB"')
        self._check_limit()
        validated_bounds(self.bounds)
        if self.compiler not in ("eager", "inductor"):
            raise ValueError(f'compiler must be "eager" or "inductor", not {self.compiler!r}')
        if self.memory is not None and (self.compiler != "eager" or self.offload is not None):
            raise ValueError(
                'memory works only with compiler="eager" and without offload; use total instead'
            )
        if self.returns not in ("all", "loss"):
            raise ValueError(f'returns must be "all" or "loss", not {self.returns!r}')
        if self.returns == "loss" and self.compiler != "eager":
            raise ValueError('returns="loss" needs compiler="eager"')
        if self.offload is None and (self.host_memory is not None or self.never_offload):
            raise ValueError('host_memory and never_offload need offload, such as offload="pcie5"')
        if self.offload is not None and self.costs == "flops":
            raise ValueError(
                'offload needs costs in time: costs="roofline" or "measure", not "flops"'
            )
        for name, listed in self.constraints().items():
            object.__setattr__(self, name, listed)  # Files with patterns are read once, here.
        self._parsed()

    def constraints(self) -> dict[str, tuple[str, ...]]:
        """The patterns of each constraint. Raises ValueError."""
        return {name: parse_patterns(name, getattr(self, name)) for name in FIELDS}

    def _parsed(self) -> ParsedRequest:
        found = _parsed(
            None if self.memory is not None else self.limit,
            self.optimizer,
            self.master_weights,
            self.offload,
            self.host_memory,
        )
        if self.memory is None:
            return found
        left, outside, cublas = _split_memory(self.memory)
        return dataclasses.replace(
            found, limit_bytes=left, outside_bytes=outside, cublas_bytes=cublas
        )

    def _check_limit(self) -> None:
        """Raises ValueError for an invalid limit, with a suggestion."""
        limit: Any = self.limit
        share = share_meant(limit)
        if self.counts_tensors and share is not None:
            kind = self.words().partition(" ")[0]
            raise ValueError(
                f'{kind} {limit} is not a number of bytes; did you mean budget="{share}"?'
            )
        if share is not None:
            raise ValueError(f'budget {limit} is not a number of bytes; did you mean "{share}"?')
        # "balanced" sets no limit that the parts of a model could share.
        if isinstance(limit, bool) or not isinstance(limit, int | str) or limit == "balanced":
            raise ValueError(f'{self.words()}: write "60%", "16GiB", "min" or a number of bytes')
        if isinstance(self.total, str) and self.total.endswith("%"):
            raise ValueError(
                "total must be a number of bytes, such as 16GiB; only budget can be a percentage"
            )
        if isinstance(self.memory, str) and (self.memory == "min" or self.memory.endswith("%")):
            raise ValueError(
                'memory must be a size such as "24GiB", a device such as "rtx4090", or a number of '
                "bytes"
            )

    @property
    def limit(self) -> int | str:
        """Whichever of ``budget``, ``total`` and ``memory`` was given."""
        limit = next(x for x in (self.budget, self.total, self.memory) if x is not None)
        return limit

    @property
    def counts_tensors(self) -> bool:
        """Whether the limit includes parameters, inputs and the optimizer's state."""
        return self.budget is None

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes; only if it is not relative."""
        return self._parsed().limit_bytes

    @property
    def is_relative(self) -> bool:
        """Whether the limit depends on the graph: ``"60%"`` or ``"min"``."""
        return isinstance(self.limit, str) and (self.limit == "min" or self.limit.endswith("%"))

    @property
    def outside_bytes(self) -> int:
        """Bytes of ``memory`` that no tensor can use, whatever the plan; 0 for other limits."""
        return self._parsed().outside_bytes

    @property
    def cublas_bytes(self) -> int:
        """The part of ``outside_bytes`` that is cuBLAS's workspace."""
        return self._parsed().cublas_bytes

    @property
    def host_limit_bytes(self) -> int | None:
        """The limit on host memory in bytes; None if there is none."""
        return self._parsed().host_limit_bytes

    def request_fields(self) -> dict[str, Any]:
        """The request as plans record it, without algorithm, limits and effort."""
        return self._parsed().request

    def optimizer_state(self, trained: Iterable[tuple[int, int, int]]) -> int:
        """Bytes of the optimizer's state for tensors, given as in ``JointGraph.trained``."""
        return state_bytes(self.optimizer, self.master_weights, tuple(trained))

    def words(self) -> str:
        """The limits in words, for people."""
        kinds = ("budget", self.budget), ("total", self.total), ("memory", self.memory)
        words = next(f"{kind} {limit}" for kind, limit in kinds if limit is not None)
        if self.offload is not None:
            words += f", offload {self.offload}"
        return words if self.host_memory is None else f"{words}, host memory {self.host_memory}"

    def constraint_words(self) -> str:
        """The constraints in words, each after a comma."""
        return "".join(
            f", {name} {' '.join(listed)}" for name, listed in self.constraints().items() if listed
        )


@dataclass(frozen=True)
class Plan:
    """The plan of one graph."""

    schedule: list[Step]
    """All steps: runs, and transfers to the host and back."""
    peak_bytes: int
    keep_all_peak_bytes: int
    budget_bytes: int | None
    added_cost: int
    step_cost: int
    lower_bound_cost: int | None
    status: str
    guarantee: str
    document: dict[str, Any] = field(repr=False, compare=False)
    """The whole plan, with the keys of docs/plan-format.md."""
    graph: bytes = field(repr=False, compare=False)
    """The planned joint graph, as a file (docs/joint-graphs.md)."""
    host_peak_bytes: int = 0
    """The peak of copies on the host."""
    stall_cost: int = 0
    """The part of ``added_cost`` in which the device waits for copies."""
    transfer_bytes: int = 0

    @property
    def steps(self) -> list[int]:
        """The operations that run, by their ids, in order."""
        return [step for step in self.schedule if not isinstance(step, Transfer)]

    @property
    def on_host(self) -> Placement:
        """The places of copies in the memory of the host."""
        link = self.document["request"].get("offload")
        if link is None:
            return Placement()
        return Placement(
            self.document["arena"].get("host_offset_bytes", ()),
            self.document["result"]["host_arena_bytes"],
            link["duplex"] == "half",
        )

    @property
    def added_share(self) -> float:
        """Added time as a share of one run of each operation."""
        return self.added_cost / self.step_cost if self.step_cost else 0.0


@dataclass(frozen=True)
class ParsedRequest:
    """A limit and an optimizer as the program parsed them."""

    limit_bytes: int
    """0 for relative limits."""
    request: dict[str, Any]
    """The request as plans record it, without algorithm, limits and effort."""
    host_limit_bytes: int | None = None
    outside_bytes: int = 0
    """Bytes of the device's memory that no tensor can use, whatever the plan."""
    cublas_bytes: int = 0
    """The part of ``outside_bytes`` for cuBLAS, which PyTorch's allocator provides."""


@functools.cache
def _parsed(
    limit: int | str | None,
    optimizer: str,
    master_weights: bool,
    offload: str | None = None,
    host_memory: int | str | None = None,
) -> ParsedRequest:
    """Has the program parse a limit and an optimizer. Raises ValueError if either is invalid."""
    try:
        plan = _plan_quietly(
            _SMALLEST_STEP,
            budget=limit,
            optimizer=optimizer,
            master_weights=master_weights,
            algo="keep-all",
            offload=offload,
            host_memory=host_memory,
        )
    except ckplan.PlanError as error:
        if error.kind != "usage":
            raise
        # The message names a flag; here it is an argument.
        raise ValueError(str(error).removeprefix("--")) from None
    recorded = plan["request"]
    host_limit: int | None = recorded.get("host_budget_bytes")
    return ParsedRequest(recorded["budget_bytes"] or 0, _request_fields(plan), host_limit)


@functools.cache
def _split_memory(memory: int | str) -> tuple[int, int, int]:
    """Splits a device's memory: bytes for tensors, bytes for everything else, and cuBLAS's part.

    Raises ValueError if the program cannot parse it.
    """
    step = json.dumps(_SMALLEST_STEP).encode()
    flags = (f"--memory={memory}", "--format=json", "--no-config")
    answer = run_program("inspect", "-", *flags, stdin=step)
    if answer.exit_code not in (0, 1):  # 1: it does not fit.
        raise ValueError(str(answer.error()).removeprefix("--"))
    found = json.loads(answer.output)["accounting"]
    lines = {line["name"]: line["bytes"] for line in found["outside"]}
    outside = lines["cuBLAS"] + lines["context"] + lines["driver"]
    return found["memory_bytes"] - outside, outside, lines["cuBLAS"]


@functools.cache
def state_bytes(
    optimizer: str, master_weights: bool, trained: tuple[tuple[int, int, int], ...]
) -> int:
    """Bytes of an optimizer's state, by the program.

    ``trained`` has rows of (elements, bytes of an element, number of such tensors).
    """
    if not trained:
        return 0
    size = sum(elements * each * count for elements, each, count in trained)
    step = {
        **_SMALLEST_STEP,
        "optimized_tensors": [list(row) for row in trained],
        "values": [{"id": 0, "bytes": size, "kind": "parameter_gradient"}],
    }
    plan = ckplan.plan(step, optimizer=optimizer, master_weights=master_weights, algo="keep-all")
    return int(plan["result"]["constant_bytes"]["optimizer_state"])


def _plan_quietly(graph: Any, **options: Any) -> dict[str, Any]:
    """Plans a graph whose costs are nanoseconds, and hides the warning about assuming that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*costs are taken as nanoseconds", ckplan.PlanWarning)
        return ckplan.plan(graph, **options)


def _request_fields(plan: dict[str, Any]) -> dict[str, Any]:
    excluded = ("algorithm", "budget_bytes", "effort", "host_budget_bytes")
    return {key: value for key, value in plan["request"].items() if key not in excluded}


def make_plan(
    graph: JointGraph,
    request: Request,
    limit: int | str,
    host_memory: int | None = None,
) -> Plan:
    """Plans the graph, or takes the plan from the cache.

    ``limit`` is a number of bytes or any other value of ``--budget``. ``host_memory`` limits the
    copies on the host, in bytes; None is no limit. Raises ckplan.PlanError, for example
    ckplan.InfeasibleError.
    """
    content = graph.to_bytes()
    options: dict[str, Any] = {
        "algo": request.algo,
        "optimizer": request.optimizer,
        "master_weights": request.master_weights,
        "time_limit": request.time_limit,
        "recompute": graph.recomputed,
    }
    if request.offload is not None:
        options["offload"] = request.offload
        options["host_memory"] = host_memory
        options["never_offload"] = graph.never_offloaded
    if request.algo == "best":
        options["effort"] = request.effort
    kept = cache.CachedPlan(_cache_key(content, limit, options), content)
    plan = kept.load(
        lambda found: _accept(found, graph, content, request, host_memory),
        lambda: _max_peak(limit, content, graph.recomputed),
    )
    if plan is None:
        made = _plan_quietly(content, budget=limit, **options)
        kept.store(made)
        plan = _parse_plan(made, content)
    return plan


def _parse_plan(plan: dict[str, Any], graph: bytes) -> Plan:
    result = plan["result"]
    return Plan(
        schedule=[step_of(step) for step in plan["schedule"]["steps"]],
        peak_bytes=result["peak_bytes"],
        keep_all_peak_bytes=result["baseline_peak_bytes"],
        budget_bytes=plan["request"]["budget_bytes"],
        added_cost=result["overhead_cost"],
        step_cost=result["forward_cost"] + result["backward_cost"],
        lower_bound_cost=result["lower_bound_cost"],
        status=result["status"],
        guarantee=result["guarantee"],
        document=plan,
        graph=graph,
        host_peak_bytes=result.get("host_peak_bytes", 0),
        stall_cost=result.get("stall_cost", 0),
        transfer_bytes=result.get("transfer_bytes", 0),
    )


def _accept(
    found: Any, graph: JointGraph, content: bytes, request: Request, host_memory: int | None
) -> Plan:
    """Returns a valid cached plan if it answers the current request. Raises RefusedError."""
    expected = dict(request.request_fields())
    if graph.recomputed:
        expected["recompute"] = graph.recomputed
    if request.offload is not None and graph.never_offloaded:
        expected["never_offload"] = graph.never_offloaded
    is_by = found["request"]["algorithm"] == request.algo
    is_within = found["request"].get("host_budget_bytes") == host_memory
    if not (is_by and is_within) or _request_fields(found) != expected:
        raise RefusedError("it is for another request")
    return _parse_plan(found, content)


def _max_peak(limit: int | str, content: bytes, recomputed: list[str]) -> int | str:
    """Returns the highest peak that a plan for the limit may have."""
    if limit != "min":
        return limit
    # The minimum is not known without another search. Greedy eviction bounds it in milliseconds.
    greedy = ckplan.plan(content, budget="min", algo="dtr", recompute=recomputed)
    return int(greedy["result"]["peak_bytes"])


@functools.lru_cache(maxsize=1)
def program_version() -> str:
    """Identifies the build of the program."""
    program = ckplan.find_program()
    version = run_program("--version").output.decode().strip()
    facts = program.stat()
    # Builds of one version may plan differently.
    return f"{version} {facts.st_size} {facts.st_mtime_ns}"


def _cache_key(content: bytes, limit: int | str, options: dict[str, Any]) -> str:
    about = json.dumps([program_version(), str(limit), options], sort_keys=True)
    return hashlib.sha256(about.encode() + b"\0" + content).hexdigest()
