"""A stack for its pipelines: its settings, the container of its state, and the key that encrypts it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from identity.clouds import DEFAULT_CLOUD
from identity.settings import Settings
from ops.stack.engine import Engine
from ops.stack.environment import ROOT, is_local
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of
from ops.stack.stack_document import recorded

# gocloud.dev's `azureblob` and `azurekeyvault`, as Pulumi takes them.
_KEY: Final = re.compile(r"azurekeyvault://(?P<vault>[^./]+)\.vault\.azure\.net/keys/(?P<name>[^/?]+)")


@dataclass(frozen=True)
class PipelineStack:
    """A stack on Azure whose state and key a pipeline's identity can reach.

    `backend` is the address of the state, with the parts `container` and `account`; `vault` and `key` name the key that
    encrypts the state's secrets.
    """

    name: str
    settings: Settings
    backend: str
    container: str
    account: str
    vault: str
    key: str


def pipeline_stacks(names: Sequence[str], backend: str) -> list[PipelineStack]:
    """The stacks, read from their files alone, without an engine or a sign-in.

    `backend` is the address for files that record none, with `{stack}` for the stack's name. Raises CommandError with
    all problems.
    """
    stacks: list[PipelineStack] = []
    problems: list[str] = []
    for name in dict.fromkeys(names):
        try:
            stack = _read(name, recorded(name, ROOT) or backend.replace("{stack}", name))
        except CommandError as error:
            problems.append(error.message)
            continue
        problems += _problems(stack)
        stacks.append(stack)
    if problems:
        raise CommandError("\n".join(problems))
    return stacks


def _problems(stack: PipelineStack) -> Iterator[str]:
    name, cloud = stack.name, stack.settings.cloud.name
    if cloud != DEFAULT_CLOUD:
        yield f"{name} is in {cloud}, but the pipelines sign in only to {DEFAULT_CLOUD}; leave it out"
    if not (stack.container and stack.account):
        yield (
            f"{name}: a pipeline cannot reach the state at {stack.backend!r}; accepted, as idstack:backend "
            "in its file or by --backend: azblob://<container>?storage_account=<account>, with {stack} for the name "
            "of the stack"
        )
    if not stack.key:
        yield (
            f"Pulumi.{name}.yaml has no Azure key as `secretsprovider`, and a pipeline has no passphrase: `idstack "
            f"pulumi --stack {name} -- stack change-secrets-provider "
            "azurekeyvault://<vault>.vault.azure.net/keys/<key>`"
        )


def _read(name: str, backend: str) -> PipelineStack:
    """The stack; unknown parts of its state's address and its key are empty."""
    if is_local(name):
        raise CommandError(f"{name} is a local stack, which no pipeline can reach; leave it out")
    engine = Engine(name)
    settings = settings_of(engine)
    address = urlsplit(backend)
    [account] = parse_qs(address.query).get("storage_account", [""])[:1]
    key = _KEY.fullmatch(str(engine.document().get("secretsprovider")))
    return PipelineStack(
        name,
        settings,
        backend,
        container=address.netloc if address.scheme == "azblob" else "",
        account=account,
        vault=key["vault"] if key else "",
        key=key["name"] if key else "",
    )
