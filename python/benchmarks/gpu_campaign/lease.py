"""What a lease of a GPU hands back: a few files, and how they bring a campaign to another machine.

A campaign in a lease works in a folder of its own, which stays on the machine. After each case that
took a while, and at the end, the folder to hand back gets

    results.jsonl        the journal
    gpu-validation.md    its tables
    campaign.tar.gz      all of it: the journal, both pages, and the files of the cases

A new machine resumes from campaign.tar.gz.
"""

import os
import shutil
import tarfile
import traceback
import zlib

from . import page
from .journal import FILE, Refused

ARCHIVE = "campaign.tar.gz"
MOST_BYTES = 16 * 2**20  # Of each file.


def hand_back(work, folder):
    """Writes the files of the campaign in `work` into `folder`."""
    os.makedirs(folder, exist_ok=True)
    try:
        page.write(work)
    except Exception:  # A faulty page must not end the campaign; it can be made again elsewhere.
        page.write_whole(os.path.join(work, f"{page.NAME}.md"), traceback.format_exc())
    for name in (FILE, f"{page.NAME}.md"):
        replace_by(lambda part, name=name: shutil.copy(os.path.join(work, name), part),
                   os.path.join(folder, name))
    replace_by(lambda part: pack(work, part), os.path.join(folder, ARCHIVE))


def replace_by(write, path):
    """Replaces the file at `path` atomically."""
    write(f"{path}.part")
    os.replace(f"{path}.part", path)


def pack(work, path):
    """Packs the folder; leaves out the largest files of cases until it is small enough."""
    left_out = []
    while True:
        names = sorted(os.path.relpath(os.path.join(place, name), work)
                       for place, _, files in os.walk(work) for name in files)
        names = [name for name in names if name not in left_out]
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.add(os.path.join(work, name), name)
        if os.path.getsize(path) <= MOST_BYTES:
            return
        of_cases = [name for name in names if name.startswith("files" + os.sep)]
        if not of_cases:
            return
        left_out.append(max(of_cases, key=lambda name: os.path.getsize(os.path.join(work, name))))


def resume(archive, work):
    """Unpacks the campaign of an earlier lease, unless the folder already has one."""
    if os.path.exists(os.path.join(work, FILE)):
        return
    os.makedirs(work, exist_ok=True)
    try:
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                parts = member.name.split("/")
                if member.isfile() and parts[0] and ".." not in parts:  # Nothing outside of the folder.
                    packed.extract(member, work)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise Refused(f"--resume: cannot read {archive}: {error}") from error
