"""What stands for three images on the local kubelet: the operator's, the one in which it runs stacks, and that of Azure
Workload Identity's webhook.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.harness import PROJECT, LocalStack
from tests.rooted import UNSHARED

# Each program runs in a root directory of its own, a tmpfs as a container runtime makes it. The pod's tree itself is
# there, too, for the local kubelet has put its path before those in arguments.
_SCRIPT: Final = """#!/bin/sh -e
{before}exec {unshared} '
  tree=$PROBE_MOUNT_ROOT root={roots}/$$
  mkdir -p $root && mount -t tmpfs tmpfs $root
{layout}  mkdir -p $root$tree && mount --rbind $tree $root$tree
{files}  exec chroot $root {program}
' "$0" "$@"
"""
# The Containerfile's lines of COPY, and the environment that it makes.
_COPIED: Final = (
    *("Pulumi.yaml", "__main__.py", "pyproject.toml", "requirements.txt", ".venv"),
    *("tools", "components", "identity", "ops", "plugin", "policies", "provider"),
)
_AT_ITS_ADDRESS, _MACHINE, _TINI = (
    Path(__file__).with_name("images").joinpath(f"{name}.sh").read_text(encoding="utf-8")
    for name in ("address", "machine", "tini")
)
_BIND: Final = "  mkdir -p $root{to} && mount --rbind {of} $root{to}\n"
_FILE: Final = "  touch $root{to} && mount --bind {of} $root{to}\n"
_READ_ONLY: Final = "  mount -o remount,ro $root\n"
_THERE: Final = """sh -ec "cd $PWD && exec \\"\\$@\\"" sh {}"""


def write_images(folder: Path, release: Path, stack: LocalStack, variables: Mapping[str, str]) -> None:
    """Write the programs of the images into `folder`; the workspace's engine has `variables` in addition.

    Its provider plugins are those of the local stack.
    """
    image = folder / "image"
    _write(image / "tini", _TINI)
    files = {"/manager": release / "manager", "/agent": release / "agent", "/tini": image / "tini"}
    kept = "".join(_BIND.format(of=path, to=path) for path in (stack.root.parent, PROJECT))
    _write_program(
        folder / "pulumi-kubernetes-operator",
        _THERE.format('/tini -- "$@"'),
        before=f"{_AT_ITS_ADDRESS}export PROGRAM_FS_ADDR=$address:9090\n",
        layout=_MACHINE + kept,
        files="".join(_FILE.format(of=of, to=to) for to, of in files.items()) + _READ_ONLY,
    )
    _write_program(
        folder / "manager",
        _THERE.format('/manager "$@"'),
        before=f'{_AT_ITS_ADDRESS}set -- "$@" --health-addr="$address:9440" --metrics-addr="$address:8095"\n',
        layout=_MACHINE,
        files=_FILE.format(of=release / "webhook", to="/manager") + _READ_ONLY,
    )
    _write_workspace(image, stack, variables)
    binds = {"/opt/idstack": image / "idstack", "/opt/pulumi/plugins": stack.state / "pulumi/home/plugins"}
    workspace = {
        "layout": _MACHINE + kept,
        "files": "".join(_BIND.format(of=of, to=to) for to, of in binds.items()) + _READ_ONLY,
    }
    home = f"export HOME=/share/home PULUMI_HOME=/share/home PATH={image / 'bin'}:$PATH\n"
    for name, program, own in (
        ("prepare", "/opt/idstack/ops/fleet/workspace/prepare", ""),
        ("tini", '/share/tini "$@"', 'set -- "$@" --host "$address"\n'),
    ):
        _write_program(folder / name, _THERE.format(program), before=f"{_AT_ITS_ADDRESS}{home}{own}", **workspace)


def _write_workspace(image: Path, stack: LocalStack, variables: Mapping[str, str]) -> None:
    """The project as links, the image's `pulumi`, and an engine that knows of the local cloud."""
    # Resolved: a pod does not see a folder of links below /tmp.
    engine = Path(json.loads((PROJECT / ".tools/engine.json").read_text(encoding="utf-8"))["bin"]).resolve()
    exported = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    clock = image / "clock"
    _write(
        image / "engine/pulumi",
        f'#!/bin/sh\n[ ! -e {clock} ] || export IDSTACK_CLOCK="$(cat {clock})"\n'
        f'export {exported}\nexec {engine / "pulumi"} "$@"\n',
    )
    write_project(image / "idstack", image / "engine")
    (image / "bin").mkdir()
    (image / "bin/pulumi").symlink_to(PROJECT / "ops/fleet/workspace/pulumi")


def write_project(folder: Path, engine: Path) -> None:
    """Write the project as links, with the engine in the folder `engine`."""
    folder.mkdir()
    for name in _COPIED:
        (folder / name).symlink_to(PROJECT / name)
    _write(folder / ".tools/engine.json", json.dumps({"bin": str(engine)}))


def _write_program(file: Path, program: str, *, before: str, layout: str, files: str) -> None:
    """Write the command `file`, which runs `program`, words of a shell, in a root of its own.

    `before`, `layout` and `files` are lines of the shell, the first outside of the root. The others know `$root` and
    `$tree`, and have no single quotes; `files` come last.
    """
    roots = file.parent / ".roots"
    roots.mkdir(parents=True, exist_ok=True)
    parts = {"before": before, "layout": layout, "files": files, "program": program}
    _write(file, _SCRIPT.format(unshared=" ".join(UNSHARED), roots=roots, **parts))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o700)
