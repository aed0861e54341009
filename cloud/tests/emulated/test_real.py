"""How a real provider plugin is started for a local stack: by Azure's public names, which are the local cloud's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from emulated.real import NotAPluginError, version
from localcloud.core.certificates import parse
from localcloud.core.clouds import LocalEnvironment
from localcloud.testing.plugins import write_plugin
from tests.source import PACKAGES

_REAL: Final = PACKAGES / "emulated/bin/real"


def run(*arguments: str | Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script that the engine finds in place of a plugin."""
    variables = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run([_REAL, *arguments], env=variables, capture_output=True, text=True, check=False)


def started(cloud: LocalEnvironment, folder: Path, name: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment with which a plugin of this name is started."""
    plugin = write_plugin(folder, name, "1.2.3")
    record = Path(cloud.state_dir, "environment.json")
    environ = {
        "IDSTACK_LOCAL_ENVIRONMENT": str(record),
        "ARM_CLIENT_CERTIFICATE_PATH": cloud.deployer_certificate,
        "ARM_CLIENT_ID": cloud.deployer_client_id,
        "HTTPS_PROXY": "http://somebody.example.com",
    }
    done = run("run", plugin, "127.0.0.1:7", environ=environ)
    assert done.returncode == 7, done.stderr
    found: Any = json.loads((folder / "started.json").read_text())
    return found[0], found[1]


@pytest.mark.parametrize("name", ["azure-native", "azuread", "kubernetes"])
def test_a_plugin_reaches_the_local_cloud_alone(local_cloud: LocalEnvironment, tmp_path: Path, name: str) -> None:
    arguments, environ = started(local_cloud, tmp_path, name)

    assert arguments == ["127.0.0.1:7"]
    assert {environ[variable] for variable in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")} == {
        local_cloud.proxy_endpoint
    }
    assert environ["NO_PROXY"] == environ["no_proxy"] == "localhost,127.0.0.1,::1"
    assert environ["SSL_CERT_FILE"] == local_cloud.ca_file
    assert environ["ARM_CLIENT_ID"] == local_cloud.deployer_client_id


def test_azuread_signs_in_with_pkcs12(local_cloud: LocalEnvironment, tmp_path: Path) -> None:
    _, environ = started(local_cloud, tmp_path, "azuread")

    file = Path(environ["ARM_CLIENT_CERTIFICATE_PATH"])
    own = parse(Path(local_cloud.deployer_certificate).read_bytes())
    key, certificate, _ = pkcs12.load_key_and_certificates(file.read_bytes(), b"")
    assert environ["ARM_CLIENT_CERTIFICATE_PASSWORD"] == ""
    assert (key is not None, certificate) == (True, own.chain[0])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.samefile(Path(local_cloud.state_dir, "run")), "on tmpfs, beside the PEM"


@pytest.mark.parametrize("name", ["azure-native", "kubernetes"])
def test_other_plugins_keep_the_pem(local_cloud: LocalEnvironment, tmp_path: Path, name: str) -> None:
    _, environ = started(local_cloud, tmp_path, name)

    assert environ["ARM_CLIENT_CERTIFICATE_PATH"] == local_cloud.deployer_certificate
    assert "ARM_CLIENT_CERTIFICATE_PASSWORD" not in environ


@pytest.mark.parametrize("environ", [{}, {"IDSTACK_LOCAL_ENVIRONMENT": "/nowhere/environment.json"}])
def test_without_a_local_cloud_no_plugin_is_started(environ: Mapping[str, str], tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path, "azuread", "1.2.3")

    done = run("run", plugin, "127.0.0.1:7", environ=environ)

    assert done.returncode == 1
    assert done.stderr.startswith(f"{plugin} was not started, for it would reach Azure itself: no local cloud, ")
    assert not (tmp_path / "started.json").exists()


@pytest.mark.parametrize("stated", ["6.11.1", "v6.11.1"])
def test_a_plugin_is_asked_for_its_version(tmp_path: Path, stated: str) -> None:
    assert version(write_plugin(tmp_path, "azuread", stated)) == "6.11.1"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 1", "it prints no port, as a provider plugin does"),
        ("echo 'usage: something else'", "it prints no port, as a provider plugin does"),
        ("echo 1", "it does not state its version (UNAVAILABLE)"),
    ],
)
def test_what_does_not_answer_is_no_plugin(tmp_path: Path, script: str, why: str) -> None:
    plugin = tmp_path / "pulumi-resource-azuread"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)

    with pytest.raises(NotAPluginError) as refused:
        version(plugin)
    assert str(refused.value) == why


def test_wrong_usage_is_an_error() -> None:
    done = run("start", environ={})
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "usage")
