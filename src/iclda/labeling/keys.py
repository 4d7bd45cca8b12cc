"""Keys of the classes on the labeling page.

All characters are free for classes: what else the page does has keys without a
character, such as Enter, Backspace and the arrows.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from ..tabular.cells import number_in

_DIGITS = "123456789"
_LETTERS = string.ascii_lowercase


def class_keys(names: Sequence[str]) -> list[str]:
    """Return the key of every class; empty for a class that none is left for.

    A class whose name is one character has that character as its key, in lower case,
    since the page takes no notice of the shift key. The others get the digits from 1
    on, then the first free letter of their name, then any letter. If any name is a
    number, they get no digits: somebody who presses 3 means the class 3, even if no row
    has it yet.
    """
    own_keys = [name.lower() if len(name) == 1 else "" for name in names]
    has_numbers = any(number_in(name) is not None for name in names)
    taken = {*own_keys}
    keys = []
    for name, own_key in zip(names, own_keys, strict=True):
        key = own_key
        if not key or key in keys:
            letters = [letter for letter in name.lower() if letter in _LETTERS]
            candidates = [*letters, *_LETTERS]
            if not has_numbers:
                candidates = [*_DIGITS, *candidates]
            key = next((each for each in candidates if each not in taken), "")
            taken.add(key)
        keys.append(key)
    return keys
