"""The local Entra ID behind a socket, and the `idstack token` command of somebody who has nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from identity.aks import exec_plugin
from identity.credentials.certificate import IssuedCertificate
from localcloud.testing.azure import LocalAzure
from localcloud.testing.hosts import Certificates, Serve
from tests.unit.forked import idstack
from tests.unit.identity.aks.world import Command, Principal, Wire, principal, wire
from tests.unit.identity.credentials.world import certificate

PROJECT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def issued() -> IssuedCertificate:
    """One certificate for every test that needs nothing special of it."""
    return certificate()


@pytest.fixture
def trusts_authority(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the authority of what is served."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("CURL_CA_BUNDLE", "/nonexistent")  # requests would prefer it


@pytest.fixture
def entra(azure: LocalAzure, serve: Serve, certificates: Certificates, trusts_authority: None) -> Wire:
    """Entra ID at a loopback address, trusted through the environment."""
    return wire(azure, serve, certificates.ca_file)


@pytest.fixture
def somebody(entra: Wire, issued: IssuedCertificate, tmp_path: Path) -> Principal:
    """A service principal that signs in with a credential document."""
    return principal(entra, issued, tmp_path / "credential.json")


def variables(home: Path, environ: dict[str, str]) -> dict[str, str]:
    """A home and a cache of the test's own, and the authority that this process trusts."""
    base = {"PATH": os.defpath, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return {**base, "SSL_CERT_FILE": os.environ.get("SSL_CERT_FILE", ""), **environ}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs `idstack token` in a process of its own without a terminal."""
    return lambda *arguments, **environ: idstack(["token", *arguments], variables(tmp_path, environ), PROJECT)


@pytest.fixture
def started_command(tmp_path: Path) -> Command:
    """As `command`, as the engine's plugins start it by a stack's kubeconfig."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [".venv/bin/python", "-m", exec_plugin.__name__, "token", *arguments],
            cwd=PROJECT,
            env=variables(tmp_path, environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
