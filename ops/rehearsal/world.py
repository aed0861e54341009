"""A throw-away local cloud with the stacks of a rehearsal on it, which is always removed afterwards."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from string import Template
from tempfile import mkdtemp
from types import FrameType
from typing import Any, Final

from identity import checkout
from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from identity.naming import ADDRESS_PREFIX, parse_arm_id, resource_group_id, resource_id
from identity.settings import HostedClusterSettings, Settings
from identity.yaml_text import dump, load
from ops.outputs.plan import RunLog, read
from ops.rehearsal.configuration import StackCopy
from ops.stack import local_cloud
from ops.stack.chosen_stack import file_of, stack_names
from ops.stack.engine import Engine
from ops.stack.environment import LOCAL_STACK, ROOT, STATE_DIRECTORY_VARIABLE, VENV, variables
from ops.stack.errors import CommandError, RunInterruptedError, message
from ops.stack.stack_document import document_in

# The pinned packages of program and plugin; the engine is the checkout's at both commits.
_PACKAGES: Final = "requirements.txt"


@dataclass(frozen=True)
class Tree:
    """The project in `directory`; `name` is the commit's short id, or `checkout`."""

    directory: Path
    name: str

    def configurations(self) -> dict[str, dict[str, Any]]:
        """The stacks' files by the stacks' names; raises CommandError as `document_in` does."""
        files = {stack: file_of(stack, self.directory) for stack in stack_names(self.directory)}
        return {stack: document_in(file, f"{file.name} at {self.name}") for stack, file in files.items()}


def at_commit(root: Path, commit: str, into: Path) -> Tree:
    """The project of the repository at `root` at a commit; packages that differ from the checkout's are installed.

    Only its files are unpacked, without a work tree: a killed run leaves nothing in the repository. Raises CommandError
    if git does not know the commit, or if it cannot be set up.
    """
    try:
        full = checkout.git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    except subprocess.CalledProcessError:
        raise CommandError(message("world.no-commit", root=root, commit=commit)) from None
    archive = into.with_suffix(".tar")
    checkout.git(root, "archive", "--format=tar", f"--output={archive}", full)
    into.mkdir()
    try:
        with tarfile.open(archive) as files:
            files.extractall(into, filter="data")
    except tarfile.FilterError as error:
        raise CommandError(f"commit {full[:12]} has a file that cannot be unpacked: {error}") from None
    archive.unlink()
    _install(root, full, into)
    return Tree(into, full[:12])


def as_it_is(root: Path, into: Path) -> Tree:
    """The files of the checkout that git tracks or does not ignore, with changes that are not committed."""
    into.mkdir()
    listed = checkout.git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
    # A file in the middle of a merge is listed once for each side.
    for name in dict.fromkeys(name for name in listed if name and not name.startswith((".venv", ".tools"))):
        source, copy = root / name, into / name
        if source.is_file() and not source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    (into / ".venv").symlink_to(VENV)
    return Tree(into, "checkout")


def _install(root: Path, commit: str, directory: Path) -> None:
    try:
        checkout.git(root, "diff", "--quiet", commit, "--", _PACKAGES)
    except subprocess.CalledProcessError:
        print(f"the packages of {commit[:12]} differ from this checkout's: installing them", file=sys.stderr)
        if subprocess.run([directory / "tools/setup"], cwd=directory, stdout=sys.stderr).returncode:
            raise CommandError(f"commit {commit[:12]} could not be set up; the reason is printed above") from None
    else:
        (directory / ".venv").symlink_to(VENV)


# Variables of the caller's own local cloud.
_FOREIGN: Final = ("LOCALCLOUD_CLUSTER", "LOCALCLOUD_PROVIDERS")
# What Azure keeps of deleted resources, such as the result of a resource group's deletion, and what the local cloud
# creates with its first token.
_KEPT: Final = frozenset(
    [
        "arm-deletion",
        "arm-role-assignment-name",
        "entra-deleted",
        "entra-signing-key",
        "keyvault-name",
        "keyvault-secret",
    ]
)
_RECOVERABLE: Final = "keyvault-deleted"
# They change by themselves.
_RESTLESS: Final = frozenset({"environment", "kubernetes-version"})
_EVENTS: Final = "core/events/"
_LOG: Final = "log"
_LAST_LINES: Final = 25


