"""Translate the node affinity of an in-tree volume to that of the migrated CSI volume."""

from collections.abc import Iterable, Mapping

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.kube.names import REGION_LABEL, ZONE_LABEL

OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
_ZONES_DELIMITER = "__"
# The drivers with a topology key of their own.
_TOPOLOGY_KEYS = {
    "ebs.csi.aws.com": "topology.ebs.csi.aws.com/zone",
    "pd.csi.storage.gke.io": "topology.gke.io/zone",
    "cinder.csi.openstack.org": "topology.cinder.csi.openstack.org/zone",
}

Terms = tuple[Term, ...] | None


def translated(required: Terms, labels: Mapping[str, str], driver: str) -> Terms:
    """Translate `required`, the node affinity of a volume with `labels`, for `driver`.

    The driver's own key replaces the zone key in the affinity; if the affinity has no zones, those of the zone label
    are added to every term.

    Source: k8s.io/csi-translation-lib/plugins/in_tree_volume.go, translateTopologyFromInTreeToCSI
    """
    own_key = _TOPOLOGY_KEYS.get(driver)
    if own_key is None:
        return required
    terms = required or ()
    is_old = _uses_old_zone_label(terms, labels)
    zone_label = OLD_ZONE_LABEL if is_old else ZONE_LABEL
    if _values(terms, zone_label):
        terms = _renamed(terms, zone_label, own_key)
    elif zones := {zone.strip() for zone in labels.get(zone_label, "").split(_ZONES_DELIMITER)} - {""}:
        added = Requirement(own_key, "In", tuple(sorted(zones)))
        terms = tuple(Term((*term.expressions, added), term.fields) for term in terms or (Term((), ()),))
    if is_old and _values(terms, _OLD_REGION_LABEL):
        terms = _renamed(terms, _OLD_REGION_LABEL, REGION_LABEL)
    return None if required is None and not terms else terms


def _uses_old_zone_label(terms: Iterable[Term], labels: Mapping[str, str]) -> bool:
    """Return true if the old zone label applies: affinity precedes labels, the new zone label the old one."""
    keys = {requirement.key for term in terms for requirement in term.expressions}
    for known in (keys, labels.keys()):
        if ZONE_LABEL in known or OLD_ZONE_LABEL in known:
            return ZONE_LABEL not in known
    return False


def _values(terms: Iterable[Term], key: str) -> bool:
    return any(each.values for term in terms for each in term.expressions if each.key == key)


def _renamed(terms: Iterable[Term], old: str, new: str) -> tuple[Term, ...]:
    return tuple(
        Term(tuple(each._replace(key=new) if each.key == old else each for each in term.expressions), term.fields)
        for term in terms
    )
