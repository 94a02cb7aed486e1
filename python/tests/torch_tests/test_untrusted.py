"""Tests of the reader of files that others may have written."""

from __future__ import annotations

import json
import os
import pickle
import time
from typing import Any

import pytest
from torch_tests import fuzzing_files
from torch_tests.test_snapshots import whole

from ckplan.torch import __main__ as command
from ckplan.torch import cache, untrusted_files
from ckplan.torch.untrusted_files import RefusedError


def shared(count: int) -> bytes:
    """Returns a snapshot with one segment and one list of blocks, each referred to many times."""
    block = {"address": 0, "size": 512, "requested_size": 512, "state": "active_allocated"}
    segment = {"address": 0, "total_size": 512, "blocks": [block] * count}
    return pickle.dumps(whole(segments=[segment] * count))


def doubled(levels: int) -> bytes:
    """Returns lists of lists that stand for 2^levels objects."""
    value: Any = []
    for _ in range(levels):
        value = [value, value]
    return pickle.dumps(whole(more=value))


DEEP_KEY = b"\x80\x04})" + b"\x85" * 300_000 + b"Ns."
DEEP_LIST = b"\x80\x04" + b"]" * 300_000 + b"a" * 299_999 + b"."
OF_ITSELF = b"\x80\x04]\x94h\x00a."
SAME_HASH = pickle.dumps({k * (2**61 - 1): 0 for k in range(3000)})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (DEEP_KEY, "a key that is neither a string nor a whole number"),
        (DEEP_LIST, "nested more than 64 levels deep"),
        (OF_ITSELF, "contains itself"),
        (SAME_HASH, "a whole number beyond 64 bits"),
        (pickle.dumps({1.5: 0}), "a key that is neither"),
        (pickle.dumps({"a": float("nan")}), "not finite"),
        (pickle.dumps({"a": 2**64}), "beyond 64 bits"),
        (pickle.dumps({"a": {1}}), "not part of a pickle of plain data"),
        (pickle.dumps({"a": b"x"}, 4), "not part of a pickle of plain data"),
        (b"\x80\x04}(X\x01\x00\x00\x00aNX\x01\x00\x00\x00aNu.", "a key twice"),
        (b"Np2L\n.", "no 64-bit whole number"),
        (shared(1000), "refers to the same ones many times"),
        (shared(10_000), "refers to the same ones many times"),
        (doubled(50), "refers to the same ones many times"),
    ],
)
def test_pickles_that_would_crash_or_grow_are_refused_at_once(tmp_path, content, said, capsys):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    begun = time.process_time()
    with pytest.raises(RefusedError, match=said):
        untrusted_files.pickle_value(content)
    assert time.process_time() - begun < 5
    assert command.main(["compare-snapshot", str(path), "plan.json"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path} is not a memory snapshot" in line


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_read_as_pickle_reads_it(protocol):
    value = {
        "numbers": [0, 1, -1, 255, 256, 65536, -(2**31), 2**31, 2**63, 2**64 - 1, -(2**63), 1.5],
        "texts": ["", "a", "é\n", "\U0001f600", "x" * 300, "y" * 70_000],
        "others": [None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}],
        3: {"many": list(range(2500)), "keys": {str(key): key for key in range(2500)}},
    }
    value["shared"] = [value["texts"]] * 3
    assert fuzzing_files.same(untrusted_files.pickle_value(pickle.dumps(value, protocol)), value)


def test_a_stack_that_all_events_share_is_no_attack():
    frames = [{"filename": "a.py", "line": n, "name": "f"} for n in range(200)]
    event = {"action": "alloc", "addr": 1 << 40, "size": 512, "stream": 0, "frames": frames}
    events = [event | {"addr": (1 << 40) + 512 * n, "time_us": n} for n in range(20_000)]
    assert len(untrusted_files.pickle_value(pickle.dumps(events))) == 20_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 65 + b"]" * 65, "nested more than 64"),
        (b'{"a": {"b": 1, "b": 2}}', "the key 'b' twice"),
        (b"[1" + b"0" * 400 + b"]", "beyond 64 bits"),
        (b"[18446744073709551616]", "beyond 64 bits"),
        (b"[-9223372036854775809]", "beyond 64 bits"),
        (b"[1e400]", "beyond the range"),
        (b"[-Infinity]", "not a number"),
        (b'["\xff"]', "not JSON in UTF-8"),
        (b"", "not JSON"),
        (b"[1] 2", "not JSON"),
    ],
)
def test_json_that_parsers_read_in_different_ways_is_refused(content, said):
    with pytest.raises(RefusedError, match=said):
        untrusted_files.json_value(content)


def test_brackets_in_texts_are_not_nested():
    assert untrusted_files.json_value(json.dumps(["[" * 999, '\\"[' * 99, "]"]).encode())


@pytest.mark.parametrize(
    "content",
    [
        b'"' + b'\\"' * 1_000_000,
        b'["a", ' * 3 + b'"' + b"\\\\" * 1_000_000,
        b'"' * 1_000_001,
        b"\\" * 1_000_000,
        b'{"a":"' * 200_000,
        b"]" * 1_000_000,
    ],
)
def test_json_is_measured_in_a_time_that_grows_with_its_size(content):
    begun = time.process_time()
    with pytest.raises(RefusedError):
        untrusted_files.json_value(content)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "wrong", [-2, 10**12 + 1, 2**63, 10**400, -(10**400), True, False, None, 0.5, "1", [1], {}]
)
def test_a_file_of_numbers_with_a_wrong_one_counts_as_absent(tmp_path, monkeypatch, wrong):
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path))
    cache.store_numbers("times", {"a": 1, "b": 10**12})
    assert cache.load_numbers("times", -1, 10**12) == {"a": 1, "b": 10**12}
    (tmp_path / "times.json").write_text(json.dumps({"a": 1, "b": wrong}))
    assert cache.load_numbers("times", -1, 10**12) == {}
    cache.store_numbers("times", {"a": 1})
    assert cache.load_numbers("times", -1, 10**12) == {"a": 1}


def test_only_regular_files_are_read(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    for path in (pipe, link, tmp_path):
        with pytest.raises(RefusedError, match="not a regular file"):
            untrusted_files.file_bytes(path)
    with pytest.raises(RefusedError, match="it is a link"):
        untrusted_files.file_bytes(link, follows_links=False)


def test_damaged_files_are_read_like_the_standard_library_or_refused():
    found = fuzzing_files.run(seed=53, count=1500)
    assert found.accepted > 300 and found.refused > 3000
