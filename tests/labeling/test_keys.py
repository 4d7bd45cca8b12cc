"""Keys of classes: a character is its own key, and no key means two classes."""

import pytest

from iclda.labeling.keys import class_keys


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        # The digits of images of digits, in the order in which they were met.
        (["0", "1"], ["0", "1"]),
        (["5", "0", "4", "1"], ["5", "0", "4", "1"]),
        (["b", "A", "é", "?"], ["b", "a", "é", "?"]),
        (["cat", "dog"], ["1", "2"]),
        # S, N and B are letters like others.
        (["s", "n", "b"], ["s", "n", "b"]),
        # The name of one character comes first, wherever it stands.
        (["cat", "c"], ["1", "c"]),
        # 3 would be taken for the class 3.
        (["1", "2", "10"], ["1", "2", "a"]),
        (["1", "other"], ["1", "o"]),
        (["10", "20"], ["a", "b"]),
        (["1", "a", "ab"], ["1", "a", "b"]),
    ],
)
def test_a_name_of_one_character_is_its_own_key_and_others_get_what_is_left(
    names, keys
):
    assert class_keys(names) == keys


def test_after_nine_classes_the_letters_of_a_name_are_keys():
    names = [*"ruedfgklo", "hat", "hut", "Äh"]
    long_names = [f"{name}{name}" for name in names]
    assert class_keys(long_names) == [*"123456789", "h", "u", "a"]


@pytest.mark.parametrize("names", [["a", "A"], ["S", "s", "sand"], ["ſ", "s"]])
def test_upper_and_lower_case_are_one_key(names):
    keys = class_keys(names)
    assert len({key.lower() for key in keys}) == len(names)


def test_with_many_classes_no_key_is_given_twice():
    names = [str(k) for k in range(30)] + [f"class {k}" for k in range(30)]
    keys = [key for key in class_keys(names) if key]
    assert len(keys) == len({*keys}) == 10 + 26
    assert class_keys(names)[:10] == [*"0123456789"]
    assert class_keys([]) == []
