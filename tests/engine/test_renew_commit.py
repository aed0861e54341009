"""`idstack renew` in a git repository: at the commit that was last brought up, whatever is checked out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from identity.checkout import git
from identity.credentials import rfc3339
from tests.engine.changing import FAST, with_applications
from tests.engine.rehearsals import COPIED, copy_project
from tests.engine.rotations import LIFE
from tests.harness import running_stack
from tests.repositories import Repository

pytestmark = pytest.mark.nightly

_LIFE: Final = {**FAST, **LIFE}


def _commit(repository: Repository) -> str:
    return repository.commit(*COPIED, "Pulumi.local.yaml")


def test_the_program_and_configuration_of_the_last_up_renew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = datetime.now(UTC) - timedelta(days=60)
    with running_stack(tmp_path) as stack:
        [configured] = stack.configuration("hostedClusters")
        cluster = with_applications(configured, "nodePoolManagement", "disk")
        stack.configure(hostedClusters=[cluster], clusterSide="hypershift", credentials=_LIFE)
        # What no command runs stays links to this checkout.
        for name in COPIED:
            (tmp_path / name).unlink()
        copy_project(tmp_path)
        git(tmp_path, "init", "--quiet")
        repository = Repository(tmp_path)
        _commit(repository)
        monkeypatch.setenv("IDSTACK_CLOCK", rfc3339.render(clock))
        stack.up()
        brought_up, before = repository.head, stack.outputs
        assert before["commit"] == brought_up

        # Merged, not brought up: a program that ends at once, a configuration with fewer identities.
        repository.write("__main__.py", "raise SystemExit('the program of main')\n")
        fewer = with_applications(configured, "nodePoolManagement")
        stack.configure(hostedClusters=[{**fewer, "objectEncoding": "base64"}], tags={"team": "another"})
        merged = _commit(repository)
        monkeypatch.setenv("IDSTACK_CLOCK", rfc3339.render(clock + timedelta(days=1)))
        done = stack.idstack("renew")
        after, trees = stack.outputs, git(stack.root, "worktree", "list").splitlines()

        repository.write("Pulumi.local.yaml", git(stack.root, "show", f"{brought_up}:Pulumi.local.yaml"))
        git(stack.root, "checkout", brought_up, "--", "__main__.py")
        left, checked_out = stack.preview(), repository.head

        # As after a merge that squashed the branch, which then was deleted.
        git(stack.root, "checkout", "--quiet", "--orphan", "squashed")
        _commit(repository)
        refused = stack.idstack("renew", check=False)

    assert f"at commit {brought_up}, from which local was last brought up" in done.stdout
    rows, renewed = (outputs["hostedClusters"]["hc1"]["controlPlane"] for outputs in (before, after))
    changed = {name for name in rows if rows[name]["thumbprint"] != renewed[name]["thumbprint"]}
    assert changed == {"nodePoolManagement", "disk"}
    assert (after["commit"], checked_out) == (brought_up, merged)
    assert len(trees) == 1, "the work tree is gone"
    assert left == {}, "the renewal left nothing for the program that was brought up"
    assert refused.returncode == 1
    assert f"from commit {brought_up}, which is not in the history of the checked-out branch squashed" in refused.stderr
