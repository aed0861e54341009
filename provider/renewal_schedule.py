"""`RenewalScheduleResource`: which of an identity's two certificate slots is current, and which is issued next.

Check looks at the vault and the clock and writes its decision into the inputs, so a preview shows a renewal as a
changed property, and the generations of both slots are known before anything is created. A Reader sees what the
deployer sees. The rule is `identity/credentials/schedule.py`; a person may ask for a renewal before its time
(`identity/credentials/renewal_request.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.azure.registered_certificates import registered_at, withdraw_all, withdraw_all_but
from identity.credentials import renewal_request, rfc3339, schedule
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    SLOTS,
    Decision,
    Delivery,
    ObservedSecret,
    RenewalRefusedError,
    Slot,
    Slots,
    Terms,
)
from identity.credentials.secret_tags import DELIVERED_AT, GENERATION, THUMBPRINT
from identity.plugin_schema import (
    CertificateSlot,
    DeliveryRecord,
    RenewalScheduleInputs,
    RenewalScheduleState,
    VaultAddress,
)
from plugin import PluginError, Props, pause
from provider import clock, cloud
from provider.inputs import Inputs
from provider.resource import RefusedInputError, TypedResource, explained, name_of
from provider.schedule_refusals import in_words
from provider.secret_prefetch import SecretPrefetch
from provider.vault_secrets import SecretReading, VaultSecret

# Where the secret is.
_ADDRESS: Final = ("vaultId", "secretName")
# What a document in the vault was made of: if one of these changes, it takes another certificate to write another.
_DOCUMENT: Final = (*_ADDRESS, "objectEncoding", "authorityHost")
# From a revocation to the next delivery: nothing in the vault signs in.
_NOTHING: Final[DeliveryRecord] = {"name": "nothing"}


class RenewalScheduleResource(TypedResource[RenewalScheduleState, Mapping[str, Any]]):
    """The outputs are the inputs after Check, in a preview as well. Another application starts again."""

    inputs = RenewalScheduleInputs
    dropped = frozenset({"mode", "delivered"})
    # The last delivery that was seen, kept for the day when the vault does not show it, is no part of the plan.
    uncompared = frozenset({"delivered"})
    replacing = frozenset({"clientId"})

    def __init__(self, prefetch: SecretPrefetch) -> None:
        self._prefetch = prefetch

    def require(self, inputs: RenewalScheduleState, report: Inputs) -> None:
        """A certificate ends before the calendar, and after it is renewed."""
        if not report.failures and inputs["renewBeforeDays"] >= inputs["lifetimeDays"]:
            report.refuse("renewBeforeDays", "less than lifetimeDays")
        report.require_days("lifetimeDays", since=clock.now(inputs.get("cloud", "")))

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: Mapping[str, Any]) -> Props:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first one.

        A renewal that a person asks for comes first, whatever the mode.
        """
        new = cast(RenewalScheduleInputs[str], inputs)
        lifetime, now = new["lifetimeDays"], clock.now(new["cloud"])
        reading = self._read(new)
        vault = _vault(reading.metadata)
        if old is None:
            clock.require_right(reading.local_time, reading.azure_time)
            try:
                return _written(schedule.initial(now, lifetime, vault))
            except RenewalRefusedError as refusal:
                raise RefusedInputError("", in_words(refusal, None, vault, new)) from None
        terms = Terms(
            lifetime_days=lifetime,
            renew_before_days=new["renewBeforeDays"],
            secret_name=new["secretName"],
            hold=new["mode"] == "hold",
            is_stale=any(old.get(name) != inputs[name] for name in _DOCUMENT),
            is_replaced=old.get("delivered") == _NOTHING,
            request=_request(urn),
        )
        slots = _slots(old)
        try:
            decision = schedule.decide(slots, vault, self._known(old, new), now, terms)
        except RenewalRefusedError as refusal:
            raise RefusedInputError("", in_words(refusal, slots, vault, new)) from None
        if decision.slots != slots:
            clock.require_right(reading.local_time, reading.azure_time)
        written = _written(decision, old["renewal"])
        if decision.delivered is None and (terms.is_replaced or terms.request is RenewalRequest.REPLACE):
            written["delivered"] = _NOTHING
        return written

    def planned(self, inputs: RenewalScheduleState) -> Props:
        """Everything is known."""
        return _outputs(inputs)

    def make(self, urn: str, inputs: RenewalScheduleState) -> tuple[str, Mapping[str, Any]]:
        """Keep the inputs."""
        return name_of(urn), _outputs(inputs)

    def live(self, urn: str, inputs: RenewalScheduleState) -> Mapping[str, Any] | None:
        """The slots. One whose certificate is neither registered at Entra ID nor in the vault is withdrawn.

        Its removal was meant to last, after a leak for instance: no later run registers it again. A slot whose
        certificate has ended is withdrawn as well, because Entra ID would not register it.
        """
        if not inputs:
            return {}
        with explained("which certificates are registered at Entra ID cannot be seen"):
            registered = registered_at(cloud.client(inputs["cloud"], inputs["tenantId"]), _application(inputs))
        if registered is None:
            return {}
        begins = {key.begins for key in registered if key.is_ours}
        slots, now = _slots(inputs), clock.now(inputs["cloud"])
        shown = slots.shown_by(_vault(self._read(inputs).metadata))
        in_vault = None if shown is None else shown.slot
        read: Props = {}
        for name in SLOTS:
            if (slot := slots.slot(name)) is not None:
                may_return = name == in_vault and not slot.has_ended(now)
                read[name] = _slot(replace(slot, is_withdrawn=slot.not_before not in begins and not may_return))
        return read

    def amend(
        self, urn: str, old: RenewalScheduleState, outputs: Mapping[str, Any], new: RenewalScheduleState
    ) -> Mapping[str, Any]:
        """After a leak certificates leave Entra ID here: all of them, or all but what the vault has.

        So no state names the new slots while an old one is still registered, no later run registers it again, and one
        that a restored state does not know of goes as well.
        """
        if (request := _request(urn)) is not None:
            self._withdraw(request, new)
        return _outputs(new)

    def _withdraw(self, request: RenewalRequest, inputs: RenewalScheduleState) -> None:
        with explained("the leaked certificate may still be registered", ". Run the command again"):
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            if request is RenewalRequest.REPLACE:
                withdraw_all(azure, _application(inputs), pause)
            current = self._read(inputs).metadata if request is RenewalRequest.WITHDRAW else None
            if current is not None:
                begins = rfc3339.parse(inputs[inputs["current"]]["notBefore"])
                withdraw_all_but(azure, _application(inputs), current.tags.get(THUMBPRINT), begins, pause)

    def _read(self, inputs: VaultAddress) -> SecretReading:
        try:
            return self._prefetch.get(inputs)
        except AccessError as error:
            secret = VaultSecret.of(inputs).id
            raise PluginError(
                f"the vault decides which certificate is renewed, and {secret} cannot be read: {error}. "
                "Let the identity that runs this read it (role Reader), then try again"
            ) from None

    def _known(self, old: Mapping[str, Any], new: RenewalScheduleInputs[str]) -> Delivery | None:
        """The newest delivery that the vault showed before, here or at the last address, or that the stack knows."""
        return max(self._remembered(old, new), key=lambda delivery: delivery.generation, default=None)

    def _remembered(self, old: Mapping[str, Any], new: RenewalScheduleInputs[str]) -> Iterator[Delivery]:
        if (old.get("vaultId"), old.get("secretName")) != (new["vaultId"], new["secretName"]):
            before = self._read(
                {
                    "cloud": new["cloud"],
                    "tenantId": new["tenantId"],
                    "vaultId": old["vaultId"],
                    "secretName": old["secretName"],
                }
            )
            if before.metadata is not None and (delivery := _delivery(before.metadata)):
                yield delivery
        record: DeliveryRecord | None = old.get("delivered")
        if record and record != _NOTHING and (delivery := Delivery.named(record["name"], rfc3339.parse(record["at"]))):
            yield delivery
        # The last complete run recorded no time; it was not before the certificate began.
        name = new.get("delivered")
        if isinstance(name, str) and (begun := _begun(old, name)) and (delivery := Delivery.named(name, begun)):
            yield delivery


