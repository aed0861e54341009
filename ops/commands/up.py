"""`idstack up`: the local cloud, the stack, its probes, and the table that shows whether every sign-in works."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final

import typer
from rich.console import Console

from identity.aks.probe_pod import probe_deployment, probe_labels, probe_pod, proof_argument
from identity.azure.errors import AccessError
from identity.catalogue import FEDERATED_AUDIENCE
from identity.clouds import LocalEnvironment
from identity.credentials.backoff import Backoff
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Settings
from identity.settings.scopes import proof_target
from ops.commands.local import start_local_cloud
from ops.commands.options import PoliciesOption, ProvidersOption, RunOptions, Screen, inspector, with_options
from ops.outputs.rows import Row, TokenProbe, TokenRow, has_probes, rows, token_probes, token_rows
from ops.outputs.tables import sign_ins, tokens
from ops.stack import existing, local_cloud, plugins
from ops.stack.engine import Engine
from ops.stack.environment import policy_pack
from ops.stack.errors import CommandError, message
from ops.stack.existing import ObstacleError
from ops.stack.settings import require_sound_configuration, settings_of
from ops.world.cluster_state import ProbeResult, local_probes
from ops.world.stacks import refuse_duplicates, refuse_moves

_TIMEOUT: Final = 180.0  # seconds; ten probes start in about ten on two cores
# Between two reads of the probes, in seconds.
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 1.0


@with_options
def up(
    context: typer.Context, *, run: RunOptions, providers: ProvidersOption = None, policies: PoliciesOption = False
) -> None:
    """Deploy a stack; start the cloud of a local one, and show its sign-ins. Other options go to `pulumi up`."""
    engine, screen = run.opened()
    require_sound_configuration(engine)
    plugins.choose(run.stack, providers)
    arguments = [*policy_pack(run.stack, wanted=policies), *context.args]
    environment = start_local_cloud(screen) if engine.is_local else None
    if environment is not None:
        screen.step("pulumi up")
    is_new = engine.prepare()
    try:
        refuse_moves(engine)
        refuse_duplicates(engine, engine.resources(), screen.console.print)
    except CommandError:
        if is_new:
            engine.remove()
        raise
    _up_naming_owners(engine, arguments)
    if environment is None:
        inspector(context).show_status(engine, screen)
        return
    outputs = engine.outputs()
    accounts, documents = deployments(settings_of(engine), outputs) if token_probes(outputs) else ([], [])
    local_cloud.play(engine.stack, documents, output=screen.output)
    if not accounts and not has_probes(outputs):
        screen.step("credentials: HyperShift's operators create the pods, so there are no probes")
        inspector(context).show_status(engine, screen)
        return
    screen.step("credential probes")

    def read() -> ProbeRows:
        results = local_probes(environment)
        return ProbeRows([row for row in rows(outputs, results) if row.probes], token_rows(accounts, results))

    signed = _wait_until_green(read, screen.console)
    if has_probes(outputs):
        _show_sign_ins(run.stack, signed, environment, screen)
    else:
        inspector(context).show_status(engine, screen)


def _up_naming_owners(engine: Engine, arguments: Sequence[str]) -> None:
    """Run `pulumi up`; its error says whether each conflicting resource may be adopted, and whose it is if not."""
    try:
        engine.up(arguments)
    except ObstacleError as stopped:
        # Azure's client takes a tenth of a second to import, which a run without a conflict does not need.
        from ops.world.adoption_guard import adoption_guard

        try:
            with adoption_guard(engine) as guard:
                obstacles = {
                    obstacle: guard.objection(obstacle.type, obstacle.id, obstacle.principal)
                    for obstacle in stopped.obstacles
                }
                if any(obstacle.is_deleted_secret for obstacle in stopped.obstacles):
                    # The program ends at the first one, and the plan has the rest.
                    steps = [step for step in engine.proposed()["steps"] if step["op"] in {"create", "update"}]
                    kept = guard.deleted_secrets(step["newState"] for step in steps)
                    obstacles |= {existing.of(resource, id, is_deleted=True): why for resource, id, why in kept}
        except (AccessError, CommandError) as failed:
            raise CommandError(message("up.unknown-owners", obstacles=stopped, why=failed)) from None
        raise stopped.judged(obstacles) from None


@dataclass(frozen=True)
class ProbeRows:
    """The rows of a local stack's probes: of certificates, and of service accounts."""

    certificates: list[Row]
    accounts: list[TokenRow]

    @property
    def probes(self) -> list[ProbeResult]:
        return [*(probe for row in self.certificates for probe in row.probes), *(row.probe for row in self.accounts)]


