"""One identity of the hosted control plane: its credential, the secret that carries it to pods, and its roles.

With the credential source `entra-application` the stack issues and renews certificates. A renewal schedule reads the
vault and decides when which of two slots is issued. At first there is one slot; the second appears with the first
renewal. A run issues, registers and gates in this order. A resource that uses `document` waits for the gate of the
current slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import pulumi
import pulumi_azuread as azuread
from cryptography import x509

from components.azure.context import ClusterContext
from components.azure.providers import application_tags, ask_own_plugin
from components.azure.role_grants import grant_at, grant_role
from components.azure.vault import KEY_VAULT_USER_COMPONENT
from components.plugin.resources import Certificate, CredentialSecret, HsmRoleAssignment, RenewalSchedule, SignInGate
from identity import resource_types
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.credentials.certificate import thumbprint
from identity.credentials.certificate_rules import LONGEST_COMMON_NAME
from identity.credentials.schedule import SLOTS, due_at
from identity.naming import role_assignment_name, secret_id, secret_reader_name
from identity.plugin_schema import CertificateSlot, CredentialDocument, RegistrableCertificate
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE, MANAGED_HSM_CRYPTO_USER
from identity.settings.scopes import control_plane_grant, hsm_keys, kms_vault_label


class CredentialSummary(TypedDict):
    """What the stack's outputs show of a credential. Dates are RFC 3339 in UTC; nothing of it is secret.

    If another tool stored the credential in the vault, its thumbprint is None, and each date that it did not write.
    Only a certificate that the stack issued has a generation.
    """

    notAfter: pulumi.Input[str] | None
    renewAfter: pulumi.Input[str] | None
    thumbprint: pulumi.Input[str] | None  # SHA-1, upper-case hexadecimal
    generation: pulumi.Input[str] | None  # slot and number (`a2`)


def summary_of(document: CredentialDocument[pulumi.Input[str]]) -> CredentialSummary:
    """The summary of a credential whose document the stack knows."""
    return {
        "notAfter": document["notAfter"],
        "renewAfter": document["renewAfter"],
        "thumbprint": document["thumbprint"],
        "generation": document.get("generation"),
    }


@dataclass(frozen=True, kw_only=True)
class ImportedCredential:
    """The credential of a managed identity, whose object id is `principal_id`. Its attributes are those of
    `EntraApplication`.

    `document` is the one in a file. It is None if the vault has it already: ARM shows its dates, which are attributes
    and tags of the secret.
    """

    client_id: str
    principal_id: str
    document: CredentialDocument[pulumi.Input[str]] | None
    summary: CredentialSummary


class EntraApplication(pulumi.ComponentResource):
    """Application, service principal, and the certificate slots.

    `delivered` (`a1`) is what the last complete run left in the vault. Outputs: `client_id`, `principal_id`
    (Output[str]); of the current slot `document` (CredentialDocument) and `summary` (CredentialSummary), which is
    `shown` in the state.
    """

    def __init__(
        self,
        name: str,
        context: ClusterContext,
        row: ControlPlaneIdentity,
        delivered: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("idstack:azure:EntraApplication", name, None, opts)
        settings, identity = context.settings, context.cluster.identity(row)
        self._name, self._settings = name, settings
        self._display_name = f"{row.secret_stem}-{context.cluster.name}"
        self._address = context.in_vault(identity.secret_name)
        self._proof = pulumi.ResourceHook(f"{name}-proof", self._require_registrable)
        # The permission Application.ReadWrite.OwnedBy covers owned objects only. The identity of the first run stays
        # the owner: a preview by another identity must not show a change.
        owners = [context.deployer.object_id]
        ownership = pulumi.ResourceOptions(parent=self, ignore_changes=["owners"])
        self._application = azuread.Application(
            f"{name}-application",
            display_name=self._display_name,
            owners=owners,
            # Entra ID accepts a second application of the same name; the tags identify this one.
            tags=application_tags(name, context.stack_owner),
            opts=pulumi.ResourceOptions.merge(ownership, pulumi.ResourceOptions(protect=settings.protect)),
        )
        self._principal = azuread.ServicePrincipal(
            f"{name}-principal", client_id=self._application.client_id, owners=owners, opts=ownership
        )
        schedule = RenewalSchedule(
            f"{name}-schedule",
            **self._address,
            lifetimeDays=settings.credentials.lifetime_days,
            renewBeforeDays=settings.credentials.renew_before_days,
            mode=settings.credentials.renewal,
            objectEncoding=identity.object_encoding,
            authorityHost=settings.cloud.authority_host,
            clientId=self._application.client_id,
            delivered=delivered,
            opts=pulumi.ResourceOptions(parent=self),
        )
        outputs = schedule.outputs
        decided = pulumi.Output.all(current=outputs["current"], a=outputs["a"], b=outputs["b"])
        current = decided.apply(self._issued)
        self.client_id: pulumi.Output[str] = self._application.client_id
        self.principal_id: pulumi.Output[str] = self._principal.object_id
        self.document: CredentialDocument[pulumi.Input[str]] = {
            "authorityHost": settings.cloud.authority_host,
            "clientId": self.client_id,
            "objectId": self.principal_id,
            "thumbprint": current["thumbprint"],
            "generation": current["generation"],
            "provenAt": current["provenAt"],
            "notBefore": current["notBefore"],
            "notAfter": current["notAfter"],
            "renewAfter": current["renewAfter"],
            "cannotRenewAfter": current["notAfter"],
        }
        self.summary = summary_of(self.document)
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id, "shown": self.summary})

    def _issued(self, decided: Mapping[str, Any]) -> Mapping[str, pulumi.Input[str]]:
        """Register what belongs to each slot that has a certificate; returns the current one's part of the document.

        Inside of `apply`, because only the schedule knows the slots. It knows them in every preview, too.
        """
        slots = {slot: self._slot(slot, decided[slot]) for slot in SLOTS if decided[slot]}
        return slots[decided["current"]]

    def _slot(self, slot: str, issue: CertificateSlot) -> Mapping[str, pulumi.Input[str]]:
        credentials, cloud = self._settings.credentials, self._settings.cloud
        number = int(issue["generation"])  # the engine knows numbers with a fraction only
        certificate = Certificate(
            f"{self._name}-certificate-{slot}",
            commonName=self._display_name[:LONGEST_COMMON_NAME],
            keySize=credentials.key_size,
            lifetimeDays=credentials.lifetime_days,
            generation=number,
            notBefore=issue["notBefore"],
            cloud=cloud.name,
            tenantId=self._settings.tenant_id,
            applicationId=self._application.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        registration = azuread.ApplicationCertificate(
            f"{self._name}-registration-{slot}",
            application_id=self._application.id,
            key_id=certificate.outputs["keyId"],
            type="AsymmetricX509Cert",
            value=certificate.outputs["certificatePem"],
            start_date=issue["notBefore"],
            end_date=certificate.outputs["notAfter"],
            # Pods do not use a slot that is issued again, and an application can have few keys.
            opts=pulumi.ResourceOptions(
                parent=self,
                delete_before_replace=True,
                hooks=pulumi.ResourceHookBinding(before_create=[self._proof]),
            ),
        )
        gate = SignInGate(
            f"{self._name}-gate-{slot}",
            **self._address,
            authorityHost=cloud.authority_host,
            clientId=self._application.client_id,
            thumbprint=certificate.outputs["thumbprint"],
            registration=registration.key_id,
            scope=cloud.arm_scope,
            successes=credentials.propagation.successes,
            settleSeconds=credentials.propagation.settle_seconds,
            timeoutSeconds=credentials.propagation.timeout_seconds,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._principal]),
        )
        ends = certificate.outputs["notAfter"]
        return {
            "thumbprint": certificate.outputs["thumbprint"],
            "generation": f"{slot}{number}",
            "provenAt": gate.outputs["provenAt"],
            "notBefore": issue["notBefore"],
            "notAfter": ends,
            "renewAfter": ends.apply(lambda end: self._renew_after(issue["notBefore"], end)),
        }

    async def _require_registrable(self, creation: pulumi.ResourceHookArgs) -> None:
        """Stop a registration that only the state justifies (`provider/sign_in_gate.py`).

        If somebody removed a certificate from Entra ID, a refresh removes its registration from the state, and the
        engine would make it again.
        """
        # azuread marks it as a secret.
        value = await pulumi.Output.from_input((creation.new_inputs or {})["value"]).future()
        certificate = x509.load_pem_x509_certificate(str(value).encode())
        question: RegistrableCertificate = {
            **self._address,
            "thumbprint": thumbprint(certificate),
            "notBefore": rfc3339.render(certificate.not_valid_before_utc),
        }
        await ask_own_plugin(resource_types.REQUIRE_REGISTRABLE, question, pulumi.InvokeOptions(parent=self))

    def _renew_after(self, not_before: str, not_after: str) -> str:
        start, end = rfc3339.parse(not_before), rfc3339.parse(not_after)
        # As in the schedule: by the lifetime that this certificate was issued for, whatever the settings have now.
        renew_before = self._settings.credentials.renew_before_days
        return rfc3339.render(due_at(start, (end - start).days, renew_before, self._address["secretName"]))


class ControlPlaneIdentityComponent(pulumi.ComponentResource):
    """Credential source -> credential document -> Key Vault secret, and the identity's role at each of its scopes.

    A managed identity's credential is `imported`, any other one issued; `delivered` is as in `EntraApplication`.

    Outputs: `client_id`, `principal_id` (Input[str]), `secret_name` (str), `summary` (Input[CredentialSummary]).

    Resources that need the identity depend on `usable` (its secret, its roles) and not on the whole component: a target
    that leaves the program stays if a resource outside of the targets depends on it (pulumi/pulumi v3.259
    `step_generator.go`, `getDependencySteps`), and so would a leaked certificate.
    """

    def __init__(
        self,
        name: str,
        context: ClusterContext,
        row: ControlPlaneIdentity,
        imported: ImportedCredential | None,
        delivered: str | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.CONTROL_PLANE_IDENTITY, name, None, opts)
        settings, cluster, store = context.settings, context.cluster, context.store
        identity = cluster.identity(row)
        self.secret_name = identity.secret_name
        child = pulumi.ResourceOptions(parent=self)
        self.usable: list[pulumi.Resource] = []
        source = imported or EntraApplication(f"{name}-entra", context, row, delivered, child)
        self.summary: CredentialSummary | pulumi.Output[CredentialSummary] = source.summary
        if source.document is not None:
            # In msi-dataplane's storage format (pkg/dataplane/keyvault.go). The secret's attributes have the validity,
            # its tags the renewal dates, certificate and generation. A renewal is a new version of the same secret.
            secret = CredentialSecret(
                f"{name}-credential-secret",
                **context.in_vault(identity.secret_name),
                objectEncoding=identity.object_encoding,
                tags=settings.tags,
                ownerId=context.stack_owner,
                **source.document,
                opts=pulumi.ResourceOptions(parent=self, depends_on=store.vault),
            )
            self.usable.append(secret)
            # The outputs name what was delivered, also in a run that goes on after an error.
            delivery = pulumi.Output.all(summary=source.summary, at=secret.outputs["deliveredAt"])
            self.summary = delivery.apply(lambda known: known["summary"])
        if store.key_vault_user_object_id is not None:
            # After the secret: ARM assigns a role at a resource that exists.
            self.usable.append(
                grant_at(
                    secret_reader_name(name),
                    self,
                    context,
                    KEY_VAULT_USER_COMPONENT,
                    KEY_VAULT_SECRETS_USER_ROLE,
                    {"secret": secret_id(store.vault_id, identity.secret_name)},
                    store.key_vault_user_object_id,
                    after=[*self.usable, *store.vault],
                )
            )
        grant = control_plane_grant(settings, cluster, row)
        self.usable.append(grant_role(f"{name}-roles", self, context, row.component, grant, source.principal_id))
        for hsm, key in hsm_keys(cluster, grant):
            scope = f"/keys/{key}"
            role = HsmRoleAssignment(
                # With the key in its name: another key's assignment is made before this one goes.
                f"{name}-roles-{kms_vault_label(hsm)}-{key.lower()}",
                cloud=settings.cloud.name,
                tenantId=settings.tenant_id,
                hsm=hsm,
                scope=scope,
                name=role_assignment_name(cluster.infra_id, row.component, f"{hsm}{scope}"),
                roleDefinition=MANAGED_HSM_CRYPTO_USER,
                principalId=source.principal_id,
                opts=child,
            )
            self.usable.append(role)
        self.client_id: pulumi.Input[str] = source.client_id
        self.principal_id: pulumi.Input[str] = source.principal_id
        self.register_outputs(
            {"client_id": self.client_id, "principal_id": self.principal_id, "secret_name": self.secret_name}
        )
