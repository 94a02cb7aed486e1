"""Runs ``python -m ckplan.torch COMMAND``.

``estimate MODULE:FUNCTION`` tells whether training fits a device. ``compare-snapshot SNAPSHOT
PLAN`` shows where a recorded step differs from its plan.
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
from ckplan.torch.estimation.example_inputs import inputs_at, sizes_of
from ckplan.torch.estimation.tracing import PRECISIONS
from ckplan.torch.scripts import ScriptError
from ckplan.torch.snapshots import compare_step, planned_memory, snapshot_file

_FOLDER = Path(__file__).parent
_SCHEMAS = {
    "estimate": _FOLDER / "estimation" / "estimate.schema.json",
    "compare-snapshot": _FOLDER / "snapshots" / "comparison.schema.json",
}

USAGE, INPUT, INTERRUPTED = 2, 3, 130
"""Exit codes, the same as the program's."""

_EXAMPLE = """example:
  python -m ckplan.torch estimate train.py:make_model --device h100-80g --optimizer adamw

train.py has a function make_model(), which returns the model, and a function
inputs(batch=8), which returns the arguments of the model's forward."""

_NO_LOSS = "--loss NAME names a function in that file that computes the loss from the model's result"
_NO_INPUTS = "write inputs(), which returns the arguments of forward, or name another with --inputs"

_COMPARISON = """example:
  python -m ckplan.torch estimate train.py:make_model --device h100-80g --save model
  python -m ckplan.torch compare-snapshot snapshot.pickle model.plan.json

The first command writes model.plan.json and model.graph.json. To record a snapshot,
call torch.cuda.memory._record_memory_history() before training on a GPU, and
torch.cuda.memory._dump_snapshot("snapshot.pickle") after it."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line, and returns its exit code."""
    parsed = _parser().parse_args(arguments)
    if parsed.command == "schema":
        print(_SCHEMAS[parsed.of].read_text(encoding="utf-8"), end="")
        return 0
    try:
        return _compare(parsed) if parsed.command == "compare-snapshot" else _estimate(parsed)
    except KeyboardInterrupt:
        return _refuse("interrupted", INTERRUPTED)


def _estimate(arguments: argparse.Namespace) -> int:
    try:
        module, make = scripts.find_function(arguments.model)
        found = estimate(
            make,
            _inputs(scripts.called(module, arguments.inputs, _NO_INPUTS), arguments.size),
            device=arguments.device,
            optimizer=arguments.optimizer,
            precision=arguments.precision,
            shard=arguments.shard,
            loss=scripts.named(module, arguments.loss, _NO_LOSS) if arguments.loss else None,
            master_weights=arguments.master_weights,
            memory=arguments.memory,
            reserve=arguments.reserve,
            context=arguments.context,
            expandable_segments=arguments.expandable_segments,
            largest=arguments.largest,
            returns=arguments.returns,
            effort=arguments.effort,
        )
        if arguments.report:
            found.report(arguments.report)
        if arguments.save:
            found.save(arguments.save)
    except (ValueError, TypeError) as error:
        return _refuse(_in_flags(str(error)), USAGE)
    except EstimateError as error:
        return _refuse(_in_flags(str(error)), INPUT)
    except (ScriptError, OSError) as error:
        return _refuse(error, INPUT)
    except ckplan.PlanError as error:
        return _refuse(error, error.exit_code)
    print(json.dumps(found.to_json(), indent=2) if arguments.format == "json" else found)
    return 0


def _inputs(example_inputs: Any, sizes: list[str]) -> Any:
    """Applies --size to the inputs, and returns them. Raises ValueError."""
    if not sizes:
        return example_inputs
    known = sizes_of(example_inputs)
    chosen = dict(known)
    for text in sizes:
        name, _, value = text.rpartition("=")
        if name not in known:
            has = ", ".join(known) or "none"
            raise ValueError(f"--size {text}: unknown size {name!r}; the inputs have {has}")
        if not value.isdigit() or int(value) < 1:
            raise ValueError(
                f"--size {text}: a size must be a whole number of at least 1, such as {name}=16"
            )
        chosen[name] = int(value)
    if not callable(example_inputs):
        return inputs_at(example_inputs, chosen)
    # estimate() reads the sizes from the parameters and their defaults.
    rows = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        for name, value in chosen.items()
    ]

    def sized(**size_arguments: int) -> Any:
        return example_inputs(**{**chosen, **size_arguments})

    sized.__signature__ = inspect.Signature(rows)  # type: ignore[attr-defined]
    return sized


