"""What a check of the template finds."""

import sys

ERRORS = []


def check(holds, error):
    if not holds:
        ERRORS.append(error)


def end(about, summary):
    """Prints the errors, after what they are about, and the summary, and ends the script."""
    for error in ERRORS:
        print(f"{about}: {error}", file=sys.stderr)
    print(f"{summary}, {len(ERRORS)} errors")
    sys.exit(1 if ERRORS else 0)
