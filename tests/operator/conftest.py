"""The Pulumi Kubernetes Operator on the local stack: `make operator OPERATOR=<folder>` runs these tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

# The operator's two programs and its own objects, as its release has them in `deploy/quickstart`, and the webhook of
# Azure Workload Identity with its objects, as its release has them in `deploy`.
FILES: Final = ("manager", "agent", "install.yaml", "webhook", "azure-wi-webhook.yaml")


@pytest.fixture(scope="session")
def release() -> Path:
    """The folder with the operator's programs and objects."""
    named = os.environ.get("OPERATOR")
    if not named:
        pytest.skip(f"OPERATOR names no folder with {', '.join(FILES)} (docs/explanation/testing.md)")
    if missing := [file for file in FILES if not Path(named, file).is_file()]:
        pytest.skip(f"OPERATOR={named} has no {', '.join(missing)} (docs/explanation/testing.md)")
    return Path(named).resolve()
