"""docs/annotations.md has the rows of the table of annotations, and names the rule that acts on each."""

from tests.docs.generators.annotation_reference import HEAD, table
from tests.docs.generators.generated_table import with_table
from tests.docs.markdown import ROOT, rows, span_of, spans_of
from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.injection import Bypassed
from webhook.mutation.rules import RULES
from webhook.policy.keys import ANNOTATIONS, Keys
from webhook.policy.loader import built_in_policy

PAGE = ROOT / "docs" / "annotations.md"


def rules_by_annotation() -> dict[str, str]:
    """Return the rule that the page names for each annotation; a row without a rule continues the one before."""
    found: dict[str, str] = {}
    rule = ""
    for row in rows(PAGE, "Injected fields"):
        rule = span_of(row[0]) or rule
        found |= dict.fromkeys(spans_of(row[1]), rule)
    return found


def test_table_is_current() -> None:
    assert PAGE.read_text() == with_table(PAGE.read_text(), HEAD, table()), "run `make docs`"


def test_table_has_every_annotation() -> None:
    listed = {span_of(row[0]) for row in rows(PAGE, "Annotations")}

    assert listed == set(built_in_policy().keys)


def test_rule_that_acts_on_an_annotation_is_named() -> None:
    acting = {row.attribute.replace("_", "-"): row.rule for row in ANNOTATIONS if row.rule}

    assert rules_by_annotation() == acting


def test_rule_of_an_annotation_is_registered() -> None:
    assert {row.rule for row in ANNOTATIONS if row.rule} <= RULES.keys()


def test_every_row_is_a_key_under_the_domain() -> None:
    assert list(Keys("example.com")) == [f"example.com/{row.attribute.replace('_', '-')}" for row in ANNOTATIONS]


def test_the_page_says_that_a_node_name_bypasses_the_check_and_what_prevents_it() -> None:
    bound = make_pod().node_name("a").annotate(TYPE, "training").annotate(f"{DOMAIN}/placement-check", "deny").obj()
    (row,) = (row for row in rows(PAGE, "What a user can opt out of") if "`spec.nodeName`" in row[0])

    assert admit_pod(bound, policy_with()) == Bypassed("spec.nodeName is set")
    assert "not even with `placement-check: deny`" in row[1]
    assert (ROOT / spans_of(row[2])[0]).is_file()
