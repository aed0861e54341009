"""The outputs of this stack's last complete run, in which the credentials in use are named."""

from __future__ import annotations

from typing import Any, cast

import pulumi

from components.azure.providers import provider_error
from components.lookups.shared_stack import READ_STACK_OUTPUTS, this_stack
from identity.outputs import StackOutputs


async def last_outputs() -> StackOutputs[Any]:
    """The outputs, empty for a stack without a complete run; raises RunError if they cannot be read."""
    try:
        last = await pulumi.runtime.invoke_async(READ_STACK_OUTPUTS, {"name": this_stack()})
    except Exception as error:
        raise pulumi.RunError(
            f"this stack's outputs, which name the credentials in use, cannot be read: {provider_error(error)}. "
            "Nothing was changed; try again once the backend answers."
        ) from None
    return cast("StackOutputs[Any]", last["outputs"])
