"""What the end-to-end tests share: trust in the local cloud's certificates."""

from __future__ import annotations

import pytest

from tests.harness import LocalStack


@pytest.fixture(autouse=True)
def trusted(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients trust the local cloud's certificate authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
    monkeypatch.setenv("SSL_CERT_FILE", stack.environment.ca_file)
