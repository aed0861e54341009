"""Credential source `entra-application`: an Entra application whose certificates the stack issues and renews.

A renewal schedule reads the vault and decides when which of two slots is issued. At first there is one slot; the second
appears with the first renewal. A run issues, registers and gates in this order. A resource that uses `document` waits
for the gate of the current slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_azuread as azuread
from cryptography import x509

from components.azure.credential_secret import summary_of
from components.azure.providers import application_tags, provider_error
from components.plugin.resources import Certificate, RenewalSchedule, SignInGate
from identity import resource_types
from identity.credentials import rfc3339
from identity.credentials.certificate import thumbprint
from identity.credentials.certificate_rules import LONGEST_COMMON_NAME
from identity.credentials.schedule import SLOTS, age_when_due
from identity.plugin_schema import CertificateSlot, CredentialDocument, RegistrableCertificate
from identity.settings import Settings


@dataclass(frozen=True, kw_only=True)
class EntraApplicationArgs:
    """Inputs of `EntraApplication`. `owner` is the deployer's object id, `stack_owner` the stack's owner id (None in a
    run that only renews, which leaves the application as it is).

    `vault_id` (ARM id), `secret_name` and `object_encoding` say where and how the credential is delivered, `delivered`
    (`a1`) what the last complete run left there.
    """

    display_name: str
    settings: Settings
    owner: str
    stack_owner: pulumi.Input[str] | None
    vault_id: str
    secret_name: str
    object_encoding: str
    delivered: str | None


class EntraApplication(pulumi.ComponentResource):
    """Application, service principal, and the certificate slots.

    Outputs: `client_id`, `principal_id` (Output[str]); of the current slot `document` (CredentialDocument) and
    `summary` (CredentialSummary), which is `shown` in the state.
    """

    def __init__(self, name: str, args: EntraApplicationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:EntraApplication", name, None, opts)
        self._name, self._args = name, args
        self._proof = pulumi.ResourceHook(f"{name}-proof", self._require_registrable)
        # The permission Application.ReadWrite.OwnedBy covers owned objects only. The identity of the first run stays
        # the owner: a preview by another identity must not show a change.
        ownership = pulumi.ResourceOptions(parent=self, ignore_changes=["owners"])
        self._application = azuread.Application(
            f"{name}-application",
            display_name=args.display_name,
            owners=[args.owner],
            # Entra ID accepts a second application of the same name; the tags identify this one.
            tags=application_tags(name, args.stack_owner),
            opts=pulumi.ResourceOptions.merge(ownership, pulumi.ResourceOptions(protect=args.settings.protect)),
        )
        self._principal = azuread.ServicePrincipal(
            f"{name}-principal", client_id=self._application.client_id, owners=[args.owner], opts=ownership
        )
        settings = args.settings
        schedule = RenewalSchedule(
            f"{name}-schedule",
            lifetimeDays=settings.credentials.lifetime_days,
            renewBeforeDays=settings.credentials.renew_before_days,
            mode=settings.credentials.renewal,
            cloud=settings.cloud.name,
            tenantId=settings.tenant_id,
            vaultId=args.vault_id,
            secretName=args.secret_name,
            objectEncoding=args.object_encoding,
            authorityHost=settings.cloud.authority_host,
            clientId=self._application.client_id,
            delivered=args.delivered,
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
        args, child = self._args, pulumi.ResourceOptions(parent=self)
        credentials, cloud = args.settings.credentials, args.settings.cloud
        number = int(issue["generation"])  # the engine knows numbers with a fraction only
        certificate = Certificate(
            f"{self._name}-certificate-{slot}",
            commonName=args.display_name[:LONGEST_COMMON_NAME],
            keySize=credentials.key_size,
            lifetimeDays=credentials.lifetime_days,
            generation=number,
            notBefore=issue["notBefore"],
            cloud=cloud.name,
            tenantId=args.settings.tenant_id,
            applicationId=self._application.id,
            opts=child,
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
            authorityHost=cloud.authority_host,
            cloud=cloud.name,
            tenantId=args.settings.tenant_id,
            vaultId=args.vault_id,
            secretName=args.secret_name,
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
        """Stop a registration that only the state justifies (`provider/registration_proof.py`).

        If somebody removed a certificate from Entra ID, a refresh removes its registration from the state, and the
        engine would make it again.
        """
        # azuread marks it as a secret.
        value = await pulumi.Output.from_input((creation.new_inputs or {})["value"]).future()
        certificate = x509.load_pem_x509_certificate(str(value).encode())
        args, settings = self._args, self._args.settings
        question: RegistrableCertificate = {
            "cloud": settings.cloud.name,
            "tenantId": settings.tenant_id,
            "vaultId": args.vault_id,
            "secretName": args.secret_name,
            "thumbprint": thumbprint(certificate),
            "notBefore": rfc3339.render(certificate.not_valid_before_utc),
        }
        try:
            options = pulumi.InvokeOptions(parent=self)
            await pulumi.runtime.invoke_async(resource_types.REQUIRE_REGISTRABLE, {**question}, options)
        except Exception as error:
            raise pulumi.RunError(provider_error(error)) from None

    def _renew_after(self, not_before: str, not_after: str) -> str:
        start, end = rfc3339.parse(not_before), rfc3339.parse(not_after)
        # As in the schedule: by the lifetime that this certificate was issued for, whatever the settings have now.
        renew_before = self._args.settings.credentials.renew_before_days
        return rfc3339.render(start + age_when_due((end - start).days, renew_before, self._args.secret_name))
