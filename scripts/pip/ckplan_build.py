"""The build backend of `pip install .`: scikit-build-core, after scripts/setup.

The program is built from libraries that pip cannot install. scripts/setup obtains what is missing, and
takes milliseconds if nothing is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403  # All other hooks.

_ROOT = Path(__file__).resolve().parents[2]

_OWN_LIBRARIES = ("ONNX_DIR", "CKPLAN_ONNX_SOURCE_DIR", "CKPLAN_DEPS_DIR", "CMAKE_PREFIX_PATH")
"""Settings that name libraries which are there (docs/dependencies.md)."""

Settings = dict[str, Any]


def build_wheel(folder: str, settings: Settings | None = None, metadata: str | None = None) -> str:
    _set_up(settings or {})
    return build.build_wheel(folder, settings, metadata)


def build_editable(
    folder: str, settings: Settings | None = None, metadata: str | None = None
) -> str:
    _set_up(settings or {})
    return build.build_editable(folder, settings, metadata)


def _set_up(settings: Settings) -> None:
    if any(f"cmake.define.{name}" in settings for name in _OWN_LIBRARIES):
        return
    command = ["scripts/setup"]
    if str(settings.get("cmake.define.CKPLAN_EXECUTOR", "")).upper() == "ON":
        command.append("--executor")
    done = subprocess.run(command, cwd=_ROOT, env=_outer_environment(), check=False)
    if done.returncode:
        advice = f"ckplan cannot be built yet: run `{' '.join(command)}` in {_ROOT}, then pip again"
        print(advice, file=sys.stderr, flush=True)
        raise SystemExit(1)


def _outer_environment() -> dict[str, str]:
    """Returns the environment outside pip's isolated one, which hides pip and the system's CMake."""
    inner = ("PYTHON", "PEP517_", "_PYPROJECT_HOOKS_", "PIP_BUILD_TRACKER", "PIP_REQ_TRACKER")
    found = {key: value for key, value in os.environ.items() if not key.startswith(inner)}
    folders = found.get("PATH", "").split(os.pathsep)
    found["PATH"] = os.pathsep.join(folder for folder in folders if "pip-build-env-" not in folder)
    return found
