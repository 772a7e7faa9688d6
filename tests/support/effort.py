"""The number of examples of a property test: fewer in `make test` and `make test-fast` than in `make test-long`."""

from hypothesis import settings

FAST_PROFILE = "fast"
FAST_EXAMPLES = 5
_DIVISORS = {FAST_PROFILE: 40, "tests": 10, "long": 1}


def register_profiles() -> None:
    """Load the profile of `make test`; `--hypothesis-profile=fast` or `long` chooses another."""
    # A slow machine is no error in the code: benchmarks measure time.
    settings.register_profile("tests", deadline=None, max_examples=20)
    settings.register_profile("long", deadline=None, max_examples=300)
    settings.register_profile(FAST_PROFILE, deadline=None, max_examples=FAST_EXAMPLES)
    settings.load_profile("tests")


def examples(count: int) -> int:
    """Return the share of `count` that the profile runs."""
    return max(count // _DIVISORS.get(settings.get_current_profile_name(), 1), 1)
