"""Runs ``python -m ckplan …`` and the entry point ``ckplan``: the program, with the same arguments.
"""

import os
import sys

from ckplan.program import ProgramNotFoundError, find_program


def main() -> None:
    """Replaces this process by the program, so that exit code and signals are the caller's."""
    try:
        program = find_program()
    except ProgramNotFoundError as error:
        sys.exit(f"ckplan: {error}")
    sys.stdout.flush()
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
