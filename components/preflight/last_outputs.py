"""The outputs of this stack's last complete run, which name the credentials in use, and other queries of its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from components.azure.providers import provider_error
from components.preflight.shared_stack import READ_STACK_OUTPUTS, this_stack
from identity.outputs import StackOutputs


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
