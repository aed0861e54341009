"""What `idstack forecast` counts from the settings is what the program registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from ops.forecast import counts
from ops.forecast.counts import Usage
from ops.forecast.stack import ForecastStack, combined
from tests.unit.components import world
from tests.unit.components.configurations import CONFIGURATIONS
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor


@pytest.fixture(scope="module", params=CONFIGURATIONS, ids=lambda name: name.replace(" ", "-"))
def built(request: pytest.FixtureRequest, program: Program) -> tuple[ForecastStack, RecordingMonitor]:
    """A stack as the forecast reads it, and what the program registered for it."""
    changes = CONFIGURATIONS[request.param]
    [stack] = combined({"test": world.settings(**changes)})
    return stack, program(**changes, invokes={**world.lookups(), "azure-native:keyvault:getManagedHsm": {}})


def total(count: Callable[[ForecastStack], Iterator[Usage]], stack: ForecastStack) -> float:
    return sum(usage.amount for usage in count(stack))


def test_the_forecast_counts_what_the_program_registers(built: tuple[ForecastStack, RecordingMonitor]) -> None:
    stack, recorder = built
    registered = {
        counts.role_assignments: len(recorder.all("azure-native:authorization:RoleAssignment")),
        counts.hsm_role_assignments: len(recorder.all("idstack:index:HsmRoleAssignment")),
        counts.applications: len(recorder.all("azuread:index/application:Application")),
        counts.created_objects: len(
            recorder.all("azuread:index/application:Application")
            + recorder.all("azuread:index/servicePrincipal:ServicePrincipal")
        ),
        counts.managed_identities: len(recorder.all("azure-native:managedidentity:UserAssignedIdentity")),
        counts.issuer_accounts: len(recorder.all("azure-native:storage:StorageAccount")),
        counts.resource_groups: len(recorder.all("azure-native:resources:ResourceGroup")),
    }
    assert {count.__name__: total(count, stack) for count in registered} == {
        count.__name__: number for count, number in registered.items()
    }


def test_federated_credentials_are_counted_by_identity(built: tuple[ForecastStack, RecordingMonitor]) -> None:
    stack, recorder = built
    registered = Counter(
        f"identity {resource.inputs['resourceName']}"
        for resource in recorder.all("azure-native:managedidentity:FederatedIdentityCredential")
    )
    assert {
        federated_credential.holder: federated_credential.amount
        for federated_credential in counts.federated_credentials(stack)
        if federated_credential.amount
    } == registered


def test_reads_are_counted_by_mount_of_each_pod(built: tuple[ForecastStack, RecordingMonitor]) -> None:
    stack, recorder = built
    mounted = sum(
        resource.inputs["spec"]["replicas"] * sum("csi" in volume for volume in pod["volumes"])
        for resource in recorder.all("kubernetes:apps/v1:Deployment")
        for pod in [resource.inputs["spec"]["template"]["spec"]]
    )
    counted = sum(counts.mounted_secrets(stack, cluster) for cluster in stack.clusters)
    # HyperShift's operators make the pods otherwise.
    assert mounted == (counted if stack.settings.cluster_side == "stack" else 0)
