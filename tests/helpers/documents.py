"""Blocks of code in documents, and what they print."""

import re

# A block of code: its language and its text.
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# Numbers with digits after the point may differ by this much at least.
MIN_TOLERANCE = 1e-6


def blocks(document):
    """Language and text of every block."""
    return [(match[1], match[2]) for match in BLOCK.finditer(document.read_text())]


def last_digit(number):
    """What one more in the last digit shown would add; nothing to integers."""
    mantissa, _, exponent = number.partition("e")
    n_decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - n_decimals) if n_decimals or exponent else 0.0


def assert_same_output(printed, shown):
    """Words and integers agree, and other numbers up to one in the last digit."""
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    for found, expected in numbers:
        slack = last_digit(expected)
        tolerance = max(1.01 * slack, MIN_TOLERANCE) if slack else 0.0
        assert abs(float(found) - float(expected)) <= tolerance, printed
