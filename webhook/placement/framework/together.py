"""The room for a gang that runs together in one topology domain, such as a rack, and texts about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.backends.references import Within
from webhook.cluster.batch.network_topology import tier_of_key
from webhook.documents.listing import plural, some
from webhook.documents.text import cut

MOST_SHOWN = 100
"""The number of domains in JSON: those with the most room."""

_LONGEST_SHOWN = 63
_MOST_NAMED = 3
# The aliases that are nouns themselves; of another alias, such as `nvlink`, there are domains.
_NOUNS = frozenset(("host", "rack", "zone"))


class Domain(NamedTuple):
    """The nodes with the values `path` of the labels of a domain, the widest first.

    On them, `members` pods of the gang already have a place.

    `fits` is the number of further pods of the gang that have room there now, and `fits_empty` an upper bound of the
    pods that the domain could hold without other pods, or None if it is not known.
    """

    path: tuple[str, ...]
    fits: int
    fits_empty: int | None
    members: int = 0

    @property
    def value(self) -> str:
        """The name of the domain, such as `rack-1`, or `zone-a/rack-1` if a rack is named by the zone, too."""
        return "/".join(self.path)


@dataclass(frozen=True, slots=True)
class Together:
    """The `domains` for the `missing` pods of a gang of `size` that runs `within` one.

    `domains` are in the order of their values. `unlabelled` is the number of nodes without one of the labels, and
    `outside` that of the pods of the gang on them. `first` are the values of the domains that the first pod can choose,
    if the other pods have to follow it there. It is only set if some of these domains have no room for all pods.
    """

    within: Within
    size: int
    missing: int
    domains: tuple[Domain, ...]
    unlabelled: int
    outside: int = 0
    first: tuple[tuple[str, ...], ...] = ()

    @property
    def allowed(self) -> tuple[Domain, ...]:
        """The domains for the missing pods: that of the members, all without members, none if they are spread."""
        return () if self.outside or len(self.occupied) > 1 else self.occupied or self.domains

    @property
    def occupied(self) -> tuple[Domain, ...]:
        """The domains of pods of the gang that already have a place."""
        return tuple(each for each in self.domains if each.members)

    @property
    def largest(self) -> Domain | None:
        """The allowed domain with the most room, the first by value of several, or None."""
        return max(self.allowed, key=lambda each: each.fits, default=None)

    @property
    def with_room(self) -> tuple[Domain, ...]:
        """The allowed domains with room for all missing pods."""
        return tuple(each for each in self.allowed if each.fits >= self.missing)

    @property
    def tightest(self) -> Domain | None:
        """The domain with the least room for all missing pods, which leaves the most for others, else `largest`."""
        return min(self.with_room, key=lambda each: each.fits, default=self.largest)

    @property
    def most(self) -> int | None:
        """An upper bound of the pods of the gang that one domain could hold, or None if it is not known."""
        known = [each.fits_empty for each in self.domains if each.fits_empty is not None]
        return self.within.most(known) if len(known) == len(self.domains) else None

    def room_text(self) -> str:
        """Return a text such as `2 of 4 racks have room for all 16 pods: rack-2, rack-4`, or one about a spread."""
        if len(self.occupied) > 1:
            return f"they run in {_names(self.occupied)}"
        if self.within.part:
            return ""
        if self.with_room:
            count, total = len(self.with_room), len(self.domains)
            names = _names(self.with_room)
            return f"{count} of {self._counted(total)} {_have(count)} room for {self._all_missing}: {names}"
        if self.within.is_required or self.largest is None:
            return ""
        left, spread = self.missing, 0
        for each in sorted(self.domains, key=lambda each: -each.fits):
            if left <= 0:
                break
            left, spread = left - each.fits, spread + 1
        most = f"the largest has room for {self.largest.fits} of {self.missing}"
        return f"would be spread over {self._counted(spread)}: {most}"

    def shortage_text(self, gang: str) -> str:
        """Return a text about the missing room for the pods of `gang`, such as `gang bert`.

        For example: `no rack has room for the 16 pods of gang bert now: rack-3 has the most, for 12; 4 racks, 2 nodes
        have no label topology.kubernetes.io/rack`.
        """
        if self.domains and self.within.part:
            room = self.within.most(each.fits for each in self.domains)
            return f"{self._counted(len(self.domains))} have room for {self._parts(room)} now"
        if not self.domains:
            return f"{gang} runs in one {self._noun}, and no node has {self._the_labels}"
        if self.outside:
            return f"{gang} has a pod on a node without {self._the_labels}"
        if len(self.occupied) > 1:
            return f"{gang} runs in {_names(self.occupied)}: all of its pods must run in one {self._noun}"
        if self.occupied:
            return self._occupied_text(gang, self.occupied[0])
        if self.first:
            return self._first_text(gang)
        if self.with_room:
            return f"the other constraints of {gang} leave no room for its {self.missing} pods in one {self._noun}"
        parts = [f"no {self._noun} has room for the {self.missing} pods of {gang} now"]
        if (largest := self.largest) and largest.fits:
            parts[0] += f": {_name(largest)} has the most, for {largest.fits}"
        lacks = "has no" if self.unlabelled == 1 else "have no"
        without = f", {plural(self.unlabelled, 'node')} {lacks} {self._labels}" if self.unlabelled else ""
        return "; ".join([*parts, f"{self._counted(len(self.domains))}{without}"])

    def never_text(self) -> str:
        """Return a text such as `no rack could hold 16 pods: rack-2 would hold 8 if it were empty`."""
        if self.within.part:
            return f"{self._counted(len(self.domains))} could hold {self._parts(self.most or 0)} if they were empty"
        most = max(self.domains, key=lambda each: each.fits_empty or 0, default=None)
        if most is None or not most.fits_empty:
            return f"no {self._noun} could hold {self.size} pods"
        return (
            f"no {self._noun} could hold {self.size} pods: {_name(most)} would hold {most.fits_empty} if it were empty"
        )

    def smaller_gang(self) -> str:
        """Return the suggestion to start the most pods that fit together in one domain, or "" if that is no help."""
        if not self.within.is_required or self.largest is None:
            return ""
        members = self.largest.members
        number = members + self.largest.fits
        if not members < number < self.size:
            return ""
        return f"a gang of {plural(number, 'pod')} would fit in {_name(self.largest)} now"

    def to_json(self) -> list[dict[str, Any]]:
        """Return `domains` of `check -o json`: `MOST_SHOWN` with the most room, with pods up to the gang's size."""
        most = sorted(self.domains, key=lambda each: (-each.fits, -(each.fits_empty or 0), each.value))[:MOST_SHOWN]
        return [
            {
                "value": each.value,
                "fits": min(each.fits, self.size),
                "fitsEmpty": None if each.fits_empty is None else min(each.fits_empty, self.size),
            }
            for each in most
        ]

    def _occupied_text(self, gang: str, own: Domain) -> str:
        of_all = f"of the {self.missing} missing pods" if self.missing > 1 else "of the missing pod"
        text = f"{gang} runs in {_name(own)}, which has room for {own.fits} {of_all}"
        return self._with_others(text, [each for each in self.domains if each is not own])

    def _first_text(self, gang: str) -> str:
        possible = [each for each in self.domains if each.path in self.first]
        chooses = f"the first pod of {gang} chooses"
        if len(possible) == 1:
            text = f"{chooses} {_name(possible[0])}, which has room for {possible[0].fits} of the {self.missing} pods"
            return self._with_others(text, [each for each in self.domains if each not in possible])
        text = f"{chooses} one of {_names(possible)} by chance"
        return self._with_others(text, self.domains) if self.with_room else f"{text}, and none has room for all"

    def _with_others(self, text: str, others: Iterable[Domain]) -> str:
        found = [each for each in others if each.fits >= self.missing]
        return f"{text}; {_names(found)} {_have(len(found))} room for all" if found else text

    @property
    def _the_labels(self) -> str:
        return f"{'a' if self._tier else 'the'} {self._labels}"

    @property
    def _labels(self) -> str:
        if self._tier:
            return self._noun
        keys = *self.within.path, *self.within.below
        shown = ", ".join(cut(key, _LONGEST_SHOWN) for key in keys[-_MOST_NAMED:])
        return f"label {shown}" if len(keys) == 1 else f"labels {shown}"

    @property
    def _tier(self) -> str:
        tier = tier_of_key(self.within.key)
        return "" if tier is None else f"up to tier {tier}"

    @property
    def _noun(self) -> str:
        return self._counted(1).removeprefix("1 ")

    @property
    def _all_missing(self) -> str:
        if self.missing == self.size:
            return f"all {self.missing} pods"
        return f"the {self.missing} missing pods" if self.missing > 1 else "the missing pod"

    def _parts(self, room: int) -> str:
        part = self.within.part
        return f"{room // part} of {plural(self.missing // part, 'partition')} of {plural(part, 'pod')}"

    def _counted(self, count: int) -> str:
        if self._tier:
            return f"{plural(count, 'HyperNode')} {self._tier}"
        if self.within.alias:
            shown = cut(self.within.alias, _LONGEST_SHOWN)
            return plural(count, shown if self.within.alias in _NOUNS else f"{shown} domain")
        return f"{plural(count, 'domain')} of {cut(self.within.key, _LONGEST_SHOWN)}"


def _name(domain: Domain) -> str:
    return cut(domain.value, _LONGEST_SHOWN) or '""'


def _names(domains: Iterable[Domain]) -> str:
    return some([_name(each) for each in domains], _MOST_NAMED)


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
