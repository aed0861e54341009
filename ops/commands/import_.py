"""`idstack import`: adopt existing resources into a stack's state.

A failed `up` prints the whole command for one resource. `scripts` and `file` adopt the identities that HyperShift's
scripts have created for a running hosted cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from identity import resource_types
from identity.azure.client import AzureClient
from identity.settings.schema.problems import Place
from ops.access.clients import deployer
from ops.adoption import entry, files, matching
from ops.adoption.entry import FoundResources, look_up
from ops.adoption.files import named_by_iam, named_by_scripts, read_manifest
from ops.commands.local import prepare
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption, output_option, with_options
from ops.outputs.tables import counted
from ops.recovery.orphans import shown
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message, writing
from ops.stack.settings import require_sound_configuration
from ops.stack.state import Plan, name_of, resources_in, type_of
from ops.world.adoption_guard import adoption_guard

_RESOURCE: Final = "resource"


class _Group(TyperGroup):
    """`idstack import TYPE NAME ID` needs no word for its command: the types of Pulumi have a colon, no command has."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [_RESOURCE, *args]
        return super().parse_args(ctx, args)


import_ = typer.Typer(
    add_completion=False,
    cls=_Group,
    help="Adopt existing resources: `import TYPE NAME ID` one resource, the commands those of a hosted cluster.",
    no_args_is_help=True,
)


