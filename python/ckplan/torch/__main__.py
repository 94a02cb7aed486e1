"""Runs ``python -m ckplan.torch COMMAND``.

``estimate MODULE:FUNCTION`` says whether training fits a device, and ``compare-snapshot SNAPSHOT
PLAN`` where a recorded step and its plan part.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import ckplan
from ckplan.torch import scripts
from ckplan.torch.errors import EstimateError, SnapshotError
from ckplan.torch.estimation import optimizers
from ckplan.torch.estimation.estimating import estimate
from ckplan.torch.estimation.tracing import PRECISIONS, inputs_at, sizes_of
from ckplan.torch.scripts import ScriptError
from ckplan.torch.snapshots import comparing, planned, reading

_FOLDER = Path(__file__).parent
_SCHEMAS = {
    "estimate": _FOLDER / "estimation" / "estimate.schema.json",
    "compare-snapshot": _FOLDER / "snapshots" / "comparison.schema.json",
}

USAGE, INPUT, INTERRUPTED = 2, 3, 130
"""Exit codes, as those of the program."""

_EXAMPLE = """example:
  python -m ckplan.torch estimate train.py:make_model --device h100-80g --optimizer adamw

train.py has a function make_model(), which returns the model, and a function
inputs(batch=8), which returns the arguments of the model's forward."""

_NO_INPUTS = "write inputs(), which returns the arguments of forward, or name another with --inputs"

_COMPARISON = """example:
  python -m ckplan.torch estimate train.py:make_model --device h100-80g --save model
  python -m ckplan.torch compare-snapshot snapshot.pickle model.plan.json

The first writes model.plan.json and model.graph.json. The snapshot is of training
on a GPU, between torch.cuda.memory._record_memory_history() and
torch.cuda.memory._dump_snapshot("snapshot.pickle")."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line, and returns its exit code."""
    asked = _parser().parse_args(arguments)
    if asked.command == "schema":
        print(_SCHEMAS[asked.of].read_text(encoding="utf-8"), end="")
        return 0
    try:
        return _compare(asked) if asked.command == "compare-snapshot" else _estimate(asked)
    except KeyboardInterrupt:
        return _refuse("interrupted", INTERRUPTED)


def _estimate(asked: argparse.Namespace) -> int:
    try:
        module, make = scripts.found(asked.model)
        found = estimate(
            make,
            _inputs(scripts.called(module, asked.inputs, _NO_INPUTS), asked.size),
            device=asked.device,
            optimizer=asked.optimizer,
            precision=asked.precision,
            shard=asked.shard,
            loss=scripts.named(module, asked.loss) if asked.loss else None,
            master_weights=asked.master_weights,
            memory=asked.memory,
            reserve=asked.reserve,
            context=asked.context,
            expandable_segments=asked.expandable_segments,
            largest=asked.largest,
            returns=asked.returns,
            effort=asked.effort,
        )
        if asked.report:
            found.report(asked.report)
        if asked.save:
            found.save(asked.save)
    except (ValueError, TypeError) as error:
        return _refuse(_in_flags(str(error)), USAGE)
    except (EstimateError, ScriptError, OSError) as error:
        return _refuse(error, INPUT)
    except ckplan.PlanError as error:
        return _refuse(error, error.exit_code)
    print(json.dumps(found.to_json(), indent=2) if asked.format == "json" else found)
    return 0


def _inputs(example_inputs: Any, sizes: list[str]) -> Any:
    """Returns the inputs with the sizes of --size. Raises ValueError."""
    if not sizes:
        return example_inputs
    known = sizes_of(example_inputs)
    wanted = dict(known)
    for text in sizes:
        name, _, value = text.rpartition("=")
        if name not in known:
            has = ", ".join(known) or "none"
            raise ValueError(f"--size {text}: the inputs have no size {name!r}; they have {has}")
        if not value.isdigit() or int(value) < 1:
            raise ValueError(f"--size {text}: a size is a whole number from 1, as in {name}=16")
        wanted[name] = int(value)
    if not callable(example_inputs):
        return inputs_at(example_inputs, wanted)
    # Its parameters are the sizes, with these defaults.
    rows = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        for name, value in wanted.items()
    ]

    def sized(**own: int) -> Any:
        return example_inputs(**{**wanted, **own})

    sized.__signature__ = inspect.Signature(rows)  # type: ignore[attr-defined]
    return sized


