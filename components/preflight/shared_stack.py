"""What a stack of hosted clusters takes from the stack it shares with others: the vault and the key-vault-user.

If a StackReference names no stack, the engine ends the program with the words `unknown stack` alone. So the function
that a StackReference uses looks the stack up first: the program can explain its failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import pulumi

from components.azure.context import CredentialStore
from components.azure.providers import provider_error
from components.preflight.problems import problem
from identity.naming import parse_arm_id, parse_vault_id
from identity.outputs import StackOutputs
from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.schema.problems import enumerate_words, to_remove, to_set

READ_STACK_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"
_PLACE: Final = ("sharedStack",)
# Every stack with a vault of its own exports them (`components/stack.py`).
_REQUIRED: Final = ("keyVaultId", "keyVaultUri", "keyVaultUserClientId", "tenantId")
_OPTIONAL: Final = ("managementClusterId", "keyVaultUserObjectId")


async def read_shared_store(settings: Settings) -> CredentialStore | None:
    """The shared stack's vault and key-vault-user; None if the stack shares none.

    Raises ConfigurationError if there is no such stack, if it lacks an output or has a secret one, and if it is for
    another tenant, subscription or management cluster.
    """
    name = settings.shared_stack
    if name is None:
        return None
    await _must_exist(name)
    outputs = await _outputs(pulumi.StackReference(name), name)
    problems = list(_mismatches(settings, name, outputs))
    if problems:
        raise ConfigurationError(problems)
    return CredentialStore(
        vault_id=outputs["keyVaultId"],
        vault_uri=outputs["keyVaultUri"],
        key_vault_user_client_id=outputs["keyVaultUserClientId"],
        key_vault_user_object_id=outputs.get("keyVaultUserObjectId"),
    )


async def _must_exist(name: str) -> None:
    if name == this_stack():
        raise _refused("shared-stack-is-this-stack", name, removal=to_remove(_PLACE))
    try:
        await pulumi.runtime.invoke_async(READ_STACK_OUTPUTS, {"name": name})
    except Exception as error:
        reason = provider_error(error)
        is_missing = "unknown stack" in reason
        missing = Problem(
            place=_PLACE,
            rule="shared-stack-missing" if is_missing else "shared-stack-unreadable",
            found=f'"{name}", which {"does not exist" if is_missing else f"cannot be read: {reason}"}',
            accepted="a stack in the same backend that has been deployed",
            fix="`.venv/bin/idstack pulumi -- stack ls --all` lists them; "
            f"{to_set(_PLACE, '<organization>/<project>/<stack>')}, or bring it up with `.venv/bin/idstack up --stack "
            f"{name.rpartition('/')[2]}`",
        )
        raise ConfigurationError([missing]) from None


async def _outputs(reference: pulumi.StackReference, name: str) -> StackOutputs[str]:
    """The outputs that this stack takes; raises ConfigurationError for missing and secret ones."""
    details = {key: await reference.get_output_details(key) for key in (*_REQUIRED, *_OPTIONAL)}
    secret = [key for key, output in details.items() if output.secret_value is not None]
    missing = [key for key in _REQUIRED if key not in secret and not isinstance(details[key].value, str)]
    if secret:
        raise _refused("shared-stack-output-secret", name, outputs=enumerate_words(secret))
    if missing:
        raise _refused("shared-stack-output-missing", name, outputs=enumerate_words(missing))
    values = {key: output.value for key, output in details.items() if output.value is not None}
    outputs = cast("StackOutputs[str]", values)
    if malformed := list(_malformed(outputs)):
        raise _refused("shared-stack-output-malformed", name, outputs=enumerate_words(malformed))
    return outputs


def _malformed(outputs: StackOutputs[str]) -> Iterator[str]:
    """The malformed outputs among those that requests use."""
    for key, parse, value in (
        ("keyVaultId", parse_vault_id, outputs["keyVaultId"]),
        ("managementClusterId", parse_arm_id, outputs.get("managementClusterId")),
    ):
        try:
            if value is not None:
                parse(str(value))
        except ValueError:
            yield key


def _mismatches(settings: Settings, name: str, outputs: StackOutputs[str]) -> Iterator[Problem]:
    vault = parse_arm_id(outputs["keyVaultId"])
    for key, own, shared in (
        ("tenantId", settings.tenant_id, outputs["tenantId"]),
        ("subscriptionId", settings.subscription_id, vault.subscription),
    ):
        if own != shared.lower():
            yield problem(
                "shared-stack-id-mismatch", (key,), own=own, shared=shared, name=name, set=to_set((key,), shared)
            )
    cluster, shared_cluster = settings.management_cluster, outputs.get("managementClusterId")
    if cluster is None or shared_cluster is None:
        return
    if settings.management_cluster_id.lower() != shared_cluster.lower():
        known = parse_arm_id(shared_cluster)
        yield Problem(
            place=("managementCluster", "name"),
            rule="shared-stack-cluster-mismatch",
            found=f'"{cluster.name}" in the resource group "{cluster.resource_group}"',
            accepted=f'"{known.name}" in "{known.resource_group}", as in {name}: its nodes have the key-vault-user',
            fix=f"{to_set(('managementCluster', 'name'), known.name)} and "
            f"{to_set(('managementCluster', 'resourceGroup'), known.resource_group)}",
        )


def this_stack() -> str:
    """The full name of the current stack: `organization/project/stack`."""
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _refused(rule: str, name: str, **words: str) -> ConfigurationError:
    return ConfigurationError([problem(rule, _PLACE, name=name, stack=name.rpartition("/")[2], **words)])


async def last_outputs() -> StackOutputs[Any]:
    """The outputs, empty for a stack without a complete run; raises RunError if they cannot be read."""
    outputs = await of_own_state(
        READ_STACK_OUTPUTS, {"name": this_stack()}, "outputs, which name the credentials in use,"
    )
    return cast("StackOutputs[Any]", outputs)


async def of_own_state(function: str, arguments: Mapping[str, str], what: str) -> Mapping[str, Any]:
    """The `outputs` that a function of the engine returns; raises RunError, in which `what` names them, on failure."""
    try:
        answer = await pulumi.runtime.invoke_async(function, dict(arguments))
    except Exception as error:
        raise pulumi.RunError(
            f"this stack's {what} cannot be read: {provider_error(error)}. "
            "Nothing was changed; try again once the backend answers."
        ) from None
    return cast("Mapping[str, Any]", answer["outputs"])
