"""The packing hint of the policy, which one rule adds and another respects."""

from webhook.mutation.edits import PreferPodAffinity
from webhook.policy.bin_packing import BinPacking


def packing_hint(packing: BinPacking) -> PreferPodAffinity:
    """Return the preference for domains with packed pods."""
    return PreferPodAffinity(
        packing.weight, packing.label_key, packing.label_value, packing.topology_key, packing.namespaces
    )
