"""YAML that kubectl reads alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import PRODUCT, TYPE
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import TRAINING, as_list, documents
from tests.support.programs.command import Run
from webhook.cli.output.yaml_text import to_yaml
from webhook.documents.documents import parse

OTHER = make_pod("other").annotate(TYPE, "inference")


@pytest.mark.parametrize(("first_word", "folded_at"), [(114, 121), (115, 122)])
def test_yaml_is_folded_at_the_first_blank_beyond_120_columns(first_word: int, folded_at: int) -> None:
    """The blanks are at every other column behind the first word."""
    first, *others = to_yaml({"a": "w" * first_word + " x y z"}).splitlines()

    assert (len(first), len(others)) == (folded_at, 1)


def test_yaml_has_no_anchors(run: Run) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    pod = TRAINING.require_node(term, term).obj()

    outcome = run("mutate", "-f", "-", stdin=to_yaml(pod))

    assert "&" not in outcome.output
    assert "*" not in outcome.output


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_its_output_can_be_read_again(run: Run, output: str) -> None:
    """An admitted pod is admitted again without changes."""
    once = run("mutate", "-f", "-", "-o", output, stdin=as_list(TRAINING, OTHER))

    twice = run("mutate", "-f", "-", "-o", output, stdin=once.output)

    assert twice == once


# PyYAML reads the other line breaks of Unicode as ends of lines.
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"), max_size=10
) | st.from_regex(r"[-+]?[0-9]{0,3}[.:_xobe]?[0-9]{0,3}([eE][-+]?[0-9]{1,2})?", fullmatch=True)


@given(st.dictionaries(texts, texts, max_size=3))
def test_text_stays_text_in_yaml(labels: dict[str, str]) -> None:
    """A commit such as 12e5 stays text, as with kubectl."""
    assert [document.content for document in parse(to_yaml({"labels": labels}), "f")] == [{"labels": labels}]


# Numbers, booleans and dates to YAML 1.1, YAML 1.2 or kubectl.
TELLING = [
    "12e5",
    "1.5e3",
    "0899",
    "1e3",
    "1_000",
    "1_0e5",
    "0x1F",
    "0X1F",
    "0o17",
    "0b1",
    ".5",
    "y",
    "N",
    "off",
    "null",
    "~",
    "1:30",
    "2024-01-01",
    "",
]


@pytest.mark.parametrize("text", TELLING)
def test_text_that_looks_like_something_else_is_quoted(run: Run, text: str) -> None:
    outcome = run("mutate", "-f", "-", stdin=as_list(TRAINING.label("commit", text).annotate(PRODUCT, "NVIDIA-H20")))

    (pod,) = documents(outcome.output)
    assert pod["metadata"]["labels"]["commit"] == text
    assert f"commit: '{text}'\n" in outcome.output
