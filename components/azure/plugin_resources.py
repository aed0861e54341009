"""The resources of the project's own provider plugin: renewal schedule, certificate, two gates.

Every input is an output as well, under the same name. The modules in `provider/` describe what the resources do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi


class _PluginResource(pulumi.CustomResource):
    """A resource of the plugin: its attributes are snake_case, the properties on the wire camelCase."""

    def __init__(
        self,
        kind: str,
        name: str,
        inputs: Mapping[str, pulumi.Input[Any]],
        outputs: Sequence[str],
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        self._attributes = {self.translate_input_property(attribute): attribute for attribute in (*inputs, *outputs)}
        super().__init__(f"idstack:index:{kind}", name, {**inputs, **dict.fromkeys(outputs)}, opts)

    def translate_input_property(self, prop: str) -> str:
        """`not_before` -> `notBefore`."""
        head, *tail = prop.split("_")
        return head + "".join(word.capitalize() for word in tail)

    def translate_output_property(self, prop: str) -> str:
        """`notBefore` -> `not_before` for the resource's own properties; keys inside of them stay as they are."""
        return self._attributes.get(prop, prop)


class RenewalSchedule(_PluginResource):
    """Decides when which of two certificate slots is issued anew (`provider/renewal_schedule.py`).

    Args: `lifetime_days` and `renew_before_days` of a certificate; `mode` is `auto`, or `hold` to keep the current
    slots.

    Outputs, all known in previews: `current` (`a` or `b`: the slot that is in the secret); `a` and `b`, each a mapping
    of `generation` (int, from 1), `notBefore` (RFC 3339, UTC) and `validDays` (int: the lifetime it was issued for);
    `renewal` (str: a description of the newest renewal).
    """

    current: pulumi.Output[str]
    a: pulumi.Output[Mapping[str, Any]]
    b: pulumi.Output[Mapping[str, Any]]
    renewal: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        lifetime_days: pulumi.Input[int],
        renew_before_days: pulumi.Input[int],
        mode: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"lifetime_days": lifetime_days, "renew_before_days": renew_before_days, "mode": mode}
        super().__init__("RenewalSchedule", name, inputs, ("current", "a", "b", "renewal"), opts)


class Certificate(_PluginResource):
    """A self-signed RSA client certificate with its key (`provider/certificate.py`); a new generation replaces it.

    Args: `common_name` (1-64 characters), `key_size` in bits and `lifetime_days`, which all apply from the next
    generation on; `generation` of the slot it is issued for; `not_before` (RFC 3339, UTC).

    Outputs: `certificate_pem` (str); `private_key_pem` (str, PKCS#8, secret); `thumbprint` (SHA-1, upper-case
    hexadecimal); `not_after` (RFC 3339, UTC, known in previews).
    """

    certificate_pem: pulumi.Output[str]
    private_key_pem: pulumi.Output[str]
    thumbprint: pulumi.Output[str]
    not_before: pulumi.Output[str]
    not_after: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        common_name: pulumi.Input[str],
        key_size: pulumi.Input[int],
        lifetime_days: pulumi.Input[int],
        generation: pulumi.Input[int],
        not_before: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "common_name": common_name,
            "key_size": key_size,
            "lifetime_days": lifetime_days,
            "generation": generation,
            "not_before": not_before,
        }
        # The plugin marks the key as secret, too; this mark remains if that one is lost.
        secret = pulumi.ResourceOptions(additional_secret_outputs=["private_key_pem"])
        outputs = ("certificate_pem", "private_key_pem", "thumbprint", "not_after")
        super().__init__("Certificate", name, inputs, outputs, pulumi.ResourceOptions.merge(opts, secret))


class SignInGate(_PluginResource):
    """Proves that Entra ID knows a certificate before anything relies on it (`provider/sign_in_gate.py`).

    Args: `authority_host` (https URL); `tenant_id`, `client_id`; `certificate_pem` and `private_key_pem` (secret);
    `registration`: the id under which the certificate is registered, which orders the gate after it; `scope` to ask
    a token for; `successes` in a row over `settle_seconds`, within `timeout_seconds`.

    Outputs: `proven_at` (RFC 3339, UTC; unknown in previews of a new proof); `thumbprint` of the proven certificate.
    """

    proven_at: pulumi.Output[str]
    thumbprint: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        authority_host: pulumi.Input[str],
        tenant_id: pulumi.Input[str],
        client_id: pulumi.Input[str],
        certificate_pem: pulumi.Input[str],
        private_key_pem: pulumi.Input[str],
        registration: pulumi.Input[str],
        scope: pulumi.Input[str],
        successes: pulumi.Input[int],
        settle_seconds: pulumi.Input[int],
        timeout_seconds: pulumi.Input[int],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "authority_host": authority_host,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "certificate_pem": certificate_pem,
            "private_key_pem": private_key_pem,
            "registration": registration,
            "scope": scope,
            "successes": successes,
            "settle_seconds": settle_seconds,
            "timeout_seconds": timeout_seconds,
        }
        secret = pulumi.ResourceOptions(additional_secret_outputs=["private_key_pem"])
        opts = pulumi.ResourceOptions.merge(opts, secret)
        super().__init__("SignInGate", name, inputs, ("proven_at", "thumbprint"), opts)


class ClusterGate(_PluginResource):
    """Proves that a new management cluster can be used (`provider/cluster_gate.py`): name it in `depends_on`.

    Args: the cluster's `cluster_id` (ARM id), `cluster_uid` and `has_azure_rbac`; `kubeconfig` (secret); `kinds` that
    must be served, each `<group>/<version>/<plural>`; `timeout_seconds`.

    Outputs: `opened_at` (RFC 3339, UTC; unknown in previews of a new proof).
    """

    opened_at: pulumi.Output[str]

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
        secret = pulumi.ResourceOptions(additional_secret_outputs=["kubeconfig"])
        super().__init__("ClusterGate", name, inputs, ("opened_at",), pulumi.ResourceOptions.merge(opts, secret))
