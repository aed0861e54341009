"""`idstack` on one machine: `python -m tests.operator.machine <arguments>`.

The stacks have the names of local ones, for no others have the local cloud, and are on Azure in everything else: it
shares their state and key with the operator, and starts no local cloud.
"""

from __future__ import annotations

import pytest

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE


def main() -> None:
    """Run the command of this process."""
    patch = pytest.MonkeyPatch()
    # First, for others take it by name.
    patch.setattr("ops.stack.environment.is_local", lambda _: False)
    patch.setattr("ops.stack.environment._DIVERTING", frozenset())
    patch.setattr("ops.stack.environment._OWN_KEPT", frozenset({LOCAL_ENVIRONMENT_VARIABLE}))
    from ops.stack import local_cloud

    for name in ("of", "for_validation"):
        patch.setattr(local_cloud, name, lambda _: local_cloud.record())
    from ops.__main__ import main as idstack

    idstack()


if __name__ == "__main__":
    main()
