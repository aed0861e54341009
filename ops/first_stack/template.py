"""The questions for a new stack on Azure, and its file, which creates as much as possible.

Tenant, subscription and cloud are those of the current sign-in: the ARM_* variables, else the Azure CLI.

The engine also writes to the file (its encryption key, `pulumi config set`). It removes blank lines, moves a comment
at the end of a block into the next one, and writes a top-level boolean as a string. So every comment is above its key,
there are no blank lines, and top-level booleans are quoted.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shlex import quote
from string import Template
from typing import Any, Final, get_args

from identity import yaml_text
from identity.clouds import DEFAULT_CLOUD
from identity.naming import parse_arm_id
from identity.settings import ConfigurationError, Settings
from identity.settings.rules.placeholders import SAMPLE_PREFIX
from identity.settings.schema import arm_ids, types
from identity.settings.schema.problems import for_stack
from identity.settings.schema.schema_node import ZERO_UUID, ValueSpec, matching
from identity.settings.stack_file import written
from ops.outputs.azure_rights import Purpose, rights
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message
from ops.stack.settings import settings_of, validated
from ops.stack.stack_document import BACKEND_KEY, document_in, replace_file, with_backend

# Azure's limit for the names of vaults and of storage accounts.
_LONGEST_UNIQUE_NAME: Final = 24
_TEMPLATE: Final = Path(__file__).parent / "stack.yaml"
_TEXTS: Final[dict[str, Any]] = yaml_text.load(_TEMPLATE.with_name("questions.yaml").read_text(encoding="utf-8"))


class Side(StrEnum):
    """Who creates the control planes' SecretProviderClasses and pods: the values of `clusterSide`."""

    STACK = "stack"
    HYPERSHIFT = "hypershift"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The values of a stack in `idstack init`.

    `management_cluster` is <resource group>/<name>, `dns_zone` the resource id of the public zone. `image` is the
    probe's, only with `clusterSide: stack`. The default of `backend` is the login's, that of `secrets_provider` a
    passphrase.
    """

    stack: str
    prefix: str
    location: str
    cluster: str
    side: Side
    management_cluster: str
    dns_zone: str
    tenant_id: str
    subscription_id: str
    image: str | None = None
    cloud: str = DEFAULT_CLOUD
    backend: str | None = None
    secrets_provider: str | None = None

    @property
    def resource_group(self) -> str:
        return f"{self.prefix}-{self.stack}"

    @property
    def vault(self) -> str:
        """The vault's name, unique in Azure."""
        return f"kv-{self.prefix}-{self.stack}"

    @property
    def issuer(self) -> str:
        """The name of the issuer's storage account, unique in Azure."""
        return "".join(filter(str.isalnum, f"{self.prefix}{self.stack}{self.cluster}"))

    @property
    def too_long(self) -> str | None:
        """The first name that is too long for Azure; None without one."""
        return next((name for name in (self.vault, self.issuer) if len(name) > _LONGEST_UNIQUE_NAME), None)


SAMPLE: Final = Answers(
    stack="dev",
    prefix=SAMPLE_PREFIX,
    location="westeurope",
    cluster="hc1",
    side=Side.HYPERSHIFT,
    management_cluster=f"{SAMPLE_PREFIX}-aks/{SAMPLE_PREFIX}-aks",
    dns_zone=f"/subscriptions/{ZERO_UUID}/resourceGroups/dns/providers/Microsoft.Network/dnszones/dev.example.com",
    tenant_id=ZERO_UUID,
    subscription_id=ZERO_UUID,
)


def stack_text(answers: Answers) -> str:
    group, _, aks = answers.management_cluster.partition("/")
    texts, template = _TEXTS["parts"], Template(_TEMPLATE.read_text(encoding="utf-8"))
    parts = {
        "encryption": texts["encryption"] if answers.secrets_provider is not None else "",
        "state": texts["state"] if answers.backend is not None else "",
        "elsewhere": texts["elsewhere"] if answers.cloud != DEFAULT_CLOUD else "",
        "pods": texts["pods"][answers.side],
    }
    derived = {"resource_group": answers.resource_group, "vault": answers.vault, "issuer": answers.issuer}
    zone = parse_arm_id(answers.dns_zone).name
    return Template(template.safe_substitute(parts)).substitute(
        vars(answers) | derived, group=group, aks=aks, zone=zone
    )


