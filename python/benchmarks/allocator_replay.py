"""Prints how the replay of PyTorch's allocator answers recorded requests.

    python python/benchmarks/allocator_replay.py SNAPSHOT...

A snapshot is a file that ``torch.cuda.memory._dump_snapshot`` wrote on a machine with a GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ckplan.torch.errors import SnapshotError
from ckplan.torch.report import size
from ckplan.torch.snapshots import snapshot_file
from ckplan.torch.snapshots.history_replay import replay


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("snapshots", nargs="+", type=Path)
    requests = answered = segments = 0
    print("| recording | requests | same address | new segments | reserved at most |")
    print("| --- | --- | --- | --- | --- |")
    for path in parser.parse_args().snapshots:
        try:
            found = replay(snapshot_file.read(path))
        except SnapshotError as error:
            print(f"| {path.name} | | {error} | | |", flush=True)
            continue
        requests += found.requests
        answered += found.answered
        segments += found.segments
        print(
            f"| {path.name} | {found.requests:,} | {found.answered:,}{_but(found.difference)} | "
            f"{found.segments:,} | {size(found.peak_reserved_bytes)} |",
            flush=True,
        )
    print(f"| all | {requests:,} | {answered:,} | {segments:,} | |")


def _but(difference: str) -> str:
    return f": {difference}" if difference else ""


if __name__ == "__main__":
    main()