def _show_sign_ins(stack: str, signed: ProbeRows, environment: LocalEnvironment, screen: Screen) -> None:
    """Print the tables of the probes; raises CommandError if one is not green."""
    now, providers = datetime.now(UTC), plugins.installed()
    kinds = {plugin.name: plugin.kind for plugin in providers}
    document = {"stack": stack, "providers": kinds, "rows": [row.to_json(now) for row in signed.certificates]}
    tables = [sign_ins(signed.certificates)] if signed.certificates else []
    if signed.accounts:
        document["serviceAccounts"] = [row.to_json() for row in signed.accounts]
        tables.append(tokens(signed.accounts))
    if tables:
        tables[-1].caption = plugins.describe(providers)
    none = "none: the stack has no hosted cluster; other stacks may name it in their sharedStack"
    screen.show(document, *([part for table in tables for part in ("", table)][1:] or [none]))
    failing = [row.identity for row in signed.certificates if not row.is_green]
    failing += [row.of.subject for row in signed.accounts if not row.probe.is_ready]
    if failing:
        raise CommandError(f"not every sign-in works: {', '.join(failing)}")
    screen.console.print(_next_steps(stack, environment))


def _wait_until_green(read: Callable[[], ProbeRows], console: Console) -> ProbeRows:
    """The rows once all are green, or after the timeout."""
    deadline, backoff = time.monotonic() + _TIMEOUT, Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    last_line = ""
    with console.status("waiting for the probes") as spinner:
        while True:
            signed = read()
            ready = sum(probe.is_ready for probe in signed.probes)
            line = f"{ready} of {len(signed.probes)} probes ready"
            if line != last_line:
                spinner.update(line)
                if not console.is_terminal:
                    console.print(line)
            last_line = line
            if ready == len(signed.probes) or time.monotonic() > deadline:
                return signed
            time.sleep(backoff.next())


def _next_steps(stack: str, environment: LocalEnvironment) -> str:
    steps = {
        f".venv/bin/idstack preview --stack {stack}": f"after an edit of Pulumi.{stack}.yaml: exactly that change",
        f".venv/bin/idstack status --stack {stack}": "expiry, renewal, live sign-ins",
        ".venv/bin/idstack local env": "the endpoints of the local Azure and Kubernetes",
        f".venv/bin/idstack down --stack {stack}": "remove the stack, and the local cloud with the last one",
    }
    width = max(map(len, steps)) + 3
    listed = "\n".join(f"  {command:{width}}{effect}" for command, effect in steps.items())
    return f"\nFiles: {environment.mounts_dir}/<namespace>/<workload>/<path>\n\nTry next:\n{listed}"


# The local kubelet's driver, whose volume has a token that it signs (`cloud/localcloud/kubelet/csi.py`).
_DRIVER: Final = "hosted-cluster-tokens.localcloud"
# The local kubelet runs the probe as a process of this environment, with any image.
_IMAGE: Final = "idstack/credential-probe:local"


def deployments(settings: Settings, outputs: StackOutputs[str]) -> tuple[list[TokenProbe], list[dict[str, Any]]]:
    """The probes of a stack's workload identities, and the Namespaces and Deployments that run them.

    The pod of each service account stands for the component of the hosted control plane: it has the token at the same
    path, signed by the local kubelet with the cluster's own key. On Azure HyperShift's pods have the tokens, without
    probes. A cluster whose signing key the stack does not know has none.
    """
    clusters = {
        cluster.name: cluster
        for cluster in settings.hosted_clusters
        if not cluster.has_credentials and cluster.signing_key_vault_secret is not None
    }
    accounts = [probe for probe in token_probes(outputs) if probe.cluster in clusters]
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        for namespace in dict.fromkeys(probe.namespace for probe in accounts)
    ]
    documents = []
    for probe in accounts:
        pod = _pod(probe, settings, clusters[probe.cluster], outputs["keyVaultName"])
        labels = probe_labels(probe.deployment)
        documents.append(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": probe.deployment, "namespace": probe.namespace, "labels": labels},
                "spec": probe_deployment(probe.deployment, pod),
            }
        )
    return accounts, [*namespaces, *documents]


def _pod(probe: TokenProbe, settings: Settings, cluster: HostedClusterSettings, vault: str) -> dict[str, Any]:
    """The probe's pod, with the token at the path of the real component's."""
    token = PurePosixPath(probe.token)
    proof = proof_argument(probe.row.proof, settings.cloud, proof_target(settings, cluster))
    pod = probe_pod(settings.probe.image or _IMAGE, f"token:{token}", proof)
    [container] = pod["containers"]
    container["env"] += [
        {"name": "AZURE_AUTHORITY_HOST", "value": settings.cloud.authority_host},
        {"name": "AZURE_TENANT_ID", "value": settings.tenant_id},
        {"name": "AZURE_CLIENT_ID", "value": probe.client_id},
    ]
    container["volumeMounts"] = [{"name": "token", "mountPath": str(token.parent), "readOnly": True}]
    attributes = {
        "vaultName": vault,
        "secretName": cluster.signing_key_vault_secret,
        "issuer": cluster.issuer_url,
        "subject": probe.subject,
        "audience": FEDERATED_AUDIENCE,
        "path": token.name,
    }
    pod["volumes"] = [{"name": "token", "csi": {"driver": _DRIVER, "readOnly": True, "volumeAttributes": attributes}}]
    return pod
