#!/usr/bin/env python3
"""Checks that a GPU rounds products and sums one by one, as the interpreter of PTX does.

    CKPLAN_PTX_TEXTS=folder build/release/lib/executor/cuda/testing/ptx/ckplan_cuda_ptx_test --count
    scripts/lint.d/contraction.py folder [ARCHITECTURE]

ptxas may join a product and a sum (FFMA, DFMA) unless PTX marks both with a rounding, as -fmad=false does. Each module is
assembled twice, and ptxas may join in one of the runs only: both must give the same machine code. Without the marks they
must differ somewhere, or else the comparison sees nothing. Exits with 1 otherwise.
"""

import argparse
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile


def assemble(ptx, architecture, may_join):
    """Returns the machine code of each kernel."""
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        flags = ["-arch", architecture, "-fmad", "true" if may_join else "false", "-o", cubin.name, "-"]
        subprocess.run([ptxas, *flags], input=ptx, text=True, check=True)
        return code_sections(cubin.read())


def code_sections(elf):
    """Returns the contents of the sections `.text.KERNEL` of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, table + size * i) for i in range(count)]
    code = {}
    for name, _, _, _, offset, length in sections:
        begin = sections[names][4] + name
        text = elf[begin : elf.index(b"\0", begin)].decode()
        if text.startswith(".text."):
            code[text.removeprefix(".text.")] = elf[offset : offset + length]
    return code


def contracted(ptx, architecture):
    """Returns the kernels whose code depends on whether ptxas may join, and the number of kernels."""
    joined, apart = (assemble(ptx, architecture, may_join) for may_join in (True, False))
    return [name for name in apart if joined[name] != apart[name]], len(apart)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of modules that the interpreter has written")
    parser.add_argument("architecture", nargs="?", default="sm_90")
    arguments = parser.parse_args()
    found, kernels, unmarked = [], 0, 0
    modules = sorted(arguments.folder.glob("*.ptx"))
    for module in modules:
        ptx = module.read_text(encoding="utf-8")
        names, count = contracted(ptx, arguments.architecture)
        found += names
        kernels += count
        without_marks = re.sub(r"\b(add|sub|mul)\.rn\.(f32|f64)\b", r"\1.\2", ptx)
        unmarked += len(contracted(without_marks, arguments.architecture)[0])
    print(f"{kernels} kernels of {len(modules)} modules: {len(found)} contracted, {unmarked} if PTX did not forbid it")
    print("\n".join(found), end="\n" if found else "")
    return 0 if unmarked and not found else 1


if __name__ == "__main__":
    sys.exit(main())
