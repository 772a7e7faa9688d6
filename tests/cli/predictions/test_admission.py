"""The pods of files as the webhook admits them, and the hint for pods that are checked as written."""

import pytest

from webhook.cli.inputs.profiles import read_schedulers
from webhook.cli.predictions.admission import Admissions


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ([], ""),
        (["a", "b", "a"], "the webhook would change or refuse a, b: leave --as-written out"),
    ],
)
def test_the_hint_names_each_pod_once(changed: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    admissions = Admissions(False, read_schedulers(None, None), _changed=changed)

    admissions.print_hint()

    assert capsys.readouterr().err == (f"Hint: checked as written, but {error}\n" if error else "")
