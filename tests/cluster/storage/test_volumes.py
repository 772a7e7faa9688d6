"""The node affinity of an in-tree volume, as its CSI driver has it."""

import pytest

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.cluster.storage.volumes import PersistentVolume, PersistentVolumeClaim, Terms, translated

_GCE, _AZURE = "pd.csi.storage.gke.io", "disk.csi.azure.com"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_OWN = "topology.gke.io/zone"


def _terms(*terms: dict[str, str]) -> tuple[Term, ...]:
    return tuple(Term(tuple(Requirement(key, "In", (value,)) for key, value in term.items()), ()) for term in terms)


@pytest.mark.parametrize(
    ("required", "labels", "wanted"),
    [
        pytest.param(None, {}, None, id="nothing asked"),
        pytest.param(_terms({_ZONE: "a"}, {"x": "y"}), {}, _terms({_OWN: "a"}, {"x": "y"}), id="zone"),
        pytest.param(
            _terms({_OLD_ZONE: "a", _OLD_REGION: "r"}), {}, _terms({_OWN: "a", _REGION: "r"}), id="old zone and region"
        ),
        pytest.param(
            _terms({_ZONE: "a", _OLD_REGION: "r"}), {}, _terms({_OWN: "a", _OLD_REGION: "r"}), id="old region"
        ),
        pytest.param(_terms({_OLD_REGION: "r"}), {}, _terms({_OLD_REGION: "r"}), id="old region without a zone"),
        pytest.param(_terms({_ZONE: "a"}), {_ZONE: "b"}, _terms({_OWN: "a"}), id="the affinity before the label"),
        pytest.param(_terms({_ZONE: "a"}), {_OLD_ZONE: "b"}, _terms({_OWN: "a"}), id="also before the old label"),
        pytest.param(_terms({_OLD_ZONE: "a"}), {_ZONE: "b"}, _terms({_OWN: "a"}), id="the old zone before the label"),
        pytest.param(
            _terms({_OLD_ZONE: "a"}, {_ZONE: "b"}),
            {_OLD_ZONE: "c"},
            _terms({_OLD_ZONE: "a"}, {_OWN: "b"}),
            id="of both, the new one",
        ),
        pytest.param(_terms({"x": "y"}), {_ZONE: "b"}, _terms({"x": "y", _OWN: "b"}), id="a label beside others"),
        pytest.param(None, {_OLD_ZONE: "b"}, _terms({_OWN: "b"}), id="an old label alone"),
        pytest.param(None, {_OLD_ZONE: "b", _ZONE: "c"}, _terms({_OWN: "c"}), id="the new label before the old"),
        pytest.param((), {_ZONE: "b"}, _terms({_OWN: "b"}), id="a label beside no term"),
        pytest.param(None, {_ZONE: "__"}, None, id="a label without a zone"),
    ],
)
def test_zones_use_the_topology_key_of_the_driver(required: Terms, labels: dict[str, str], wanted: Terms) -> None:
    assert translated(required, labels, _GCE) == wanted


def test_several_zones_of_a_label_are_any_of_them() -> None:
    (term,) = translated(None, {_ZONE: "b__ a"}, _GCE) or ()
    assert term.expressions == (Requirement(_OWN, "In", ("a", "b")),)


def test_driver_without_a_topology_of_its_own_changes_nothing() -> None:
    required = _terms({_ZONE: "a"})
    assert translated(required, {_ZONE: "b"}, _AZURE) is required


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, "UNSPECIFIED"),
        ({_ZONE: "a"}, "a"),
        ({_OLD_ZONE: "b"}, "b"),
        ({_ZONE: "a", _OLD_ZONE: "b"}, "b"),
        ({_ZONE: "a", _OLD_ZONE: ""}, "a"),
    ],
)
def test_handle_of_a_migrated_disk_has_the_zone_of_the_old_label_first(labels: dict[str, str], zone: str) -> None:
    """Source: k8s.io/csi-translation-lib/plugins/gce_pd.go, TranslateInTreePVToCSI."""
    spec = {"gcePersistentDisk": {"pdName": "d"}}

    migrated = PersistentVolume.of({"metadata": {"name": "v", "labels": labels}, "spec": spec}).migrated

    assert migrated is not None
    assert migrated.handle == f"projects/UNSPECIFIED/zones/{zone}/disks/d"


_BETA, _COMPLETED = "volume.beta.kubernetes.io/storage-class", "pv.kubernetes.io/bind-completed"


@pytest.mark.parametrize(
    ("annotations", "spec", "storage_class", "is_bound"),
    [
        ({}, {}, "", False),
        ({}, {"storageClassName": "fast"}, "fast", False),
        ({_BETA: "old"}, {"storageClassName": "fast"}, "old", False),
        ({_BETA: ""}, {"storageClassName": "fast"}, "", False),
        ({_COMPLETED: "yes"}, {}, "", False),
        ({}, {"volumeName": "v"}, "", False),
        ({_COMPLETED: "yes"}, {"volumeName": "v"}, "", True),
    ],
)
def test_class_and_binding_of_a_claim(
    annotations: dict[str, str], spec: dict[str, str], storage_class: str, *, is_bound: bool
) -> None:
    claim = PersistentVolumeClaim.of({"metadata": {"name": "c", "annotations": annotations}, "spec": spec})

    assert (claim.storage_class, claim.is_bound) == (storage_class, is_bound)
