"""The kustomize tree of a fleet: its files, and how a directory differs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any, Final

from identity.settings.schema.problems import NAMESPACE as PROJECT
from identity.yaml_text import dump
from ops.fleet.reading import OperatorSettings
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, writing

HEADER: Final = "# Written by `idstack fleet render`; change the fleet file instead.\n"
_CONTAINERFILE: Final = ROOT / "ops/fleet/workspace/Containerfile"
_BASE: Final = ROOT / "ops/fleet/base.yaml"


def tree(fleet: Sequence[FleetEnvironment]) -> dict[PurePosixPath, str]:
    """Text of every file by its path in the tree; raises CommandError if no environment has an `operator`."""
    rendered = [environment for environment in fleet if environment.operator is not None]
    if not rendered:
        raise CommandError(
            "no environment of the fleet file has `operator`, which names the workspaces' image and identity "
            "(docs/guides/fleet.md)"
        )
    files = {
        PurePosixPath("workspace/Containerfile"): HEADER + _CONTAINERFILE.read_text(encoding="utf-8"),
        **_directory("base", {"fleet.yaml": _BASE.read_text(encoding="utf-8")}),
    }
    for environment in rendered:
        files |= _environment(environment)
    return files


def _environment(environment: FleetEnvironment) -> dict[PurePosixPath, str]:
    operator = environment.operator
    assert operator is not None, "only environments with an operator are rendered"
    files = {
        "identity.yaml": dump(*identity_objects(environment, operator)),
        "stacks.yaml": dump(*stack_objects(environment, operator)),
        **({"drift.yaml": dump(*drift_objects(environment, operator))} if operator.drift else {}),
    }
    return _directory(f"environments/{environment.name}", files, bases=["../../base"])


def _directory(path: str, files: Mapping[str, str], bases: Sequence[str] = ()) -> dict[PurePosixPath, str]:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        # In this order: the operator knows a stack's new generation before that of a stack that waits for it.
        "sortOptions": {"order": "fifo"},
        "resources": [*bases, *files],
    }
    texts = {"kustomization.yaml": dump(kustomization), **files}
    return {PurePosixPath(path, name): HEADER + text for name, text in texts.items()}


def differences(directory: Path, files: Mapping[PurePosixPath, str]) -> list[str]:
    """How a directory differs from the tree: a unified diff for each file. Ignores files that render never wrote."""
    diffs = []
    for path in sorted({*files, *_written_before(directory)}):
        before, after = _read_text(directory / path), files.get(path)
        if before != after:
            (old, old_lines), (new, new_lines) = (
                ("/dev/null", []) if text is None else (str(path), text.splitlines(keepends=True))
                for text in (before, after)
            )
            diffs.append("".join(unified_diff(old_lines, new_lines, old, new)))
    return diffs


def write(directory: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the tree into the directory; files that render never wrote stay. Raises CommandError."""
    with writing("the tree"):
        for path in _written_before(directory) - files.keys():
            (directory / path).unlink()
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _written_before(directory: Path) -> set[PurePosixPath]:
    return {
        PurePosixPath(path.relative_to(directory).as_posix())
        for top in ("base", "environments", "workspace")
        for path in (directory / top).rglob("*")
        if path.is_file() and (_read_text(path) or "").startswith(HEADER)
    }


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


# Of the fleet's objects, as `base.yaml` makes it.
NAMESPACE: Final = "idstack-fleet"
_DAY: Final = 24 * 60 * 60  # seconds
_WEEK: Final = 7 * _DAY
# Where the webhook of Azure Workload Identity mounts the pod's token, and the label by which it knows the pod.
_TOKEN: Final = "/var/run/secrets/azure/tokens/azure-identity-token"
_USES_IDENTITY: Final = "azure.workload.identity/use"
# Of the workspace's image (ops/fleet/workspace/Containerfile).
_PREPARE: Final = ("/opt/idstack/ops/fleet/workspace/prepare",)
# The agent's memory limit is the request (`AGENT_MEMLIMIT`); the engine, the program and its plugins need the limit
# for the minutes of a run (docs/explanation/benchmarks.md), and no request, because the pod goes when the run has
# succeeded.
_RESOURCES: Final[Mapping[str, Any]] = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
_CLOSED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def account_name(environment: str) -> str:
    return f"{PROJECT}-{environment}"


def stack_objects(environment: FleetEnvironment, operator: OperatorSettings) -> Iterator[dict[str, Any]]:
    """The Stack of each stack, in the order in which they are brought up."""
    previous: tuple[FleetStack, ...] = ()
    for wave in environment.waves:
        # The previous wave waits for every earlier one; the shared stack is named for the reader.
        shared = [environment.shared] if environment.shared and previous else []
        required = list(dict.fromkeys(stack.name for stack in (*shared, *previous)))
        for stack in wave.stacks:
            yield _stack_object(stack, stack.name, environment, operator, _brought_up(stack, required))
        previous = wave.stacks


