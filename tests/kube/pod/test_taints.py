"""Tolerations against taints, and against each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.kube.pod.taints import (
    Taint,
    Toleration,
    any_tolerates,
    covers,
    with_default_tolerations,
)

Object = dict[str, Any]

_TAINT = {"key": "gpu", "value": "H20", "effect": "NoSchedule"}


def tolerates(toleration: Object, taint: Object) -> bool:
    return Toleration.of(toleration).tolerates(Taint.of(taint))


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "gpu", "operator": "Equal", "value": "H20", "effect": "NoSchedule"}, True, id="equal"),
        pytest.param({"key": "gpu", "value": "H20"}, True, id="no operator is Equal, no effect is every effect"),
        pytest.param({"key": "gpu", "operator": "", "value": "H20", "effect": ""}, True, id="empty reads as missing"),
        pytest.param(
            {"key": "gpu", "operator": None, "value": "H20", "effect": None}, True, id="null reads as missing"
        ),
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="Exists is every value"),
        pytest.param({"operator": "Exists"}, True, id="Exists without a key is everything"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, True, id="every key of one effect"),
        pytest.param({"key": "gpu", "operator": "Equal", "value": "A100"}, False, id="another value"),
        pytest.param({"key": "gpu", "operator": "Equal"}, False, id="empty value"),
        pytest.param({"key": "use", "operator": "Exists"}, False, id="another key"),
        pytest.param({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "gpu", "operator": "exists"}, False, id="unknown operator"),
    ],
)
def test_toleration_of_a_taint(toleration: Object, expected: bool) -> None:
    assert tolerates(toleration, _TAINT) is expected


def test_taint_without_a_value_is_tolerated_by_an_equal_without_one() -> None:
    assert tolerates({"key": "gpu", "operator": "Equal"}, {"key": "gpu", "effect": "NoSchedule"})


@pytest.mark.parametrize("operator", ["Lt", "Gt"])
def test_alpha_operators_tolerate_nothing(operator: str) -> None:
    taint = {"key": "sla", "value": "950", "effect": "NoSchedule"}
    for bound in ("900", "950", "1000"):
        assert not tolerates({"key": "sla", "operator": operator, "value": bound}, taint)


def test_one_toleration_of_many_is_enough() -> None:
    many = [{"key": "use", "operator": "Exists"}, {"key": "gpu", "value": "H20"}]
    assert any_tolerates({*map(Toleration.of, many)}, Taint.of(_TAINT))
    assert not any_tolerates(frozenset(), Taint.of(_TAINT))


_EVERYTHING = {"operator": "Exists"}
_GPU = {"key": "gpu", "operator": "Exists"}
_GPU_FOR_30_SECONDS = {**_GPU, "tolerationSeconds": 30}
_GPU_FOR_60_SECONDS = {**_GPU, "tolerationSeconds": 60}
_H20 = {"key": "gpu", "operator": "Equal", "value": "H20", "effect": "NoSchedule"}
_MORE_THAN_1 = {"key": "gpu", "operator": "Gt", "value": "1"}


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        pytest.param(_H20, _H20, True, id="the same"),
        pytest.param(_H20, {"key": "gpu", "value": "H20", "effect": "NoSchedule"}, True, id="the same by default"),
        pytest.param(_EVERYTHING, _H20, True, id="everything covers all"),
        pytest.param(_GPU, _H20, True, id="every value covers one"),
        pytest.param({"key": "gpu", "value": "H20"}, _H20, True, id="every effect covers one"),
        pytest.param(_H20, _GPU, False, id="one value does not cover every value"),
        pytest.param(_H20, {"key": "gpu", "value": "H20"}, False, id="one effect does not cover every effect"),
        pytest.param(_GPU, _EVERYTHING, False, id="one key does not cover every key"),
        pytest.param({**_H20, "value": "A100"}, _H20, False, id="another value"),
        pytest.param(_GPU_FOR_60_SECONDS, _GPU, False, id="a minute does not cover for ever"),
        pytest.param(_GPU, _GPU_FOR_60_SECONDS, True, id="for ever covers a minute"),
        pytest.param(_GPU_FOR_60_SECONDS, _GPU_FOR_30_SECONDS, True, id="longer covers shorter"),
        pytest.param(_GPU_FOR_30_SECONDS, _GPU_FOR_60_SECONDS, False, id="shorter than"),
        pytest.param(_GPU_FOR_60_SECONDS, _H20, True, id="seconds concern NoExecute alone"),
        pytest.param(_MORE_THAN_1, _MORE_THAN_1, True, id="same Gt"),
        pytest.param(_MORE_THAN_1, {"key": "gpu", "value": "1"}, False, id="Gt is not Equal"),
    ],
)
def test_covering(wide: Object, narrow: Object, expected: bool) -> None:
    assert covers(wide, narrow) is expected


_effects = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("", "a", "b")),
        "operator": st.sampled_from(("", "Equal", "Exists", "Gt")),
        "value": st.sampled_from(("", "1", "2")),
        "effect": st.sampled_from(_effects),
    }
)
_taints = [
    {"key": key, "value": value, "effect": effect}
    for key in ("a", "b", "c")
    for value in ("", "1", "2", "3")
    for effect in _effects[1:]
]


@given(wide=_tolerations, narrow=_tolerations)
def test_covering_toleration_tolerates_all_taints_of_the_covered_one(wide: Object, narrow: Object) -> None:
    if covers(wide, narrow):
        assert all(tolerates(wide, taint) for taint in _taints if tolerates(narrow, taint))


_any_taint = st.builds(
    Taint, st.sampled_from(("a", "b")), st.sampled_from(("", "1", "2")), st.sampled_from(_effects[1:])
)


@given(st.lists(_tolerations, max_size=4), _any_taint)
def test_taint_that_is_looked_up_is_tolerated_by_one_of_them(tolerations: list[Object], taint: Taint) -> None:
    found = any_tolerates({*map(Toleration.of, tolerations)}, taint)
    assert found is any(tolerates(each, taint._asdict()) for each in tolerations)


_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@pytest.mark.parametrize(
    ("own", "added"),
    [
        pytest.param([], _LOST, id="none"),
        pytest.param([{"key": "use", "operator": "Exists"}], _LOST, id="another"),
        pytest.param([{"operator": "Exists"}], (), id="of everything"),
        pytest.param([{"operator": "Exists", "effect": "NoSchedule"}], _LOST, id="of everything, another effect"),
        pytest.param([{"key": _LOST[0], "value": "x"}], _LOST[1:], id="of one, with any value"),
        pytest.param([{"key": _LOST[1], "operator": "Exists", "effect": "NoExecute"}], _LOST[:1], id="of the other"),
    ],
)
def test_pod_stays_on_a_lost_node_unless_it_says_how_long(own: list[dict[str, str]], added: tuple[str, ...]) -> None:
    tolerations = [Toleration.of(each) for each in own]
    wanted = {Toleration(key, "Exists", "", "NoExecute") for key in added}
    assert with_default_tolerations(tolerations) == {*tolerations, *wanted}


@pytest.mark.parametrize("effect", ["", "NoExecute", "NoSchedule"])
@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        (None, None, True),
        (None, 300, True),
        (300, None, False),
        (300, 299, True),
        (300, 300, True),
        (300, 301, False),
        (0, 0, True),
        (0, 1, False),
    ],
)
def test_a_toleration_covers_one_that_lasts_at_most_as_long(
    wide: int | None, narrow: int | None, is_covered: bool, effect: str
) -> None:
    """Seconds count only under a NoExecute taint."""

    def lasting(seconds: int | None) -> dict[str, Any]:
        toleration = {"key": "a", "operator": "Exists", "effect": effect, "tolerationSeconds": seconds}
        return {key: value for key, value in toleration.items() if value is not None}

    assert covers(lasting(wide), lasting(narrow)) is (is_covered or effect == "NoSchedule")
