"""The keys of a fleet file (`docs/guides/fleet.md`), and its parser, which reports every problem of its form.

Settings of stacks are the keys of `docs/reference/configuration.md` without their namespace. They stay mappings here:
the complete configuration of each stack is validated by `identity.settings` (`ops/fleet/file.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import Field, StrictBool, StrictInt, ValidationError
from pydantic_core import ErrorDetails

from identity import yaml_text
from identity.secrets_store import duration
from identity.settings.schema import types
from identity.settings.schema.base import Model
from identity.settings.schema.problems import CLI, Place, Problem, enumerate_words, path_of, report_of, show
from identity.settings.schema.schema_node import (
    CREDENTIAL,
    REFUSED,
    SchemaNode,
    ValueSpec,
    form,
    integer,
    without_credentials,
)
from identity.settings.stack_file import require_unique_keys
from identity.similar import similar
from ops.stack.errors import CommandError

# The Kubernetes objects of a stack have its name: the pods of its workspace carry it, with `-drift-workspace` and a
# hash of 11 characters, in a label of at most 63.
LONGEST_STACK_NAME: Final = 36


_FORMS, _RULES = (
    yaml_text.load(Path(__file__).with_name(name).read_text(encoding="utf-8")) for name in ("forms.yaml", "rules.yaml")
)


def _checked_duration(text: str) -> str:
    duration(text)
    return text


_form = partial(form, forms=_FORMS)
EnvironmentName = Annotated[
    str, _form("environment-name", guess=lambda text: re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-"))
]
Backend = Annotated[str, _form("backend", without_credentials(_FORMS["backend"]["pattern"]))]
SecretsProvider = Annotated[str, _form("secrets-provider")]
WorkspaceImage = Annotated[str, _form("workspace-image")]
Pause = Annotated[
    str, ValueSpec(rule="pause", accepted="a time such as 30m, 1h or 1h30m", blank="<time>", check=_checked_duration)
]


class OperatorSettings(Model):
    """How the Pulumi Kubernetes Operator runs an environment's stacks."""

    image: WorkspaceImage = Field(description="The workspace's image, built as the rendered Containerfile says.")
    client_id: types.ClientId = Field(description="Client id of the deployer, which trusts the workspaces' tokens.")
    drift: StrictBool = Field(
        False, description="Each stack has a second object, whose weekly preview fails if Azure was changed by hand."
    )


class ClusterFields(Model):
    """The settings of a hosted cluster's stack: keys of the stack, and keys of its one entry of `hostedClusters`."""

    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the cluster's stack.")
    hosted_cluster: dict[str, Any] = Field(
        default_factory=dict, description="Keys of its entry of `hostedClusters`; the name comes from the fleet."
    )


class FleetClusterSettings(ClusterFields):
    """One hosted cluster: its name, and what differs from the defaults of its environment."""

    name: types.ClusterName = Field(description="Name of the hosted cluster.")


class WaveSettings(Model):
    """In which order an environment's clusters are brought up."""

    canaries: tuple[types.ClusterName, ...] = Field((), description="The clusters that come before all others.")
    size: Annotated[StrictInt, integer(1, 1000, "clusters")] | None = Field(
        None, description="How many clusters a wave has, in the order of the file; all of them unless given."
    )
    pause: Pause | None = Field(None, description="How long to wait before each wave after the canaries.")


class SharedStackSettings(Model):
    """The stack with the vault and the key-vault-user of an environment."""

    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the shared stack alone.")


class EnvironmentSettings(Model):
    """One environment: a stack for each cluster, and a shared stack unless no cluster uses a vault."""

    name: EnvironmentName = Field(description="Name of the environment; the names of its stacks have it.")
    backend: Backend | None = Field(None, description="Where the states are; of the local cloud's stacks none.")
    secrets_provider: SecretsProvider | None = Field(
        None, description="The key that encrypts what is secret in the states; of the local cloud's stacks none."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of every stack of the environment.")
    shared: SharedStackSettings | None = Field(
        None, description="The shared stack; without it nothing of the environment is in a vault."
    )
    cluster_defaults: ClusterFields = Field(ClusterFields(), description="What every cluster's stack has.")
    clusters: tuple[FleetClusterSettings, ...] = Field((), description="The hosted clusters, a line each.")
    waves: WaveSettings = Field(WaveSettings(), description="The order of the clusters.")
    operator: OperatorSettings | None = Field(None, description="For `idstack fleet render`.")


class FleetSettings(Model):
    environments: tuple[EnvironmentSettings, ...] = Field(description="The environments, in their order.")


_FLEET: Final = SchemaNode(FleetSettings)


def read(text: str, file: str) -> FleetSettings:
    """The fleet in the text of a file; `file` is its name. Raises FleetFileError."""
    report = FleetReport()
    try:
        raw = yaml_text.load(text)
        require_unique_keys(text)
        _require_text_keys(raw, text)
        if isinstance(raw, dict):
            return FleetSettings.model_validate(raw)
        fix = "see the example in docs/guides/fleet.md"
        report.refuse((), raw, rule="structure", accepted=_FLEET.accepted, fix=fix)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _describe(detail, report)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0] or "nested too deeply"
        if isinstance(error, yaml.MarkedYAMLError):
            line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
            reason = f"{error.problem}{line}"
        report.refuse((), {}, rule="yaml", accepted="YAML", fix="correct it there", reason=reason)
    raise FleetFileError(file, report.problems)