def drift_objects(environment: FleetEnvironment, operator: OperatorSettings) -> Iterator[dict[str, Any]]:
    """For each stack a second Stack that only previews: it fails if Azure is not as the state says.

    Renewals are held, so that a certificate that falls due is no drift.
    """
    for stack in environment.stacks:
        yield _stack_object(stack, f"{stack.name}-drift", environment, operator, _previewed(stack))


def _brought_up(stack: FleetStack, required: list[str]) -> dict[str, Any]:
    return {
        "config": stack.configuration,
        **({"prerequisites": [{"name": name} for name in required]} if required else {}),
        # Each day `up` renews what is due. It changes nothing else: program and configuration are in this object.
        "continueResyncOnCommitMatch": True,
        "resyncFrequencySeconds": _DAY,
    }


def _previewed(stack: FleetStack) -> dict[str, Any]:
    credentials = {**stack.config.get("credentials", {}), "renewal": "hold"}
    return {
        "config": {**stack.configuration, f"{PROJECT}:credentials": credentials},
        "prerequisites": [{"name": stack.name}],
        "continueResyncOnCommitMatch": True,
        "resyncFrequencySeconds": _WEEK,
        "refresh": True,
        "preview": True,
        "useLocalStackOnly": True,
        "updateTemplate": {"spec": {"expectNoChanges": True}},
    }


def _stack_object(
    stack: FleetStack, name: str, environment: FleetEnvironment, operator: OperatorSettings, run: Mapping[str, Any]
) -> dict[str, Any]:
    """The object as the operator writes it back: its types drop what is false or empty, and give a container resources.

    Otherwise the next `kubectl apply` would make a new generation, which runs every stack again.
    """
    return {
        "apiVersion": "pulumi.com/v1",
        "kind": "Stack",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"environment": environment.name}},
        "spec": {
            "stack": stack.name,
            "backend": environment.backend,
            "secretsProvider": stack.secrets_provider,
            "serviceAccountName": account_name(environment.name),
            "envRefs": {
                variable: {"type": "Literal", "literal": {"value": value}}
                for variable, value in _variables(stack, operator).items()
            },
            # A cluster that leaves the file keeps its resources (`destroyOnFinalize` is false unless it is given):
            # `idstack down` takes them away.
            **run,
            "workspaceReclaimPolicy": "Delete",
            "workspaceTemplate": {"spec": _workspace(operator)},
        },
    }


def _variables(stack: FleetStack, operator: OperatorSettings) -> dict[str, str]:
    """Variables that let plugins and program (ARM_*), state and secrets provider (AZURE_*) sign in as the pod."""
    return {
        "ARM_USE_OIDC": "true",
        "ARM_OIDC_TOKEN_FILE_PATH": _TOKEN,
        "ARM_CLIENT_ID": operator.client_id,
        "ARM_TENANT_ID": stack.settings.tenant_id,
        "ARM_SUBSCRIPTION_ID": stack.settings.subscription_id,
        "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
    }


def _workspace(operator: OperatorSettings) -> dict[str, Any]:
    share = {"name": "share", "mountPath": "/share"}
    prepare = {
        "name": "program",
        "image": operator.image,
        "command": list(_PREPARE),
        "resources": dict(_RESOURCES),
        "securityContext": dict(_CLOSED),
        "volumeMounts": [share],
    }
    pulumi = {
        "name": "pulumi",
        "resources": {},
        "securityContext": dict(_CLOSED),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - of the pod
    }
    return {
        "image": operator.image,
        "securityProfile": "restricted",
        "resources": dict(_RESOURCES),
        "podTemplate": {
            "metadata": {"labels": {_USES_IDENTITY: "true"}},
            "spec": {"initContainers": [prepare], "containers": [pulumi], "volumes": [{"name": "tmp", "emptyDir": {}}]},
        },
    }


def identity_objects(environment: FleetEnvironment, operator: OperatorSettings) -> Iterator[dict[str, Any]]:
    """The identity of the environment's workspaces: a ServiceAccount that Azure trusts, with one right in Kubernetes.

    The agent asks the API server who calls it and whether that caller may (`agent/pkg/server/auth.go`).
    """
    name = account_name(environment.name)
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {
                "azure.workload.identity/client-id": operator.client_id,
                "azure.workload.identity/tenant-id": environment.stacks[0].settings.tenant_id,
            },
        },
    }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{NAMESPACE}:{name}:system:auth-delegator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }
