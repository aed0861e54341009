"""A step of the local cloud that fails, told in the words of the program around it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ops.stack import local_cloud
from ops.stack.errors import CommandError


@pytest.mark.parametrize(
    ("step", "cluster", "hint"),
    [
        (
            ("start",),
            "apiserver",
            "; for another Kubernetes API: `.venv/bin/idstack down --stack local`, then `make up CLUSTER=apiserver`",
        ),
        (("start",), "", ""),
        (("stop", "--remove"), "apiserver", ""),
    ],
)
def test_a_failed_start_says_how_to_change_the_kubernetes_api(
    step: Sequence[str], cluster: str, hint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failed(arguments: Sequence[str], **_: Any) -> int:
        return 1

    monkeypatch.setattr(local_cloud, "run", failed)
    monkeypatch.setenv("LOCALCLOUD_CLUSTER", cluster)
    monkeypatch.setenv("LOCALCLOUD_STATE_DIR", str(tmp_path))

    with pytest.raises(CommandError) as refused:
        local_cloud.do(*step, output=1)
    assert str(refused.value) == (
        f"`.venv/bin/idstack local {' '.join(step)}` ended with code 1; the reason is printed above{hint}"
    )
