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
from identity.azure.registered_certificates import RegisteredKey, registered_at, withdraw_all, withdraw_all_but
from identity.clouds import LOCAL_CLOUD
from identity.credentials import renewal_request, rfc3339, schedule
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    SLOTS,
    BeginsInFutureError,
    ContradictionError,
    Decision,
    Delivery,
    NotDeliveredError,
    NotYetError,
    ObservedSecret,
    RenewalRefusedError,
    Slot,
    Slots,
    TakenOutError,
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
from identity.symptoms import fix_of_read
from plugin import PluginError, Props, contains_unknown, pause
from provider import cloud
from provider.cloud import azure_time, require_right
from provider.resource import Inputs, RefusedInputError, TypedResource, name_of, plugin_errors, rotation, same
from provider.vault_secrets import SecretPrefetch, SecretReading, VaultSecret


def in_words(
    error: RenewalRefusedError, urn: str, slots: Slots | None, vault: ObservedSecret, inputs: RenewalScheduleInputs[str]
) -> str:
    """The refusal for the user; `slots` is None before the first certificate, the others are the schedule's."""
    match error:
        case NotYetError():
            return _too_soon(error, urn, slots, inputs)
        case TakenOutError():
            return (
                f"somebody took {error}, which {inputs['secretName']} in the vault has, out of Entra ID. If its key "
                f"has leaked, run {rotation(urn, '--revoke --now')}; if it was a mistake, "
                f"{rotation(urn, '--register')} registers it again"
            )
        case BeginsInFutureError():
            return _in_future(error, slots, vault, inputs)
        case ContradictionError() if slots is not None:
            return _contradiction(error, urn, slots, inputs)
        case NotDeliveredError() if slots is not None:
            return (
                f"slot {slots.spare} is not withdrawn, because the certificate of slot {slots.current} has not reached "
                "the vault yet: run `.venv/bin/idstack up` until it has, then try again; "
                f"{rotation(urn, '--revoke --now')} takes a leaked key out first"
            )
    raise AssertionError("only a schedule with slots has a contradiction or a withdrawal")


def _too_soon(refusal: NotYetError, urn: str, slots: Slots | None, inputs: RenewalScheduleInputs[str]) -> str:
    if slots is None:
        return (
            f"{refusal.reason} any more, and pods may still sign in with a certificate of slot {refusal.spare} until "
            f"{rfc3339.render(refusal.until)}, which a new one would withdraw. Wait until then"
        )
    return (
        f"a certificate is needed ({refusal.reason}), but one now would replace that of slot {refusal.spare}, with "
        f"which pods may still sign in until {rfc3339.render(refusal.until)}: they load a new one when the CSI driver "
        f"has polled and at the latest 6 hours later. Wait until then (if {inputs['secretName']} was deleted from the "
        f"vault, recover it), or run {rotation(urn, '--force')}, which names those pods"
    )


def _contradiction(refusal: ContradictionError, urn: str, slots: Slots, inputs: RenewalScheduleInputs[str]) -> str:
    return (
        f"no certificate is issued, as it would take the place of one that pods may use: {inputs['secretName']} in the "
        f"vault {refusal}. If the vault still has the version that the stack wrote last, make its value and its tags "
        f"current again. Or run {rotation(urn, '--force')}: it issues another certificate in slot {slots.spare}, and "
        "pods that use that slot's cannot sign in until they load it; restart them then"
    )


