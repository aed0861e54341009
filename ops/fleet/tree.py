"""The kustomize tree of a fleet: its files, and how a directory differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from string import Template
from typing import Any, Final

from identity.settings.schema.problems import NAMESPACE as PROJECT
from identity.yaml_text import dump, load
from ops.fleet.reading import OperatorSettings
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.stack.environment import ROOT
from ops.stack.errors import CommandError, message, writing

HEADER: Final = "# Written by `idstack fleet render`; change the fleet file instead.\n"


def _text(name: str) -> str:
    return (ROOT / "ops/fleet" / name).read_text(encoding="utf-8")


def tree(fleet: Sequence[FleetEnvironment]) -> dict[PurePosixPath, str]:
    """Text of every file by its path in the tree; raises CommandError if no environment has an `operator`."""
    rendered = [environment for environment in fleet if environment.operator is not None]
    if not rendered:
        raise CommandError(message("tree.no-operator"))
    files = {
        PurePosixPath("workspace/Containerfile"): HEADER + _text("workspace/Containerfile"),
        **_directory("base", {"fleet.yaml": _text("base.yaml")}),
    }
    for environment in rendered:
        files |= _environment(environment)
    return files


def _environment(environment: FleetEnvironment) -> dict[PurePosixPath, str]:
    operator = environment.operator
    assert operator is not None, "only environments with an operator are rendered"
    files = {
        # A ServiceAccount that Azure trusts, with one right in Kubernetes.
        "identity.yaml": Template(_text("identity.yaml")).substitute(
            account=account_name(environment.name),
            client_id=operator.client_id,
            tenant_id=environment.stacks[0].settings.tenant_id,
        ),
        "stacks.yaml": dump(*stack_objects(environment, operator)),
        **({"drift.yaml": dump(*drift_objects(environment, operator))} if operator.drift else {}),
    }
    return _directory(f"environments/{environment.name}", files, bases=["../../base"])


def _directory(path: str, files: Mapping[str, str], bases: Sequence[str] = ()) -> dict[PurePosixPath, str]:
    kustomization = {**load(_text("kustomization.yaml")), "resources": [*bases, *files]}
    texts = {"kustomization.yaml": dump(kustomization), **files}
    return {PurePosixPath(path, name): HEADER + text for name, text in texts.items()}


def differences(directory: Path, files: Mapping[PurePosixPath, str]) -> list[str]:
    """How a directory differs from the tree: a unified diff for each file. Ignores files that render never wrote."""
    diffs = []
    for path in sorted({*files, *_written_before(directory)}):
        before, after = _read_text(directory / path), files.get(path)
        if before != after:
            (old, old_lines), (new, new_lines) = (
                ("/dev/null", []) if text is None else (str(path), text.splitlines(keepends=True))
                for text in (before, after)
            )
            diffs.append("".join(unified_diff(old_lines, new_lines, old, new)))
    return diffs


def write(directory: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the tree into the directory; files that render never wrote stay. Raises CommandError."""
    with writing("the tree"):
        for path in _written_before(directory) - files.keys():
            (directory / path).unlink()
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def _written_before(directory: Path) -> set[PurePosixPath]:
    return {
        PurePosixPath(path.relative_to(directory).as_posix())
        for top in ("base", "environments", "workspace")
        for path in (directory / top).rglob("*")
        if path.is_file() and (_read_text(path) or "").startswith(HEADER)
    }


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


# Of the fleet's objects, as `base.yaml` makes it.
NAMESPACE: Final = "idstack-fleet"


def account_name(environment: str) -> str:
    return f"{PROJECT}-{environment}"


def stack_objects(environment: FleetEnvironment, operator: OperatorSettings) -> Iterator[dict[str, Any]]:
    """The Stack of each stack, in the order in which they are brought up."""
    previous: tuple[FleetStack, ...] = ()
    for wave in environment.waves:
        # The previous wave waits for every earlier one; the shared stack is named for the reader.
        shared = [environment.shared] if environment.shared and previous else []
        required = list(dict.fromkeys(stack.name for stack in (*shared, *previous)))
        for stack in wave.stacks:
            waits = {"prerequisites": [{"name": name} for name in required]} if required else {}
            run = {"config": stack.configuration, **waits, **load(_text("runs.yaml"))["up"]}
            yield _stack_object(stack, stack.name, environment, operator, run)
        previous = wave.stacks


def drift_objects(environment: FleetEnvironment, operator: OperatorSettings) -> Iterator[dict[str, Any]]:
    """For each stack a second Stack that only previews: it fails if Azure is not as the state says.

    Renewals are held, so that a certificate that falls due is no drift.
    """
    for stack in environment.stacks:
        credentials = {**stack.config.get("credentials", {}), "renewal": "hold"}
        config = {**stack.configuration, f"{PROJECT}:credentials": credentials}
        run = {"config": config, "prerequisites": [{"name": stack.name}], **load(_text("runs.yaml"))["drift"]}
        yield _stack_object(stack, f"{stack.name}-drift", environment, operator, run)


def _stack_object(
    stack: FleetStack, name: str, environment: FleetEnvironment, operator: OperatorSettings, run: Mapping[str, Any]
) -> dict[str, Any]:
    values = {
        "name": name,
        "environment": environment.name,
        "stack": stack.name,
        "backend": environment.backend,
        "secrets_provider": stack.secrets_provider,
        "account": account_name(environment.name),
        "client_id": operator.client_id,
        "tenant_id": stack.settings.tenant_id,
        "subscription_id": stack.settings.subscription_id,
        "image": operator.image,
    }
    text = Template(_text("stack.yaml")).substitute({name: json.dumps(value) for name, value in values.items()})
    document: dict[str, Any] = load(text)
    return {**document, "spec": {**document["spec"], **run}}
