"""Runs the program ``ckplan`` for ``python -m ckplan`` and for the entry point ``ckplan``."""

import os
import sys

from ckplan.program import ProgramNotFoundError, find_program


def main() -> None:
    """Replaces this process with the program, so that the caller gets its exit code and signals."""
    try:
        program = find_program()
    except ProgramNotFoundError as error:
        sys.exit(f"ckplan: {error}")
    sys.stdout.flush()
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
