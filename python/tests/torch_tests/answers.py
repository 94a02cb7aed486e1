"""What each command answers to "does training fit this memory?", side by side.

``ckplan MODEL``, ``plan``, ``fit``, ``inspect`` and ``check`` read a file, and ``estimate`` the
module that it was exported from. All have the lines of docs/accounting.md.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ckplan.invocation import ProgramResult, run_program
from torch import Tensor, nn

import ckplan.torch
from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation.estimating import estimate

AS_IT_IS, WITH_A_PLAN, NOT, REFUSED = "as it is", "with a plan", "no", "refused"

SHARED = ("parameters", "buffers", "inputs", "optimizer state", "cuBLAS", "context", "driver")
"""The lines that an estimate shares to the byte. The others depend on its traced step."""

CAPTURED = ("--restore=captured", "--fuse=captured", "--autograd=torch-cuda")
"""The flags for the step that an estimate assumes: PyTorch's on a GPU."""

Batch = tuple[Tensor, ...]
Lines = dict[str, tuple[int, str]]
"""Bytes and kind of each line, by its name."""


@dataclass
class Asked:
    """An exported network, with the same flags for all commands."""

    path: Path
    size: int
    """Of the dimension ``N``."""
    optimizer: str = "adamw"
    module: tuple[nn.Module, Batch] | None = None
    """The module that the file was exported from, for ``estimate``."""

    @staticmethod
    def exported(model: nn.Module, batch: Batch, folder: Path) -> Asked:
        path = folder / "model.onnx"
        ckplan.torch.export(model, batch, path)
        return Asked(path, len(batch[0]), module=(model, batch))

    def flags(self, memory: int, is_sized: bool = True) -> list[str]:
        dim = f"-DN={self.size}" if is_sized else "-DN"
        return [*CAPTURED, f"--optimizer={self.optimizer}", f"--memory={memory}", dim]


@dataclass
class Found:
    """The answers of all commands for one memory size."""

    memory: int
    verdicts: dict[str, str]
    lines: dict[str, Lines]
    """Of keeping everything, by command; ``check`` has those of the plan."""
    planned: Lines = field(default_factory=dict)
    """Of the plan, as ``plan`` writes them."""

    def is_one(self) -> bool:
        """Returns whether all commands that read the model agree.

        ``inspect`` knows no plan: where one is needed, the model does not fit as it is.
        """
        own = self.verdicts["plan"]
        fits = self.verdicts["inspect"] == AS_IT_IS
        both = self.verdicts["fit"] == self.verdicts["bare"] == own
        return both and fits == (own == AS_IT_IS)

    def differences(self) -> list[str]:
        """Returns where the lines that two commands share differ, in words."""
        rows = []
        for command in ("plan", "fit", "estimate"):
            names = SHARED if command == "estimate" else list(self.lines["inspect"])
            for name in names if command in self.lines else ():
                own, other = self.lines[command].get(name), self.lines["inspect"].get(name)
                if own != other:
                    rows.append(f"{name}: {command} {own}, inspect {other}")
        if self.lines.get("check", {}) != self.planned:
            rows.append(f"check {self.lines.get('check')}, plan {self.planned}")
        return rows


def answers(asked: Asked, memory: int) -> Found:
    """Asks each command whether training fits in the memory."""
    found = Found(memory, {}, {})
    _bare(asked, found)
    _inspect(asked, found)
    _plan_and_check(asked, found)
    _fit(asked, found)
    if asked.module is not None:
        _estimate(asked, *asked.module, found)
    return found


def grown(asked: Asked, least_step: int) -> Asked:
    """Returns the network with a batch doubled until a step takes at least ``least_step`` bytes."""
    times = 1
    while lines_of(_accounting(replace(asked, size=times * asked.size)))["step"][0] < least_step:
        times *= 2
    module = asked.module
    if module is not None:
        module = (module[0], tuple(one.repeat(times, *[1] * (one.dim() - 1)) for one in module[1]))
    return replace(asked, size=times * asked.size, module=module)


def memories(asked: Asked) -> list[int]:
    """Returns a memory that keeps everything, one for which a plan is needed, and one too small."""
    accounting = _accounting(asked)
    lines = lines_of(accounting)
    step = lines["step"][0]
    rest = accounting["need_bytes"] - step
    own = rest - lines["allocator"][0]
    return [int(rest + 1.3 * step), int(rest + 0.75 * step), int(own + 0.02 * step)]


