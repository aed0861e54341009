"""What a second run meets while the engine stands still in the middle of the first, and after it was killed there."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.lock import LockedError
from tests.engine.small_stack import documents, small_stack
from tests.storm.plan import Disturbance, Recovery, Victim
from tests.storm.standstill import interruption


@pytest.mark.slow
def test_a_locked_stack_is_left_alone_and_only_recover_prevents_twins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path / ".localcloud"))
    registration = Disturbance(Victim.ENGINE, 1, Recovery.RECOVER, moment="after", step="graph")
    with small_stack(tmp_path, "hypershift", warm=False) as stack:
        engine = Engine("local", root=stack.root, output=sys.stderr.fileno())

        up = (stack.python, "-m", "ops", "up")
        with interruption(stack, registration, up, sys.stderr) as (_, [pid]):
            with pytest.raises(LockedError, match=rf"the stack local is locked by .*\(pid {pid}, .* still runs") as met:
                engine.up()
            assert not met.value.is_abandoned
        with pytest.raises(
            LockedError, match=rf"\(pid {pid}, .* killed.* `.venv/bin/idstack recover --stack local` unlocks"
        ):
            engine.up()

        stack.local_cloud("start")
        engine.unlock()
        stack.up("--continue-on-error", check=False)
        applications = [document["properties"] for document in documents(stack, "entra-application")]
        tags = Counter(tag for application in applications for tag in application.get("tags", ()))
        assert 2 in tags.values(), "Graph makes twins"
        recovered = stack.idstack("recover", check=False)
        assert recovered.returncode == 1
        assert "there is more than one application with the tag idstack:local:hc1-" in recovered.stderr