@dataclass(frozen=True)
class Question:
    """One value, a row of `questions.yaml`: its key, the question, the accepted values, and the default."""

    key: str
    asks: str
    accepted: str
    check: Callable[[str], Any]
    default: str | None = None

    @property
    def option(self) -> str:
        return f"--{self.key.replace('_', '-')}"

    def problem(self, value: str) -> str | None:
        try:
            self.check(value)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            return f'{self.option}: found "{value}"{reason}; accepted: {self.accepted}'
        return None


def _spec(annotated: Any) -> ValueSpec:
    return next(part for part in get_args(annotated) if isinstance(part, ValueSpec))


def _management_cluster(text: str) -> None:
    group, slash, name = text.partition("/")
    if not slash:
        raise ValueError
    _spec(types.ResourceGroup).check(group)
    _spec(types.ManagedClusterName).check(name)


# The settings with an answer as it is given.
_SETTINGS: Final = {
    "location": _spec(types.Location),
    "cluster": _spec(types.ClusterName),
    "dns_zone": _spec(arm_ids.DnsZoneId),
    "image": _spec(types.Image),
}


def _question(key: str, row: Mapping[str, str]) -> Question:
    if (spec := _SETTINGS.get(key)) is not None:
        return Question(key, row["asks"], spec.accepted, spec.check, row.get("default"))
    check = matching(row["pattern"]) if "pattern" in row else _management_cluster
    return Question(key, row["asks"], row["accepted"], check, row.get("default"))


_QUESTIONS: Final = tuple(_question(key, row) for key, row in _TEXTS["questions"].items())


def answered(
    given: Mapping[str, str | None], missing: Sequence[str], ask: Callable[[Question], str] | None
) -> dict[str, str]:
    """The value of every question by its key.

    Args:
        given: the values of the options.
        missing: the problems of values without a question, for the report.
        ask: asks at the terminal until the answer is valid; None without a terminal.

    Raises CommandError with everything that is missing or refused.
    """
    values = {key: value for key, value in given.items() if value is not None}
    asked = [question for question in _asked(values) if question.key in values]
    wrong = [problem for question in asked if (problem := question.problem(values[question.key]))]
    lacking = [question for question in _asked(values) if question.key not in values]
    if ask is None:
        values |= {question.key: question.default for question in lacking if question.default is not None}
        lacking = [question for question in _asked(values) if question.key not in values]
        wrong += [f"{question.option} is missing: {question.accepted}" for question in lacking]
    if wrong := [*wrong, *missing]:
        raise CommandError("nothing was written:", *(f"  {problem}" for problem in wrong))
    while ask is not None and (lacking := [question for question in _asked(values) if question.key not in values]):
        values[lacking[0].key] = ask(lacking[0])
    return values


def _asked(values: Mapping[str, str]) -> tuple[Question, ...]:
    """The questions that these values need: only a stack that creates pods has a probe."""
    return tuple(one for one in _QUESTIONS if one.key != "image" or values.get("side") == Side.STACK)


_READABLE: Final = 0o644


def has_own_file(file: Path) -> bool:
    """Whether the file is the user's: it exists, has content, and is not this project's sample."""
    return file.exists() and file.read_bytes().strip() not in (b"", stack_text(SAMPLE).strip().encode())


def secrets_provider_in(file: Path) -> str | None:
    """The secrets provider in the user's file; None without one."""
    if not has_own_file(file):
        return None
    provider = document_in(file).get("secretsprovider")
    return provider if isinstance(provider, str) else None


def write_stack_file(file: Path, answers: Answers) -> bool:
    """Write the file of these answers; returns whether that changed it.

    The engine's additions (`encryptionsalt`, `encryptedkey`) stay. Raises CommandError for a user's file with another
    configuration, and for answers that contradict each other.
    """
    if (name := answers.too_long) is not None:
        raise CommandError(message("template.long-name", prefix=answers.prefix, name=name, length=len(name)))
    text = stack_text(answers)
    try:
        validated(written(text), None)
    except ConfigurationError as error:
        raise CommandError(message("template.contradiction", report=for_stack(str(error), answers.stack))) from None
    if not has_own_file(file):
        replace_file(file, text, mode=_READABLE)
        return True
    if document_in(file).get("config") != yaml_text.load(text)["config"]:
        raise CommandError(message("template.another-file", file=file.name, stack=answers.stack))
    return False