@dataclass(frozen=True)
class ThrowAwayCloud:
    """The local cloud in `directory`, which has all files of the rehearsal. Child processes print to `output`.

    `environ` is the caller's environment with the variables of this local cloud instead of the caller's own.
    """

    directory: Path
    output: int
    environ: Mapping[str, str]

    @property
    def documents(self) -> Path:
        """The directory of the managed identities' documents, which is on tmpfs."""
        return self.directory / "state/run/msi"

    def start(self, seed: Mapping[str, Any], copies: Sequence[StackCopy]) -> LocalEnvironment:
        """Start the local cloud with this seed, and issue the documents that the copies name."""
        file = self.directory / "seed.yaml"
        file.write_text(dump(seed), encoding="utf-8")
        local_cloud.do("start", "--seed", str(file), output=self.output, base=self.environ)
        record = local_cloud.record(self.environ)
        if record is None:
            raise CommandError("the local cloud of the rehearsal did not start")
        for path, identity in dict(pair for copy in copies for pair in copy.documents.items()).items():
            local_cloud.do("issue-msi", identity, "--output", path, output=self.output, base=self.environ)
        return record

    def contents(self) -> frozenset[tuple[str, str]]:
        """Kind and key of each object in the local cloud."""
        command = [sys.executable, "-m", "localcloud", "contents"]
        environment = variables(LOCAL_STACK, self.environ)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CommandError(f"the local cloud's contents cannot be read: {done.stderr.strip()}")
        entries = (json.loads(line) for line in done.stdout.splitlines())
        return frozenset((kind, key) for kind, key in entries if kind not in _RESTLESS and not key.startswith(_EVENTS))

    def engine(self, tree: Tree, copy: StackCopy) -> Engine:
        """The engine for a stack at one of the commits, whose configuration file is written."""
        (tree.directory / f"Pulumi.{copy.name}.yaml").write_text(dump(dict(copy.document)), encoding="utf-8")
        engine = Engine(copy.name, tree.directory, output=self.output, caller=self.environ)
        engine.prepare()
        return engine

    def up(self, tree: Tree, copy: StackCopy, word: str) -> tuple[Engine, RunLog, str | None]:
        """One `pulumi up` of the program in `tree`; returns its steps, and why it failed. An interruption is raised.

        `word` distinguishes its files from those of other runs of the stack.
        """
        engine = self.engine(tree, copy)
        events = self.directory / f"{word}-{copy.name}.events"
        failed = None
        try:
            engine.up(events=events)
        except RunInterruptedError:
            raise
        except CommandError as error:
            failed = str(error)
        lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
        return engine, read(lines, copy.stack), failed

    def last_lines(self) -> str:
        """The end of the log, for a run that failed without an error of its own."""
        log = self.directory / _LOG
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-_LAST_LINES:])


