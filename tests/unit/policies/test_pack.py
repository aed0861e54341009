"""The pack as the engine sees it: what is reported, what is waived, what a preview cannot know."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, PolicyResourceOptions, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.proxy import unknown_checking_proxy

from policies.pack import WAIVED, policies
from policies.rules import RULES, StackConfig

URN = "urn:pulumi:prod::idstack::idstack:azure:Vault$azure-native:keyvault:Vault::vault-vault"
OPTIONS = PolicyResourceOptions(False, [], False, {}, [], None)  # type: ignore[arg-type]
WAIVER = {
    "policy": "vault-purge-protection",
    "resource": "vault-vault",
    "reason": "purged each night by the owner of the tests",
}


def stack(**configuration: Any) -> StackConfig:
    """The stack with this configuration, as the engine passes it."""
    passed = {
        f"idstack:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in configuration.items()
    }
    return StackConfig.from_environment({"PULUMI_CONFIG": json.dumps(passed)})


def reported(of: StackConfig, properties: object) -> dict[str, list[str]]:
    """What each policy reports of a vault, those that report nothing left out."""
    found: dict[str, list[str]] = {}
    for policy in policies(of):
        assert isinstance(policy, ResourceValidationPolicy)
        inputs = unknown_checking_proxy({"properties": properties})
        args = ResourceValidationArgs(
            "azure-native:keyvault:Vault", inputs, URN, "vault-vault", OPTIONS, None, None, {}
        )
        messages: list[str] = []

        def report(message: str, urn: str | None, messages: list[str] = messages) -> None:
            messages.append(message)

        policy.validate(args, report)
        if messages:
            found[policy.name] = messages
    return found


def test_every_rule_stops_the_run_and_what_is_waived_does_not() -> None:
    levels: dict[str, EnforcementLevel | None] = {policy.name: policy.enforcement_level for policy in policies(stack())}
    assert levels.pop(WAIVED) is EnforcementLevel.ADVISORY
    assert levels == dict.fromkeys(RULES, EnforcementLevel.MANDATORY)
    assert all("\n" not in policy.description for policy in policies(stack()))


def test_a_message_says_where_what_how_and_how_to_waive() -> None:
    [message] = reported(stack(), {"networkAcls": {"defaultAction": "Deny"}})["vault-purge-protection"]
    assert message.splitlines() == [
        "vault-vault",
        "  found:    purge protection is off in a stack with `protect: true`",
        "  accepted: a vault that cannot be purged before its retention ends",
        "  fix:      `.venv/bin/idstack pulumi --stack prod -- config set --path vault.purgeProtection true`",
        "  waiver:   in `policyWaivers` of the stack's file: "
        "{policy: vault-purge-protection, resource: vault-vault, reason: <why>}",
    ]


def test_a_waiver_lets_pass_and_is_shown_with_its_reason() -> None:
    found = reported(stack(policyWaivers=[WAIVER]), {"networkAcls": {"defaultAction": "Deny"}})
    assert list(found) == [WAIVED]
    assert found[WAIVED] == [
        "vault-purge-protection: purge protection is off in a stack with `protect: true`; "
        "waived by `policyWaivers` of the stack's file: purged each night by the owner of the tests"
    ]


@pytest.mark.parametrize("changed", [{"policy": "network-open-to-all"}, {"resource": "another"}])
def test_a_waiver_of_something_else_waives_nothing(changed: dict[str, str]) -> None:
    found = reported(stack(policyWaivers=[WAIVER | changed]), {"networkAcls": {"defaultAction": "Deny"}})
    assert list(found) == ["vault-purge-protection"]


def test_what_a_preview_does_not_know_breaks_no_rule() -> None:
    # Pulumi's mark of an unknown string.
    assert reported(stack(), "04da6b54-80e4-46f7-96ec-b56ff0331ba9") == {}


@pytest.mark.parametrize("protect", ["true", None])
def test_a_stack_is_protected_unless_it_says_otherwise(protect: str | None) -> None:
    assert stack(**({} if protect is None else {"protect": protect})).is_protected
    assert not stack(protect="false").is_protected


def test_a_configuration_that_the_program_will_refuse_is_read_as_far_as_it_goes() -> None:
    read = stack(hostedClusters=[{"name": "hc1"}, "hc2"], policyWaivers=[{"policy": "x"}, 7])
    assert (read.clusters, read.waivers) == (("hc1",), {})
    assert StackConfig.from_environment({}) == StackConfig()


def test_the_engine_learns_the_packs_port_whatever_the_shell_says_of_buffers() -> None:
    script = Path(__file__).parents[3] / "policies/pulumi-analyzer-policy-idstack"
    environment = {"PATH": os.defpath, "PULUMI_CONFIG": "{}"}
    with subprocess.Popen([script, "127.0.0.1:1", "."], env=environment, stdout=subprocess.PIPE) as pack:
        assert pack.stdout is not None
        readable, _, _ = select.select([pack.stdout], [], [], 120)
        pack.kill()
    assert readable, "it serves, but nobody knows where"
