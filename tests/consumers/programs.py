"""The programs of the control plane: how each is started, as its Deployment has it, and its first read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import httpx

from identity.catalogue_rows import Mount
from tests.consumers.consumer import Consumer, free_port

_SECONDS: Final = 120


class Kms(Consumer):
    """The KMS plugin, whose health check encrypts and decrypts with the key of etcd, by both versions of its API."""

    program = "kubernetes-kms"
    field = "kms"

    def arguments(self, mount: Mount) -> Sequence[str]:
        assert mount.config is not None
        vault, _, name, version = self.cluster["kms"]["activeKey"].removeprefix("https://").split("/")
        self._health = f"http://127.0.0.1:{(port := free_port())}/healthz"
        return (
            *(f"--config-file-path={mount.config.path}", "--listen-addr=unix:///tmp/kms.sock"),
            *(f"--keyvault-name={vault.partition('.')[0]}", f"--key-name={name}", f"--key-version={version}"),
            *(f"--healthz-port={port}", f"--metrics-addr={free_port()}"),
        )

    def work(self) -> str:
        with httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=_SECONDS) as http:
            answer = http.get(self._health)
        return "" if answer.is_success else answer.text
