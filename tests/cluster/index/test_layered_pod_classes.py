"""Classes of pods above those of a snapshot."""

from tests.cluster.index.terms import REQUIRED, info_of, show
from tests.support.objects.builders import make_pod
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.index.shown_pods import ShownPods

_WEB = {"matchLabels": {"app": "web"}}


def test_a_layer_and_its_base_get_classes_of_their_own() -> None:
    spread = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": _WEB}]}}
    pods = [make_pod().label("n", str(number)).affinity(spread) for number in range(3)]
    base = RunningPods.of([info_of("n", pods[0]), info_of("n")])
    layer = ShownPods(base)
    show(layer, 1, info_of("n"), info_of("n", pods[1]))
    later = base.with_rows({1: info_of("n", pods[0], pods[2])})
    for table, rows in ((base, [0]), (layer, [0, 1]), (later, [0, 1, 1])):
        found = [table.carrier_rows(each)[0].tolist() for each in table.carried("default", {}, {"app": "web"})]
        assert sorted(row for each in found for row in each) == rows
    assert (len(base.classes), layer.classes.own_count) == (2, 1)
