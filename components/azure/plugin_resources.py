"""The resources of the project's own provider plugin: renewal schedule, certificate, two gates, secret, guard.

Every input is an output as well, under the same name. The modules in `provider/` describe what the resources do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi

from identity import resource_types

# The one input that opens something.
_SECRET: Final = "kubeconfig"


class _Attribute(str):
    """The name of a resource's own property. Pulumi translates keys at every depth, and a tag keeps its name."""

    __slots__ = ()


class PluginResource(pulumi.CustomResource):
    """A resource of the plugin: its attributes are snake_case, the properties on the wire camelCase.

    Every input is an output as well, and a kubeconfig is secret as both.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        inputs: Mapping[str, pulumi.Input[Any]],
        outputs: Sequence[str],
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        own: dict[str, Any] = {
            _Attribute(attribute): value for attribute, value in {**inputs, **dict.fromkeys(outputs)}.items()
        }
        self._attributes = {self.translate_input_property(attribute): str(attribute) for attribute in own}
        secret = [_SECRET] if _SECRET in inputs else None
        options = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=secret))
        super().__init__(f"{resource_types.OWN}{kind}", name, own, options)

    def translate_input_property(self, prop: str) -> str:
        """`not_before` -> `notBefore` for the resource's own properties; keys inside of them stay as they are."""
        if not isinstance(prop, _Attribute):
            return prop
        head, *tail = prop.split("_")
        return head + "".join(word.capitalize() for word in tail)

    def translate_output_property(self, prop: str) -> str:
        """`notBefore` -> `not_before` for the resource's own properties; keys inside of them stay as they are."""
        return self._attributes.get(prop, prop)


class StackOwner(PluginResource):
    """The id that tells the stack's things in Azure from every other stack's (`provider/stack_owner.py`). No args.

    Outputs: `owner_id` (UUID; unknown in previews of the stack's first run).
    """

    owner_id: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("StackOwner", name, {}, ("owner_id",), opts)


class RenewalSchedule(PluginResource):
    """Decides by the vault which of two certificate slots is issued again when (`provider/renewal_schedule.py`).

    Args: `lifetime_days` and `renew_before_days` of a certificate; `mode` is `auto`, or `hold` to keep the current
    slots; of the document in the vault `cloud` (name), `tenant_id`, `vault_id` (ARM id), `secret_name`,
    `object_encoding`, `authority_host` and `client_id`; `delivered` (`a1`): what the last complete run left there.

    Outputs, all known in previews: `current` (`a` or `b`: the slot that is in the secret, or about to be); `a` and `b`,
    each empty or a mapping of `generation` (int, from 1), `notBefore` (RFC 3339, UTC) and `validDays` (int: the
    lifetime it was issued for); `renewal` (str: a description of the newest renewal).
    """

    current: pulumi.Output[str]
    a: pulumi.Output[Mapping[str, Any]]
    b: pulumi.Output[Mapping[str, Any]]
    renewal: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        lifetime_days: int,
        renew_before_days: int,
        mode: str,
        cloud: str,
        tenant_id: str,
        vault_id: str,
        secret_name: str,
        object_encoding: str,
        authority_host: str,
        client_id: pulumi.Input[str],
        delivered: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "lifetime_days": lifetime_days,
            "renew_before_days": renew_before_days,
            "mode": mode,
            "cloud": cloud,
            "tenant_id": tenant_id,
            "vault_id": vault_id,
            "secret_name": secret_name,
            "object_encoding": object_encoding,
            "authority_host": authority_host,
            "client_id": client_id,
            "delivered": delivered,
        }
        super().__init__("RenewalSchedule", name, inputs, ("current", "a", "b", "renewal"), opts)


class Certificate(PluginResource):
    """A self-signed RSA client certificate (`provider/certificate.py`); a new generation replaces it.

    Its key is in the plugin's memory until the vault has it.

    Args: `common_name` (1-64 characters), `key_size` in bits and `lifetime_days`, which all apply from the next
    generation on; `generation` of the slot it is issued for; `not_before` (RFC 3339, UTC); `cloud`, `tenant_id` and
    `application_id` (`/applications/<object id>`) that it is for.

    Outputs: `certificate_pem` (str); `thumbprint` (SHA-1, upper-case hexadecimal); `key_id` (UUID, to register it
    under); `not_after` (RFC 3339, UTC, known in previews).
    """

    certificate_pem: pulumi.Output[str]
    thumbprint: pulumi.Output[str]
    key_id: pulumi.Output[str]
    not_before: pulumi.Output[str]
    not_after: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        common_name: str,
        key_size: int,
        lifetime_days: int,
        generation: int,
        not_before: str,
        cloud: str,
        tenant_id: str,
        application_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "common_name": common_name,
            "key_size": key_size,
            "lifetime_days": lifetime_days,
            "generation": generation,
            "not_before": not_before,
            "cloud": cloud,
            "tenant_id": tenant_id,
            "application_id": application_id,
        }
        outputs = ("certificate_pem", "thumbprint", "key_id", "not_after")
        super().__init__("Certificate", name, inputs, outputs, opts)


