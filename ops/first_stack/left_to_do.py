"""What is left before the first preview: what must exist in Azure, and what an administrator grants."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from identity.naming import parse_arm_id
from identity.settings import Settings
from ops.outputs.azure_rights import Purpose, rights


def lines(settings: Settings, stack: str) -> Iterator[str]:
    """The lines to print, commands as they can be typed; an object id alone is to be filled in."""
    yield "What must exist in Azure:"
    group = ["az", "group", "create", "--name", settings.resource_group, "--location", settings.location]
    yield f"  {shlex.join(group)}"
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is None:
        add_on = ["az", "aks", "enable-addons", "--addons", "azure-keyvault-secrets-provider"]
        yield f"  {shlex.join([*add_on, '--resource-group', cluster.resource_group, '--name', cluster.name])}"
    for zone in dict.fromkeys(each.dns.public_zone_id for each in settings.hosted_clusters if each.dns is not None):
        if zone is not None:
            found = parse_arm_id(zone)
            make = ["az", "network", "dns", "zone", "create", "--resource-group", found.resource_group]
            yield f"  {shlex.join([*make, '--name', found.name])}"
    found_rights = rights(settings, Purpose.DEPLOYER)
    yield "What an administrator grants the deployer, who runs `idstack up`:"
    yield from (f"  {note}" for note in found_rights.notes)
    yield from (f"  {grant.role.name} at {grant.scope}" for grant in found_rights.grants)
    yield "as commands, with the object id of a service principal or a group:"
    yield f"  .venv/bin/idstack rbac <object id> --azure --principal-type ServicePrincipal --stack {stack}"
    yield "Next:"
    yield f"  .venv/bin/idstack preview --stack {stack}"