def _in_flags(message: str) -> str:
    """Returns a message about arguments of ``estimate`` in terms of the flags that set them."""
    name, separator, rest = message.partition(" ")
    first = name.removesuffix(":")
    if first not in inspect.signature(estimate).parameters:
        return message
    flag = "--" + first.replace("_", "-")
    return f"{flag}{':' if name.endswith(':') else ''}{separator}{rest}"


def _compare(asked: argparse.Namespace) -> int:
    try:
        snapshot = reading.read(asked.snapshot, asked.device)
        plan = planned.read(asked.plan, asked.graph)
        found = comparing.compare(snapshot, plan, asked.step)
    except (SnapshotError, OSError) as error:
        return _refuse(error, INPUT)
    except ckplan.PlanError as error:
        return _refuse(error, error.exit_code)
    print(json.dumps(found.to_json(), indent=2) if asked.format == "json" else found)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ckplan.torch")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    schema = commands.add_parser("schema", help="print the JSON Schema of what a command prints")
    schema.add_argument("of", nargs="?", default="estimate", choices=list(_SCHEMAS))
    _add_compare(commands)
    command = commands.add_parser(
        "estimate",
        help="say whether training a model fits a device, without the device",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("model", metavar="MODULE:FUNCTION", help="what makes the model; also FILE.py:FUNCTION")
    add("--inputs", default="inputs", help="the function, or value, of the inputs [%(default)s]")
    add("--loss", help="a function from the model's result to the loss")
    add("--size", action="append", default=[], metavar="NAME=N", help="a size of the inputs: batch=16")
    add("--device", help="one of `ckplan devices` [that of --memory, or of ckplan plan]")
    known = ", ".join(optimizers.names())
    add("--optimizer", default="adamw", help=f"one of {known} [%(default)s]")
    add("--master-weights", action="store_true", help="the optimizer trains copies of 32 bits")
    add("--precision", help=f"one of {', '.join(PRECISIONS)} [the model's own types]")
    add("--shard", help="fsdp:N or ddp:N, for one of N devices")
    add("--memory", metavar="SIZE|DEVICE", help="memory of the device: 8GiB, rtx4090")
    add("--reserve", metavar="SIZE", help="leave this free, instead of what CUDA and the allocator take")
    add("--context", metavar="SIZE", help="what the CUDA context takes")
    add("--expandable-segments", action="store_true", help="the allocator's setting of that name")
    add("--largest", action="append", default=[], metavar="SIZE", help="seek its largest value")
    add("--returns", default="loss", help="loss, or all where the loop holds all results [%(default)s]")
    add("--effort", default="quick", help="of the search for plans [%(default)s]")
    add("--format", default="text", choices=("text", "json"))
    add("--report", metavar="FILE", help="write the plan's page for a browser")
    add("--save", metavar="PATH", help="write PATH.plan.json and PATH.graph.json")
    return parser


def _add_compare(commands: Any) -> None:
    command = commands.add_parser(
        "compare-snapshot",
        help="compare a recording of PyTorch's allocator with a plan of the step",
        epilog=_COMPARISON,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("snapshot", metavar="SNAPSHOT", help="what torch.cuda.memory._dump_snapshot has written")
    add("plan", metavar="PLAN", help="a plan of a step of PyTorch: estimate --save writes one")
    add("graph", metavar="GRAPH", nargs="?", help="its graph [the one beside it that it names]")
    add("--device", type=int, metavar="N", help="which device, where several were recorded")
    add("--step", type=int, metavar="N", help="which step, from 0 [the last that fits best]")
    add("--format", default="text", choices=("text", "json"))


def _refuse(error: Exception | str, code: int) -> int:
    print(f"ckplan.torch: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