def lines_of(accounting: dict[str, Any]) -> Lines:
    rows = accounting["tensors"] + accounting["outside"]
    return {row["name"]: (row["bytes"], row["kind"]) for row in rows}


def _accounting(asked: Asked) -> dict[str, Any]:
    """Returns what keeping everything needs."""
    flags = asked.flags(1 << 40)
    answer = run_program("inspect", str(asked.path), *flags, "-fjson", "--no-config")
    return _json(answer)["accounting"]


def _inspect(asked: Asked, found: Found) -> None:
    flags = asked.flags(found.memory)
    answer = run_program("inspect", str(asked.path), *flags, "-fjson", "--no-config")
    accounting = _json(answer, 0, 1)["accounting"]
    assert accounting["fits"] == (answer.exit_code == 0)
    found.lines["inspect"] = lines_of(accounting)
    found.verdicts["inspect"] = AS_IT_IS if accounting["fits"] else NOT


def _bare(asked: Asked, found: Found) -> None:
    flags = [*asked.flags(found.memory), "--effort=quick"]
    answer = run_program(str(asked.path), *flags, "--no-config")
    found.verdicts["bare"] = NOT if answer.exit_code == 4 else _first_line(answer)


def _first_line(answer: ProgramResult) -> str:
    return _checked(answer).output.decode().split(",")[0].removeprefix("fits ")


def _plan_and_check(asked: Asked, found: Found) -> None:
    flags = asked.flags(found.memory)
    with tempfile.TemporaryDirectory() as folder:
        plan, lines = f"{folder}/plan.json", f"{folder}/lines.json"
        written = [f"--emit=accounting={lines}", f"-o{plan}", "--effort=quick"]
        answer = run_program("plan", str(asked.path), *flags, *written, "--no-config")
        if answer.exit_code == 4:
            found.verdicts["plan"] = NOT
            return
        found.verdicts["plan"] = _first_line(answer)
        found.planned = lines_of(json.loads(Path(lines).read_text()))
        if found.verdicts["plan"] == AS_IT_IS:
            found.lines["plan"] = found.planned
        where = [plan, str(asked.path), f"--memory={found.memory}"]
        checked = _json(run_program("check", *where, "-fjson", "--no-config"))
        assert checked["ok"]
        found.lines["check"] = lines_of(checked["accounting"])
    found.verdicts["check"] = found.verdicts["plan"]


def _fit(asked: Asked, found: Found) -> None:
    # Tries only multiples of the requested size, to be quick.
    flags = [*asked.flags(found.memory, is_sized=False), f"--multiple-of={asked.size}"]
    flags += ["--added-time=200"]
    answer = run_program("fit", str(asked.path), *flags, "-fjson", "--no-config")
    if answer.exit_code == 4:
        found.verdicts["fit"] = NOT
        return
    whole, planned = _json(answer)["rows"]
    if whole["size"] == asked.size:
        found.lines["fit"] = lines_of(whole["accounting"])
    sizes = [row["size"] or 0 for row in (whole, planned)]
    found.verdicts["fit"] = (
        AS_IT_IS if sizes[0] >= asked.size else WITH_A_PLAN if sizes[1] >= asked.size else NOT
    )


def _estimate(asked: Asked, model: nn.Module, batch: Batch, found: Found) -> None:
    try:
        result = estimate(lambda: model, batch, optimizer=asked.optimizer, memory=found.memory)
    except EstimateError:  # PyTorch traces no recurrent layers.
        found.verdicts["estimate"] = REFUSED
        return
    need = result.keep_all
    found.lines["estimate"] = {line.name: (line.bytes, line.kind) for line in need.lines}
    has_plan = result.planned is not None and result.planned.bytes <= found.memory
    found.verdicts["estimate"] = AS_IT_IS if result.fits else WITH_A_PLAN if has_plan else NOT


def _json(answer: ProgramResult, *codes: int) -> dict[str, Any]:
    return json.loads(_checked(answer, *codes).output)


def _checked(answer: ProgramResult, *codes: int) -> ProgramResult:
    if answer.exit_code not in (codes or (0,)):
        raise answer.error()
    return answer
