"""`nodes`: print pools and products with their cards, free or not."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import click

from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import Column, Row, print_lines, print_table, text_console
from webhook.cli.output.terminal import echo_json, plural
from webhook.cluster.snapshot import Snapshot
from webhook.doctor.check import Finding
from webhook.doctor.checks.node_spelling import misspelt
from webhook.placement.capacity.free_cards import NONE, FreeCardsByProduct, accelerator_of
from webhook.placement.packing.typical_pods import ExpectedMixes
from webhook.placement.profiles.policy_profiles import card_mixes
from webhook.policy.policy import Policy

_COLUMNS = (
    Column("POOL", least=8),
    Column("PRODUCT", least=16),
    Column("NODES", is_number=True),
    Column("CARDS", is_number=True),
    Column("FREE", is_number=True),
    Column("LARGEST", is_number=True),
    Column("FRAGMENTED", is_number=True, drop=1),
)


@dataclass(frozen=True, slots=True)
class _Group:
    """The nodes of one product in one pool; `largest` is the largest number of free cards on one of them.

    `fragmented` is the share of the free cards that typical pods cannot use.
    """

    pool: str
    product: str
    nodes: int
    cards: int = 0
    free: int = 0
    largest: int = 0
    fragmented: float = 0.0

    @property
    def row(self) -> Row:
        """Return the row of the table; nodes without cards have no product."""
        if not self.cards:
            return Row([self.pool, "no cards", str(self.nodes), "-", "-", "-", "-"], "dim")
        numbers = (self.nodes, self.cards, self.free, self.largest)
        return Row([self.pool, self.product, *map(str, numbers), f"{self.fragmented:.0%}"])


@click.command()
@with_session(cluster_option, live_options, policies_option, output_option, needs_pods=False)
def nodes(session: Session) -> int:
    """Print the nodes and cards of each pool and product: how many, how many are free, and how far they are scattered.

    LARGEST is the largest number of free cards on one node. FRAGMENTED is the share of the free cards that typical pods
    cannot use. A node that is cordoned, or that runs as many pods as it may, has no free card. The pools are the values
    of the node label `node.usage` of the policy. Mistyped labels and taints are listed below.

    \b
    Examples:
      placement-webhook nodes
      placement-webhook nodes --cluster cluster.json -o json
    """
    snapshot, policy = session.snapshot, session.rules.default
    groups = [*_groups(snapshot, policy)]
    mistyped = [*misspelt(tuple(info.node for info in snapshot.nodes), tuple(session.rules))]
    if session.is_json:
        echo_json(_to_json(snapshot, groups, mistyped))
        return 0
    console = text_console()
    cards, free = sum(each.cards for each in groups), sum(each.free for each in groups)
    cordoned = int(snapshot.unschedulable.sum())
    remark = f", {cordoned} of them cordoned" if cordoned else ""
    console.print(f"{plural(len(snapshot.nodes), 'node')}{remark}; {plural(cards, 'card')}, {free} free")
    print_table(console, _COLUMNS, [each.row for each in groups])
    if mistyped:
        console.print("mistyped labels and taints:")
        print_lines(console, (f"{each.where}: {each.what}" for each in mistyped))
    return 0


def _groups(snapshot: Snapshot, policy: Policy) -> Iterator[_Group]:
    """Yield the groups with cards, then the nodes without cards of each pool."""
    accelerators = policy.spec.accelerators
    counted = FreeCardsByProduct(policy.node_usage_key, accelerators, ExpectedMixes(card_mixes(policy.spec)))
    for each in counted.of(snapshot):
        count, largest = sum(each.nodes.values()), max(each.nodes, default=0)
        yield _Group(each.pool, each.product, count, each.offered, each.free, largest, max(each.unusable_share, 0.0))
    without: Counter[str] = Counter()
    for info in snapshot.nodes:
        offered = (resource for resource, amount in info.node.allocatable.items() if amount)
        if not any(accelerator_of(resource, accelerators) for resource in offered):
            without[info.node.labels.get(policy.node_usage_key) or NONE] += 1
    for pool, count in sorted(without.items()):
        yield _Group(pool, NONE, count)


def _to_json(snapshot: Snapshot, groups: Sequence[_Group], mistyped: Sequence[Finding]) -> dict[str, object]:
    return {
        "nodes": len(snapshot.nodes),
        "unschedulable": int(snapshot.unschedulable.sum()),
        "pools": [
            {name: None if value == NONE else value for name, value in asdict(each).items()}
            | {"fragmented": round(each.fragmented, 3)}
            for each in groups
        ],
        # A remedy is Markdown; scripts run its commands.
        "mistyped": [
            {"where": each.where, "what": each.what, "remedy": each.remedy.replace("`", "")} for each in mistyped
        ],
    }
