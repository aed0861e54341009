"""What a failed run is told to do where the engine's own messages name no remedy."""

from __future__ import annotations

import json

from ops.stack.failures import remedies


def test_an_issuer_without_its_container_says_how_to_create_it() -> None:
    message = 'Status=404 Code="ContainerNotFound" Message="The specified container does not exist."'
    event = {"diagnosticEvent": {"urn": "urn:pulumi:dev::idstack::x::hc1-issuer-container", "message": message}}

    [told] = remedies([json.dumps(event)], "dev", "up")

    assert told.startswith("the blob container of an OIDC issuer is missing, and azure-native cannot refresh it. ")
    assert "`az storage container-rm create --public-access container " in told


def test_other_lines_have_no_hint() -> None:
    assert list(remedies(['{"diagnosticEvent": {"message": "ContainerBeingDeleted"}}'], "dev", "up")) == []
