"""What was asked of ``ckplan.torch.compile``, and the plan of one graph that answers it."""

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
from ckplan.answer import ask
from ckplan.planning import share_meant
from ckplan.torch import cache
from ckplan.torch.bounds import Bounds, checked
from ckplan.torch.constraints import FIELDS, Patterns, patterns
from ckplan.torch.graph import JointGraph
from ckplan.torch.offload.steps import Placement, Step, Transfer, step_of
from ckplan.torch.untrusted import RefusedError

# A step that makes nothing but the gradient of a parameter of one number: what plans of it say of
# the request, the program says of the request for any graph.
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
    """The types of the options that ``compile`` takes by name, besides ``fullgraph``."""

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
            raise ValueError(
                'say how much memory: one of budget="60%", total="16GiB" and memory="24GiB"'
            )
        self._check_limit()
        checked(self.bounds)
        if self.compiler not in ("eager", "inductor"):
            raise ValueError(f'compiler is "eager" or "inductor", not {self.compiler!r}')
        if self.memory is not None and (self.compiler != "eager" or self.offload is not None):
            raise ValueError('memory needs compiler="eager" and no offload; total does not')
        if self.returns not in ("all", "loss"):
            raise ValueError(f'returns is "all" or "loss", not {self.returns!r}')
        if self.returns == "loss" and self.compiler != "eager":
            raise ValueError('returns="loss" needs compiler="eager"')
        if self.offload is None and (self.host_memory is not None or self.never_offload):
            raise ValueError('host_memory and never_offload are for plans with offload="pcie5"')
        if self.offload is not None and self.costs == "flops":
            raise ValueError('offload needs times: costs="roofline" or "measure", not "flops"')
        for name, listed in self.constraints().items():
            object.__setattr__(self, name, listed)  # Files of patterns are read once.
        self._understood()

    def constraints(self) -> dict[str, tuple[str, ...]]:
        """The patterns of each constraint. Raises ValueError."""
        return {name: patterns(name, getattr(self, name)) for name in FIELDS}

    def _understood(self) -> Understood:
        found = _understood(
            None if self.memory is not None else self.limit,
            self.optimizer,
            self.master_weights,
            self.offload,
            self.host_memory,
        )
        if self.memory is None:
            return found
        left, outside, cublas = _shares_of(self.memory)
        return dataclasses.replace(
            found, limit_bytes=left, outside_bytes=outside, cublas_bytes=cublas
        )

    def _check_limit(self) -> None:
        """Raises ValueError for a limit that cannot be read, and says what was probably meant."""
        limit: Any = self.limit
        share = share_meant(limit)
        if self.counts_tensors and share is not None:
            kind = self.words().partition(" ")[0]
            raise ValueError(f'{kind} {limit} is no number of bytes; did you mean budget="{share}"?')
        if share is not None:
            raise ValueError(f'budget {limit} is no number of bytes; did you mean "{share}"?')
        # A balance is no limit, which parts of a model could share.
        if isinstance(limit, bool) or not isinstance(limit, int | str) or limit == "balanced":
            raise ValueError(f'{self.words()}: write "60%", "16GiB", "min" or a number of bytes')
        if isinstance(self.total, str) and self.total.endswith("%"):
            raise ValueError("total is a number of bytes, such as 16GiB; shares are for budget")
        if isinstance(self.memory, str) and (self.memory == "min" or self.memory.endswith("%")):
            raise ValueError('memory is that of a device: "24GiB", "rtx4090" or a number of bytes')

    @property
    def limit(self) -> int | str:
        """The limit, whatever it is on."""
        limit = next(x for x in (self.budget, self.total, self.memory) if x is not None)
        return limit

    @property
    def counts_tensors(self) -> bool:
        """Whether the limit counts parameters, inputs and the optimizer's state, too."""
        return self.budget is None

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes, where it is not relative."""
        return self._understood().limit_bytes

    @property
    def is_relative(self) -> bool:
        """Whether the limit depends on the graph: ``"60%"`` or ``"min"``."""
        return isinstance(self.limit, str) and (self.limit == "min" or self.limit.endswith("%"))

    @property
    def outside_bytes(self) -> int:
        """What of ``memory`` is no tensor, whatever the plan; 0 for other limits."""
        return self._understood().outside_bytes

    @property
    def cublas_bytes(self) -> int:
        """The part of ``outside_bytes`` that is cuBLAS's workspace."""
        return self._understood().cublas_bytes

    @property
    def host_limit_bytes(self) -> int | None:
        """The limit on host memory in bytes; None if there is none."""
        return self._understood().host_limit_bytes

    def beside_the_limit(self) -> dict[str, Any]:
        """What plans say of the request, beside the algorithm, the limits and the effort."""
        return self._understood().request

    def optimizer_state(self, trained: Iterable[tuple[int, int, int]]) -> int:
        """Bytes of the optimizer's state for these tensors, as the graph of a step lists them."""
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
    """The joint graph that it is of, as a file (docs/joint-graphs.md)."""
    host_peak_bytes: int = 0
    """The most bytes that copies on the host take at once."""
    stall_cost: int = 0
    """The part of the added time in which the device waits for copies."""
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
class Understood:
    """What the program makes of a limit and an optimizer, which it alone reads."""

    limit_bytes: int
    """Only of limits that are not relative."""
    request: dict[str, Any]
    """What plans say of such a request, beside the algorithm, the limits and the effort."""
    host_limit_bytes: int | None = None
    outside_bytes: int = 0
    """What of a device's memory is no tensor, whatever the plan."""
    cublas_bytes: int = 0
    """The part of it that PyTorch's allocator gives to cuBLAS."""


