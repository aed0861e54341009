"""CLIENTS.md holds what the tests before this one have seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.core import request_log
from tests.clients import seen
from tests.harness import LocalStack
from tests.unit.golden_report import IS_REWRITING

pytestmark = pytest.mark.clients


def test_the_page_says_which_client_was_seen_to_use_what(stack: LocalStack) -> None:
    requests = request_log.read(Path(stack.environment.state_dir, "requests.jsonl"))

    page = seen.page(seen.collected(requests))

    if IS_REWRITING:
        seen.FILE.write_text(page, encoding="utf-8")
    assert seen.FILE.read_text(encoding="utf-8") == page, "UPDATE_GOLDEN=1 make clients writes it again"
