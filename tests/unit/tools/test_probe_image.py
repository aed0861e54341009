"""`make probe-image` builds the probe's Containerfile with what is on PATH, pushes it, and says how to configure it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import probe_image
from tools.steps import ROOT

DIGEST = f"sha256:{'1' * 64}"
TAG = "contoso.azurecr.io/idstack/credential-probe:0.1.0"
# Notes its arguments, ends with 1 at the verb in `fails`, and knows the digest of an image.
_ENGINE = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "{folder}/calls"
[ "$1" != "$(cat "{folder}/fails")" ] || exit 1
[ "$1" != image ] || echo "contoso.azurecr.io/idstack/credential-probe@{digest}"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a container engine; `install` puts one on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None)
    (tmp_path / "fails").write_text("nothing")
    return tmp_path


def install(machine: Path, *names: str) -> None:
    for name in names:
        (machine / name).write_text(_ENGINE.format(folder=machine, digest=DIGEST))
        (machine / name).chmod(0o755)


def calls(machine: Path) -> list[str]:
    return (machine / "calls").read_text().splitlines()


@pytest.mark.parametrize(("installed", "taken"), [(("docker",), "docker"), (("docker", "podman"), "podman")])
def test_it_is_built_pushed_and_named_by_its_digest(
    machine: Path, capfd: pytest.CaptureFixture[str], installed: tuple[str, ...], taken: str
) -> None:
    install(machine, *installed)
    room = ROOT / "identity/credentials"

    assert probe_image.main(["contoso.azurecr.io"]) == 0
    assert calls(machine)[:2] == [
        f"{taken} build --platform linux/amd64 --file {room}/Containerfile --tag {TAG} {room}",
        f"{taken} push {TAG}",
    ]
    assert capfd.readouterr().out.endswith(
        "  .venv/bin/idstack pulumi --stack <stack> -- config set --path probe.image "
        f"contoso.azurecr.io/idstack/credential-probe@{DIGEST}\n"
    )
    (machine / "fails").write_text("image")  # the engine knows no digest
    assert probe_image.main(["contoso.azurecr.io"]) == 0
    assert capfd.readouterr().out.endswith(f"probe.image {TAG}\n")


@pytest.mark.parametrize(
    ("registry", "told"),
    [
        ("contoso.azurecr.io", "neither podman nor docker on PATH"),
        ("contoso.azurecr.io", "`az acr build --registry contoso --image idstack/credential-probe:0.1.0 "),
        *((registry, f'REGISTRY: found "{registry}"') for registry in ("", "https://contoso.azurecr.io", "a b")),
    ],
)
def test_without_an_engine_or_a_registry_the_way_out_is_named(
    machine: Path, capfd: pytest.CaptureFixture[str], registry: str, told: str
) -> None:
    assert (probe_image.main([registry]), told in capfd.readouterr().err) == (1, True)


@pytest.mark.parametrize("verb", ["build", "push"])
def test_a_step_that_fails_ends_it(machine: Path, capfd: pytest.CaptureFixture[str], verb: str) -> None:
    install(machine, "podman")
    (machine / "fails").write_text(verb)

    assert probe_image.main(["contoso.azurecr.io"]) == 1
    assert f"`podman {verb}` failed" in capfd.readouterr().err