class SignInGate(PluginResource):
    """Proves that Entra ID knows a certificate before anything relies on it (`provider/sign_in_gate.py`).

    Args: `authority_host` (https URL); `tenant_id`, `client_id`; `thumbprint` of a certificate that this run issued;
    `registration`: the id under which it is registered, which orders the gate after it; `scope` to ask a token for;
    `successes` in a row over `settle_seconds`, within `timeout_seconds`.

    Outputs: `proven_at` (RFC 3339, UTC; unknown in previews of a new proof).
    """

    proven_at: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        authority_host: str,
        tenant_id: str,
        client_id: pulumi.Input[str],
        thumbprint: pulumi.Input[str],
        registration: pulumi.Input[str],
        scope: str,
        successes: int,
        settle_seconds: int,
        timeout_seconds: int,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "authority_host": authority_host,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "thumbprint": thumbprint,
            "registration": registration,
            "scope": scope,
            "successes": successes,
            "settle_seconds": settle_seconds,
            "timeout_seconds": timeout_seconds,
        }
        super().__init__("SignInGate", name, inputs, ("proven_at",), opts)


class CredentialSecret(PluginResource):
    """A Key Vault secret with a credential document (`provider/credential_secret.py`).

    Args: `cloud` (name), `tenant_id`, `vault_id` (ARM id), `secret_name`, `object_encoding`, `tags` of the secret;
    `stack_owner`: the owner id that goes into them; `credential`: the rest of the inputs, which
    `components/azure/credential_secret.py` describes.

    Outputs: `delivered_at` (RFC 3339, UTC).
    """

    delivered_at: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        cloud: str,
        tenant_id: str,
        vault_id: str,
        secret_name: str,
        object_encoding: str,
        tags: Mapping[str, str],
        stack_owner: pulumi.Input[str] | None,
        credential: Mapping[str, pulumi.Input[Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cloud": cloud,
            "tenant_id": tenant_id,
            "vault_id": vault_id,
            "secret_name": secret_name,
            "object_encoding": object_encoding,
            "tags": dict(tags),
            "owner_id": stack_owner,
            **credential,
        }
        super().__init__("CredentialSecret", name, inputs, ("version", "secret_uri", "delivered_at"), opts)


class ClusterGate(PluginResource):
    """Proves that a new management cluster can be used (`provider/cluster_gate.py`): name it in `depends_on`.

    Args: the cluster's `cluster_id` (ARM id), `cluster_uid` and `has_azure_rbac`; `kubeconfig` (secret); `kinds` that
    must be served, each `<group>/<version>/<plural>`; `timeout_seconds`.

    """

    def __init__(
        self,
        name: str,
        *,
        cluster_id: pulumi.Input[str],
        cluster_uid: pulumi.Input[str],
        has_azure_rbac: bool,
        kubeconfig: pulumi.Input[str],
        kinds: Sequence[str],
        timeout_seconds: int,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cluster_id": cluster_id,
            "cluster_uid": cluster_uid,
            "has_azure_rbac": has_azure_rbac,
            "kubeconfig": kubeconfig,
            "kinds": list(kinds),
            "timeout_seconds": timeout_seconds,
        }
        super().__init__("ClusterGate", name, inputs, ("opened_at",), opts)


class NamespaceGuard(PluginResource):
    """Refuses its deletion while HyperShift has a control plane in the namespace (`provider/namespace_guard.py`).

    Name in `depends_on` whatever must not be deleted before it.

    Args: the cluster's `cluster_id` (ARM id), `kubeconfig` (secret) and `context` (None is the current one);
    `namespace`; `handed_over`: whether the namespace is HyperShift's, and the guard may go. No outputs.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster_id: str,
        kubeconfig: pulumi.Input[str],
        context: str | None,
        namespace: str,
        handed_over: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cluster_id": cluster_id,
            "kubeconfig": kubeconfig,
            "context": context,
            "namespace": namespace,
            "handed_over": handed_over,
        }
        super().__init__("NamespaceGuard", name, inputs, (), opts)


class HsmRoleAssignment(PluginResource):
    """A role in a managed HSM (`provider/hsm_role_assignment.py`).

    Args: `cloud` (name), `tenant_id`; `hsm` (name), `scope` in it (`/keys/<key>`) and `name_` (GUID) of the assignment;
    `role_definition` (GUID), `principal_id` (object id of a service principal).
    """

    def __init__(
        self,
        name: str,
        *,
        cloud: str,
        tenant_id: str,
        hsm: str,
        scope: str,
        name_: str,
        role_definition: str,
        principal_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs: dict[str, pulumi.Input[Any]] = {
            "cloud": cloud,
            "tenant_id": tenant_id,
            "hsm": hsm,
            "scope": scope,
            "name": name_,
            "role_definition": role_definition,
            "principal_id": principal_id,
        }
        super().__init__("HsmRoleAssignment", name, inputs, (), opts)
