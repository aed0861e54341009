"""The rules as policies of Pulumi's SDK, and what is waived as an advisory policy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from pulumi_policy import EnforcementLevel, Policy, ReportViolation, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from identity.settings.problems import for_stack
from identity.settings.schema.waivers import PolicyName
from policies.rules import RULES, PolicedResource, Rule, RuleBreak, RuleContext
from policies.stack import PolicedStack

WAIVED = "waived"


def policies(stack: PolicedStack) -> list[Policy]:
    """A mandatory policy for each rule, and one that shows what the stack's file waives, with the reason."""
    context = RuleContext(stack)
    return [*(_mandatory(name, rule, context) for name, rule in RULES.items()), _waived(RuleContext(stack))]


def _mandatory(name: PolicyName, rule: Rule, context: RuleContext) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = resource_of(args)
        if (name, resource.name) not in context.stack.waivers:
            for each in _known(rule, resource, context):
                report(for_stack(_message(name, resource, each), _stack_of(args)), None)

    return ResourceValidationPolicy(
        name=name,
        description=_sentence(rule),
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
    )


def _waived(context: RuleContext) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = resource_of(args)
        for name, rule in RULES.items():
            # Also without a waiver: some rules compare one resource with those before it.
            found = list(_known(rule, resource, context))
            reason = context.stack.waivers.get((name, resource.name))
            if reason is not None:
                for each in found:
                    report(f"{name}: {each.found}; waived by `policyWaivers` of the stack's file: {reason}", None)

    return ResourceValidationPolicy(
        name=WAIVED,
        description="What the stack's file waives is shown in every run.",
        validate=validate,
        enforcement_level=EnforcementLevel.ADVISORY,
    )


def resource_of(args: ResourceValidationArgs) -> PolicedResource:
    """The resource that the engine is about to register."""
    _, _, chain, name = args.urn.split("::", 3)[-4:]
    return PolicedResource(kinds=tuple(chain.split("$")), name=name, inputs=args.props)


def _stack_of(args: ResourceValidationArgs) -> str:
    return args.urn.removeprefix("urn:pulumi:").partition("::")[0]


def _known(rule: Rule, resource: PolicedResource, context: RuleContext) -> Iterator[RuleBreak]:
    """What is wrong as far as it is known: values that only Azure assigns are not, in a preview."""
    try:
        yield from rule(resource, context)
    except UnknownValueError:
        return


def _message(name: PolicyName, resource: PolicedResource, broken: RuleBreak) -> str:
    return (
        f"{resource.name}\n"
        f"  found:    {broken.found}\n"
        f"  accepted: {broken.accepted}\n"
        f"  fix:      {broken.fix}\n"
        "  waiver:   in `policyWaivers` of the stack's file: "
        f"{{policy: {name}, resource: {resource.name}, reason: <why>}}"
    )


def _sentence(rule: Rule) -> str:
    return inspect.cleandoc(rule.__doc__ or "").splitlines()[0]
