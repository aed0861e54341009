"""Builds the image of the credential probe and pushes it: `make probe-image REGISTRY=<registry>`."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.steps import ROOT

# Whichever is on PATH, in this order.
ENGINES: Final = ("podman", "docker")
_ROOM: Final = ROOT / "identity/credentials"
_REPOSITORY: Final = "idstack/credential-probe"
_PROJECT: Final = ROOT / "pyproject.toml"
# A host with a dot or a port, or a folder below it.
_REGISTRY: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]+)?(/[a-z0-9._-]+)*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def main(arguments: Sequence[str] = ()) -> int:
    """Build, push, and print the line that configures the image; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make probe-image", description=__doc__)
    parser.add_argument("registry")
    registry = parser.parse_args(arguments).registry
    if not _REGISTRY.fullmatch(registry):
        return _failed(
            f'REGISTRY: found "{registry}"; accepted: the host of a registry that you may push to, such as '
            "<name>.azurecr.io. Type `make probe-image REGISTRY=<name>.azurecr.io`"
        )
    engine = next(filter(None, map(shutil.which, ENGINES)), None)
    if engine is None:
        return _failed(
            f"there is neither {' nor '.join(ENGINES)} on PATH. Install one, or let Azure build the image: "
            f"`az acr build --registry {registry.partition('.')[0]} --image {_REPOSITORY}:{_version()} {_ROOM}`"
        )
    tag = f"{registry}/{_REPOSITORY}:{_version()}"
    name = Path(engine).name
    # Of the nodes' platform, whatever this machine has.
    build = ["build", "--platform", "linux/amd64", "--file", str(_ROOM / "Containerfile"), "--tag", tag, str(_ROOM)]
    for command in (build, ["push", tag]):
        if subprocess.run([engine, *command], check=False).returncode != 0:
            return _failed(
                f"`{name} {command[0]}` failed; the reason is printed above. "
                f"`az acr login --name {registry.partition('.')[0]}` signs in to a registry of Azure"
            )
    image = _by_digest(engine, tag)
    print(f"Pushed. Configure it:\n  .venv/bin/idstack pulumi --stack <stack> -- config set --path probe.image {image}")
    return 0


def _version() -> str:
    return str(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"])


def _by_digest(engine: str, tag: str) -> str:
    """The image by its digest in the registry; the tag, if the engine does not tell that."""
    inspect = [engine, "image", "inspect", "--format", "{{index .RepoDigests 0}}", tag]
    done = subprocess.run(inspect, check=False, capture_output=True, text=True)
    found = _DIGEST.search(done.stdout) if done.returncode == 0 else None
    return f"{tag.rpartition(':')[0]}@{found[0]}" if found else tag


def _failed(reason: str) -> int:
    print(f"probe-image: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
