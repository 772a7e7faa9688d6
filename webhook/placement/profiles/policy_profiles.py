"""The built-in profiles with the settings of a policy."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from webhook.kube.quantity import milli_value
from webhook.placement.packing.typical_pods import CardMixes, Mix, TypicalPod
from webhook.placement.profiles.profile import PACK_GPUS, PROFILES, Profile, pack_gpus
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.schedulers import TypicalPodSpec


def profiles_for(spec: PolicySpec) -> Mapping[str, Profile]:
    """Return the built-in profiles by name; `PackGpus` has the accelerators and the mix of `spec`."""
    return _profiles(_resources(spec), spec.pack_gpus.mix)


def card_mixes(spec: PolicySpec) -> CardMixes:
    """Return the resources whose units are cards, and the typical pods in `spec`."""
    return CardMixes(_resources(spec), _mixes(spec.pack_gpus.mix))


def _resources(spec: PolicySpec) -> tuple[str, ...]:
    # Without a loop in Python: an admission asks for the profiles.
    return tuple(chain.from_iterable(map(attrgetter("resources"), spec.accelerators)))


# Plugins remember what they have counted, so a profile is made once.
@lru_cache(maxsize=16)
def _profiles(resources: tuple[str, ...], pods: tuple[TypicalPodSpec, ...]) -> Mapping[str, Profile]:
    return {**PROFILES, PACK_GPUS.name: pack_gpus(CardMixes(resources, _mixes(pods)))}


def _mixes(pods: Iterable[TypicalPodSpec]) -> Mapping[str, Mix]:
    mixes: dict[str, dict[TypicalPod, float]] = {}
    for pod in pods:
        mix = mixes.setdefault(pod.resource, {})
        kind = TypicalPod(milli_value(pod.cpu), -(-milli_value(pod.memory) // 1000), pod.cards)
        mix[kind] = mix.get(kind, 0) + pod.weight
    return mixes
