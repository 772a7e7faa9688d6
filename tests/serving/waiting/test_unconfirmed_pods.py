"""What the reviews of an address find is brought up to date by what has changed, and equals what is made anew."""

import gc
import weakref
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.waiting_pods import WaitingPod
from webhook.serving.waiting.unconfirmed_pods import UnconfirmedPods

_FOUR_CPUS: Mapping[str, str] = {"cpu": "4", "memory": "8Gi", "pods": "110"}
_ADDRESSES = ("10.0.0.1", "10.0.0.2")
_ASKED = WaitingPod.of(make_pod("p").requests(cpu="1").obj())


class _Pods:
    """Confirmed and unconfirmed pods on two or three nodes."""

    def __init__(self) -> None:
        self.cache = ClusterCache()
        self.set_nodes(3)
        self.confirmed: AssumedPods[int] = AssumedPods(self.cache.snapshot())
        self.unconfirmed = UnconfirmedPods(self.confirmed, self.place)
        self.last = 0

    def place(self, _: int, assumed: AssumedPods[int]) -> AssumedPod:
        free = (node for node in sorted(assumed.base.rows) if assumed.has_room(node, _ASKED.running))
        return AssumedPod(_ASKED.running.assumed_on(next(free, ""), 0), 0)

    def full_nodes(self, address: str) -> set[str]:
        """The nodes that an unconfirmed pod of the address is on, although they do not have room for all pods."""
        # A review places a few pods again.
        found = [self.unconfirmed.among(address, 0.0) for _ in range(5)][-1]
        nodes = {each.pod.node_name for each in self.unconfirmed.by_address.get(address, {}).values()}
        return {node for node in nodes & found.base.rows.keys() if not found.has_room(node)}

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def set_nodes(self, count: int) -> None:
        self.cache.replace("Node", [make_node_object(f"n{number}", capacity=_FOUR_CPUS) for number in range(count)])

    def confirm(self, number: int, node: str) -> None:
        if number not in self.confirmed.by_key and node in self.confirmed.base.rows:
            self.confirmed.assume(number, AssumedPod(_ASKED.running.assumed_on(node, 0), 0))

    def put(self, number: int, node: str, address: str) -> None:
        self.unconfirmed.put(number, address, _ASKED, Placement("Feasible", node, 3, 3, ""))

    def see(self, number: int) -> None:
        pod = self.unconfirmed.take(number)
        if pod is not None:
            self.confirm(number, pod.pod.node_name)

    def follow(self) -> None:
        self.confirmed.follow(self.cache.snapshot())

    def shown(self, address: str) -> list[tuple[str, int, int]]:
        return _said(self.unconfirmed.among(address, 0.0))

    def wanted(self, address: str) -> list[tuple[str, int, int]]:
        own = self.unconfirmed.by_address.get(address, {})
        anew = AssumedPods(self.confirmed.base, {**own, **self.confirmed.by_key}).on(self.confirmed.base)
        return _said(anew)

    def change(self, step: int, number: int, node: str, address: str) -> None:
        """Make one of nine changes; `number` is that of a pod that may be there."""
        match step:
            case 0:
                self.put(self.next_number(), node, address)
            case 1:
                self.confirm(self.next_number(), node)
            case 2:
                self.see(number)
            case 3:
                self.confirmed.forget((number,))
            case 4 | 5:
                self.set_nodes(step - 2)
                self.follow()
            case 6:
                running = make_pod(f"running-{number}").requests(cpu="2").node_name(node).obj()
                self.cache.apply("Pod", "DELETED" if number % 2 else "ADDED", running)
                self.follow()
            case 7:
                self.unconfirmed.take(number)
            case _:
                self.repeat(number, address)

    def repeat(self, number: int, address: str) -> None:
        """Admit a pod of the address once more, and deny it: its room is taken from what the address finds."""
        if number in self.unconfirmed.by_address.get(address, {}):
            self.unconfirmed.among(address, 0.0).forget((number,))


def _said(pods: AssumedPods[int]) -> list[tuple[str, int, int]]:
    shown = pods.all_shown
    return [(info.node.name, len(info.pods), int(shown.load.pods[row])) for row, info in enumerate(shown.nodes)]


@given(st.data())
def test_what_an_address_finds_is_what_is_made_anew(data: st.DataObject) -> None:
    pods = _Pods()
    for _ in range(data.draw(st.integers(1, 30))):
        address = data.draw(st.sampled_from(_ADDRESSES))
        number, node = data.draw(st.integers(1, pods.last + 1)), data.draw(st.sampled_from(("n0", "n1", "n2")))
        pods.change(data.draw(st.integers(0, 8)), number, node, address)
        if data.draw(st.booleans()):
            assert pods.shown(address) == pods.wanted(address)
    for address in _ADDRESSES:
        assert pods.shown(address) == pods.wanted(address)
        assert pods.full_nodes(address) == set()


def test_address_without_pods_finds_the_confirmed_ones_themselves() -> None:
    pods = _Pods()
    pods.put(1, "n0", _ADDRESSES[0])
    assert pods.unconfirmed.among(_ADDRESSES[1], 0.0) is pods.confirmed


def test_what_an_address_finds_stays_the_same_object_from_one_of_its_pods_to_the_next() -> None:
    """So its rankings are brought up to date, and not made anew."""
    pods = _Pods()
    pods.put(1, "n0", _ADDRESSES[0])
    first = pods.unconfirmed.among(_ADDRESSES[0], 0.0)
    log = first.all_shown.log
    pods.see(1)
    pods.put(2, "n1", _ADDRESSES[0])
    again = pods.unconfirmed.among(_ADDRESSES[0], 1.0)
    assert again is first
    assert again.all_shown.log is log


def test_old_snapshot_of_an_address_that_does_not_ask_any_more_is_dropped() -> None:
    pods = _Pods()
    pods.put(1, "n0", _ADDRESSES[0])
    pods.unconfirmed.among(_ADDRESSES[0], 0.0)
    old = weakref.ref(pods.confirmed.base)
    pods.see(1)
    pods.set_nodes(2)
    pods.follow()
    pods.unconfirmed.drop_idle(1.0)
    gc.collect()
    assert old() is not None
    pods.unconfirmed.drop_idle(3.0)
    gc.collect()
    assert old() is None
