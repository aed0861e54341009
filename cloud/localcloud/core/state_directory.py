"""Where one local cloud keeps its files: the state directory, and a directory on tmpfs for what holds private keys."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from localcloud.core.files import opened, write_if_changed
from localcloud.core.store import Store, seal_key

DEFAULT = Path(".localcloud")
_TMPFS = Path("/dev/shm")  # noqa: S108  # a directory of our own is created in it, 0700
_PREFIX = "localcloud-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
# In a directory on tmpfs: the state directory whose `run` leads to it.
_OWNER = "owner"


class StateDirectory:
    """The files below `root`, an absolute path. Nothing is created before `create`."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        # The SQLite file with all documents.
        self.store_file: Final = root / "state.sqlite"
        # The CA that clients trust, and the servers' key and certificate (0600), PEM.
        self.ca_file: Final = root / "ca.pem"
        self.server_file: Final = root / "server.pem"
        # The record of the endpoints, `localcloud.core.clouds.LocalEnvironment` as JSON.
        self.environment_file: Final = root / "environment.json"
        # What a test holds while the daemon runs, see `localcloud.azure.shared.held`; usually not there.
        self.held_faults_file: Final = root / "held-faults.json"
        # What clients asked the services of Azure, see `localcloud.core.request_log`.
        self.requests_file: Final = root / "requests.jsonl"
        # The running processes, see `localcloud.core.processes`.
        self.pids: Final = root / "pids"
        # A link to a directory on tmpfs; its content is lost with a reboot and created again.
        self.run: Final = root / "run"
        # The pods' volumes.
        self.mounts: Final = self.run / "mounts"
        # Issued credential documents of managed identities.
        self.msi: Final = self.run / "msi"
        # Keys, tokens and sockets of kube-apiserver and what belongs to it.
        self.control_plane: Final = self.run / "control-plane"
        # How each user reaches the Kubernetes API: the deployer, the administrator, the kubelet, the controllers.
        self.kubeconfig: Final = self.run / "kubeconfig"
        self.administrator_kubeconfig: Final = self.run / "administrator.kubeconfig"
        self.kubelet_kubeconfig: Final = self.run / "kubelet.kubeconfig"
        # Key and certificate with which kube-apiserver comes to the kubelet.
        self.kubelet_client_file: Final = self.control_plane / "kubelet-client.pem"
        self.controller_manager_kubeconfig: Final = self.control_plane / "controller-manager.kubeconfig"
        # The deployer's key and certificate (PEM, 0600), and the owner's, created at the first sign-in as the owner.
        self.deployer_file: Final = self.run / "deployer.pem"
        self.owner_file: Final = self.run / "owner.pem"

    def pods(self, group: str) -> Path:
        """The paths of the objects that `pods` applied for a group, JSON; not there for a group that has none."""
        return self.root / "pods" / f"{group}.json"

    def log(self, name: str) -> Path:
        """The output of the process of this name (`daemon`, `kubelet`, `kube-apiserver`)."""
        return self.root / f"{name}.log"

    def create(self) -> None:
        """Make what is missing; raises PermissionError when the link's directory is not ours alone."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_left_over()
        self._create_run()
        if self.run.is_symlink():
            write_if_changed(self.run / _OWNER, str(self.root))
        for directory in (self.mounts, self.msi, self.control_plane, self.pids):
            directory.mkdir(mode=0o700, exist_ok=True)

    def open_store(self) -> Store:
        """Open the store; call `create` first. Raises `StoreError`."""
        return Store(self.store_file, seal_key(self.root / "seal.key"))

    def exists(self) -> bool:
        """Whether this is the state directory of a local cloud."""
        return self.store_file.exists()

    def remove(self) -> None:
        """Delete both directories; raises ValueError when `root` is not a state directory."""
        if not self.exists():
            raise ValueError(f"{self.root} is not the state directory of a local cloud: nothing was removed")
        if self.run.is_symlink():
            shutil.rmtree(self.run.readlink(), ignore_errors=True)
        shutil.rmtree(self.root)

    @contextmanager
    def lock(self, purpose: str) -> Iterator[None]:
        """Only one process at a time runs the block of a `purpose`."""
        with (self.root / f"{purpose}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the directory on tmpfs, whatever becomes of the link to it, while the block runs."""
        with opened(os.open(self.run, _DIRECTORY)) as directory:
            fcntl.flock(directory, fcntl.LOCK_SH)
            yield

    def _create_run(self) -> None:
        if self.run.is_dir():
            status = self.run.stat()
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) != 0o700:
                raise PermissionError(f"{self.run} must be a directory of this user with mode 0700; remove it")
            return
        self.run.unlink(missing_ok=True)  # a link whose target went with a reboot
        if os.access(_TMPFS, os.W_OK):
            self.run.symlink_to(tempfile.mkdtemp(prefix=_PREFIX, dir=_TMPFS))
        else:
            self.run.mkdir(mode=0o700)


def _remove_left_over() -> None:
    """Delete this user's directories on tmpfs whose state directory is gone, as one that was removed by hand.

    One that a daemon uses stays, also where its state directory cannot be seen from here (another container), and one
    that does not name its owner.
    """
    for directory in _TMPFS.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = directory.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            owner = Path((directory / _OWNER).read_text(encoding="utf-8"))
            if (owner / "run").resolve() == directory.resolve():
                continue
            with opened(os.open(directory, _DIRECTORY)) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