@functools.cache
def _understood(
    limit: int | str | None,
    optimizer: str,
    master_weights: bool,
    offload: str | None = None,
    host_memory: int | str | None = None,
) -> Understood:
    """Asks the program once for each limit and optimizer. Raises ValueError if it refuses them."""
    try:
        plan = _planned(
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
        # The program names its flags, which are arguments here.
        raise ValueError(str(error).removeprefix("--")) from None
    asked = plan["request"]
    host_limit: int | None = asked.get("host_budget_bytes")
    return Understood(asked["budget_bytes"] or 0, _beside_the_limit(plan), host_limit)


@functools.cache
def _shares_of(memory: int | str) -> tuple[int, int, int]:
    """Bytes of a memory for tensors, for cuBLAS, the CUDA context and the driver, and for cuBLAS.

    Raises ValueError if the program cannot read it.
    """
    step = json.dumps(_SMALLEST_STEP).encode()
    flags = (f"--memory={memory}", "--format=json", "--no-config")
    answer = ask("inspect", "-", *flags, stdin=step)
    if answer.exit_code not in (0, 1):  # 1: it does not fit.
        raise ValueError(str(answer.refusal()).removeprefix("--"))
    found = json.loads(answer.output)["accounting"]
    lines = {line["name"]: line["bytes"] for line in found["outside"]}
    taken = lines["cuBLAS"] + lines["context"] + lines["driver"]
    return found["memory_bytes"] - taken, taken, lines["cuBLAS"]


@functools.cache
def state_bytes(
    optimizer: str, master_weights: bool, trained: tuple[tuple[int, int, int], ...]
) -> int:
    """Bytes of an optimizer's state for tensors: elements, bytes of each, and how many there are.

    The program is asked, which alone knows what optimizers keep.
    """
    if not trained:
        return 0
    size = sum(elements * each * count for elements, each, count in trained)
    step = {
        **_SMALLEST_STEP,
        "optimized_tensors": [list(row) for row in trained],
        "values": [{"id": 0, "bytes": size, "kind": "parameter_gradient"}],
    }
    plan = ckplan.plan(
        step, optimizer=optimizer, master_weights=master_weights, algo="keep-all"
    )
    return int(plan["result"]["constant_bytes"]["optimizer_state"])


def _planned(graph: Any, **options: Any) -> dict[str, Any]:
    """Returns the program's plan of a graph whose costs are nanoseconds, which its file cannot say."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*costs are taken as nanoseconds", ckplan.PlanWarning)
        return ckplan.plan(graph, **options)


def _beside_the_limit(plan: dict[str, Any]) -> dict[str, Any]:
    own = ("algorithm", "budget_bytes", "effort", "host_budget_bytes")
    return {key: value for key, value in plan["request"].items() if key not in own}


def make_plan(
    graph: JointGraph,
    request: Request,
    limit: int | str,
    host_memory: int | None = None,
) -> Plan:
    """Plans the graph, or takes the plan from the cache.

    ``limit`` is a number of bytes or what ``--budget`` takes, and ``host_memory`` a number of bytes
    for copies on the host; None is no limit. Raises ckplan.PlanError, among them
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
    kept = cache.Kept(_key(content, limit, options), content)
    plan = kept.take(
        lambda found: _accept(found, graph, content, request, host_memory),
        lambda: _most(limit, content, graph.recomputed),
    )
    if plan is None:
        made = _planned(content, budget=limit, **options)
        kept.store(made)
        plan = _read(made, content)
    return plan


def _read(plan: dict[str, Any], graph: bytes) -> Plan:
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
    """The plan of a file, all of whose figures are right, if it answers what is asked now.

    The program reads a graph as the plan says, so a plan that says anything else is of another
    problem.
    """
    expected = dict(request.beside_the_limit())
    if graph.recomputed:
        expected["recompute"] = graph.recomputed
    if request.offload is not None and graph.never_offloaded:
        expected["never_offload"] = graph.never_offloaded
    is_by = found["request"]["algorithm"] == request.algo
    is_within = found["request"].get("host_budget_bytes") == host_memory
    if not (is_by and is_within) or _beside_the_limit(found) != expected:
        raise RefusedError("it answers another request")
    return _read(found, content)


def _most(limit: int | str, content: bytes, recomputed: list[str]) -> int | str:
    """What the peak of a plan for the limit may be."""
    if limit != "min":
        return limit
    # Nobody knows the least without seeking it anew. Greedy eviction takes milliseconds, and no
    # plan of least memory needs more.
    greedy = ckplan.plan(content, budget="min", algo="dtr", recompute=recomputed)
    return int(greedy["result"]["peak_bytes"])


@functools.lru_cache(maxsize=1)
def program_version() -> str:
    """Names the build of the program that plans."""
    program = ckplan.find_program()
    version = ask("--version").output.decode().strip()
    facts = program.stat()
    # Two builds of one version may plan differently.
    return f"{version} {facts.st_size} {facts.st_mtime_ns}"


def _key(content: bytes, limit: int | str, options: dict[str, Any]) -> str:
    asked = json.dumps([program_version(), str(limit), options], sort_keys=True)
    return hashlib.sha256(asked.encode() + b"\0" + content).hexdigest()
