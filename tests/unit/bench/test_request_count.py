"""Requests are counted once each, out of a log that grows and is rotated meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

from tests.request_count import RequestCount, of, writes


def _append(file: Path, *requests: tuple[str, str, str]) -> None:
    with file.open("a", encoding="utf-8") as log:
        for time, service, method in requests:
            line = {
                "time": f"2026-11-23T08:00:{time}+00:00",
                "service": service,
                "method": method,
                "host": "",
                "path": "/",
            }
            log.write(json.dumps({**line, "status": 200, "client": ""}) + "\n")


def test_what_was_there_before_does_not_count_and_what_comes_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    _append(file, ("01.000", "arm", "GET"))
    count = RequestCount(file)
    with count.following():
        _append(file, ("01.000", "arm", "GET"), ("01.001", "graph", "PATCH"), ("01.001", "imds", "GET"))
    assert count.total == 2, "two alike in one millisecond are two; pods ask IMDS"
    with count.following():
        _append(file, ("01.001", "graph", "PATCH"), ("02.000", "graph", "GET"))
    assert (of(count.requests, "graph"), writes(count.requests, "graph"), of(count.requests, "arm")) == (3, 2, 1)


def test_a_rotated_log_is_read_on(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    count = RequestCount(file)
    with count.following():
        _append(file, ("01.000", "arm", "GET"), ("02.000", "arm", "PUT"))
    file.rename(tmp_path / "requests.jsonl.1")
    with count.following():
        _append(file, ("03.000", "arm", "GET"))
    assert count.total == 3
