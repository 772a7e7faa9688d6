"""Rewrite the expectations of the examples from the current code (`make examples`)."""

from tests.examples.expectations import MANIFESTS, expectation, expected_path


def main() -> None:
    """Rewrite the file beside each manifest and print the names of those that changed."""
    for manifest in MANIFESTS:
        path, text = expected_path(manifest), expectation(manifest)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.name)


if __name__ == "__main__":
    main()
