"""How a replay shows two decisions on one pod."""

import pytest

from placement_planner.replay.admission import admission_of
from placement_planner.replay.decision import Decision
from placement_planner.replay.policy_comparison import Difference
from placement_planner.replay_text import print_patches
from tests.support.objects.builders import make_pod


def test_the_lines_of_two_decisions_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    old = Decision("default@a", "Patched", "", warnings=("w",), verdict="Feasible", operations=({"op": "add"},))
    new = Decision("default@b", "Denied", "no;\nand no")
    admission = admission_of(make_pod("p").obj(), "lab", name="p")
    print_patches(Difference(admission, old, new, (), is_first=True))

    assert capsys.readouterr().out.splitlines() == [
        "--- lab/p (default@a)",
        "+++ lab/p (default@b)",
        "@@ -1,4 +1,3 @@",
        "-outcome: Patched",
        "-verdict: Feasible",
        "-warning: w",
        '-{"op":"add"}',
        "+outcome: Denied",
        "+message: no",
        "+message: and no",
    ]
