"""``python -m ckplan …``, and the entry point ``ckplan``: the program, with the same arguments."""

import os
import sys

from ckplan.program import ProgramNotFoundError, find_program


def main() -> None:
    """Becomes the program; so its exit code, its streams and its signals are the caller's own."""
    try:
        program = find_program()
    except ProgramNotFoundError as error:
        sys.exit(f"ckplan: {error}")
    sys.stdout.flush()
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
