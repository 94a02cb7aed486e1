"""Answers --help with the docstring of the script that imports this, before it does anything."""
import sys

import __main__

if sys.argv[1:2] in (["--help"], ["-h"]):
    print((__main__.__doc__ or "").strip())
    sys.exit()