def _application(inputs: RenewalScheduleState) -> str:
    return f"/applications(appId='{inputs['clientId']}')"


def _request(urn: str) -> RenewalRequest | None:
    try:
        return renewal_request.read(name_of(urn), os.environ)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _vault(current: SecretMetadata | None) -> ObservedSecret:
    if current is None:
        return ObservedSecret()
    return ObservedSecret(True, _delivery(current), current.not_before, current.created)


def _delivery(current: SecretMetadata) -> Delivery | None:
    # Anybody who may write secrets may edit a tag, and nobody the time at which a version was created.
    at = current.created
    with suppress(ValueError):
        at = min(at, rfc3339.parse(current.tags.get(DELIVERED_AT, "")))
    return Delivery.named(current.tags.get(GENERATION, ""), at)


def _begun(old: Mapping[str, Any], name: str) -> datetime | None:
    slot = old.get(name[:1])
    return rfc3339.parse(slot["notBefore"]) if slot else None


def _written(decision: Decision, before: str = "") -> Props:
    slots, delivered = decision.slots, decision.delivered
    written: Props = {name: _slot(slot) for name in SLOTS if (slot := slots.slot(name)) is not None}
    if delivered is not None:
        record: DeliveryRecord = {"name": delivered.name, "at": rfc3339.render(delivered.at)}
        written["delivered"] = record
    return {"current": slots.current, **written, "renewal": decision.why or before}


def _slot(slot: Slot) -> CertificateSlot:
    written: CertificateSlot = {
        "generation": slot.generation,
        "notBefore": rfc3339.render(slot.not_before),
        "validDays": slot.valid_days,
    }
    if slot.is_withdrawn:
        written["withdrawn"] = True
    return written


def _slots(old: Mapping[str, Any]) -> Slots:
    return Slots(old["current"], *(_parsed(old.get(name)) for name in SLOTS))


def _parsed(written: CertificateSlot | None) -> Slot | None:
    if written is None:
        return None
    begin, days = rfc3339.parse(written["notBefore"]), written["validDays"]
    return Slot(written["generation"], begin, days, written.get("withdrawn", False))


def _outputs(inputs: Mapping[str, Any]) -> Props:
    """A slot without a certificate is empty: an output that is missing in a preview is unknown to the program."""
    return {name: inputs.get(name, {}) for name in SLOTS}