def _require_text_keys(value: Any, text: str) -> None:
    """Raise ConstructorError, with the place in the `text` of the file, for a key that is no string."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if not isinstance(key, str):
            tokens = pairwise(yaml.scan(text, yaml.CSafeLoader))
            keys = (token for before, token in tokens if isinstance(before, yaml.KeyToken))
            scalars = (token for token in keys if isinstance(token, yaml.ScalarToken))
            plain = (token for token in scalars if token.plain and token.value != "<<")
            mark = next((token.start_mark for token in plain if repr(yaml_text.load(token.value)) == repr(key)), None)
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is not a string", mark)
        _require_text_keys(item, text)
    for item in value if isinstance(value, list) else ():
        _require_text_keys(item, text)


def _describe(error: ErrorDetails, report: FleetReport) -> None:
    place: Place = error["loc"]
    *parents, key = place
    node = _FLEET.at(place)
    if node is None:
        holder = _FLEET.at(tuple(parents))
        known = holder.keys if holder else ()
        close = similar(str(key), known)
        fix = f"rename it to {path_of((*parents, close))}" if close else "remove it"
        accepted = f"the keys {enumerate_words(known)}"
        report.refuse(place, "a key that nothing reads", rule="unknown-key", accepted=accepted, fix=fix)
        return
    is_missing = error["type"] == "missing"
    value = None if is_missing else error["input"]
    fix = f"write it as YAML at {path_of(place)}"
    if node.spec:
        guess = node.spec.guessed(value)
        hint = f"; {node.spec.hint}" if node.spec.hint and not guess else ""
        fix = f"`{path_of(place)}: {guess or node.spec.blank}`{hint}"
    reason = error["ctx"]["reason"] if error["type"] in {REFUSED, CREDENTIAL} else ""
    rule = "missing" if is_missing else node.rule
    if error["type"] == CREDENTIAL:
        value = {}  # not shown
    report.refuse(place, value, rule=rule, accepted=node.accepted, fix=fix, reason=reason)


# The commands in the fixes of `identity/settings`: verb, path (maybe quoted), value.
_COMMAND: Final = re.compile(rf"`{CLI} config (set|rm) (?:--plaintext )?(?:--path )?('[^']*'|\S+?)(?: ([^`]*))?`")


@dataclass(frozen=True, kw_only=True)
class FleetProblem(Problem):
    """One refused value. `place` is in the fleet file; `of` names the stacks whose settings it breaks, if any."""

    of: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The place, as a report names it, with the stacks."""
        place = path_of(self.place) if self.place else "the whole file"
        if not self.of:
            return place
        more = f" and {len(self.of) - 1} more" if len(self.of) > 1 else ""
        return f"{place} (stack {self.of[0]}{more})"


class FleetFileError(CommandError):
    """A fleet file is refused; the message is the whole report of `problems`."""

    def __init__(self, file: str, problems: Sequence[FleetProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(report_of(file, self.problems))


@dataclass
class FleetReport:
    """Collects problems; the same one in several stacks is one problem."""

    problems: list[FleetProblem] = field(default_factory=list)

    def refuse(
        self, place: Place, value: object, *, rule: str, accepted: str, fix: str | None = None, reason: str = ""
    ) -> None:
        """Refuse a value of the fleet file; without a `fix` it is to be removed.

        A `reason` says what is wrong with the value if `accepted` does not.
        """
        found = show(value) + (f": {reason}" if reason else "")
        fix = f"remove {path_of(place)}" if fix is None else fix
        self.problems.append(FleetProblem(place=place, rule=rule, found=found, accepted=accepted, fix=fix))

    def refuse_by_rule(self, place: Place, value: object, rule: str, **fields: object) -> None:
        """Refuse a value of the fleet file in the words of `rules.yaml`."""
        known = {"path": path_of(place), "environment": path_of(place[:2]), **fields}
        self.refuse(place, value, rule=rule, **{key: text.format_map(known) for key, text in _RULES[rule].items()})

    def refuse_setting(self, problem: Problem, stack: str, place: Place, sources: Mapping[str, str]) -> None:
        """Refuse a setting of a stack, which the fleet file spells at `place`.

        `sources` has the paths of the fleet file by those of the stack's settings, to rewrite the commands in the fix.
        """
        for index, known in enumerate(self.problems):
            if (known.place, known.rule) == (place, problem.rule) and known.of:
                self.problems[index] = replace(known, of=tuple(dict.fromkeys((*known.of, stack))))
                return
        self.problems.append(
            FleetProblem(
                place=place,
                rule=problem.rule,
                found=problem.found,
                accepted=problem.accepted,
                fix=_in_the_file(problem, place, sources),
                of=(stack,),
            )
        )


def _in_the_file(problem: Problem, place: Place, sources: Mapping[str, str]) -> str:
    """The fix with each command that would write a stack's file as a line of the fleet file."""
    own = {path_of(problem.place): path_of(place)}

    def line(command: re.Match[str]) -> str:
        verb, path, value = command.groups()
        path = path.strip("'")
        where = own.get(path) or sources.get(path) or f"{path} (in the settings of the stack)"
        return f"remove {where}" if verb == "rm" else f"`{where}: {value}`"

    return _COMMAND.sub(line, problem.fix).replace("in the stack file", "in the fleet file")
