"""The number of examples of a property test: fewer in `make test-fast`."""

from hypothesis import settings

FAST_PROFILE = "fast"
FAST_EXAMPLES = 20
_FEWER = 8


def register_profiles() -> None:
    """Load the profile of `make test`; `--hypothesis-profile=fast` chooses the other."""
    # A slow machine is no error in the code: benchmarks measure time.
    settings.register_profile("tests", deadline=None)
    settings.register_profile(FAST_PROFILE, deadline=None, max_examples=FAST_EXAMPLES)
    settings.load_profile("tests")


def examples(count: int) -> int:
    """Return `count`, or an eighth of it in the fast profile."""
    return max(count // _FEWER, 1) if settings.get_current_profile_name() == FAST_PROFILE else count
