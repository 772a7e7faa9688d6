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
