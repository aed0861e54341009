"""The probe looks for its credential file where the consumer of the mount looks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from identity.credentials.probe.credential_source import CredentialNotNamedError, CredentialSource


@pytest.mark.parametrize(
    ("named", "root", "located"),
    [
        ("file:/mnt/certs/x", None, "/mnt/certs/x"),
        ("file:/mnt/certs/x", Path("/pods/a"), "/pods/a/mnt/certs/x"),
        ("file:/mnt/certs/x", Path("/mnt"), "/mnt/certs/x"),
        ("file:x/y", Path("/pods/a"), "x/y"),
        ("env:ARO_HCP_CLIENT_CREDENTIALS_PATH", Path("/pods/a"), "/pods/a/mnt/certs/x"),
    ],
)
def test_the_mount_root_is_put_before_a_path_outside_of_it(
    monkeypatch: pytest.MonkeyPatch, named: str, root: Path | None, located: str
) -> None:
    monkeypatch.setenv("ARO_HCP_CLIENT_CREDENTIALS_PATH", "/mnt/certs/x")
    assert CredentialSource.parse(named, root).path() == Path(located)


def test_an_unset_variable_is_reported_by_name() -> None:
    with pytest.raises(CredentialNotNamedError, match="variable IDSTACK_TEST_UNSET: found none"):
        CredentialSource.parse("env:IDSTACK_TEST_UNSET", None).path()


def test_a_cloud_config_below_the_mount_root_names_a_file_below_it(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "cloud" / "cloud.conf"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"aadMSIDataPlaneIdentityPath": "/mnt/certs/x"}))
    source = CredentialSource.parse("cloud-config:/etc/cloud/cloud.conf", tmp_path)
    assert source.path() == tmp_path / "mnt" / "certs" / "x"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "found no readable document (No such file or directory)"),
        ("{", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ("[]", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ("{}", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ('{"aadMSIDataPlaneIdentityPath": ""}', 'found an empty "aadMSIDataPlaneIdentityPath"'),
    ],
)
def test_a_cloud_config_that_names_none_is_reported(tmp_path: Path, content: str | None, found: str) -> None:
    config = tmp_path / "cloud.conf"
    if content is not None:
        config.write_text(content)
    with pytest.raises(CredentialNotNamedError, match=re.escape(f"cloud config {config}: {found}")):
        CredentialSource.parse(f"cloud-config:{config}", None).path()


@pytest.mark.parametrize("text", ["/mnt/certs/x", "file:", "vault:x", ""])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: file:PATH, env:NAME, cloud-config:PATH or token:PATH"):
        CredentialSource.parse(text, None)
