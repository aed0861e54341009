"""The start of the program: one message reports everything that is wrong, before the first resource."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import pulumi
import pytest

from components.program import program as whole_program
from identity.checkout import git
from identity.settings import ConfigurationError
from identity.settings.schema.problems import for_stack
from tests.unit.components import world
from tests.unit.components.program import Program, run_program


def test_a_refused_configuration_is_one_message_and_no_resource(program: Program) -> None:
    wrong = {"tenantId": None, "vault": {"name": "kv_dev", "defaultAction": "Allow"}, "clusterSide": "hypershft"}
    with pytest.raises(ConfigurationError) as refused:
        world.settings(**wrong)

    recorder = program(**wrong, options={"refused": True})

    assert str(recorder.failure) == for_stack(str(refused.value), "test")
    assert str(recorder.failure).startswith("The stack's configuration has 3 problems; nothing was changed.\n\n")
    assert (recorder.registered, recorder.invoked, recorder.stack_outputs.values) == ([], [], {})
    # The language host shows a RunError as it is, without what it came from.
    assert isinstance(recorder.failure, pulumi.RunError)
    assert (recorder.failure.__cause__, recorder.failure.__suppress_context__) == (None, True)


def test_the_language_host_adds_no_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("components.program.identity_stack", AsyncMock(side_effect=pulumi.RunError("refused")))
    monkeypatch.setattr("pulumi.log.error", shown.append)

    with pytest.raises(SystemExit) as ended:
        asyncio.run(whole_program())

    assert (ended.value.code, shown) == (32, ["refused"])


@pytest.mark.parametrize(("recorded", "is_refused"), [({"commit": "a" * 40}, True), ({}, False)])
def test_a_recorded_commit_is_not_dropped_because_git_does_not_read_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, str], is_refused: bool
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    last = world.lookups(readStackOutputs={"outputs": recorded, "secretOutputNames": []})

    recorder = run_program(tmp_path, invokes=last, options={"refused": is_refused}, lookups_only=True)

    assert (recorder.failure is not None) is is_refused
    if is_refused:
        assert recorder.names() == []
        assert "git config --global --add safe.directory" in str(recorder.failure)
        assert f"the stack records the commit {'a' * 40}" in str(recorder.failure)


def test_a_secret_configuration_value_is_not_in_the_message(program: Program) -> None:
    clusters = world.with_managed_identity({"secretName": "not a name"})

    recorder = program(
        hostedClusters=clusters, tenantId=None, secret_keys=("hostedClusters",), options={"refused": True}
    )

    assert "not a name" not in str(recorder.failure)
