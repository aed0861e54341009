"""Whether each pod gets the identity's credential: class, driver's mount, volume, and the document that it loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import yaml

from identity import yaml_text
from identity.catalogue_rows import Mount
from identity.credentials import rfc3339
from identity.credentials.schedule import LONGEST_POLL
from identity.naming import parse_arm_id
from identity.secrets_store import poll_interval, rotation_command, rotation_fault
from identity.symptoms import Family, find
from ops.doctor.checks.check import Fault, Stage, fault, of_cluster_side, of_identity, of_stack, of_symptom, renewal
from ops.stack.environment import is_local
from ops.world.expected import Identity
from ops.world.seen import NotReadError, Part, SeenControlPlane, SeenPod, SeenReport, StackWorld, Unread, entry, known

# The begin of `identity.credentials.document.InvalidCredentialError`: the file exists, and its content is refused.
_REFUSED_DOCUMENT: Final = "credential document:"
_START_KUBELET: Final = "`.venv/bin/idstack local start`, if the kubelet has ended; its log is .localcloud/kubelet.log"


def _mounting_pods(world: StackWorld, identity: Identity) -> list[SeenPod]:
    """Every pod with a volume of the identity's class, without those of other identities alone.

    A user's own workloads may mount any class. Raises NotReadError.
    """
    own = {mount.deployment for mount in identity.mounts}
    others = {
        mount.deployment
        for other in known(world.state).identities
        if other.cluster == identity.cluster
        for mount in other.mounts
    } - own
    return [
        pod
        for pod in known(entry(world.control_planes, identity.cluster).pods)
        if identity.secret_provider_class in pod.classes.values() and pod.deployment not in others
    ]


def _youngest_pods(pods: Iterable[SeenPod], mount: Mount) -> list[SeenPod]:
    """The pod of a mount's Deployment, if there is one: during a rollout the youngest of two."""
    own = [pod for pod in pods if pod.deployment == mount.deployment]
    return sorted(own, key=lambda pod: pod.created)[-1:]


def reports_of(world: StackWorld, identity: Identity) -> Iterator[tuple[Mount, SeenPod, SeenReport]]:
    """The report of each probe that is not ready, and of each ready one whose report was read.

    A ready probe has signed in and made its call, so that its report may be unread. Raises NotReadError for any other
    probe without a report, and for HyperShift's own pods, which have none.
    """
    if known(world.state).cluster_side == "hypershift":
        raise NotReadError("the pods are HyperShift's, which report no sign-in: see their logs and the conditions")
    plane = entry(world.control_planes, identity.cluster)
    for mount in identity.mounts:
        for pod in _youngest_pods(known(plane.pods), mount):
            if not pod.is_ready or isinstance(plane.reports.get(pod.name), SeenReport):
                yield mount, pod, entry(plane.reports, pod.name)


def _newest_warning(plane: SeenControlPlane, pod: str, reason: str) -> str:
    """The newest message of this reason about a pod, in one line; empty for none, and if the events were not read."""
    warnings = () if isinstance(plane.warnings, Unread) else plane.warnings
    own = [warning for warning in warnings if (warning.pod, warning.reason) == (pod, reason)]
    return " ".join(max(own, key=lambda warning: warning.last).message.split()) if own else ""