@import_.command(_RESOURCE, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def resource(
    context: typer.Context,
    type_token: Annotated[str, typer.Argument(metavar="TYPE", help="Type token, such as azure-native:keyvault:Vault.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in the program, as a preview shows it.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the resource, as its provider writes it.")],
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Adopt one resource (`idstack import TYPE NAME ID`), unless the next `up` would replace it.

    Other options (--parent, --provider) go to the engine.
    """
    engine = Engine(stack)
    require_sound_configuration(engine)
    prepare(engine, Screen(as_json=False))
    _require_own(engine, type_token, name, id)
    _adopt(engine, type_token, name, id, *context.args)


def _adopt(engine: Engine, *arguments: str) -> None:
    """Import; raises CommandError if the next `up` would replace what was imported, with the state as it was before.

    An import has as inputs what the service answers, also what the program leaves to the service.
    """
    before = engine.state()
    engine.import_(*arguments)
    # A role of an identity that is gone is there to be replaced (`ops/stack/existing.py`).
    others = {resource_types.ROLE_ASSIGNMENT, *(resource["urn"] for resource in resources_in(before))}
    try:
        steps = [step for step in engine.planned()["steps"] if step["op"] == "replace"]
    except CommandError as error:
        engine.replace_state(before)
        raise CommandError(f"nothing was adopted, because it is unknown what `up` would do with it: {error}") from None
    lost = [step for step in steps if others.isdisjoint((step["urn"], type_of(step["urn"])))]
    if lost:
        engine.replace_state(before)
        differing = [f"- {name_of(step['urn'])}: {', '.join(step.get('replaceReasons') or ())}" for step in lost]
        raise CommandError(message("import.replaced", stack=engine.stack, inputs="\n".join(differing)))


def _require_own(engine: Engine, type_token: str, name: str, id: str) -> None:
    """Raise CommandError for a resource of another stack, and for one that may not be this stack's."""
    with adoption_guard(engine) as guard:
        why = guard.objection(type_token, id)
        if why is not None and type_token == resource_types.ROLE_ASSIGNMENT:
            # Only a plan names its principal, if the state does not have that yet.
            steps = (step for step in engine.planned()["steps"] if name_of(step["urn"]) == name and "newState" in step)
            principals = (shown(step["newState"].get("inputs") or {}).get("principalId", "") for step in steps)
            why = guard.objection(type_token, id, str(next(principals, "")))
    if why is not None:
        raise CommandError(f"{id} was not adopted: {why}")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a command that looks for the identities of a running hosted cluster."""

    cluster: Annotated[str, typer.Option("--cluster", "-c", help="Name of the HostedCluster.")]
    infra_id: Annotated[str | None, typer.Option(help="`spec.infraID` of the HostedCluster.")] = None
    hosted_cluster: Annotated[
        Path | None, typer.Option(help="The HostedCluster, as `kubectl get -o yaml` prints it.")
    ] = None
    output: Annotated[Path | None, output_option("The import file.")] = None
    stack: StackOption = DEFAULT_STACK
    as_json: JsonOption = False


@import_.command()
@with_options
def scripts(
    control_plane: Annotated[Path, typer.Option("--cp", help="The scripts' cp-output.json.")],
    data_plane: Annotated[Path, typer.Option("--dp", help="The scripts' dp-output.json.")],
    vault: Annotated[str | None, typer.Option(help="Name of the vault; that in --cp by default.")] = None,
    keep_roles: Annotated[
        bool, typer.Option("--keep-roles", help="Keep roles that are not those of `roles`, as `customRole`.")
    ] = False,
    *,
    search: SearchOptions,
) -> None:
    """Find the identities that HyperShift's scripts created, and write their configuration and an import file.

    Nothing changes in Azure or in the stack's state.
    """
    named = files.control_plane(control_plane, vault)
    _find(search, named, files.data_plane(data_plane), keep_roles=keep_roles)


@import_.command()
@with_options
def iam(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="workload-identities.json of `hypershift create iam azure`.")
    ],
    *,
    search: SearchOptions,
) -> None:
    """Find the workload identities of a self-managed hosted cluster, and write its configuration and an import file.

    HyperShift's CLI, its scripts or ccoctl have created them. Nothing changes in Azure or in the stack's state.
    """
    _find(search, files.NO_CERTIFICATES, files.workload_identities(path))


def _find(
    search: SearchOptions, named: files.ControlPlaneFile, client_ids: Mapping[str, str], *, keep_roles: bool = False
) -> None:
    """Look up what the files name, and write the configuration that follows, and the import file.

    `client_ids` are those of the managed identities, by field. Raises CommandError for a stack without tenant and
    subscription, and for a HostedCluster that contradicts the files.
    """
    screen = Screen(search.as_json)
    engine = Engine(search.stack, output=screen.output)
    prepare(engine, screen)
    written = engine.written()
    if missing := [key for key in ("tenantId", "subscriptionId") if not written.get(key)]:
        raise CommandError(message("import.missing", stack=engine.stack, keys=" and ".join(missing)))
    known: dict[Place, str] = {}
    in_files, values = named_by_scripts(named, client_ids), entry.values
    if named is files.NO_CERTIFICATES:
        in_files, values = named_by_iam(client_ids), entry.values_of_workload_identities
    if search.hosted_cluster is not None:
        known |= read_manifest(search.hosted_cluster, search.cluster, in_files, written["subscriptionId"])
    known |= {("infraID",): search.infra_id} if search.infra_id else {}
    with deployer(engine) as azure:
        existing = look_up(azure, written["subscriptionId"], named, client_ids)
        configured = values(written, search.cluster, known, existing)
        plan, matches = _matched(engine, configured, search.cluster, existing, azure)
        if keep_roles and (kept := matching.kept_roles(engine.written()["hostedClusters"], search.cluster, matches)):
            configured |= kept
            plan, matches = _matched(engine, kept, search.cluster, existing, azure)
    path, lines = search.output or Path(f"import.{search.stack}.json"), matching.findings(existing, matches)
    with writing("the import file"):
        path.write_text(json.dumps(matching.import_file(plan, matches), indent=2) + "\n", encoding="utf-8")
    findings = [line.to_json() for line in lines]
    screen.show(
        {"stack": engine.stack, "file": str(path), "configured": configured, "findings": findings},
        matching.table(lines),
        *(f"configured {key}: {value}" for key, value in configured.items()),
        message("import.found", file=path, stack=engine.stack),
    )


def _matched(
    engine: Engine, configured: Mapping[str, str], cluster: str, existing: FoundResources, azure: AzureClient
) -> tuple[Plan, list[matching.Match]]:
    """Write the configuration, and match the resulting plan with the existing resources."""
    engine.configure(configured)
    try:
        plan = engine.planned()
    except CommandError as error:
        written = f"The stack's configuration has {counted(len(configured), 'new value')}. " if configured else ""
        raise CommandError(message("import.no-preview", error=error, written=written)) from None
    return plan, matching.match(plan, engine.resources(), cluster, existing, azure)


@import_.command()
def file(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file that `import scripts` or `import iam` wrote.")],
    stack: StackOption = DEFAULT_STACK,
) -> None:
    """Adopt the resources in an import file (`pulumi import --file`); the next `up` updates them."""
    engine = Engine(stack)
    entries, providers = matching.read_import_file(path)
    require_sound_configuration(engine)
    prepare(engine, Screen(as_json=False))
    with adoption_guard(engine) as guard:
        # Whom its role assignments are for, `scripts` has compared.
        objections = {
            entry["id"]: guard.objection(entry["type"], entry["id"], principal=None)
            for entry in entries
            if "id" in entry
        }
    if lines := [f"- {id}: {why}" for id, why in objections.items() if why]:
        raise CommandError("nothing was adopted, because these may not be this stack's:", *lines)
    matching.enter_providers(engine, path, providers)
    _adopt(engine, "--file", str(path.absolute()))
