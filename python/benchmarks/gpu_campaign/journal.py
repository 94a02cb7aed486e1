"""The results of a campaign on disk: JSON lines, each there before the next case begins.

A case has a line when it begins and one with its result. A campaign that was cut, at any moment and
by anything, goes on after the last result: a part of a line at the end is removed, and the case
that was running begins again. A case that takes the campaign or the machine down with it several
times is given up: after MAX_STARTS starts, or MAX_LEASED_STARTS in a lease, where a case that hung
is given up at once.
"""

import fcntl
import json
import os

MAX_STARTS = 3
MAX_LEASED_STARTS = 2
FILE = "results.jsonl"


class Refused(Exception):
    """The folder is another campaign's."""


def read_lines(path):
    """Returns the whole lines of the file, and how many bytes they have."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return [], 0
    end = data.rfind(b"\n") + 1
    return data[:end].splitlines(), end


def read_records(path):
    """Returns the records of the file. Lines that are no records are left out."""
    records = []
    for line in read_lines(path)[0]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def results_of(records):
    """Returns the results by the names of their cases, in the order in which they were written."""
    return {record["case"]: record for record in records if record.get("event") == "result"}


class Journal:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, FILE)
        self.file = open(self.path, "ab")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"another campaign writes into {folder}") from error
        self.file.truncate(read_lines(self.path)[1])
        self.records = read_records(self.path)
        self.results = results_of(self.records)

    def open_campaign(self, settings):
        """Begins the journal with the settings, or refuses other ones than it began with."""
        for record in self.records:
            if record["event"] == "campaign":
                if record["settings"] != settings:
                    raise Refused(f"{self.path} has the results of a campaign with other settings: "
                                  f"{record['settings']}; name another folder with -o")
                return
        self.write({"event": "campaign", "settings": settings})

    def forget(self, statuses):
        """Cases with these results run again."""
        self.results = {case: result for case, result in self.results.items()
                        if result["status"] not in statuses}

    def write(self, record):
        self.file.write(json.dumps(record, sort_keys=True).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.records.append(record)

    def starts_of(self, case):
        """Returns how often the case has begun since its last result without an end of its own.

        A campaign that stopped the case early, for want of time or by a signal, takes its start
        back. One that waited for the case's whole limit does not: the case hung.
        """
        starts = 0
        for record in self.records:
            if record.get("case") != case:
                continue
            if record["event"] == "start":
                starts += 1
            elif record["event"] == "result":
                starts = 0
            elif record["event"] == "stop" and not record.get("hung"):
                starts -= 1
        return starts

    def has_hung(self, case):
        """Returns whether the case hung since its last result."""
        hung = False
        for record in self.records:
            if record.get("case") == case:
                hung = record["event"] != "result" and (hung or bool(record.get("hung")))
        return hung

    def begin(self, case, most=MAX_STARTS, allows_hang=True):
        """Returns False if the case has ended too many campaigns, or hung if that is not allowed."""
        if self.starts_of(case) >= most or (not allows_hang and self.has_hung(case)):
            return False
        self.write({"event": "start", "case": case})
        return True

    def interrupt(self, case, why, hung=False):
        """The campaign itself stopped the case, which begins again in the next one."""
        self.write({"event": "stop", "case": case, "why": why, "hung": hung})

    def finish(self, case, result):
        record = {"event": "result", "case": case, **result}
        self.write(record)
        self.results[case] = record
