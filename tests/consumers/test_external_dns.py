"""External DNS, as HyperShift's operator runs it, publishes the names of Services as the nodes' managed identity."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from localcloud.testing.running import StateDirectory
from tests.architecture.source import ROOT
from tests.consumers.consumer import needs, program
from tests.engine.small_stack import few_resources
from tests.harness import running_stack

_PROGRAM: Final = "external-dns"
_ZONE: Final = "local.example.com"
# In the same group, so that it is listed; the identity has no role there.
_OTHER: Final = "other.example.com"
_IN_THE_GROUP: Final[dict[str, Any]] = {"resourceGroup": "dns-local", "location": "global", "properties": {}}
_HOST: Final = "api-hc1.control-planes"
_SERVICES: Final = "/api/v1/namespaces/default/services"
_NAMES: Final = {"external-dns.alpha.kubernetes.io/hostname": f"{_HOST}.{_ZONE},{_HOST}.{_OTHER}"}
_SPEC: Final = {"type": "LoadBalancer", "ports": [{"port": 443}]}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}


@needs(_PROGRAM)
def test_it_publishes_into_its_zone_alone_once_the_nodes_have_its_identity(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack, stack.kubernetes("administrator") as http:
        [cluster] = few_resources(stack)["hostedClusters"]
        zone = {"externalDnsZoneID": cluster["dns"]["publicZoneID"]}
        stack.configure(hostedClusters=[cluster | zone | {"managedIdentities": ["externalDNS"]}])
        stack.up()
        described = stack.outputs["hostedClusters"]["hc1"]
        managed = described["managedIdentities"]["externalDNS"]
        stack.seed(resources=[{"type": "Microsoft.Network/dnszones", "name": _OTHER, **_IN_THE_GROUP}])
        credentials = tmp_path / "credentials"
        credentials.write_text(
            _documented(
                tenant=stack.environment.tenant_id,
                subscription=stack.environment.subscription_id,
                resource_group_of_externalDnsZoneID=_IN_THE_GROUP["resourceGroup"],
                clientID_of_externalDNS=managed["clientID"],
            )
        )
        # As the operator's older one does by itself.
        own = ("--policy=sync", "--annotation-prefix=external-dns.alpha.kubernetes.io/", "--once")
        command = (
            *(str(program(_PROGRAM)), "--source=service", "--provider=azure", "--registry=txt", *own),
            *("--txt-suffix=-external-dns", "--txt-owner-id=idstack", f"--azure-config-file={credentials}"),
            f"--kubeconfig={StateDirectory(stack.state).administrator_kubeconfig}",
        )

        def said_and_kept(*domains: str) -> tuple[str, set[str]]:
            """What it says in a run with these filters, and the records after that."""
            filters = (f"--domain-filter={domain}" for domain in domains)
            done = stack.run(stack.python, "-m", "localcloud", "exec", "--", *command, *filters, check=False)
            zones = (key.partition("/dnszones/")[2] for kind, key in stack.contents() if kind == "arm")
            return done.stderr, {record for record in zones if "/" in record and "/providers/" not in record}

        made = {"metadata": {"generateName": "router-", "annotations": _NAMES}, "spec": _SPEC}
        service = http.post(_SERVICES, json=made).raise_for_status().json()["metadata"]["name"]
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
        http.patch(f"{_SERVICES}/{service}/status", json=status, headers=_MERGE).raise_for_status()
        detached, without = said_and_kept(_ZONE)
        # As `az vmss identity assign` does.
        identity = {"type": "UserAssigned", "userAssignedIdentities": {managed["resourceID"]: {}}}
        nodes = {"type": "Microsoft.Compute/virtualMachineScaleSets", "name": "nodes", "identity": identity}
        stack.seed(resources=[nodes | _IN_THE_GROUP])
        _, below = said_and_kept(f"control-planes.{_ZONE}")
        attached, with_it = said_and_kept(described["externalDnsZone"], _OTHER)
        http.delete(f"{_SERVICES}/{service}").raise_for_status()
        _, afterwards = said_and_kept(described["externalDnsZone"], _OTHER)

    assert "Identity not found" in detached
    assert re.search(rf"Failed to update A record .* DNS zone '{_OTHER}': .*AuthorizationFailed", attached)
    written = {f"{_ZONE}/a/{_HOST}", f"{_ZONE}/txt/a-api-hc1-external-dns.control-planes"}
    assert (without, with_it, afterwards) == (set(), written, set())
    assert below == set(), "it finds no zone above its filter"


def _documented(**values: str) -> str:
    """The file of optional-identities.md."""
    page = (ROOT / "docs/reference/optional-identities.md").read_text(encoding="utf-8")
    [document] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    return re.sub("<(.*?)>", lambda found: values[found[1].replace(" ", "_")], document)