def _in_flags(message: str) -> str:
    """Replaces the names of ``estimate``'s arguments in a message by the names of their flags."""
    name, separator, rest = message.partition(" ")
    first = name.removesuffix(":")
    parameter = inspect.signature(estimate).parameters.get(first)
    if parameter is None or parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return message
    flag = "--" + first.replace("_", "-")
    return f"{flag}{':' if name.endswith(':') else ''}{separator}{rest}"


def _compare(arguments: argparse.Namespace) -> int:
    try:
        snapshot = snapshot_file.read(arguments.snapshot, arguments.device)
        plan = planned_memory.read(arguments.plan, arguments.graph)
        found = compare_step.compare(snapshot, plan, arguments.step)
    except (SnapshotError, OSError) as error:
        return _refuse(error, INPUT)
    except ckplan.PlanError as error:
        return _refuse(error, error.exit_code)
    print(json.dumps(found.to_json(), indent=2) if arguments.format == "json" else found)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ckplan.torch")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    schema = commands.add_parser("schema", help="print the JSON Schema of what a command prints")
    schema.add_argument("of", nargs="?", default="estimate", choices=list(_SCHEMAS))
    _add_compare(commands)
    command = commands.add_parser(
        "estimate",
        help="estimate whether training a model fits on a device you don't have",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add(
        "model",
        metavar="MODULE:FUNCTION",
        help="function that returns the model; or FILE.py:FUNCTION",
    )
    add(
        "--inputs",
        default="inputs",
        help="name of the function or variable with the inputs [%(default)s]",
    )
    add("--loss", help="name of the function that computes the loss from the model's output")
    add(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="set a size of the inputs, such as batch=16 (repeatable)",
    )
    add("--device", help="a GPU of `ckplan devices` [from --memory, or the default of ckplan plan]")
    known = ", ".join(optimizers.names())
    add("--optimizer", default="adamw", help=f"one of {known} [%(default)s]")
    add("--master-weights", action="store_true", help="keep 32-bit copies of 16-bit parameters")
    add("--precision", help=f"one of {', '.join(PRECISIONS)} [the model's own types]")
    add("--shard", help="estimate one of N devices: fsdp:N or ddp:N")
    add(
        "--memory",
        metavar="SIZE|DEVICE",
        help="memory of the device: 8GiB, or a device name such as rtx4090",
    )
    add(
        "--reserve",
        metavar="SIZE",
        help="leave this much free, instead of counting CUDA and the allocator",
    )
    add("--context", metavar="SIZE", help="measured size of the CUDA context")
    add(
        "--expandable-segments",
        action="store_true",
        help="assume PYTORCH_ALLOC_CONF=expandable_segments:True",
    )
    add(
        "--largest",
        action="append",
        default=[],
        metavar="SIZE",
        help="find the largest value of this size that fits (repeatable)",
    )
    add(
        "--returns",
        default="loss",
        help="outputs that the training loop keeps: loss or all [%(default)s]",
    )
    add("--effort", default="quick", help="how hard to search for plans [%(default)s]")
    add("--format", default="text", choices=("text", "json"))
    add("--report", metavar="FILE", help="write an HTML report of the plan")
    add("--save", metavar="PATH", help="write PATH.plan.json and PATH.graph.json")
    return parser


def _add_compare(commands: Any) -> None:
    command = commands.add_parser(
        "compare-snapshot",
        help="compare a recorded memory snapshot with the plan of the step",
        epilog=_COMPARISON,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("snapshot", metavar="SNAPSHOT", help="file written by torch.cuda.memory._dump_snapshot")
    add("plan", metavar="PLAN", help="plan written by estimate --save")
    add(
        "graph",
        metavar="GRAPH",
        nargs="?",
        help="graph of the plan [the file next to it that it names]",
    )
    add("--device", type=int, metavar="N", help="device number, if several were recorded")
    add(
        "--step", type=int, metavar="N", help="step number, from 0 [the last one that matches best]"
    )
    add("--format", default="text", choices=("text", "json"))


def _refuse(error: Exception | str, code: int) -> int:
    print(f"ckplan.torch: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
