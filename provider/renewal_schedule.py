"""`RenewalScheduleResource`: which of an identity's two certificate slots is current, and which is issued anew when.

Check looks at the vault and the clock and writes its decision into the inputs, so a preview shows a renewal as a
changed property, and the generations of both slots are known before anything is created. A Reader sees what the
deployer sees. The rule is `identity/credentials/schedule.py`; a person may ask for a renewal before its time
(`identity/credentials/renewal_request.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, get_args

from identity.access.errors import AccessError
from identity.access.registered_certificates import withdraw_all, withdraw_all_but
from identity.credentials import renewal_request, rfc3339, schedule
from identity.credentials.renewal_request import RenewalRequest
from identity.credentials.schedule import (
    Decision,
    Delivery,
    NotDelivered,
    NotYet,
    ObservedSecret,
    Slot,
    SlotName,
    Slots,
    Terms,
)
from identity.credentials.secret_tags import DELIVERED_AT, GENERATION, THUMBPRINT
from plugin import (
    Checked,
    CheckFailure,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    diff_properties,
    pause,
    unwrap,
)
from provider import clock, cloud, schema
from provider.early_looks import EarlyLooks
from provider.inputs import Inputs
from provider.state_only import StateOnly
from provider.vault_secrets import SecretMetadata, SecretSeen, VaultSecret

_MODES: Final = ("auto", "hold")
_SLOTS: Final = get_args(SlotName)
# Where the secret is.
_ADDRESS: Final = ("vaultId", "secretName")
# What a document in the vault was made of: if one of these changes, it takes another certificate to write another.
_DOCUMENT: Final = (*_ADDRESS, "objectEncoding", "authorityHost")
# Another application is another identity.
_OWNER: Final = "clientId"
_STRINGS: Final = ("cloud", "tenantId", *_DOCUMENT, _OWNER)
# The last delivery that was seen, kept for the day when the vault does not show it. It is no part of the plan.
_DELIVERED: Final = "delivered"
# In its place from a revocation to the next delivery: nothing in the vault signs in.
_NOTHING: Final = {"name": "nothing"}
_DECIDED: Final = ("current", *_SLOTS, "renewal")


class RenewalScheduleResource(StateOnly):
    """Inputs of a program: `lifetimeDays`, `renewBeforeDays`, `mode`; `cloud`, `tenantId`, `vaultId`, `secretName`,
    `objectEncoding`, `authorityHost`, `clientId`, of which the document in the vault is made; `delivered` (`a1`): the
    certificate that the last complete run left there, if the stack knows of one.

    Inputs after Check, and outputs: the same, `current` (`a` or `b`), `a` and `b` (`generation`, `notBefore`,
    `validDays`; for a slot without a certificate absent, in outputs empty), `renewal` (the newest one, kept until the
    next).
    """

    def __init__(self, looks: EarlyLooks) -> None:
        self._looks = looks

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Decide on a renewal; `mode: hold` keeps the slots there are, but makes the first one.

        A renewal that a person asks for comes first, whatever the mode.
        """
        inputs = Inputs(new)
        now = clock.now(new.get("cloud", ""))
        lifetime = inputs.days("lifetimeDays", least=2, since=now)
        renew_before = inputs.integer("renewBeforeDays", least=1)
        if lifetime is not None and renew_before is not None and renew_before >= lifetime:
            inputs.refuse("renewBeforeDays", "less than lifetimeDays")
        if new.get("mode") not in _MODES:
            inputs.refuse("mode", " or ".join(_MODES))
        for name in _STRINGS:
            inputs.string(name)
        if inputs.failures or lifetime is None or renew_before is None:
            return Checked(new, inputs.failures)
        settings = {name: each for name, each in new.items() if name not in ("mode", _DELIVERED)}
        seen = self._look(new)
        vault = _vault(seen.found)
        if old is None:
            return Checked(settings | _written(schedule.initial(now, lifetime, vault)))
        known = unwrap(old)
        schema.require(known)
        terms = Terms(
            lifetime_days=lifetime,
            renew_before_days=renew_before,
            secret_name=new["secretName"],
            hold=new["mode"] == "hold",
            is_stale=any(known.get(name) != new[name] for name in _DOCUMENT),
            is_replaced=known.get(_DELIVERED) == _NOTHING,
            request=_request(urn),
        )
        slots = _slots(known)
        try:
            decision = schedule.decide(slots, vault, self._known(known, new), now, terms)
        except NotYet as refusal:
            return Checked(new, [CheckFailure("", _too_soon(refusal, new))])
        except NotDelivered:
            return Checked(new, [CheckFailure("", _not_delivered(slots))])
        if decision.slots != slots:
            clock.require_right(seen.here, seen.date)
        written = _written(decision, known["renewal"])
        if decision.delivered is None and (terms.is_replaced or terms.request is RenewalRequest.REPLACE):
            written[_DELIVERED] = _NOTHING
        return Checked(settings | written)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place, but another application begins anew."""
        old, new = (_without_delivery(each) for each in (old_inputs, new_inputs))
        changes = diff_properties(old, new)
        return Diff({path: PropertyChange(each.kind, replace=path == _OWNER) for path, each in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """The outputs are the inputs, in a preview as well."""
        return Created("" if preview else _name(urn), _outputs(inputs))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """The outputs are the inputs, in a preview as well.

        After a leak certificates leave Entra ID here: all of them, or all but what the vault has. So no state names the
        new slots while an old one is still registered, no later run registers it again, and one that a restored state
        does not know of goes as well.
        """
        if not preview and (request := _request(urn)) is not None:
            self._withdraw(request, new_inputs)
        return _outputs(new_inputs)

    def _withdraw(self, request: RenewalRequest, inputs: Mapping[str, Any]) -> None:
        application = f"/applications(appId='{inputs[_OWNER]}')"
        try:
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            if request is RenewalRequest.REPLACE:
                withdraw_all(azure, application, pause)
            found = self._look(inputs).found if request is RenewalRequest.WITHDRAW else None
            if found is not None:
                begins = rfc3339.parse(inputs[inputs["current"]]["notBefore"])
                withdraw_all_but(azure, application, found.tags.get(THUMBPRINT), begins, pause)
        except AccessError as error:
            raise PluginError(
                f"the leaked certificate may still be registered: {error}. Run the command again"
            ) from None

    def _look(self, inputs: Mapping[str, Any]) -> SecretSeen:
        """The secret at an address."""
        try:
            return self._looks.look(inputs)
        except AccessError as error:
            secret = VaultSecret.of(inputs).id
            raise PluginError(
                f"the vault decides which certificate is renewed, and {secret} cannot be read: {error}. "
                "Let whoever runs this read it (role Reader), then try again"
            ) from None

    def _known(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Delivery | None:
        """The newest delivery that the vault showed before, here or at the last address, or that the stack knows."""
        found = list(self._remembered(old, new))
        return max(found, key=lambda each: each.generation, default=None)

    def _remembered(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Delivery]:
        if any(old.get(name) != new[name] for name in _ADDRESS):
            before = self._look({**new, **{name: old[name] for name in _ADDRESS}})
            if before.found is not None and (delivery := _delivery(before.found)):
                yield delivery
        record = old.get(_DELIVERED)
        if record and record != _NOTHING and (delivery := Delivery.named(record["name"], rfc3339.parse(record["at"]))):
            yield delivery
        # The last complete run does not say when; not before the certificate began.
        name = new.get(_DELIVERED)
        if isinstance(name, str) and (begun := _begun(old, name)) and (delivery := Delivery.named(name, begun)):
            yield delivery


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _request(urn: str) -> RenewalRequest | None:
    try:
        return renewal_request.read(_name(urn), os.environ)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _vault(found: SecretMetadata | None) -> ObservedSecret:
    if found is None:
        return ObservedSecret()
    not_before = None if found.not_before is None else datetime.fromtimestamp(found.not_before, UTC)
    return ObservedSecret(True, _delivery(found), not_before)


def _delivery(found: SecretMetadata) -> Delivery | None:
    try:
        at = rfc3339.parse(found.tags.get(DELIVERED_AT, ""))
    except ValueError:
        at = datetime.fromtimestamp(found.created, UTC)
    return Delivery.named(found.tags.get(GENERATION, ""), at)


def _begun(old: Mapping[str, Any], name: str) -> datetime | None:
    slot = old.get(name[:1])
    return rfc3339.parse(slot["notBefore"]) if slot else None


def _written(decision: Decision, before: str = "") -> Props:
    slots, delivered = decision.slots, decision.delivered
    record = {} if delivered is None else {_DELIVERED: {"name": delivered.name, "at": rfc3339.render(delivered.at)}}
    written = {name: _slot(slot) for name in _SLOTS if (slot := slots.slot(name)) is not None}
    return schema.marked({"current": slots.current, **written, "renewal": decision.why or before, **record})


def _slot(slot: Slot) -> Props:
    return {
        "generation": slot.generation,
        "notBefore": rfc3339.render(slot.not_before),
        "validDays": slot.valid_days,
    }


def _slots(old: Mapping[str, Any]) -> Slots:
    return Slots(old["current"], *(_read(old.get(name)) for name in _SLOTS))


def _read(written: Mapping[str, Any] | None) -> Slot | None:
    if written is None:
        return None
    return Slot(written["generation"], rfc3339.parse(written["notBefore"]), written["validDays"])


def _outputs(inputs: Props) -> Props:
    """A slot without a certificate is empty: an output that is missing in a preview is unknown to the program."""
    return {name: {} for name in _SLOTS} | _without_delivery(inputs)


def _without_delivery(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name != _DELIVERED}


def _too_soon(refusal: NotYet, inputs: Mapping[str, Any]) -> str:
    return (
        f"a certificate is needed ({refusal.reason}), but one now would replace that of slot {refusal.spare}, with "
        f"which pods may still sign in until {rfc3339.render(refusal.until)}: they load a new one when the CSI driver "
        f"has polled and at the latest 6 hours later. Wait until then (if {inputs['secretName']} was deleted from the "
        "vault, recover it), or run `idstack rotate --force`, which names those pods"
    )


def _not_delivered(slots: Slots) -> str:
    return (
        f"slot {slots.spare} is not withdrawn, because the certificate of slot {slots.current} has not reached the "
        "vault yet: run `make up` until it has, then try again; `idstack rotate --revoke --now` takes a leaked key out "
        "first"
    )
