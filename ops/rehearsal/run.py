"""One rehearsal: base, head with clients, head again, and down."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from identity.catalogue import CONTROL_PLANE
from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.outputs import StackOutputs
from identity.settings.rules.credential_loss import find_losses
from identity.settings.schema.problems import NAMESPACE
from ops.outputs.plan import Operation, ResourceStep
from ops.rehearsal.configuration import StackCopy, copy_configuration, families, local_names, with_own_names
from ops.rehearsal.report import CredentialLoss, Rehearsal, Restart, moves
from ops.rehearsal.sign_ins import CredentialMount, SecretReader, SignIns, credential_mounts, sign_in_once, signing_in
from ops.rehearsal.world import ThrowAwayCloud, Tree, as_it_is, at_commit, left, seed_of, throw_away
from ops.stack.errors import CommandError
from ops.world.ownership import ResourceOwner
from ops.world.stacks import clusters_in


@dataclass(frozen=True)
class PlannedRehearsal:
    """A rehearsal of `stack` in the project at `root`, from the commit `base` to `head`, None for the checkout.

    `caller` is the environment from which that of the commands is derived. `forbidden` is as in `Rehearsal`.
    """

    root: Path
    stack: str
    base: str
    head: str | None
    seed: int
    caller: Mapping[str, str] = field(repr=False, compare=False)
    forbidden: Collection[Operation] = frozenset()


def rehearse(plan: PlannedRehearsal, step: Callable[[str], None]) -> Rehearsal:
    """Rehearse; `step` is called with the name of each step that begins.

    Raises CommandError for an unknown commit or stack, a configuration that the program refuses, and a base that cannot
    be brought up.
    """
    with throw_away(plan.seed, plan.caller) as world:
        return _Run(plan, world, step).whole()


@dataclass
class _Commit:
    """The stacks at one commit: their copies in the order in which they are brought up."""

    tree: Tree
    copies: list[StackCopy] = field(default_factory=list)
    outputs: dict[str, StackOutputs[str]] = field(default_factory=dict)

    def clusters(self) -> list[str]:
        return [cluster.name for copy in self.copies for cluster in copy.settings.hosted_clusters]

    def credentials(self) -> list[CredentialMount]:
        return [credential for outputs in self.outputs.values() for credential in credential_mounts(outputs)]


class _Run:
    def __init__(self, plan: PlannedRehearsal, world: ThrowAwayCloud, step: Callable[[str], None]) -> None:
        self._world = world
        self._step = step
        base, into = at_commit(plan.root, plan.base, world.directory / "base"), world.directory / "head"
        head = as_it_is(plan.root, into) if plan.head is None else at_commit(plan.root, plan.head, into)
        before, after = base.configurations(), head.configurations()
        if plan.stack not in after:
            raise CommandError(f"there is no Pulumi.{plan.stack}.yaml at {head.name}")
        at_base, at_head = families(plan.stack, before, after)
        stacks = tuple(dict.fromkeys((*at_base, *at_head)))
        self._names = local_names(stacks)
        self._result = Rehearsal(plan.stack, base.name, head.name, plan.seed, stacks, plan.forbidden)
        own = after[plan.stack].get("config") or {}
        self._ids = {
            LOCAL_TENANT_ID: str(own.get(f"{NAMESPACE}:tenantId", LOCAL_TENANT_ID)),
            LOCAL_SUBSCRIPTION_ID: str(own.get(f"{NAMESPACE}:subscriptionId", LOCAL_SUBSCRIPTION_ID)),
        }
        self._base = self._commit(base, at_base, before)
        self._head = self._commit(head, at_head, after)
        self._result.moves = list(moves(self._base.copies, self._head.copies))

    def _commit(self, tree: Tree, stacks: Sequence[str], documents: Mapping[str, Mapping[str, Any]]) -> _Commit:
        into, seed = self._world.documents, self._result.seed
        return _Commit(tree, [copy_configuration(one, documents[one], self._names, into, seed) for one in stacks])

    def whole(self) -> Rehearsal:
        copies, result = [*self._base.copies, *self._head.copies], self._result
        result.left_out = list(dict.fromkeys(text for copy in copies for text in copy.left_out))
        with self._timed("local cloud"):
            seed = seed_of(copy.settings for copy in copies)
            local = self._world.start(seed, copies)
            before = self._world.contents()
        with self._timed(f"base: {self._base.tree.name}"):
            self._bring_up_base()
        with closing(SecretReader(local)) as reader:
            result.sign_ins, ends = self._bring_up_head(reader)
            with ThreadPoolExecutor(1) as executor:
                # The second run changes nothing, and waits for the services most of its time.
                credentials = [] if result.errors else self._head.credentials()
                ended = executor.submit(ends.close)
                new_pods = executor.submit(sign_in_once, reader, credentials)
                result.second = None if result.errors else self._second_run()
            ended.result()
            result.new_pods = new_pods.result()
        if result.second is not None:
            with self._timed("down"):
                self._down(before)
        result.unused, result.restarts = self._unused(), list(self._restarts())
        result.errors = list(map(self._own, result.errors))
        return result

    def _bring_up_base(self) -> None:
        for copy in self._base.copies:
            engine, log, failed = self._world.up(self._base.tree, copy, "base")
            if failed is not None:
                reasons = "\n".join(log.errors) or self._world.last_lines()
                raise CommandError(self._own(f"{copy.stack} cannot be brought up at the base: {reasons}"))
            self._base.outputs[copy.stack] = engine.outputs()

    def _bring_up_head(self, reader: SecretReader) -> tuple[list[SignIns], ExitStack]:
        """Bring the head up; returns the sign-ins of the clients meanwhile, and the stack that ends them."""
        for copy in self._head.copies:
            if (last := self._base.outputs.get(copy.stack)) is not None:
                self._compare(copy, last)
        credentials = self._base.credentials()
        self._step(f"clients of {len(credentials)} credentials")
        with ExitStack() as ends:
            with self._timed("first sign-ins", shown=False):
                sign_ins = ends.enter_context(signing_in(reader, credentials))
            with self._timed(f"head: {self._head.tree.name}"):
                self._move_clusters()
                targets = {move.target for move in self._result.moves}
                for copy in sorted(self._head.copies, key=lambda copy: copy.stack not in targets):
                    if not self._result.errors:
                        self._up(copy)
            return sign_ins, ends.pop_all()

    def _move_clusters(self) -> None:
        """Move clusters that change their stack, as a person has to before the first `up`."""
        copies = {copy.stack: copy for copy in self._head.copies}
        for move in self._result.moves:
            stacks = (copies[move.source], copies[move.target])
            source, target = (self._world.engine(self._head.tree, copy) for copy in stacks)
            try:
                source.move(clusters_in(source.resources())[move.cluster], target.stack)
            except CommandError as error:
                self._result.errors.append(str(error))

    def _second_run(self) -> list[ResourceStep]:
        """The steps of a second run; a first run without steps needs none, as it already repeated the base."""
        steps: list[ResourceStep] = []
        if not self._result.steps:
            return steps
        with self._timed("head again"):
            for copy in self._head.copies:
                _, log, failed = self._world.up(self._head.tree, copy, "again")
                steps += log.steps
                if failed is not None:
                    self._result.errors += log.errors or [failed]
        return steps

    def _unused(self) -> list[str]:
        """The clusters that are not used any more: those that the head does not have, and those with an approved loss.

        A cluster that another one replaces is in use until that is approved.
        """
        approved = {loss.cluster for loss in self._result.losses if loss.approved}
        kept = {*self._head.clusters(), *(loss.cluster for loss in self._result.losses)} - approved
        return [name for name in self._base.clusters() if name not in kept]

    def _up(self, copy: StackCopy) -> None:
        engine, log, failed = self._world.up(self._head.tree, copy, "head")
        self._result.steps += log.steps
        if failed is not None:
            self._result.errors += log.errors or [failed, self._world.last_lines()]
            return
        self._head.outputs[copy.stack] = engine.outputs()

    def _compare(self, copy: StackCopy, last: StackOutputs[str]) -> None:
        """Note the credentials that the stack would lose (`identity/settings/rules/credential_loss.py`)."""
        # The vault of the credentials is the stack's own, or that of the stack it shares.
        copies = {copy.name: copy for copy in self._head.copies}
        vault = copies.get(copy.shared_stack or "", copy).settings.vault_id
        for loss in find_losses(copy.settings, vault, last):
            is_approved = loss.successor is None and loss.cluster in copy.settings.allow_credential_loss
            self._result.losses.append(CredentialLoss(loss.cluster, tuple(map(self._own, loss.lines)), is_approved))

    def _down(self, before: frozenset[tuple[str, str]]) -> None:
        """Take every stack down, the shared one last; notes what remains, and what Azure keeps."""
        at_head = {copy.stack for copy in self._head.copies}
        removed = [(self._base.tree, copy) for copy in self._base.copies if copy.stack not in at_head]
        for tree, copy in reversed([*((self._head.tree, copy) for copy in self._head.copies), *removed]):
            engine = self._world.engine(tree, copy)
            engine.unprotect()
            try:
                engine.destroy()
            except CommandError as error:
                self._result.errors += [str(error), self._world.last_lines()]
                return
        self._result.left, self._result.kept = (
            list(map(self._own, texts)) for texts in left(before, self._world.contents())
        )

    def _restarts(self) -> Iterator[Restart]:
        """Pods that restart: of Deployments that the stack changes, and of HyperShift's with a changed mount."""
        for step in self._result.steps:
            if step.restarts:
                change = "replaced" if step.operation is Operation.REPLACE else "changed"
                name = step.name.removeprefix(f"{step.owner.cluster}-").removeprefix("cluster-side-")
                yield Restart(step.owner, (name.removesuffix("-deployment"),), f"the Deployment is {change}")
        for stack, before in self._base.outputs.items():
            after = self._head.outputs.get(stack)
            if after is not None and after.get("clusterSide") == "hypershift":
                yield from _changed_mounts(before, after)

    def _own(self, text: str) -> str:
        for local, own in self._ids.items():
            text = text.replace(local, own)
        return with_own_names(text, self._names)

    @contextmanager
    def _timed(self, name: str, *, shown: bool = True) -> Iterator[None]:
        if shown:
            self._step(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self._result.seconds[name.partition(":")[0]] = time.monotonic() - start


def _changed_mounts(before: StackOutputs[str], after: StackOutputs[str]) -> Iterator[Restart]:
    known = before.get("hostedClusters") or {}
    for name, cluster in (after.get("hostedClusters") or {}).items():
        if name not in known:
            continue
        for row in CONTROL_PLANE:
            old, new = (output["controlPlane"].get(row.field) for output in (known[name], cluster))
            if old is None or new is None:
                continue
            reasons = [
                *(["keyVaultName"] if before["keyVaultName"] != after["keyVaultName"] else []),
                *(key for key in ("clientID", "credentialsSecretName", "objectEncoding") if old[key] != new[key]),
            ]
            if reasons:
                deployments = tuple(dict.fromkeys(mount.deployment for mount in row.mounts))
                yield Restart(
                    ResourceOwner(name, row.field), deployments, f"{', '.join(reasons)} of the HostedCluster changes"
                )
