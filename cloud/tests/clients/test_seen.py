"""CLIENTS.md holds what the tests before this one have seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localcloud.core import request_log
from localcloud.core.clouds import LocalEnvironment
from tests.clients import seen

pytestmark = pytest.mark.clients


def test_the_page_says_which_client_was_seen_to_use_what(local_cloud: LocalEnvironment) -> None:
    requests = request_log.read(Path(local_cloud.state_dir, "requests.jsonl"))

    page = seen.page(seen.collected(requests))

    if os.environ.get("UPDATE_GOLDEN") == "1":
        seen.FILE.write_text(page, encoding="utf-8")
    assert seen.FILE.read_text(encoding="utf-8") == page, "with UPDATE_GOLDEN=1 this test writes it again"
