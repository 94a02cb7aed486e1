"""Runs ``python -m ckplan.torch estimate MODULE:FUNCTION``: whether training fits a device."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ckplan
from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation import optimizers
from ckplan.torch.estimation.estimating import estimate
from ckplan.torch.estimation.tracing import PRECISIONS

_SCHEMA = Path(__file__).parent / "estimation" / "estimate.schema.json"

USAGE, INPUT = 2, 3
"""Exit codes, as those of the program."""

_EXAMPLE = """example:
  python -m ckplan.torch estimate train.py:make_model --device h100-80g --optimizer adamw

train.py has a function make_model(), which returns the model, and a function
inputs(batch=8), which returns the arguments of the model's forward."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line, and returns its exit code."""
    asked = _parser().parse_args(arguments)
    if asked.command == "schema":
        print(_SCHEMA.read_text(encoding="utf-8"), end="")
        return 0
    try:
        module, make = _found(asked.model)
        found = estimate(
            make,
            _named(module, asked.inputs),
            device=asked.device,
            optimizer=asked.optimizer,
            precision=asked.precision,
            shard=asked.shard,
            loss=_named(module, asked.loss) if asked.loss else None,
            master_weights=asked.master_weights,
            memory=asked.memory,
            context=asked.context,
            expandable_segments=asked.expandable_segments,
            largest=asked.largest,
            effort=asked.effort,
        )
        if asked.report:
            found.report(asked.report)
    except (ValueError, TypeError) as error:
        return _refuse(error, USAGE)
    except (EstimateError, OSError, ImportError, AttributeError) as error:
        return _refuse(error, INPUT)
    except ckplan.PlanError as error:
        return _refuse(error, error.exit_code)
    print(json.dumps(found.to_json(), indent=2) if asked.format == "json" else found)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ckplan.torch")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    commands.add_parser("schema", help="print the JSON Schema of an estimate")
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
    add("--device", default="h100-80g", help="one of `ckplan devices` [%(default)s]")
    known = ", ".join(optimizers.names())
    add("--optimizer", default="adamw", help=f"one of {known} [%(default)s]")
    add("--master-weights", action="store_true", help="the optimizer trains copies of 32 bits")
    add("--precision", default="bf16", help=f"one of {', '.join(PRECISIONS)} [%(default)s]")
    add("--shard", help="fsdp:N or ddp:N, for one of N devices")
    add("--memory", metavar="SIZE", help="what the device gives to programs: 32GiB")
    add("--context", metavar="SIZE", help="what the CUDA context takes")
    add("--expandable-segments", action="store_true", help="the allocator's setting of that name")
    add("--largest", action="append", default=[], metavar="SIZE", help="seek its largest value")
    add("--effort", default="quick", help="of the search for plans [%(default)s]")
    add("--format", default="text", choices=("text", "json"))
    add("--report", metavar="FILE", help="write the plan's page for a browser")
    return parser


def _found(name: str) -> tuple[ModuleType, Any]:
    """Returns the module and the function that ``MODULE:FUNCTION`` names."""
    place, separator, function = name.rpartition(":")
    if not separator:
        raise ValueError(f"{name} names no function: write MODULE:FUNCTION, or FILE.py:FUNCTION")
    module = _from_file(Path(place)) if place.endswith(".py") else _by_name(place)
    return module, _named(module, function)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} is no file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _by_name(name: str) -> ModuleType:
    sys.path.insert(0, "")  # As for a script, modules of the present folder are found.
    return importlib.import_module(name)


def _named(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module.__name__} has no {name!r}")
    return getattr(module, name)


def _refuse(error: Exception, code: int) -> int:
    print(f"ckplan.torch: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