@of_identity(Stage.CLASS, Part.CONTROL_PLANES)
def class_(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the SecretProviderClass exists, and names the identity's secret and the key-vault-user."""
    state = known(world.state)
    plane, name = entry(world.control_planes, identity.cluster), identity.secret_provider_class
    classes = known(plane.classes)
    provider_class = classes.get(name)
    fix = world.repair
    if state.cluster_side == "hypershift":
        fix = f"HyperShift writes it from the HostedCluster: compare that with {world.command('export', 'hypershift')}"
        if provider_class is None and (not classes or plane.hosted_cluster is None):
            lacking = f"{name}: HyperShift has not created it" if classes else "at all: HyperShift has not created them"
            raise NotReadError(f"{identity.namespace} has no SecretProviderClass {lacking} yet")
    if provider_class is None:
        yield Fault(evidence=f"there is no SecretProviderClass {name} in {identity.namespace}", fix=fix)
        return
    expected = {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": state.key_vault_user,
        "keyvaultName": state.vault_name,
        "tenantId": state.tenant_id,
    }
    parameters, provider = provider_class.get("parameters") or {}, provider_class.get("provider") or ""
    differences = _differences(parameters, expected)
    if provider != "azure":
        differences.append(f"its provider is {provider!r}, not 'azure'")
    differences += _in_objects(parameters.get("objects", ""), identity)
    if differences:
        yield Fault(evidence=f"of {name} in {identity.namespace}, {'; '.join(differences)}", fix=fix)


def _in_objects(text: str, identity: Identity) -> list[str]:
    try:
        objects = [yaml_text.load(text_) for text_ in yaml_text.load(text)["array"]]
    except (yaml.YAMLError, TypeError, KeyError):
        return ["`objects` is not what the driver reads: YAML with a list `array` of YAML texts"]
    of_secret: Any = next((item for item in objects if _object_name(item) == identity.secret), None)
    if of_secret is None:
        return [f"objectName is {', '.join(map(repr, map(_object_name, objects)))}, not {identity.secret!r}"]
    expected = {"objectEncoding": identity.object_encoding, "objectType": "secret"}
    return _differences(of_secret, expected)


def _differences(actual: Mapping[str, Any], expected: Mapping[str, str]) -> list[str]:
    return [
        f"{key} is {actual.get(key)!r}, not {value!r}" for key, value in expected.items() if actual.get(key) != value
    ]


def _object_name(item: object) -> object:
    return item.get("objectName") if isinstance(item, Mapping) else item


@of_stack(Stage.MOUNT, Part.ADD_ON, Part.STATE)
def secret_rotation(world: StackWorld) -> Iterator[Fault]:
    """Whether the secrets-store add-on of AKS updates a renewed certificate in the pods, and soon enough."""
    state, add_on = known(world.state), known(world.add_on)
    if state.management_cluster is None or add_on is None:
        return
    if (fault := rotation_fault(add_on)) is not None:
        cluster = parse_arm_id(state.management_cluster)
        command = rotation_command(cluster.resource_group, cluster.name)
        yield Fault(evidence=f"the secrets-store add-on of {cluster.name}: {fault}", fix=f"`{command}`")


# Added to the driver's interval, which is a minimum: kubelet calls it about once a minute, and the vault may be slow.
_SLACK: Final = timedelta(minutes=8)


@of_identity(Stage.MOUNT, Part.CONTROL_PLANES, Part.SECRETS, Part.ADD_ON)
def mount(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the CSI driver has mounted the vault's version of the secret in every pod with its volume."""
    plane = entry(world.control_planes, identity.cluster)
    pods = _mounting_pods(world, identity)
    if not pods:
        raise NotReadError(f"no pod in {identity.namespace} has a volume of {identity.secret_provider_class}")
    mounts = {
        mounted.pod: mounted
        for mounted in known(plane.mounts)
        if mounted.secret_provider_class == identity.secret_provider_class
    }
    for pod in pods:
        mount = mounts.get(pod.name)
        if mount is None or not mount.is_mounted:
            reason = _last_warning(plane, pod.name, "FailedMount")
            yield fault(world, "not mounted", pod=pod.name, reason=reason, fix=_fix(world, identity, reason))
            continue
        current = entry(world.secrets, identity.secret)
        version = mount.versions.get(f"secret/{identity.secret}")
        if current is None or version == current.version or world.now - current.created < _polled_within(world):
            continue
        reason = _last_warning(plane, pod.name, "MountRotationFailed")
        fix, of = _fix(world, identity, reason), {"pod": pod.name, "version": version, "reason": reason}
        yield fault(world, "old version", current=current.version, since=current.created, fix=fix, **of)


def _polled_within(world: StackWorld) -> timedelta:
    """The time within which pods get a new version; with the longest interval if the driver's is not known."""
    add_on, interval = world.add_on, LONGEST_POLL
    if add_on is not None and not isinstance(add_on, Unread) and add_on.get("enabled"):
        with suppress(ValueError):
            interval = poll_interval(add_on.get("config"))
    return interval + _SLACK


def _last_warning(plane: SeenControlPlane, pod: str, reason: str) -> str:
    if isinstance(plane.warnings, Unread):
        return f"its events were not read ({plane.warnings.why})"
    return _newest_warning(plane, pod, reason) or "no event says why; events are kept for an hour"


def _fix(world: StackWorld, identity: Identity, reason: str) -> str:
    symptom = find(reason, Family.VAULT, Family.MOUNT)
    if symptom is None and is_local(world.stack):
        return _START_KUBELET
    if symptom is None:
        return (
            "read the driver's log: `kubectl logs --namespace kube-system --container secrets-store "
            "--selector app=secrets-store-csi-driver`"
        )
    return of_symptom(world, identity, symptom)


@of_identity(Stage.VOLUME, Part.CONTROL_PLANES)
def volume(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether each pod of the identity has the volume, at the path that its container uses."""
    pods, is_ours = (
        known(entry(world.control_planes, identity.cluster).pods),
        known(world.state).cluster_side == "stack",
    )
    if not pods and not is_ours:
        raise NotReadError(f"{identity.namespace} has no pod at all: HyperShift has not created the control plane yet")
    fix = of_cluster_side(world, "the pod", world.repair)
    for mount in identity.mounts:
        own = _youngest_pods(pods, mount)
        if not own:
            of = {"deployment": mount.deployment, "namespace": identity.namespace, "fix": fix}
            yield fault(world, "no pod of ours" if is_ours else "no pod", **of)
        for pod in own:
            yield from (Fault(evidence=f"{pod.name}: {reason}", fix=fix) for reason in _wrong(identity, mount, pod))


def _wrong(identity: Identity, mount: Mount, pod: SeenPod) -> Iterator[str]:
    volumes = [volume for volume, name in pod.classes.items() if name == identity.secret_provider_class]
    container = pod.containers.get(mount.container)
    if not volumes:
        names = f"; it has {', '.join(pod.classes.values())}" if pod.classes else ""
        yield f"no volume of it names the class {identity.secret_provider_class}{names}"
    elif container is None:
        yield f"it has no container {mount.container}"
    else:
        paths = [path for path, volume in container.mounts.items() if volume in volumes]
        if mount.path not in paths:
            mounted_at = ", ".join(paths) or "nowhere"
            yield f"{mount.container} mounts {volumes[0]} at {mounted_at}; it expects the file in {mount.path}"
        file, variable = identity.file_of(mount), mount.credential_env
        if variable is not None and (actual := container.variables.get(variable)) != file:
            yield f"{variable} of {mount.container} is {actual!r}, not {file!r}"


# The reasons of a container that is about to run.
_PASSING: Final = ("ContainerCreating", "PodInitializing")


@of_identity(Stage.VOLUME, Part.CONTROL_PLANES, Part.REPORTS)
def pod(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the pods of the identity run, once the driver has mounted their credential."""
    plane = entry(world.control_planes, identity.cluster)
    mounted = {mount.pod for mount in known(plane.mounts) if mount.is_mounted}
    for pod in _mounting_pods(world, identity):
        # On this machine pods end with the kubelet, and nobody withdraws that they are ready.
        if pod.is_ready and is_local(world.stack) and isinstance(plane.reports.get(pod.name), Unread):
            yield Fault(evidence="its pods are ready, but their probes do not answer", fix=_START_KUBELET)
        if pod.is_ready or pod.name not in mounted:
            continue
        if reason := _volume_of_another_kind(plane, pod):
            other_mounts = "its other volumes"
            fix = of_cluster_side(world, other_mounts, f"create {other_mounts}: {world.repair}")
        elif pod.waiting and not pod.waiting.startswith(_PASSING):
            reason = pod.waiting
            next_step = of_cluster_side(world, "the pod", "correct image or container")
            fix = f"`kubectl --namespace {identity.namespace} describe pod {pod.name}`, then {next_step}"
        else:
            continue
        yield Fault(evidence=f"{pod.name} does not run: {reason}", fix=fix)


def _volume_of_another_kind(plane: SeenControlPlane, pod: SeenPod) -> str:
    """The kubelet's message about another volume of a waiting pod; empty if there is none."""
    if pod.phase != "Pending":
        return ""
    last = _newest_warning(plane, pod.name, "FailedMount")
    return "" if any(f'"{volume}"' in last for volume in pod.classes) else last


@of_identity(Stage.VOLUME, Part.REPORTS, Part.CONTROL_PLANES)
def path(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the consumer's variable or document names an existing file."""
    for mount, pod, report in reports_of(world, identity):
        error, expected = report.sign_in.error, identity.file_of(mount)
        actual = report.file
        where = f"the Secret {mount.config.secret}" if mount.config else f"the Deployment {mount.deployment}"
        of = {"pod": pod.name, "where": where, "namespace": identity.namespace}
        if actual is not None and actual != expected:
            yield fault(world, "another file", actual=actual, expected=expected, **of)
        elif error and not report.expires and not error.startswith(_REFUSED_DOCUMENT):
            yield fault(world, "no file", error=" ".join(error.split()), **of)


# The driver polls, then the loader polls its file, as in `mount`.
_LOAD_TIMEOUT: Final = timedelta(minutes=10)


@of_identity(Stage.DOCUMENT, Part.REPORTS, Part.CONTROL_PLANES, Part.SECRETS)
def document(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the loader accepts the mounted document, and it is the identity's own; its content is never read."""
    for _, pod, report in reports_of(world, identity):
        error, of = report.sign_in.error or "", {"pod": pod.name, "renewal": renewal(world, identity)}
        if error.startswith(_REFUSED_DOCUMENT):
            yield fault(world, "refused document", secret=identity.secret, error=" ".join(error.split()), **of)
            continue
        client, expires, thumbprint = report.client_id, report.expires, report.thumbprint
        secret = entry(world.secrets, identity.secret)
        if client and client.lower() != identity.client_id.lower():
            yield fault(world, "document of another client", actual=client, expected=identity.client_id, **of)
        elif expires and expires <= world.now:
            yield fault(world, "expired document", date=rfc3339.render(expires), **of)
        elif (
            thumbprint
            and identity.thumbprint not in (None, thumbprint)
            and secret is not None
            and world.now - secret.created >= _LOAD_TIMEOUT
        ):
            yield fault(world, "old document", actual=thumbprint, expected=identity.thumbprint, **of)
