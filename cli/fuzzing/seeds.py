#!/usr/bin/env python3
"""Reads and changes the inputs of fuzz targets that are kept in testdata/fuzz/TARGET.txt.

    seeds.py list TARGET               prints their names and sizes
    seeds.py unpack TARGET FOLDER      writes each into a file of the folder
    seeds.py add TARGET FILE [NAME]    adds the file, under NAME or its own; replaces an input of this name
    seeds.py check                     reads all targets' inputs, and fails if writing them would change a file

The format is that of lib/testing/bundle.h. An input of plain text is kept as such, any other in base64.
"""
import base64
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "testdata/fuzz"
HEADING = "======== "
NO_NEWLINE = " no-newline"
BASE64 = " base64"
WIDTH = 76


def is_text(data):
    """Whether the bytes can stand in a bundle as they are: lines of printable text, none of them like a heading."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return all(c in "\n\t" or c.isprintable() for c in text) and not re.search(f"^{HEADING}", text, re.M)


def in_form(data):
    """Returns the word for the input's form, as it stands in its heading, and the lines below the heading."""
    if not is_text(data):
        digits = base64.b64encode(data).decode()
        return BASE64, "".join(digits[i:i + WIDTH] + "\n" for i in range(0, len(digits), WIDTH))
    if data.endswith(b"\n"):
        return "", data.decode()
    return NO_NEWLINE, data.decode() + "\n"


def read(path):
    """Returns the comment at the top of the file, and the inputs by name."""
    head, *parts = re.split(f"^{HEADING}", path.read_bytes().decode(), flags=re.M)
    inputs = {}
    for i, part in enumerate(parts):
        name, _, text = part.partition("\n")
        if i + 1 < len(parts):
            text = text[:-1]  # The empty line before the next heading.
        if name.endswith(BASE64):
            inputs[name.removesuffix(BASE64)] = base64.b64decode(text)
        elif name.endswith(NO_NEWLINE):
            inputs[name.removesuffix(NO_NEWLINE)] = text[:-1].encode()
        else:
            inputs[name] = text.encode()
    return head.removesuffix("\n"), inputs


def bundle(head, inputs):
    parts = [head] if head else []
    for name, data in inputs.items():
        form, body = in_form(data)
        parts.append(f"{HEADING}{name}{form}\n{body}")
    return "\n".join(parts).encode()


def path_of(target):
    path = FOLDER / f"{target}.txt"
    if not path.exists():
        known = " ".join(sorted(each.stem for each in FOLDER.glob("*.txt")))
        sys.exit(f"seeds.py: no target {target}; known: {known}")
    return path


def unpack(target, folder):
    _, inputs = read(path_of(target))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs.items():
        (folder / name).write_bytes(data)


def add(target, file, name=None):
    name = name or pathlib.Path(file).name
    if not re.fullmatch(r"[\w.+-]+", name):
        sys.exit(f"seeds.py: '{name}' can't name an input; use letters, digits, and _ . + -")
    head, inputs = read(path_of(target))
    try:
        inputs[name] = pathlib.Path(file).read_bytes()
    except OSError as error:
        sys.exit(f"seeds.py: cannot read {file}: {error.strerror}")
    path_of(target).write_bytes(bundle(head, dict(sorted(inputs.items()))))


def check():
    paths = sorted(FOLDER.glob("*.txt"))
    changed = [path.name for path in paths if bundle(*read(path)) != path.read_bytes()]
    if changed or not paths:
        sys.exit(f"seeds.py: not as seeds.py writes them: {' '.join(changed) or 'no files'}")


def main():
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command in (["--help"], ["-h"]):
        print(__doc__.strip())
    elif command == ["list"] and len(arguments) == 1:
        for name, data in read(path_of(arguments[0]))[1].items():
            print(f"{len(data):8} {name}")
    elif command == ["unpack"] and len(arguments) == 2:
        unpack(*arguments)
    elif command == ["add"] and len(arguments) in (2, 3):
        add(*arguments)
    elif command == ["check"] and not arguments:
        check()
    else:
        sys.exit(__doc__.strip())


main()
