"""What doctor knows of an installation by what it has read of it, and which findings about it are kept."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import cycle, permutations

import pytest

from placement_doctor.check import MOST_FINDINGS, Finding, Severity, check, diagnose, error, info, warning
from placement_doctor.cluster import Cluster, ServerClock
from placement_doctor.source import Source
from tests.doctor.healthy import configuration, make_installation, named, read_of
from tests.support.tls.certificates import NOW

SERVICE, URL = {"service": {"namespace": "a", "name": "b"}}, {"url": "https://a/mutate"}
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("services", "urls", "expected"),
    [
        (4, 0, True),
        (3, 1, True),
        (2, 2, True),
        (1, 3, False),
        (0, 4, False),
        (0, 0, False),
        (1, 0, True),
        (0, 1, False),
    ],
)
def test_api_servers_call_a_service_if_at_least_half_of_the_webhooks_have_one(
    services: int, urls: int, expected: bool
) -> None:
    clients = [*[SERVICE] * services, *[URL] * urls, {}]
    for ordered in (clients, clients[::-1]):
        content = configuration()
        content["webhooks"] = [{"name": f"w{index}", "clientConfig": each} for index, each in enumerate(ordered)]

        assert read_of(Source.CONFIGURATIONS, content).is_called_by_service is expected


@pytest.mark.parametrize("ahead", [timedelta(), MINUTE, -MINUTE])
def test_the_time_is_that_of_the_api_server_if_it_is_known(ahead: timedelta) -> None:
    clock = ServerClock(NOW + ahead, NOW - timedelta(seconds=1), NOW)

    assert make_installation(clock=clock).server_time == NOW + ahead
    assert make_installation(clock=None).server_time == NOW


def test_the_webhook_for_pods_is_the_one_of_that_name_or_else_the_first() -> None:
    pods, *others = configuration()["webhooks"]
    for ordered in permutations((pods, *others)):
        content = {**configuration(), "webhooks": [*ordered]}

        found = read_of(Source.CONFIGURATIONS, content).pods_webhook

        assert found is not None
        assert found[0].endswith(f"webhooks[{ordered.index(pods)}]")
        assert found[1] == pods
    without = read_of(Source.CONFIGURATIONS, {**configuration(), "webhooks": others}).pods_webhook
    assert without is not None
    assert (without[0].rpartition(": ")[2], without[1]) == ("webhooks[0]", others[0])
    assert read_of(Source.CONFIGURATIONS).pods_webhook is None


def test_a_namespace_has_the_label_of_its_name_also_if_it_was_not_read() -> None:
    own = {"kubernetes.io/metadata.name": "team-a", "team": "a"}
    found = read_of(Source.NAMESPACES, named("team-a", labels={"team": "a"}), named("plain"))

    assert found.namespace_labels("team-a") == own
    assert found.namespace_labels("plain") == {"kubernetes.io/metadata.name": "plain"}
    assert found.namespace_labels("unread") == {"kubernetes.io/metadata.name": "unread"}


def test_the_objects_of_the_own_namespace_are_those_in_it() -> None:
    quotas = [named("q", namespace=each) for each in ("placement-webhook", "other", "placement-webhook-certs")]

    assert [*read_of(Source.QUOTAS, *quotas, named("q")).own(Source.QUOTAS)] == quotas[:1]


@pytest.mark.parametrize(("number", "omitted"), [(0, 0), (1, 0), (9, 0), (10, 0), (11, 1), (25, 15)])
@pytest.mark.parametrize("ordered", [list, reversed])
def test_the_worst_findings_of_a_check_are_kept_and_the_others_counted(
    number: int, omitted: int, ordered: Callable[[list[Finding]], Iterable[Finding]]
) -> None:
    kinds = [each for _, each in zip(range(number), cycle((info, warning, error, info)), strict=False)]
    given = [make(f"Node n{index}", f"what {index}", "") for index, make in enumerate(kinds)]

    @check("")
    def one(_: Cluster) -> Iterable[Finding]:
        """Yield all."""
        yield from ordered(given)

    @check("")
    def other(_: Cluster) -> Iterable[Finding]:
        """Yield a warning."""
        yield warning("Node other", "what", "")

    found = diagnose(make_installation(), [one, other])

    rank = [*Severity].index
    of_one = [rank(each.severity) for each in found.findings if each.check == "one"]
    assert of_one == sorted(rank(each.severity) for each in given)[:MOST_FINDINGS]
    assert found.omitted == ({"one": omitted} if omitted else {})
    assert [rank(each.severity) for each in found.findings] == sorted([*of_one, rank(Severity.WARNING)])
    assert found.worst is (found.findings[0].severity)


def test_findings_with_one_remedy_about_fields_of_one_object_are_one() -> None:
    @check("")
    def fields(_: Cluster) -> Iterable[Finding]:
        """Yield findings about two objects."""
        for place in ("Node a: x", "Node b: x", "Node a: y", "Node a: x"):
            yield warning(place, "what", "remedy")
        yield warning("Node a: z", "what", "another remedy")

    found = diagnose(make_installation(), [fields]).findings

    assert sorted(each.where for each in found) == ["Node a: x, y", "Node a: z", "Node b: x"]
