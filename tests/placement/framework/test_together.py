"""The texts about the domains of a gang that runs in one of them."""

from dataclasses import replace

from webhook.backends.references import Within
from webhook.placement.framework.together import MOST_SHOWN, Domain, Together

CLIQUE = "nvidia.com/gpu.clique"
RACK = "topology.kubernetes.io/rack"
RACKS = (
    Domain(("rack-1",), 2, 8),
    Domain(("rack-2",), 16, 16),
    Domain(("rack-3",), 12, 16),
    Domain(("rack-4",), 40, 40),
)
WITHIN = Within(RACK, alias="rack")
BERT = Together(WITHIN, 16, 16, RACKS, 0)


def test_room_of_all_is_stated_with_the_domains_that_have_it() -> None:
    assert BERT.room_text() == "2 of 4 racks have room for all 16 pods: rack-2, rack-4"
    assert replace(BERT, domains=RACKS[:2]).room_text() == "1 of 2 racks has room for all 16 pods: rack-2"


def test_shortage_names_the_largest_domain_and_the_nodes_outside() -> None:
    small = replace(BERT, domains=(RACKS[0], RACKS[2]), unlabelled=2)

    assert small.shortage_text("gang bert") == (
        "no rack has room for the 16 pods of gang bert now: rack-3 has the most, for 12; "
        "2 racks, 2 nodes have no label topology.kubernetes.io/rack"
    )


def test_smaller_gang_that_fits_is_suggested() -> None:
    small = replace(BERT, domains=(RACKS[0], RACKS[2]))

    assert small.smaller_gang() == "a gang of 12 pods would fit in rack-3 now"
    assert replace(small, within=WITHIN._replace(is_required=False)).smaller_gang() == BERT.smaller_gang() == ""


def test_members_lock_their_domain() -> None:
    running = replace(BERT, missing=4, domains=(RACKS[0]._replace(members=12), *RACKS[1:2]))

    assert [each.value for each in running.allowed] == ["rack-1"]
    assert running.with_room == ()
    assert running.shortage_text("gang bert") == (
        "gang bert runs in rack-1, which has room for 2 of the 4 missing pods; rack-2 has room for all"
    )
    assert replace(running, missing=2).room_text() == "1 of 2 racks has room for the 2 missing pods: rack-1"


def test_a_smaller_gang_has_the_members_that_run_already() -> None:
    running = replace(BERT, missing=12, domains=(RACKS[0]._replace(members=4), *RACKS[1:]))

    assert running.smaller_gang() == "a gang of 6 pods would fit in rack-1 now"


def test_a_member_in_a_domain_and_one_outside_leave_none() -> None:
    apart = replace(BERT, outside=1, domains=(RACKS[0]._replace(members=1), *RACKS[1:]))

    assert apart.allowed == ()


def test_members_in_two_domains_leave_none() -> None:
    apart = replace(BERT, domains=tuple(each._replace(members=1) for each in RACKS[:2]))

    assert apart.allowed == ()
    assert apart.largest is None
    assert apart.shortage_text("the gang") == ("the gang runs in rack-1, rack-2: all of its pods must run in one rack")


def test_member_outside_of_all_domains_leaves_none() -> None:
    outside = replace(BERT, unlabelled=1, outside=1)

    assert outside.with_room == ()
    assert outside.shortage_text("gang bert") == (
        "gang bert has a pod on a node without the label topology.kubernetes.io/rack"
    )


def test_first_pod_that_chooses_a_domain_without_room_is_named() -> None:
    assert replace(BERT, first=(("rack-3",),), domains=RACKS[1:3]).shortage_text("gang bert") == (
        "the first pod of gang bert chooses rack-3, which has room for 12 of the 16 pods; rack-2 has room for all"
    )


def test_domain_that_could_never_hold_all_is_stated() -> None:
    assert replace(BERT, domains=RACKS[:1]).never_text() == (
        "no rack could hold 16 pods: rack-1 would hold 8 if it were empty"
    )
    assert replace(BERT, domains=(Domain(("",), 0, 0),)).never_text() == "no rack could hold 16 pods"


def test_missing_label_is_stated() -> None:
    assert replace(BERT, domains=(), unlabelled=3).shortage_text("gang bert") == (
        "gang bert runs in one rack, and no node has the label topology.kubernetes.io/rack"
    )


def test_preference_says_over_how_many_domains_the_pods_spread() -> None:
    preferred = replace(
        BERT, within=WITHIN._replace(is_required=False), domains=(RACKS[0], RACKS[2], Domain(("rack-5",), 6, 8))
    )

    assert preferred.room_text() == "would be spread over 2 racks: the largest has room for 12 of 16"
    assert replace(preferred, domains=RACKS).room_text() == BERT.room_text()


def test_domains_of_other_labels_are_named_by_alias_or_key() -> None:
    clique = replace(BERT, within=Within(CLIQUE, alias="nvlink"))
    without_alias = replace(BERT, within=Within(CLIQUE))

    assert clique.room_text().startswith("2 of 4 nvlink domains have room")
    assert without_alias.never_text().startswith(f"no domain of {CLIQUE} could hold 16 pods")
    assert replace(without_alias, domains=(RACKS[1],)).room_text().startswith(f"1 of 1 domain of {CLIQUE}")


def test_domain_of_several_labels_is_named_by_all_of_them() -> None:
    racks = (Domain(("zone-a", "1"), 16, 16), Domain(("zone-b", "1"), 2, 16))

    assert replace(BERT, domains=racks).room_text() == "1 of 2 racks has room for all 16 pods: zone-a/1"


def test_bound_of_a_domain_without_known_room_is_not_known() -> None:
    assert BERT.most == 40
    assert replace(BERT, domains=(RACKS[0]._replace(fits_empty=None),)).most is None
    assert replace(BERT, domains=()).most == 0


def test_json_has_the_domains_with_the_most_room_first_and_no_more_pods_than_the_gang() -> None:
    assert BERT.to_json()[:2] == [
        {"value": "rack-4", "fits": 16, "fitsEmpty": 16},
        {"value": "rack-2", "fits": 16, "fitsEmpty": 16},
    ]
    many = tuple(Domain((f"host-{number}",), number, None) for number in range(MOST_SHOWN + 5))
    assert len(replace(BERT, domains=many).to_json()) == MOST_SHOWN
