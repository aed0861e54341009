"""An upgrade of the program itself, rehearsed: the base is a tag whose tree is run, the configuration stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from identity.checkout import git
from tests.engine.rehearsals import Rehearsals, rehearsals

pytestmark = pytest.mark.nightly

# What the earlier version had otherwise: identities without the tag of their stack.
_EARLIER = {
    "components/azure/managed_identity.py": (
        "tags=identity_tags(settings, args.stack_owner),",
        "tags=dict(settings.tags),",
    )
}


@pytest.fixture
def project(tmp_path: Path) -> Rehearsals:
    """The project of today, with an earlier version of it under the tag `v1`."""
    with rehearsals(tmp_path) as project:
        texts = {name: (project.root / name).read_text(encoding="utf-8") for name in _EARLIER}
        for name, (today, earlier) in _EARLIER.items():
            assert texts[name].count(today) == 1, f"{name} has changed: {today}"
            project.repository.write(name, texts[name].replace(today, earlier))
        project.start("prod")
        git(project.root, "tag", "v1")
        for name, text in texts.items():
            project.repository.write(name, text)
        project.repository.commit()
        return project


def test_the_program_of_an_earlier_tag_is_the_base(project: Rehearsals) -> None:
    found = project.rehearse("prod", "--base", "v1", "--forbid", "create,replace,delete")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert found.document["base"] == git(project.root, "rev-parse", "--short=12", "v1").strip()
    kinds = {kind for row in found.document["plan"] for kind, value in row.items() if isinstance(value, dict) and value}
    assert kinds == {"principal"}, "the tags of managed identities, and nothing else"
    assert set(found.operations("principal")) == {"update"}
    assert all(sign_in["succeeded"] > 1 for sign_in in found.document["signIns"])
    assert (found.document["secondUp"], found.document["remainingAfterDown"]) == ([], [])
