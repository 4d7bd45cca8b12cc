"""Groups of the rows of files: fits without their offsets, and adapted predictions."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.table_files import call, write

OFFSETS = {"anna": 0.0, "ben": 6.0, "carl": -4.0, "dora": 9.0}


def recordings(n=120, names=("anna", "ben"), seed=0):
    """Two classes in two numbers, moved by the offset of the speaker."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    speakers = np.array(names)[(np.arange(n) // 2) % len(names)]
    offsets = np.array([OFFSETS[name] for name in speakers])
    rows = rng.normal(size=(n, 2)) + 3 * codes[:, None] + offsets[:, None]
    frame = pd.DataFrame(rows, columns=["p", "q"])
    frame["speaker"] = speakers
    frame["word"] = np.array(["no", "yes"])[codes]
    return frame


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.skops"
    table = write(tmp_path, recordings(), "train.csv")
    options = ("--target", "word", "--group", "speaker", "--method", "lda")
    code, output, _ = call("fit", table, *options, "--out", path)
    assert code == 0
    assert "Offsets of the groups in column 'speaker' were subtracted" in output
    return path


def predict(model, table, *options):
    out = table.with_suffix(".out.csv")
    code, output, error = call("predict", model, table, "--out", out, *options)
    return code, output + error, out


def test_each_new_speaker_is_predicted_by_a_model_of_their_own(model, tmp_path):
    frame = recordings(names=("carl", "dora"), seed=1)
    table = write(tmp_path, frame, "new.csv")
    code, _, out = predict(model, table)
    assert code == 0
    n_wrong = (pd.read_csv(out)["class"] != frame["word"]).sum()
    # The column of groups of the fit is the default.
    for options in (("--adapt",), ("--adapt", "--group", "speaker")):
        code, output, out = predict(model, table, *options)
        assert code == 0
        assert "Adapted to 2 of 2 groups" in output
        assert "speaker carl: Adapted to 60 rows" in output
        assert (pd.read_csv(out)["class"] != frame["word"]).sum() < n_wrong / 4


def test_rows_of_one_group_are_predicted_as_in_a_file_of_their_own(model, tmp_path):
    frame = recordings(names=("carl", "dora"), seed=1)
    _, _, out = predict(model, write(tmp_path, frame, "new.csv"), "--adapt")
    is_carl = frame["speaker"] == "carl"
    own = write(tmp_path, frame[is_carl], "carl.csv")
    _, _, out_of_carl = predict(model, own, "--adapt")
    pd.testing.assert_frame_equal(
        pd.read_csv(out)[is_carl].reset_index(drop=True), pd.read_csv(out_of_carl)
    )


def test_a_group_of_one_row_and_rows_without_a_group_lose_nothing(model, tmp_path):
    frame = recordings(names=("carl", "dora"), seed=1)
    frame.loc[0, "speaker"] = "only one"
    frame.loc[1, "speaker"] = None
    table = write(tmp_path, frame, "new.csv")
    code, output, out = predict(model, table, "--adapt")
    assert code == 0
    assert "speaker only one: Nothing was changed: 1 row cannot be divided" in output
    adapted = pd.read_csv(out)
    assert len(adapted) == len(frame)
    _, _, plain = predict(model, table)
    pd.testing.assert_frame_equal(adapted[:2], pd.read_csv(plain)[:2])


def test_a_column_of_groups_that_is_none_is_an_error(model, tmp_path):
    frame = recordings(names=("carl", "dora"), seed=1)
    frame["visit"] = np.arange(len(frame))
    table = write(tmp_path, frame, "new.csv")
    code, output, out = predict(model, table, "--adapt", "--group", "visit")
    assert code == 2
    assert "'visit' has one value a row" in " ".join(output.split())
    code, output, _ = predict(model, table, "--adapt", "--group", "speakr")
    assert code == 2
    assert "'speaker'" in output
    code, output, _ = predict(model, table, "--group", "speaker")
    assert code == 2
    assert "give it, too" in output
    code, output, _ = predict(model, table, "--adapt", "--change", "mean")
    assert code == 2
    assert "change must be one of offset, shares, both, got 'mean'" in output
    table = write(tmp_path, frame.drop(columns="q"), "less.csv")
    code, output, _ = predict(model, table, "--adapt")
    assert code == 2
    assert "'q'" in output
    assert not out.exists()


def test_a_fit_to_groups_that_are_none_is_an_error(tmp_path):
    frame = recordings()
    frame["visit"] = [f"visit {i}" for i in range(len(frame))]
    table = write(tmp_path, frame, "train.csv")
    out = tmp_path / "model.skops"
    for column, message in (("visit", "got 120 in 120 rows"), ("room", "'room'")):
        code, _, error = call(
            *("fit", table, "--target", "word", "--group", column, "--out", out)
        )
        assert code == 2
        assert message in " ".join(error.split())
    assert not out.exists()


def test_unlabeled_rows_of_another_file_have_groups_too(tmp_path):
    table = write(tmp_path, recordings(), "train.csv")
    others = recordings(names=("carl",), seed=2).drop(columns="word")
    more = write(tmp_path, others, "more.csv")
    out = tmp_path / "model.skops"
    options = ("--target", "word", "--group", "speaker", "--method", "em")
    call("fit", table, *options, "--unlabeled-file", more, "--out", out)
    frame = recordings(names=("carl",), seed=3)
    code, _, predictions = predict(out, write(tmp_path, frame, "new.csv"), "--adapt")
    assert code == 0
    assert (pd.read_csv(predictions)["class"] == frame["word"]).mean() > 0.9
