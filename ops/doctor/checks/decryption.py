"""Whether the stack's secrets provider decrypts what is secret in its state."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import World


def _find(world: World, _: WholeStack) -> Iterator[Fault]:
    if (refusal := known(world.decryption)) is not None:
        yield Fault(
            evidence=refusal,
            fix="set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the stack's own passphrase; with a "
            "key, check that `secretsprovider` and `encryptedkey` of the stack's file are those of the state",
        )


CHECK = of_stack(Stage.BACKEND, "decryption", (Part.DECRYPTION,), _find)
