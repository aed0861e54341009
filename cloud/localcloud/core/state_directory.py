"""Where one local cloud keeps its files: the state directory, and a directory on tmpfs for what holds private keys."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from localcloud.core.files import opened, write_if_changed
from localcloud.core.store import Store, seal_key

DEFAULT = Path(".localcloud")
_TMPFS = Path("/dev/shm")  # noqa: S108  # a directory of our own is created in it, 0700
_PREFIX = "localcloud-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
# In a directory on tmpfs: the state directory whose `run` leads to it.
_OWNER = "owner"


@dataclass(frozen=True)
class StateDirectory:
    """The files below `root`, an absolute path. Nothing is created before `create`."""

    root: Path

    @property
    def store_file(self) -> Path:
        """The SQLite file with all documents."""
        return self.root / "state.sqlite"

    @property
    def ca_file(self) -> Path:
        """The CA that clients trust, PEM."""
        return self.root / "ca.pem"

    @property
    def server_file(self) -> Path:
        """The servers' key and certificate, PEM, 0600."""
        return self.root / "server.pem"

    @property
    def environment_file(self) -> Path:
        """The record of the endpoints, `localcloud.core.clouds.LocalEnvironment` as JSON."""
        return self.root / "environment.json"

    @property
    def held_faults_file(self) -> Path:
        """What a test holds while the daemon runs, see `localcloud.azure.shared.held`; usually not there."""
        return self.root / "held-faults.json"

    @property
    def requests_file(self) -> Path:
        """What clients asked the services of Azure, see `localcloud.core.request_log`."""
        return self.root / "requests.jsonl"

    @property
    def pids(self) -> Path:
        """The running processes, see `localcloud.core.processes`."""
        return self.root / "pids"

    @property
    def run(self) -> Path:
        """A link to a directory on tmpfs; its content is lost with a reboot and created again."""
        return self.root / "run"

    @property
    def mounts(self) -> Path:
        """The pods' volumes."""
        return self.run / "mounts"

    @property
    def msi(self) -> Path:
        """Issued credential documents of managed identities."""
        return self.run / "msi"

    @property
    def kubeconfig(self) -> Path:
        """How the deployer reaches the Kubernetes API."""
        return self.run / "kubeconfig"

    @property
    def control_plane(self) -> Path:
        """Keys, tokens and sockets of kube-apiserver and what belongs to it."""
        return self.run / "control-plane"

    @property
    def administrator_kubeconfig(self) -> Path:
        """How the administrator reaches the Kubernetes API."""
        return self.run / "administrator.kubeconfig"

    @property
    def kubelet_kubeconfig(self) -> Path:
        """How the kubelet reaches the Kubernetes API."""
        return self.run / "kubelet.kubeconfig"

    @property
    def controller_manager_kubeconfig(self) -> Path:
        """How kube-controller-manager reaches kube-apiserver."""
        return self.control_plane / "controller-manager.kubeconfig"

    @property
    def deployer_file(self) -> Path:
        """The deployer's key and certificate, PEM, 0600."""
        return self.run / "deployer.pem"

    @property
    def owner_file(self) -> Path:
        """The owner's credential; created at the first sign-in as the owner."""
        return self.run / "owner.pem"

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
