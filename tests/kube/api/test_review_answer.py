"""The answer to an AdmissionReview."""

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.documents.text import printable
from webhook.kube.api.review_answer import Denial, ReviewAnswer, fit_warnings


def answer(uid: str, *args: Any, **fields: Any) -> dict[str, Any]:
    body = orjson.loads(ReviewAnswer.of(*args, **fields).to(uid, "decision-1"))
    assert (body["apiVersion"], body["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert set(body) == {"apiVersion", "kind", "response"}
    response: dict[str, Any] = body["response"]
    return response


def test_an_answer_without_a_patch_is_only_uid_decision_and_allowed() -> None:
    assert answer("u") == {"uid": "u", "allowed": True, "auditAnnotations": {"decision": "decision-1"}}


def test_patch_and_patch_type_come_together() -> None:
    operations = [{"op": "add", "path": "/a", "value": "节点"}]

    response = answer("u", orjson.dumps(operations))

    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(response["patch"])) == operations


def test_denial_has_a_status_and_no_patch() -> None:
    """Source: k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr"""
    response = answer("u", b'[{"op":"remove","path":"/a"}]', denial=Denial(422, "Invalid", "no"))

    assert response == {
        "uid": "u",
        "allowed": False,
        "status": {"status": "Failure", "code": 422, "reason": "Invalid", "message": "no"},
        "auditAnnotations": {"decision": "decision-1"},
    }


def test_message_of_a_denial_has_no_terminal_control_characters() -> None:
    response = answer("u", denial=Denial(422, "Invalid", "one\x1b]0;\x07\ntwo\u202e\ud800"))

    assert response["status"]["message"] == "one\\x1b]0;\\x07\ntwo\\u202e\\ud800"


def test_warnings_and_audit_annotations_are_in_the_answer() -> None:
    response = answer("u", b"", ["two\nlines"], {"decision": "d"})

    assert (response["warnings"], response["auditAnnotations"]) == (["two lines"], {"decision": "d"})


@pytest.mark.parametrize(
    ("warnings", "wanted"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["b", "a", "b", "a"], ["b", "a"], id="each once, in order"),
        pytest.param(["a\n b\t\r\nc  d"], ["a b c d"], id="one line"),
        pytest.param([" a", "a\n"], ["a"], id="the same but for blanks"),
        pytest.param(["x" * 256], ["x" * 256], id="256 bytes stay"),
        pytest.param(["x" * 257], ["x" * 253 + "…"], id="257 bytes are cut"),
        pytest.param(["节" * 85 + "x"], ["节" * 85 + "x"], id="256 bytes of longer characters stay"),
        pytest.param(["节" * 86], ["节" * 84 + "…"], id="no character is cut in two"),
        pytest.param(["xx" + "节" * 85], ["xx" + "节" * 83 + "…"], id="nor where a byte would be left"),
        pytest.param(["x" * 300 + "1", "x" * 300 + "2"], ["x" * 253 + "…"], id="each once, when cut"),
        pytest.param(["a\x1b[2Jb\u202e\x9b\ud800"], [r"a\x1b[2Jb\u202e\x9b\ud800"], id="nothing commands a terminal"),
        pytest.param(
            [f"{n:02}" + "x" * 254 for n in range(17)], [f"{n:02}" + "x" * 254 for n in range(16)], id="4 KiB in all"
        ),
    ],
)
def test_warnings_are_within_the_limits_of_the_api_server(warnings: list[str], wanted: list[str]) -> None:
    assert fit_warnings(warnings) == wanted


@given(st.lists(st.text(st.characters(), max_size=400), max_size=40))
def test_no_warning_breaks_the_limits(warnings: list[str]) -> None:
    """Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go, truncateAtTotalRunes and truncateItemRunes"""
    fitting = fit_warnings(warnings)

    sizes = [len(text.encode()) for text in fitting]
    assert max(sizes, default=0) <= 256
    assert sum(sizes) <= 4096
    assert len(set(fitting)) == len(fitting)
    assert [printable(text) for text in fitting] == fitting