def left(before: frozenset[tuple[str, str]], after: frozenset[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The objects that were created or have disappeared since `before`; then those that Azure keeps recoverable."""
    new = after - before
    remaining = [f"{kind} {key}" for kind, key in sorted(new) if kind not in _KEPT and kind != _RECOVERABLE]
    missing = [f"{kind} {key}, which does not exist" for kind, key in sorted(before - after)]
    return [*remaining, *missing], [f"vault {key}, deleted softly" for kind, key in sorted(new) if kind == _RECOVERABLE]


@contextmanager
def throw_away(seed: int, caller: Mapping[str, str]) -> Iterator[ThrowAwayCloud]:
    """A local cloud with its own directory and variables; ends its processes and removes all of it.

    It does so also when this process is interrupted or terminated, and a second signal is ignored meanwhile.
    """
    directory = Path(mkdtemp(prefix="idstack-rehearsal-")).resolve()
    environ = {name: value for name, value in caller.items() if name not in _FOREIGN}
    environ |= {STATE_DIRECTORY_VARIABLE: str(directory / "state"), "LOCALCLOUD_FAULTS": json.dumps({"seed": seed})}
    handler = signal.signal(signal.SIGTERM, _terminated)
    try:
        with (directory / _LOG).open("a") as log:
            yield ThrowAwayCloud(directory, log.fileno(), environ)
    finally:
        ignored = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            local_cloud.run(["stop", "--remove"], output=subprocess.DEVNULL, base=environ)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            signal.signal(signal.SIGINT, ignored[signal.SIGINT])
            signal.signal(signal.SIGTERM, handler)


def _terminated(number: int, _: FrameType | None) -> None:
    name = signal.Signals(number).name
    raise RunInterruptedError(f"interrupted by {name}: the rehearsal has removed its local cloud", name)


# The roles of a pipeline (docs/guides/first-stack.md).
_DEPLOYER_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Secrets Officer")
_SCALE_SETS: Final = "Microsoft.Compute/virtualMachineScaleSets"
_READY: Final = {"provisioningState": "Succeeded"}
_PUBLIC: Final = {"zoneType": "Public"}
_STANDARD: Final = {"name": "Standard", "tier": "Regional"}
_SUBNET_LENGTH: Final = 24
_EGRESS: Final = Path(__file__).parent / "egress.yaml"
# The location of DNS zones.
_GLOBAL: Final = "global"

# Those of a seed file that `_Surroundings` fills.
_SECTIONS: Final = ("resourceGroups", "managedIdentities", "clusters", "vaults", "resources", "groups")

Document = dict[str, Any]


def seed_of(stacks: Iterable[Settings]) -> Document:
    """The seed for all these configurations together, of base and head; its keys are those of a seed file."""
    all_settings = list(stacks)
    surroundings = _Surroundings(all_settings[0].location)
    for settings in all_settings:
        surroundings.add(settings)
    return surroundings.seed()


class _Surroundings:
    """Collects resources by names in lower case, as Azure compares them: what base and head both name exists once."""

    def __init__(self, location: str) -> None:
        self._location = location
        # By section of the seed file and name.
        self._documents: dict[str, dict[str, Document]] = {section: {} for section in _SECTIONS}
        self._keys: dict[str, set[tuple[str, str]]] = {}
        self._subnets: dict[str, dict[str, Document]] = {}

    def seed(self) -> Document:
        for vnet_id, subnets in self._subnets.items():
            ranges: Iterator[IPv4Network] = IPv4Network(ADDRESS_PREFIX).subnets(new_prefix=_SUBNET_LENGTH)
            network = self._documents["resources"][vnet_id]
            network["properties"]["addressSpace"] = {"addressPrefixes": [ADDRESS_PREFIX]}
            for subnet_id, attached in subnets.items():
                self._resource(subnet_id, {"addressPrefix": str(next(ranges)), **attached, **_READY})
        for name, vault in self._documents["vaults"].items():
            vault["keys"] = [{"name": key, "version": version} for key, version in sorted(self._keys[name])]
        return {
            "tenantId": LOCAL_TENANT_ID,
            "subscriptionId": LOCAL_SUBSCRIPTION_ID,
            "location": self._location,
            "deployerRoles": list(_DEPLOYER_ROLES),
            **{section: list(documents.values()) for section, documents in self._documents.items()},
        }

    def _add(self, section: str, name: str, document: Document) -> Document:
        """Add a document unless the section has one of this name; returns the section's."""
        return self._documents[section].setdefault(name.lower(), document)

    def add(self, settings: Settings) -> None:
        self._group(settings.resource_group, settings.location)
        for subnet in settings.vault.allowed_subnet_ids if settings.vault else ():
            self._subnet(subnet, settings.location)
        self._management_cluster(settings)
        user = settings.key_vault_user
        if user.source == "existing" and user.client_id and user.object_id:
            ids = {"clientId": user.client_id.lower(), "objectId": user.object_id.lower(), "onNodes": True}
            self._identity(settings.resource_group, f"key-vault-user-{user.client_id[:8]}", ids)
            if not self._documents["clusters"]:
                self._add("clusters", "", {"name": "nodes", "resourceGroup": settings.resource_group})
        if user.name is not None:
            # Nodes with an identity that the stack will create: IMDS looks for it at each request.
            group = settings.resource_group
            identity = settings.identity_id(user.name)
            nodes = resource_id(LOCAL_SUBSCRIPTION_ID, group, _SCALE_SETS, f"nodes-{user.name}")
            assigned = {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}
            self._resource(nodes, _READY, location=self._location, identity=assigned)
        for cluster in settings.hosted_clusters:
            self._hosted_cluster(settings, cluster)

    def _management_cluster(self, settings: Settings) -> None:
        cluster = settings.management_cluster
        if cluster is None:
            return
        self._group(cluster.resource_group, settings.location)
        if cluster.create is None:
            seeded_cluster = {"name": cluster.name, "resourceGroup": cluster.resource_group}
            seeded = self._add("clusters", f"{cluster.resource_group}/{cluster.name}", seeded_cluster)
            if settings.block_instance_metadata:
                seeded["networkPolicy"] = "azure"
            return
        for group in cluster.create.admin_group_object_ids:
            administrators = {"displayName": f"administrators-{group[:8]}", "objectId": group.lower()}
            self._add("groups", group, {**administrators, "members": ["deployer"]})

    def _hosted_cluster(self, settings: Settings, cluster: HostedClusterSettings) -> None:
        exists, dns, location = cluster.infrastructure == "existing", cluster.dns, cluster.location
        self._group(cluster.dns_zone_resource_group, settings.location)
        if exists:
            self._infrastructure(cluster)
        if exists and dns is not None and dns.private_zone_id is not None:
            self._resource(dns.private_zone_id, _READY, location=_GLOBAL)
            link = f"{dns.private_zone_id}/virtualNetworkLinks/{cluster.names(settings.subscription_id).stem}"
            linked = {"virtualNetwork": {"id": cluster.vnet_id}, "registrationEnabled": False}
            self._resource(link, {**linked, "virtualNetworkLinkState": "Completed", **_READY}, location=_GLOBAL)
        for zone in (dns.public_zone_id if dns is not None else None, cluster.external_dns_zone_id):
            if zone is not None:
                self._resource(zone, _PUBLIC, location=_GLOBAL)
        for resource, sku in (
            (cluster.backup_storage_account_id, "Standard_LRS"),
            (cluster.container_registry_id, "Premium"),
        ):
            if resource is not None:
                self._resource(resource, _READY, location=location, sku={"name": sku})
        if (kms := cluster.kms) is not None:
            for vault, group in kms.vaults.items():
                self._group(group, settings.location)
                self._add("vaults", vault, {"name": vault, "resourceGroup": group})
            for key in filter(None, (kms.active_key, kms.backup_key)):
                self._keys.setdefault(key.key_vault_name.lower(), set()).add((key.key_name, key.key_version))
        link_service = cluster.private.private_link if cluster.private is not None else None
        if link_service is not None and link_service.nat_subnet_id is not None:
            self._subnet(link_service.nat_subnet_id, location)
        for identity in cluster.identities.values():
            if identity.enabled and identity.resource_id is not None:
                ids = {"clientId": identity.client_id.lower()} if identity.client_id else {}
                managed = parse_arm_id(identity.resource_id)
                self._identity(managed.resource_group, managed.name, ids)

    def _infrastructure(self, cluster: HostedClusterSettings) -> None:
        """Add group, network and egress as HyperShift's CLI creates them (`cmd/infra/azure/networking.go`)."""
        location, group, name = cluster.location, cluster.resource_group, cluster.infra_id
        self._group(group, location)
        self._resource(cluster.security_group_id, {"securityRules": [], **_READY}, location=location)
        attached = {"networkSecurityGroup": cluster.security_group_id}
        for key, resource in (("routeTable", cluster.route_table_id), ("natGateway", cluster.nat_gateway_id)):
            if resource is not None:
                self._resource(resource, _READY, location=location)
                attached[key] = resource
        self._subnet(cluster.subnet_id, location, **attached)
        egress = Template(_EGRESS.read_text(encoding="utf-8"))
        group_id = resource_group_id(LOCAL_SUBSCRIPTION_ID, group)
        for type_, properties in load(egress.substitute(name=name, group=group_id)).items():
            self._resource(f"{group_id}/providers/{type_}/{name}", properties, location=location, sku=_STANDARD)

    def _group(self, name: str, location: str) -> None:
        self._add("resourceGroups", name, {"name": name, "location": location})

    def _identity(self, group: str, name: str, ids: Mapping[str, Any]) -> None:
        self._group(group, self._location)
        self._add("managedIdentities", f"{group}/{name}", {"name": name, "resourceGroup": group}).update(ids)

    def _subnet(self, subnet_id: str, location: str, **attached: str) -> None:
        """Add a subnet and its network; `attached` has the ids of the resources that the subnet refers to."""
        vnet_id, _, _ = subnet_id.rpartition("/subnets/")
        self._resource(vnet_id, {"virtualNetworkPeerings": [], **_READY}, location=location)
        subnet = self._subnets.setdefault(vnet_id.lower(), {}).setdefault(subnet_id, {})
        subnet.update({key: {"id": arm_id} for key, arm_id in attached.items()})

    def _resource(self, full_id: str, properties: Mapping[str, Any], **others: Any) -> None:
        """Add a resource; `others` are further members of its document."""
        parsed, location = parse_arm_id(full_id), others.get("location", _GLOBAL)
        self._group(parsed.resource_group, self._location if location == _GLOBAL else location)
        document: Document = {
            "type": parsed.type,
            "name": "/".join(parsed.names),
            "resourceGroup": parsed.resource_group,
            "properties": dict(properties),
        }
        self._add("resources", full_id, {**document, **others})