def _in_future(
    refusal: BeginsInFutureError, slots: Slots | None, vault: ObservedSecret, inputs: RenewalScheduleInputs[str]
) -> str:
    at, secret = rfc3339.render(refusal.at), VaultSecret.of(inputs)
    if refusal.at != vault.not_before:
        return (
            f"no certificate is issued, as it would have to come after one that begins at {at}: that one was issued by "
            "a wrong clock. Pods would not load another one before; wait until then"
        )
    tagged = vault.delivery if slots is not None and vault.delivery and slots.have(vault.delivery) else None
    slot = slots.slot(tagged.slot) if slots is not None and tagged is not None else None
    begin = rfc3339.render(slot.not_before) if slot is not None else "<when its certificate begins>"
    command = f"az keyvault secret set-attributes --vault-name {secret.vault} --name {secret.name} --not-before {begin}"
    if inputs["cloud"] == LOCAL_CLOUD:  # it needs its environment
        command = f".venv/bin/idstack local exec -- {command}"
    return (
        f"no certificate is issued, as {secret.id} begins (nbf) at {at}, later than now, and the next one would have "
        f"to begin later still. Somebody edited that date: put it right (`{command}`), then run the command again"
    )


# Where the secret is.
_ADDRESS: Final = ("vaultId", "secretName")
# What a document in the vault was made of: if one of these changes, it takes another certificate to write another.
_DOCUMENT: Final = (*_ADDRESS, "objectEncoding", "authorityHost")
# From a revocation to the next delivery: nothing in the vault signs in.
_REVOKED: Final[DeliveryRecord] = {"name": "nothing"}


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
        report.require_days("lifetimeDays", since=azure_time(inputs.get("cloud", "")))

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: Mapping[str, Any]) -> Props:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first one.

        A renewal that a person asks for comes first, whatever the mode.
        """
        new = cast(RenewalScheduleInputs[str], inputs)
        lifetime, now = new["lifetimeDays"], azure_time(new["cloud"])
        reading = self._read(new)
        vault = _vault(reading.metadata, now)
        if old is None:
            require_right(reading.local_time, reading.azure_time)
            try:
                return _written(schedule.initial(now, lifetime, vault, _used(new, reading.metadata, vault.delivery)))
            except RenewalRefusedError as refusal:
                raise RefusedInputError("", in_words(refusal, urn, None, vault, new)) from None
        terms = Terms(
            lifetime_days=lifetime,
            renew_before_days=new["renewBeforeDays"],
            secret_name=new["secretName"],
            hold=new["mode"] == "hold",
            is_stale=not all(same(old, inputs, name) for name in _DOCUMENT),
            is_replaced=old.get("delivered") == _REVOKED,
            request=_request(urn),
        )
        slots = _slots(old)
        if _is_earlier(new, reading.metadata, slots.shown_by(vault), slots):
            vault = replace(vault, is_earlier=True)
        try:
            decision = schedule.decide(slots, vault, self._known(old, new, now), now, terms)
        except RenewalRefusedError as refusal:
            raise RefusedInputError("", in_words(refusal, urn, slots, vault, new)) from None
        if decision.slots != slots:
            require_right(reading.local_time, reading.azure_time)
        written = _written(decision, old["renewal"])
        if decision.delivered is None and (terms.is_replaced or terms.request is RenewalRequest.REPLACE):
            written["delivered"] = _REVOKED
        return written

    def planned(self, inputs: RenewalScheduleState) -> Props:
        """Everything is known."""
        return _outputs(inputs)

    def make(self, urn: str, inputs: RenewalScheduleState) -> tuple[str, Mapping[str, Any]]:
        """Keep the inputs."""
        return name_of(urn), _outputs(inputs)

    def live(self, urn: str, inputs: RenewalScheduleState) -> Mapping[str, Any] | None:
        """The slots. One whose certificate is not registered at Entra ID is withdrawn.

        Its removal may have been meant to last, after a leak for instance: no later run registers it again by itself.
        """
        if not inputs:
            return {}
        registered = _registered(inputs)
        if registered is None:
            return {}
        begins = {key.begins for key in registered if key.is_ours}
        slots = _slots(inputs)
        return {
            name: _slot(replace(slot, is_withdrawn=slot.not_before not in begins))
            for name in SLOTS
            if (slot := slots.slot(name)) is not None
        }

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
        with plugin_errors("the leaked certificate may still be registered", ". Run the command again"):
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
                f"the vault decides which certificate is renewed, and {secret} cannot be read: {error}; "
                f"{fix_of_read(str(error))}"
            ) from None

    def _known(self, old: Mapping[str, Any], new: RenewalScheduleInputs[str], now: datetime) -> Delivery | None:
        """The newest delivery that the vault showed before, here or at the last address, or that the stack knows."""
        return max(self._remembered(old, new, now), key=lambda delivery: delivery.generation, default=None)

    def _remembered(self, old: Mapping[str, Any], new: RenewalScheduleInputs[str], now: datetime) -> Iterator[Delivery]:
        if not all(same(old, new, name) for name in _ADDRESS):
            before = self._read(cast(VaultAddress, {**new, **{name: old[name] for name in _ADDRESS}}))
            if before.metadata is not None and (delivery := _delivery(before.metadata, now)):
                yield delivery
        record: DeliveryRecord | None = old.get("delivered")
        if record and record != _REVOKED and (delivery := Delivery.named(record["name"], rfc3339.parse(record["at"]))):
            yield delivery
        # The last complete run recorded no time; it was not before the certificate began.
        name = new.get("delivered")
        if isinstance(name, str) and (slot := old.get(name[:1])):
            yield from filter(None, [Delivery.named(name, rfc3339.parse(slot["notBefore"]))])


def _used(inputs: RenewalScheduleInputs[str], current: SecretMetadata | None, delivery: Delivery | None) -> Slot | None:
    """The vault's certificate, if the last complete run delivered it and it is registered: the state lost its schedule.

    A new application has no registration yet, and a stack that lost its whole state no record of a delivery.
    """
    if current is None or delivery is None or inputs.get("delivered") != delivery.name or contains_unknown(inputs):
        return None
    for key in _registered(inputs) or ():
        if (key.thumbprint, key.begins) == (current.tags.get(THUMBPRINT), current.not_before):
            return Slot(delivery.generation, key.begins, (key.ends - key.begins).days)
    return None


def _is_earlier(
    inputs: RenewalScheduleInputs[str], current: SecretMetadata | None, shown: Delivery | None, slots: Slots
) -> bool:
    """Whether Entra ID has another certificate in the place of the vault's, which no complete run has delivered.

    A secret that was recovered from its deletion may have the name and the start of a certificate that never reached
    the vault, as certificates begin at the hour.
    """
    slot = None if shown is None else slots.slot(shown.slot)
    is_proven = shown is not None and inputs.get("delivered") == shown.name
    if current is None or slot is None or is_proven or contains_unknown(inputs):
        return False
    registered = _registered(inputs) or ()
    thumbprints = {key.thumbprint for key in registered if key.is_ours and key.begins == slot.not_before}
    return bool(thumbprints) and current.tags.get(THUMBPRINT) not in thumbprints


def _registered(inputs: RenewalScheduleInputs[str] | RenewalScheduleState) -> list[RegisteredKey] | None:
    """The certificates at Entra ID; None if the application does not exist."""
    with plugin_errors("which certificates are registered at Entra ID cannot be seen"):
        return registered_at(cloud.client(inputs["cloud"], inputs["tenantId"]), _application(inputs))


def _application(inputs: RenewalScheduleInputs[str] | RenewalScheduleState) -> str:
    return f"/applications(appId='{inputs['clientId']}')"


def _request(urn: str) -> RenewalRequest | None:
    try:
        return renewal_request.read(name_of(urn), os.environ)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _vault(current: SecretMetadata | None, now: datetime) -> ObservedSecret:
    if current is None:
        return ObservedSecret()
    return ObservedSecret(True, _delivery(current, now), current.not_before, current.created)


def _delivery(current: SecretMetadata, now: datetime) -> Delivery | None:
    # A tag may be edited, a version's creation not. Only a clock that was stopped before that leaves the tag.
    at = current.created
    with suppress(ValueError):
        at = at if at <= now else min(at, rfc3339.parse(current.tags.get(DELIVERED_AT, "")))
    return Delivery.named(current.tags.get(GENERATION, ""), at)


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
