"""The questions of `idstack init`: each value is an option; a terminal asks for the missing ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_args

from identity.settings.schema import arm_ids, types
from identity.settings.schema.schema_node import ValueSpec, matching
from ops.first_stack.template import Side
from ops.stack.errors import CommandError

# Short enough for the names of a vault and a storage account (`Answers.too_long`).
_PREFIX: Final = ValueSpec(
    rule="prefix",
    accepted="2-10 lower-case letters and digits, the first a letter; the names in Azure begin with it",
    blank="<prefix>",
    check=matching(r"[a-z][a-z0-9]{1,9}"),
)


@dataclass(frozen=True)
class Question:
    """One value: its option, the question, the accepted values, and the default."""

    option: str
    asks: str
    accepted: str
    check: Callable[[str], Any]
    default: str | None = None

    @property
    def key(self) -> str:
        """Its key in the values."""
        return self.option.removeprefix("--").replace("-", "_")

    def problem(self, value: str) -> str | None:
        """The problem with a value; None without one."""
        try:
            self.check(value)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            return f'{self.option}: found "{value}"{reason}; accepted: {self.accepted}'
        return None


def _of(option: str, asks: str, annotated: Any, default: str | None = None) -> Question:
    spec = _spec(annotated)
    return Question(option, asks, spec.accepted, spec.check, default)


def _spec(annotated: Any) -> ValueSpec:
    """The rule of a type of the configuration."""
    return next(part for part in get_args(annotated) if isinstance(part, ValueSpec))


def _management_cluster(text: str) -> None:
    group, slash, name = text.partition("/")
    if not slash:
        raise ValueError
    _spec(types.ResourceGroup).check(group)
    _spec(types.ManagedClusterName).check(name)


_IMAGE: Final = _of(
    "--image", "The probe's image (`make probe-image REGISTRY=<registry>` pushes it and prints its name)", types.Image
)
_ALWAYS: Final = (
    _of("--prefix", "A short prefix for the names in Azure", Annotated[str, _PREFIX]),
    _of("--location", "Azure's region", types.Location),
    Question(
        "--side",
        "Who creates pods and SecretProviderClasses on the management cluster",
        "hypershift, its operators; or stack, this stack",
        matching("|".join(Side)),
        Side.HYPERSHIFT.value,
    ),
    _of("--cluster", "The name of the hosted cluster", types.ClusterName, "hc1"),
    Question(
        "--management-cluster",
        "The AKS cluster on which control planes run (`az aks list --output table` lists them)",
        "<resource group>/<name> of an AKS cluster that exists",
        _management_cluster,
    ),
    _of("--dns-zone", "The public DNS zone (`az network dns zone list --query '[].id'` lists them)", arm_ids.DnsZoneId),
    Question(
        "--backend",
        "Where Pulumi stores the state (azblob://<container>?storage_account=<name>, or file://<folder> for a first "
        "try)",
        "the address of a backend: azblob://<container>?storage_account=<name>, s3://..., gs://..., https://... or "
        "file://<folder>",
        matching(r"(file|azblob|s3|gs|https)://\S+"),
    ),
)


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
    wrong += missing
    if wrong:
        raise CommandError("\n  ".join(["nothing was written:", *wrong]))
    while ask is not None and (lacking := [question for question in _asked(values) if question.key not in values]):
        values[lacking[0].key] = ask(lacking[0])
    return values


def _asked(values: Mapping[str, str]) -> tuple[Question, ...]:
    """The questions that these values need: only a stack that creates pods has a probe."""
    return (*_ALWAYS, _IMAGE) if values.get("side") == Side.STACK else _ALWAYS
