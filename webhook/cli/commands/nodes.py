"""`nodes`: print pools and products with their cards, free or not."""

from collections import Counter
from collections.abc import Iterator, Sequence

import click

from webhook.cli.console.cluster_state import card_count, group_facts
from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import Column, Row, print_lines, print_table, text_console
from webhook.cli.output.terminal import echo_json, plural
from webhook.cluster.snapshot import Snapshot
from webhook.doctor.check import Finding
from webhook.doctor.checks.node_spelling import misspelt
from webhook.placement.capacity.free_cards import NONE, FreeCards, accelerator_of
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
    cards, free = sum(each.offered for each in groups), sum(each.free for each in groups)
    cordoned = int(snapshot.unschedulable.sum())
    remark = f", {cordoned} of them cordoned" if cordoned else ""
    console.print(f"{plural(len(snapshot.nodes), 'node')}{remark}; {plural(cards, 'card')}, {free} free")
    print_table(console, _COLUMNS, map(_row, groups))
    if mistyped:
        console.print("mistyped labels and taints:")
        print_lines(console, (f"{each.where}: {each.what}" for each in mistyped))
    return 0


def _groups(snapshot: Snapshot, policy: Policy) -> Iterator[FreeCards]:
    """Yield the groups with cards, then the nodes without cards of each pool, which have no product."""
    yield from card_count(policy).of(snapshot)
    without: Counter[str] = Counter()
    for info in snapshot.nodes:
        offered = (resource for resource, amount in info.node.allocatable.items() if amount)
        if not any(accelerator_of(resource, policy.spec.accelerators) for resource in offered):
            without[info.node.labels.get(policy.node_usage_key) or NONE] += 1
    for pool, count in sorted(without.items()):
        yield FreeCards(pool, NONE, nodes={0: count}, unusable=0.0, offered=0, most=0)


def _row(group: FreeCards) -> Row:
    pool, product, nodes, *numbers, _ = map(str, group_facts(group).values())
    if not group.offered:
        return Row([pool, "no cards", nodes, "-", "-", "-", "-"], "dim")
    return Row([pool, product, nodes, *numbers, f"{group.unusable_share:.0%}"])


def _to_json(snapshot: Snapshot, groups: Sequence[FreeCards], mistyped: Sequence[Finding]) -> dict[str, object]:
    return {
        "nodes": len(snapshot.nodes),
        "unschedulable": int(snapshot.unschedulable.sum()),
        "pools": [
            {name: None if value == NONE else value for name, value in group_facts(each).items()} for each in groups
        ],
        # A remedy is Markdown; scripts run its commands.
        "mistyped": [
            {"where": each.where, "what": each.what, "remedy": each.remedy.replace("`", "")} for each in mistyped
        ],
    }
