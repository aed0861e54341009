"""The rules as policies of Pulumi's SDK, and what is waived as an advisory policy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from pulumi_policy import EnforcementLevel, Policy, ReportViolation, ResourceValidationArgs, ResourceValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from identity.settings.schema.model import PolicyName
from identity.settings.schema.problems import for_stack
from policies.rules import RULES, CheckedResource, Rule, RuleContext, StackConfig, Violation

WAIVED = "waived"


def policies(stack: StackConfig) -> list[Policy]:
    """A mandatory policy for each rule, and one that shows what the stack's file waives, with the reason."""
    context = RuleContext(stack)
    return [*(_mandatory(name, rule, context) for name, rule in RULES.items()), _waived(RuleContext(stack))]


def _mandatory(name: PolicyName, rule: Rule, context: RuleContext) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = resource_of(args)
        if (name, resource.name) not in context.stack.waivers:
            for violation in _known(rule, resource, context):
                stack = args.urn.removeprefix("urn:pulumi:").partition("::")[0]
                report(for_stack(_message(name, resource, violation), stack), None)

    return ResourceValidationPolicy(
        name=name,
        description=inspect.cleandoc(rule.__doc__ or "").splitlines()[0],
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
    )


def _waived(context: RuleContext) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = resource_of(args)
        for name, rule in RULES.items():
            # Also without a waiver: some rules compare a resource with earlier ones.
            violations = list(_known(rule, resource, context))
            reason = context.stack.waivers.get((name, resource.name))
            if reason is not None:
                for violation in violations:
                    report(f"{name}: {violation.found}; waived by `policyWaivers` of the stack's file: {reason}", None)

    return ResourceValidationPolicy(
        name=WAIVED,
        description="What the stack's file waives is shown in every run.",
        validate=validate,
        enforcement_level=EnforcementLevel.ADVISORY,
    )


def resource_of(args: ResourceValidationArgs) -> CheckedResource:
    """The resource that the engine is about to register."""
    _, _, chain, name = args.urn.split("::", 3)[-4:]
    return CheckedResource(kinds=tuple(chain.split("$")), name=name, inputs=args.props)


def _known(rule: Rule, resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """The violations that are known; a preview does not know the values that Azure assigns."""
    try:
        yield from rule(resource, context)
    except UnknownValueError:
        return


def _message(name: PolicyName, resource: CheckedResource, broken: Violation) -> str:
    return (
        f"{resource.name}\n"
        f"  found:    {broken.found}\n"
        f"  accepted: {broken.accepted}\n"
        f"  fix:      {broken.fix}\n"
        "  waiver:   in `policyWaivers` of the stack's file: "
        f"{{policy: {name}, resource: {resource.name}, reason: <why>}}"
    )
