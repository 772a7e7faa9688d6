"""What doctor knows of an installation by what it has read of it."""

from datetime import timedelta
from itertools import permutations

import pytest

from placement_doctor.cluster import ServerClock
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