def record_backend(file: Path, backend: str) -> bool:
    """Record the backend in a file without one; returns whether that changed it.

    Raises CommandError for a file with another backend, or without the block for it.
    """
    known = (document_in(file).get("config") or {}).get(BACKEND_KEY)
    if known == backend:
        return False
    if known is not None:
        raise CommandError(message("template.another-backend", file=file.name, known=known, backend=backend))
    try:
        text = with_backend(file.read_text(encoding="utf-8"), backend)
    except ValueError as error:
        raise CommandError(f"{file.name}: {error}; nothing was written") from None
    replace_file(file, text, mode=_READABLE)
    return True


def settings_in(engine: Engine) -> Settings:
    """The settings in the stack's file, without an engine and a login; raises CommandError with the report."""
    try:
        return settings_of(engine)
    except CommandError as error:
        raise CommandError(
            f"{error}\n\nCorrect {engine.file.name}; then `.venv/bin/idstack init {engine.stack}` continues"
        ) from None


def left_to_do(settings: Settings, stack: str) -> list[str]:
    """The lines to print; the commands are complete except an object id."""
    existing = [f"az group create --name {quote(settings.resource_group)} --location {settings.location}"]
    cluster = settings.management_cluster
    if cluster is not None and cluster.create is None:
        aks = f"--resource-group {quote(cluster.resource_group)} --name {quote(cluster.name)}"
        existing.append(f"az aks enable-addons --addons azure-keyvault-secrets-provider --enable-secret-rotation {aks}")
    zones = (described.dns.public_zone_id for described in settings.hosted_clusters if described.dns is not None)
    for zone in map(parse_arm_id, filter(None, dict.fromkeys(zones))):
        of_zone = f"--resource-group {quote(zone.resource_group)} --name {quote(zone.name)}"
        existing.append(f"az network dns zone create {of_zone}")
    needed = rights(settings, Purpose.DEPLOYER)
    granted = [*needed.notes, *(f"{grant.role.name} at {grant.scope}" for grant in needed.grants)]
    text: str = _TEXTS["leftToDo"].format(
        providers=" ".join(_TEXTS["providers"]),
        existing="\n  ".join(existing),
        granted="\n  ".join(granted),
        stack=stack,
    )
    return text.splitlines()


_COMMAND: Final = ("az", "account", "show", "--output", "json")
_ANSWERED_WITHIN: Final = 60.0  # seconds
SIGN_IN: Final = "sign in with `az login`, or set ARM_TENANT_ID and ARM_SUBSCRIPTION_ID"


@dataclass(frozen=True)
class AzureAccount:
    """The ids are in lower case; `cloud` is a name of `identity.clouds.CLOUDS`."""

    tenant_id: str
    subscription_id: str
    cloud: str = DEFAULT_CLOUD


def signed_in(environment: Mapping[str, str]) -> AzureAccount | None:
    """The account of the sign-in; None without one.

    Raises CommandError if a variable and the Azure CLI name different tenants or subscriptions, and for an unknown
    cloud.
    """
    tenant, subscription = environment.get("ARM_TENANT_ID"), environment.get("ARM_SUBSCRIPTION_ID")
    if tenant and subscription:
        return AzureAccount(
            tenant.lower(), subscription.lower(), _cloud(environment.get("ARM_ENVIRONMENT") or "public")
        )
    account = _account(environment)
    if account is None:
        return None
    for name, value, actual in (
        ("ARM_TENANT_ID", tenant, account.tenant_id),
        ("ARM_SUBSCRIPTION_ID", subscription, account.subscription_id),
    ):
        if value and value.lower() != actual:
            raise CommandError(message("template.another-account", name=name, value=value, actual=actual))
    return account


def _account(environment: Mapping[str, str]) -> AzureAccount | None:
    """The account of `az account show`; None without the Azure CLI, and without a sign-in there."""
    if shutil.which(_COMMAND[0], path=environment.get("PATH")) is None:
        return None
    try:
        finished = subprocess.run(
            _COMMAND,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWERED_WITHIN,
            check=True,
        )
        shown = json.loads(finished.stdout)
        return AzureAccount(shown["tenantId"].lower(), shown["id"].lower(), _cloud(shown["environmentName"]))
    except (subprocess.SubprocessError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _cloud(name: str) -> str:
    clouds: Mapping[str, str] = _TEXTS["clouds"]
    try:
        return clouds[name.lower()]
    except KeyError:
        known = ", ".join(sorted(set(clouds.values())))
        raise CommandError(message("template.unknown-cloud", cloud=name, known=known)) from None
