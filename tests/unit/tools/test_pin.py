"""`make pin` writes the checksums of archives that two places agree on, and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from localcloud.testing.hosts import Certificates, Serve
from tools import downloads, pin
from tools.downloads import DownloadError, checksums, fetch_any, unpack

_HEAD = "# a head\n# of two lines\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tools/checksums.txt; GitHub and Pulumi's site are folders, and this machine is like the workflows'."""
    monkeypatch.setattr(downloads, "GITHUB", f"{tmp_path.as_uri()}/github/{{archive}}")
    monkeypatch.setattr(downloads, "PULUMI", f"{tmp_path.as_uri()}/pulumi/{{archive}}")
    monkeypatch.setattr(downloads, "RELEASE", f"{tmp_path.as_uri()}/releases/{{repository}}-{{version}}")
    monkeypatch.setattr(downloads, "this_platform", lambda: ("linux", "amd64"))
    for place in ("github", "pulumi", "releases"):
        (tmp_path / place).mkdir()
    written = tmp_path / "checksums.txt"
    written.write_text(_HEAD)
    return written


def publish(folder: Path, platform: str = "linux-amd64") -> dict[str, str]:
    """Every archive of a platform, at both places and with its digest; returns their checksums."""
    found = {}
    for archive in pin.archives(platform):
        content = f"content of {archive.name}".encode()
        for place in ("github", "pulumi"):
            (folder / place / archive.name).write_bytes(content)
        found[archive.name] = hashlib.sha256(content).hexdigest()
        state(folder, archive.release, archive.name, f"sha256:{found[archive.name]}")
    return found


def state(folder: Path, release: str, name: str, digest: str | None) -> None:
    """GitHub states this digest of an archive, among the others of its release."""
    file = folder / "releases" / release.rpartition("/")[2]
    assets = json.loads(file.read_text())["assets"] if file.exists() else [{"name": "another", "digest": "sha256:0"}]
    kept = [asset for asset in assets if asset["name"] != name]
    file.write_text(json.dumps({"assets": [*kept, {"name": name, "digest": digest}]}))


def test_what_two_places_agree_on_is_written_below_the_head(file: Path, tmp_path: Path) -> None:
    published = publish(tmp_path)

    assert pin.main(file=file) == 0
    assert checksums(file) == published
    assert len(published) == 4, "the CLI, azure-native, azuread and kubernetes"
    before = file.read_text()
    assert before.startswith(_HEAD)
    for path in (tmp_path / "github").iterdir():
        path.unlink()
    assert pin.main(file=file) == 0
    assert file.read_text() == before, "what is written already is not downloaded again"


@pytest.mark.parametrize("differs", ["content", "digest", "gone", "{}", "[]", '{"assets": []}', "no JSON"])
def test_an_archive_that_differs_or_is_not_stated_is_refused_and_nothing_is_written(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], differs: str
) -> None:
    publish(tmp_path)
    *_, last = pin.archives("linux-amd64")
    told = {
        "content": hashlib.sha256(b"another").hexdigest(),
        "digest": f"pin: {last.name} is not the same everywhere: ",
        "gone": "No such file",
    }.get(differs, f"states no digest of {last.name}")
    if differs == "content":
        (tmp_path / "pulumi" / last.name).write_bytes(b"another")
    elif differs == "digest":
        state(tmp_path, last.release, last.name, f"sha256:{'3' * 64}")
    elif differs == "gone":
        (tmp_path / "pulumi" / last.name).unlink()
    else:
        (tmp_path / "releases" / last.release.rpartition("/")[2]).write_text(differs)

    assert pin.main(file=file) == 1
    assert file.read_text() == _HEAD
    assert told in capsys.readouterr().err


def test_an_archive_from_before_githubs_digests_is_pinned_and_named(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    *_, last = pin.archives("linux-amd64")
    state(tmp_path, last.release, last.name, None)

    assert pin.main(file=file) == 0
    assert f"GitHub states no digest of {last.name}" in capsys.readouterr().out


def test_an_older_cli_goes_and_an_older_plugin_stays(file: Path, tmp_path: Path) -> None:
    published = publish(tmp_path)
    plugin, cli = "pulumi-resource-azuread-v1.2.3-linux-amd64.tar.gz", "pulumi-v1.2.3-linux-x64.tar.gz"
    file.write_text(f"{_HEAD}{'1' * 64}  {plugin}\n{'2' * 64}  {cli}\n")

    assert pin.main(file=file) == 0
    assert checksums(file) == {**published, plugin: "1" * 64}


def test_another_platform_can_be_asked_for(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = {**publish(tmp_path), **publish(tmp_path, "darwin-arm64")}

    assert pin.main(["windows-amd64"], file) == 1
    assert capsys.readouterr().out == (
        "pin: unknown platforms: windows-amd64; known are linux and darwin, -amd64 and -arm64\n"
    )
    assert pin.main(["darwin-arm64"], file) == 0
    assert checksums(file) == published


@pytest.mark.parametrize("line", ["abc  pulumi.tar.gz", f"{'A' * 64}  pulumi.tar.gz", f"{'a' * 64} pulumi.tar.gz"])
def test_a_line_that_is_no_checksum_is_an_error(file: Path, line: str) -> None:
    file.write_text(f"{_HEAD}{line}\n")
    with pytest.raises(ValueError, match=r"^checksums\.txt:3: found "):
        checksums(file)


def test_a_download_with_another_checksum_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"content")
    with pytest.raises(DownloadError, match="has the SHA-256"):
        fetch_any([(tmp_path / "archive").as_uri()], tmp_path / "target", "0" * 64)
    assert not (tmp_path / "target").exists()


def test_of_an_archive_only_the_commands_in_its_folder_are_written(tmp_path: Path) -> None:
    archive = tmp_path / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        for name in ("pulumi/pulumi", "pulumi/nested/one", "../outside", "pulumi/../../outside", "/outside", "other"):
            member = tarfile.TarInfo(name)
            member.size = 1
            opened.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("pulumi/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        opened.addfile(link)

    unpack(archive, "pulumi", tmp_path / "target")

    assert [path.name for path in (tmp_path / "target").iterdir()] == ["pulumi"]
    assert {path.name for path in tmp_path.iterdir()} == {"archive.tar.gz", "target"}
    for content in (b"", b"no archive"):
        archive.write_bytes(content)
        with pytest.raises(DownloadError, match="cannot be unpacked"):
            unpack(archive, "pulumi", tmp_path / f"of-{len(content)}")


def test_it_goes_by_https_with_the_certificates_of_this_machine(
    file: Path, tmp_path: Path, serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(Starlette(routes=[Mount("/", StaticFiles(directory=tmp_path))]))
    monkeypatch.setattr(downloads, "GITHUB", f"{url}/github/{{archive}}")
    monkeypatch.setattr(downloads, "PULUMI", f"{url}/pulumi/{{archive}}")
    monkeypatch.setattr(downloads, "RELEASE", f"{url}/releases/{{repository}}-{{version}}")
    published = publish(tmp_path)

    assert pin.main(file=file) == 1, "nobody trusts the server"
    assert file.read_text() == _HEAD

    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    assert pin.main(file=file) == 0
    assert checksums(file) == published
