"""The messages of a renewal schedule that refuses: what contradicts what, and how to fix it."""

from __future__ import annotations

from identity.credentials import rfc3339
from identity.credentials.schedule import (
    BeginsInFutureError,
    ContradictionError,
    NotDeliveredError,
    NotYetError,
    ObservedSecret,
    RenewalRefusedError,
    Slots,
)
from identity.plugin_schema import RenewalScheduleInputs
from provider import cloud
from provider.vault_secrets import VaultSecret


def in_words(
    refusal: RenewalRefusedError, slots: Slots | None, vault: ObservedSecret, inputs: RenewalScheduleInputs[str]
) -> str:
    """The refusal for the user; `slots` is None before the first certificate, `inputs` are the schedule's."""
    match refusal:
        case NotYetError():
            return _too_soon(refusal, inputs)
        case BeginsInFutureError():
            return _in_future(refusal, slots, vault, inputs)
        case ContradictionError() if slots is not None:
            return _contradiction(refusal, slots, inputs)
        case NotDeliveredError() if slots is not None:
            return _not_delivered(slots)
    raise AssertionError("only a schedule with slots has a contradiction or a withdrawal")


def _too_soon(refusal: NotYetError, inputs: RenewalScheduleInputs[str]) -> str:
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


def _contradiction(refusal: ContradictionError, slots: Slots, inputs: RenewalScheduleInputs[str]) -> str:
    return (
        f"no certificate is issued, as it would take the place of one that pods may use: {inputs['secretName']} in the "
        f"vault {refusal}. If the vault still has the version that the stack wrote last, make its value and its tags "
        "current again. Or run `idstack rotate --force`: it issues another certificate in slot "
        f"{slots.spare}, and pods that use that slot's cannot sign in until they load it; restart them then"
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
    command = cloud.command_line(
        inputs["cloud"],
        f"az keyvault secret set-attributes --vault-name {secret.vault} --name {secret.name} --not-before {begin}",
    )
    return (
        f"no certificate is issued, as {secret.id} begins (nbf) at {at}, later than now, and the next one would have "
        f"to begin later still. Somebody edited that date: put it right (`{command}`), then run the command again"
    )
