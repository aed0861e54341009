"""The Pulumi Kubernetes Operator on the local stack: `make operator OPERATOR=<folder>` runs these tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.rooted import lacking

# The operator's two programs and its own objects, as its release has them in `deploy/quickstart`, and the webhook of
# Azure Workload Identity with its objects, as its release has them in `deploy`.
FILES: Final = ("manager", "agent", "install.yaml", "webhook", "azure-wi-webhook.yaml")


@pytest.fixture(scope="session")
def release() -> Path:
    """The folder with the operator's programs and objects."""
    if reason := lacking("OPERATOR", *FILES):
        pytest.skip(reason)
    return Path(os.environ["OPERATOR"]).resolve()
