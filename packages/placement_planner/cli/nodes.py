"""`nodes`: print pools and products with their cards, free or not."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click
from rich.console import Console

from placement_doctor.check import Finding
from placement_doctor.checks.node_spelling import misspelt
from placement_planner.card_groups import card_count, group_facts
from placement_planner.domain_cards import topology_key
from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import Column, Row, print_lines, print_table, text_console
from webhook.cli.output.terminal import echo_json
from webhook.cluster.snapshot import Snapshot
from webhook.documents.listing import plural
from webhook.placement.framework.node_states import UnhealthyDevices, is_ready, state_of, unhealthy_devices
from webhook.placement.packing.domain_cards import DomainCards, cards_by_domain
from webhook.placement.packing.free_cards import NONE, FreeCards, accelerator_of
from webhook.policy.policy import Policy

_MOST_LINES = 20
_COLUMNS = (
    Column("POOL", least=8),
    Column("PRODUCT", least=16),
    Column("NODES", is_number=True),
    Column("CARDS", is_number=True),
    Column("FREE", is_number=True),
    Column("LARGEST", is_number=True),
    Column("FRAGMENTED", is_number=True, drop=1),
)
_OF_DOMAINS = (*_COLUMNS[1:-1], Column("WHOLE", is_number=True))


by_option = click.option(
    "--by",
    metavar="TOPOLOGY",
    help="Count by the values of this topology alias of the policy, such as rack, or this node label.",
)


@click.command()
@with_session(cluster_option, live_options, policies_option, by_option, output_option, needs_pods=False)
def nodes(session: Session, by: str | None) -> int:
    """Print the nodes and cards of each pool and product: how many, how many are free, and how far they are scattered.

    LARGEST is the largest number of free cards on one node. FRAGMENTED is the share of the free cards that typical pods
    cannot use. A node that is cordoned, not ready or tainted for a time (`temporaryTaints` of the policy), or that runs
    as many pods as it may, has no free card. The pools are the values of the node label `node.usage` of the policy.
    Below are the nodes that take no pods, cards that are not healthy, and mistyped labels and taints. With --by, the
    lines are domains, such as racks, instead of pools, and WHOLE is the number of nodes whose cards are all free.

    \b
    Examples:
      placement-webhook nodes
      placement-webhook nodes --by rack
      placement-webhook nodes --cluster cluster.json -o json
    """
    print_nodes(session, by)
    return 0


def print_nodes(session: Session, by: str | None) -> None:
    """Print the nodes and cards of the cluster, by pool or by the topology `by`, as text or JSON."""
    snapshot, policy = session.snapshot, session.rules.default
    groups = [*_groups(snapshot, policy)]
    found = tuple(info.node for info in snapshot.nodes)
    mistyped = [*misspelt(found, tuple(session.rules))]
    states = ((each.name, state_of(each, policy.spec.temporary_taints)) for each in found)
    closed = {name: state for name, state in states if state}
    unhealthy = [*unhealthy_devices(found, policy.spec.accelerators)]
    key = topology_key(policy, by) if by else ""
    domains = cards_by_domain(snapshot, key, policy) if key else []
    if session.is_json:
        by_domain = {"by": key, "domains": [each._asdict() for each in domains]} if key else {}
        echo_json(_to_json(snapshot, groups, mistyped, closed, unhealthy) | by_domain)
        return
    console = text_console()
    cards = [each for each in unhealthy if accelerator_of(each.resource, policy.spec.accelerators)]
    console.print(_headline(snapshot, groups, closed, cards))
    if key and not any(key in node.labels for node in found):
        print_lines(console, [f"by {by}: no node has the label"], indent=0)
    elif key:
        print_table(console, (Column(key.rpartition("/")[2].upper(), least=8), *_OF_DOMAINS), map(_domain_row, domains))
    else:
        print_table(console, _COLUMNS, map(_row, groups))
    _print_some(console, "nodes that take no pods:", [f"{name}: {state}" for name, state in closed.items()])
    _print_some(console, "devices that are not healthy:", [*map(str, unhealthy)])
    if mistyped:
        console.print("mistyped labels and taints:")
        print_lines(console, (f"{each.where}: {each.what}" for each in mistyped))


def _headline(
    snapshot: Snapshot, groups: Sequence[FreeCards], closed: Mapping[str, str], unhealthy: Sequence[UnhealthyDevices]
) -> str:
    """Return a text with the numbers of nodes, usable cards and free cards, each with its unusable part.

    `unhealthy` only counts cards.
    """
    counts = Counter("tainted for a time" if state.startswith("taint ") else state for state in closed.values())
    remark = ", ".join(f"{count} of them {state}" for state, count in sorted(counts.items()))
    usable, free = sum(each.usable for each in groups), sum(each.free for each in groups)
    away, lost = sum(each.offered for each in groups) - usable, sum(each.total - each.healthy for each in unhealthy)
    parts = [f"{plural(len(snapshot.nodes), 'node')}{remark and f', {remark}'}"]
    parts.append(f"{plural(usable, 'usable card' if away or lost else 'card')}, {free} free")
    rest = [f"{away} on nodes that take no pods"] if away else []
    rest += [f"{lost} not healthy"] if lost else []
    return "; ".join([*parts, f"not usable: {', '.join(rest)}"] if rest else parts)


def _print_some(console: Console, title: str, lines: Sequence[str]) -> None:
    """Print `title` and the first of `lines`, or nothing if there are no lines."""
    if not lines:
        return
    console.print(title)
    print_lines(console, lines[:_MOST_LINES])
    if left_out := len(lines) - _MOST_LINES:
        print_lines(console, [f"and {left_out} more; -o json has all"] if left_out > 0 else [])


def _groups(snapshot: Snapshot, policy: Policy) -> Iterator[FreeCards]:
    """Yield the groups with cards, then, for each pool, its nodes without cards, which have no product."""
    yield from card_count(policy).of(snapshot)
    without: Counter[str] = Counter()
    for info in snapshot.nodes:
        offered = (resource for resource, amount in info.node.allocatable.items() if amount)
        if not any(accelerator_of(resource, policy.spec.accelerators) for resource in offered):
            without[info.node.labels.get(policy.node_usage_key) or NONE] += 1
    for pool, count in sorted(without.items()):
        yield FreeCards(pool, NONE, nodes={0: count}, unusable=0.0, offered=0, most=0)


def _row(group: FreeCards) -> Row:
    pool, product, nodes, *numbers = map(str, group_facts(group).values())
    if not group.offered:
        return Row([pool, "no cards", nodes, "-", "-", "-", "-"], "dim")
    return Row([pool, product, nodes, *numbers[:3], f"{group.unusable_share:.0%}"])


def _domain_row(domain: DomainCards) -> Row:
    value, *facts = map(str, domain)
    return Row(["no label", *facts], "dim") if domain.value is None else Row([value or '""', *facts])


def _to_json(
    snapshot: Snapshot,
    groups: Sequence[FreeCards],
    mistyped: Sequence[Finding],
    closed: Mapping[str, str],
    unhealthy: Sequence[UnhealthyDevices],
) -> dict[str, object]:
    return {
        "nodes": len(snapshot.nodes),
        "unschedulable": int(snapshot.unschedulable.sum()),
        "notReady": sum(not is_ready(info.node) for info in snapshot.nodes),
        "usable": sum(each.usable for each in groups),
        "closed": [{"node": name, "state": state} for name, state in closed.items()],
        "unhealthy": [each._asdict() for each in unhealthy],
        "pools": [
            {name: None if value == NONE else value for name, value in group_facts(each).items()} for each in groups
        ],
        # A remedy is Markdown; scripts run its commands.
        "mistyped": [
            {"where": each.where, "what": each.what, "remedy": each.remedy.replace("`", "")} for each in mistyped
        ],
    }
