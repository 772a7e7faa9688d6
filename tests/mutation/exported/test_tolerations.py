"""Tolerations by an exported policy."""

from tests.mutation.exported.exporting import exported, variables_of


def test_any_product_is_tolerated_unless_the_policy_restricts_products() -> None:
    assert variables_of(exported())["anyWillDo"] != "false"
    assert variables_of(exported(allowedProducts={"A": ["a"]}))["anyWillDo"] == "false"
    assert variables_of(exported(tolerateAnyProduct=False))["anyWillDo"] == "false"


def test_toleration_that_an_earlier_one_covers_is_added_once() -> None:
    found = exported(
        workloadTypes={
            "training": {
                "nodeUsage": {"allow": ["a"]},
                "extraTolerations": [{"key": "x", "operator": "Exists"}, {"key": "x", "value": "y"}],
            }
        }
    )

    assert variables_of(found)["extra"].count('"key": dyn("x")') == 1


def test_toleration_of_a_type_is_not_added_to_pods_of_a_card_with_one_that_covers_it() -> None:
    wide, narrow = {"key": "x", "operator": "Exists"}, {"key": "x", "value": "y"}
    cards = [
        {
            "name": "c",
            "card": "example.com/c",
            "resources": ["example.com/c"],
            "labels": {"product": ["p"]},
            "extraTolerations": [wide],
        }
    ]
    types = {"training": {"nodeUsage": {"allow": ["a"]}, "extraTolerations": [narrow]}}

    extra = variables_of(exported(accelerators=cards, workloadTypes=types))["extra"]

    of_type = extra[extra.index("variables.type ") :]
    assert "!(0 in variables.requested)" in of_type[: of_type.index("?")]
