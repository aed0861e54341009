"""The steps before the first preview: the resources that must exist in Azure, and the rights of the deployer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from identity.naming import parse_arm_id
from identity.settings import Settings
from ops.outputs.azure_rights import Purpose, rights


def lines(settings: Settings, stack: str) -> Iterator[str]:
    """The lines to print; the commands are complete except an object id."""
    yield "These resources must exist in Azure:"
    group = ["az", "group", "create", "--name", settings.resource_group, "--location", settings.location]
    yield f"  {shlex.join(group)}"
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is None:
        add_on = ["az", "aks", "enable-addons", "--addons", "azure-keyvault-secrets-provider"]
        yield f"  {shlex.join([*add_on, '--resource-group', cluster.resource_group, '--name', cluster.name])}"
    zones = (described.dns.public_zone_id for described in settings.hosted_clusters if described.dns is not None)
    for zone in dict.fromkeys(zones):
        if zone is not None:
            id = parse_arm_id(zone)
            create = ["az", "network", "dns", "zone", "create", "--resource-group", id.resource_group]
            yield f"  {shlex.join([*create, '--name', id.name])}"
    needed = rights(settings, Purpose.DEPLOYER)
    yield "An administrator grants the deployer, who runs `idstack up`:"
    yield from (f"  {note}" for note in needed.notes)
    yield from (f"  {grant.role.name} at {grant.scope}" for grant in needed.grants)
    yield "as commands, with the object id of a service principal or a group:"
    yield f"  .venv/bin/idstack rbac <object id> --azure --principal-type ServicePrincipal --stack {stack}"
    yield "Next:"
    yield f"  .venv/bin/idstack preview --stack {stack}"
