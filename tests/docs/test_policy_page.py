"""docs/policy.md is generated from the models, and every policy in the documents is valid."""

import pytest

from tests.docs.generators.reference import page
from tests.docs.markdown import DOCUMENTS, ROOT, Block, blocks
from webhook.documents.documents import parse
from webhook.kube.shape import check_pod
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.policy.loader import built_in_policy, parse_policies, parse_policy
from webhook.policy.policy_documents import policy_set
from webhook.policy.spec.document import KIND

PAGE = ROOT / "docs" / "policy.md"
EXAMPLES = [pytest.param(block, id=block.place) for document in DOCUMENTS for block in blocks(document, "yaml")]


def test_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"


def test_page_begins_with_the_built_in_policy() -> None:
    first = blocks(PAGE)[0]

    assert parse_policy(first.text, first.place).identity == built_in_policy().identity


@pytest.mark.parametrize("block", EXAMPLES)
def test_example_is_valid(block: Block) -> None:
    for document in parse(block.text, block.place):
        kind = document.content.get("kind")
        if kind == KIND:
            policy_set(parse_policies(block.text, block.place))
        elif kind is not None:
            for pods in pod_sets(document.content, kinds_by_name()):
                check_pod(pods.pod)
