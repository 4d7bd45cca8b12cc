"""fit, predict and show, as a user calls them."""

import contextlib
import gc
import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from iclda import SupervisedLDA, load_model, save_model
from iclda._messages import wrap
from iclda._system import atomic_write
from iclda.methods import BASELINES
from tests.helpers.table_files import call, flowers, write, write_model

METHODS = {
    "EMLDA": "LDA by expectation maximization",
    "Self-Learning": "Self-learning LDA",
    "moment": "Moment constrained LDA",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"), "iclda").parent


@pytest.fixture
def model(folder, tmp_path):
    """A model and its table in the folder of a test."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / "model.skops"


@pytest.mark.parametrize(("method", "title"), METHODS.items(), ids=METHODS)
def test_every_method_is_fitted_saved_and_told_in_words(tmp_path, method, title):
    data = write(tmp_path)
    out = tmp_path / "m.skops"
    command = ("fit", data, "--target", "species", "--method", method, "--out", out)
    code, said, _ = call(*command, "--verbose")
    assert code == 0
    assert said.startswith(f"{title} for 'species', fitted to 30 labeled")
    assert "It reads 4 columns: 3 of numbers, 1 of categories." in said
    assert "Empty cells were filled in: 'p' 5, 'color' 5." in said
    assert f"Wrote {out}. Next: iclda predict {out} DATA" in said
    assert load_model(out).classes_.tolist() == ["iris", "lily", "rose"]


def many_flowers(folder):
    frame = flowers(n=30_000, n_labeled=60).assign(color="red", p=np.arange(30_000) % 7)
    return write(folder, frame, "many.parquet")


def on_a_terminal(folder, *arguments):
    """Standard output of a command, and what it writes to the terminal as errors."""
    terminal, stderr = pty.openpty()
    shown = b""
    with subprocess.Popen(
        [sys.executable, "-m", "iclda", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(stderr)
        # Once nobody can write to it any more.
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 2**16):
                shown += piece
        said = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0
    return said.decode(), shown.decode()


def test_a_fit_to_many_rows_shows_its_passes_on_a_terminal(tmp_path):
    many_flowers(tmp_path)
    command = ["fit", "many.parquet", "--target", "species", "--method", "moment"]
    said, shown = on_a_terminal(tmp_path, *command)
    assert "Fitting pass 1" in shown
    assert "30,000 of 30,000 rows" in shown
    assert said.startswith("Moment constrained LDA for 'species'")
    assert "pass 1" not in said
    about = json.loads(call("show", tmp_path / "model.skops", "--json")[1])["about"]
    # As it was typed.
    assert about["command"] == f"iclda {' '.join(command)}"


def test_predictions_are_those_of_the_model_whatever_the_order_of_columns(
    model, tmp_path
):
    code, said, error = call(
        "predict", model, tmp_path / "flowers.csv", "--out", tmp_path / "p.csv"
    )
    assert (code, error) == (0, "")
    assert "Ignored columns that the model does not use: 'species'." in said
    assert "Empty cells were filled in: 'p' 5, 'color' 5." in said
    found = pd.read_csv(tmp_path / "p.csv")
    names = [f"probability_{name}" for name in ("iris", "lily", "rose")]
    assert found.columns.tolist() == ["class", *names]
    assert found["class"].tolist() == load_model(model).predict(flowers()).tolist()
    assert_allclose(
        found[names], load_model(model).predict_proba(flowers()), rtol=1e-12
    )
    shuffled = flowers()[["wild", "species", "q", "p", "color"]].assign(more=1)
    data = write(tmp_path, shuffled, "other.csv")
    other = tmp_path / "a.csv"
    assert call("predict", model, data, "--out", other, "--quiet") == (0, "", "")
    assert other.read_bytes() == (tmp_path / "p.csv").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ids_are_copied_as_they_stand_even_if_the_model_reads_them(
    model, tmp_path, kind
):
    frame = flowers().assign(key=[f"0{i},x" for i in range(90)], number=range(90))
    data = write(tmp_path, frame, f"data.{kind}")
    out = tmp_path / f"p.{kind}"
    ids = ["key", "number", "p", "color", "wild"]
    options = [word for name in ids for word in ("--id", name)]
    assert call("predict", model, data, *options, "--out", out)[0] == 0
    found = (pd.read_csv if kind == "csv" else pd.read_parquet)(out)
    assert found.columns.tolist()[:6] == [*ids, "class"]
    for name in ("key", "number", "wild"):
        assert found[name].tolist() == frame[name].tolist()
    assert_allclose(found["p"], frame["p"])
    assert found["class"].tolist() == load_model(model).predict(frame).tolist()


def test_ids_of_csv_keep_leading_zeros_and_words_that_mean_nothing(model, tmp_path):
    frame = flowers().assign(key=["007", "NA", ""] * 30)
    call(
        "predict",
        model,
        write(tmp_path, frame),
        "--id",
        "key",
        "--out",
        tmp_path / "p.csv",
    )
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:4]] == ["007", "NA", ""]


def test_blocks_of_rows_change_nothing(model, tmp_path, monkeypatch):
    data = write(tmp_path, pd.concat([flowers()] * 20), "data.csv")
    call("predict", model, data, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr("iclda.tabular.csv_files.BLOCK_BYTES", 3000)
    call("predict", model, data, "--out", tmp_path / "blocks.csv")
    whole, blocks = (
        pd.read_csv(tmp_path / f"{name}.csv") for name in ("whole", "blocks")
    )
    assert whole["class"].tolist() == blocks["class"].tolist()
    assert_allclose(whole.iloc[:, 1:], blocks.iloc[:, 1:], rtol=1e-12)


def test_show_tells_what_how_and_from_what(model):
    code, said, _ = call("show", model)
    assert code == 0
    for words in (
        "Implicitly constrained LDA for 'species', fitted to 30 labeled and "
        "60 unlabeled rows.",
        "It converged in ",
        " of new rows wrong",
        "(90 % interval from 30 labeled rows)",
        "The error was measured by cross-validation, with other folds than `iclda "
        "compare` uses. If you chose the method by the same labels, the error is too "
        "low",
        "Shrinkage  ",
        "Columns that matter most",
        "discriminant 1, from ",
        "flowers.csv, 90 rows, sha256 ",
        "Columns    p, q, color, wild",
        f"Checksum   sha256 {hashlib.sha256(model.read_bytes()).hexdigest()} "
        f"of the whole file",
        "scikit-learn",
    ):
        assert words in said


def test_a_model_with_a_column_type_of_another_version_is_an_error_in_a_line(model):
    with zipfile.ZipFile(model) as file:
        members = {name: file.read(name) for name in file.namelist()}
    details = json.loads(members["iclda.json"])
    details["columns"]["p"] = "percentage"
    members["iclda.json"] = json.dumps(details)
    with zipfile.ZipFile(model, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    code, _, error = call("show", model)
    assert code == 2
    assert error.startswith("Error: There is no column type 'percentage' in iclda ")


def test_fit_without_options_says_what_it_chose_and_how_often_it_will_err(tmp_path):
    data = write(tmp_path)
    out = tmp_path / "m.skops"
    command = ("fit", data, "--target", "species", "--out", out)
    short = call(*command)[1].splitlines()
    taken_for = "a table (if they are features of a network, use --method average)"
    assert short[1] == f"The rows were read as {taken_for}."
    assert re.fullmatch(
        r"Expect .* wrong.* \(90 % interval from 30 labeled rows\)\. Always predicting "
        r"'iris' is wrong 67 % of the time\b.*\.",
        short[2],
    )
    assert short[3:] == [f"Wrote {out}. Next: iclda predict {out} DATA"]
    code, said, _ = call(*command, "--verbose")
    assert code == 0
    assert said.splitlines()[:3] == short[:3]
    assert said.splitlines()[-1:] == short[3:]
    assert re.search(
        r"^Chose the ensemble, the default on tables\.\n`iclda compare` would tell "
        r"whether another method is clearly better\.$",
        said,
        re.MULTILINE,
    )
    assert re.search(
        r"^Its members and their weights: .* %, .* %\.$", said, re.MULTILINE
    )
    about = json.loads(call("show", out, "--json")[1])["about"]
    assert about["error"]["low"] <= about["error"]["error"] <= about["error"]["high"]
    assert about["error"]["text"] in said
    assert type(load_model(out)[-1]).__name__ != "AutoLDA"


def test_fit_says_when_labels_are_too_few_for_an_estimate_or_no_random_sample(tmp_path):
    data = write(tmp_path, flowers(n_labeled=6))
    out = ("--out", tmp_path / "m.skops")
    code, said, _ = call("fit", data, "--target", "species", *out)
    assert code == 0
    assert (
        "measuring it takes 8 labeled rows of classes with at least two each, and "
        "there are 6." in said
    )
    said = call("fit", data, "--target", "species", "--proportions", "free", *out)[1]
    assert (
        "not known: free proportions are for labels that are not a random sample"
        in said
    )


def test_show_for_programs_is_json(model):
    code, said, _ = call("show", model, "--json")
    details = json.loads(said)
    assert code == 0
    assert details["about"]["labeled"] == {"iris": 10, "lily": 10, "rose": 10}
    assert details["about"]["n_unlabeled"] == 60
    assert details["diagnosis"]["gap"] <= 1e-6
    axes = details["discriminants"]
    assert [each["title"] for each in axes] == ["discriminant 1", "discriminant 2"]
    assert set(axes[0]["coefficients"]) == {
        "p",
        "q",
        "wild",
        "color = red",
        "color is empty",
    }


def test_a_model_saved_in_python_can_be_shown_and_used_whatever_is_kept_with_it(
    tmp_path,
):
    frame = flowers().dropna()[["p", "q", "species"]]
    fitted = SupervisedLDA().fit(frame[["p", "q"]], frame["species"])
    about = {"labeled": 3, "sources": "here", "notes": 1, "empty_cells": None}
    save_model(fitted, tmp_path / "m.skops", about=about)
    assert "Supervised LDA, 2 features." in call("show", tmp_path / "m.skops")[1]
    data = write(tmp_path, frame)
    assert (
        call("predict", tmp_path / "m.skops", data, "--out", tmp_path / "p.csv")[0] == 0
    )


def test_a_model_without_column_names_says_how_to_use_it(tmp_path):
    X = np.arange(12.0).reshape(6, 2) ** 2
    y = [0, 1] * 3
    save_model(SupervisedLDA(shrinkage=0.1).fit(X, y), tmp_path / "m.skops")
    code, _, error = call("predict", tmp_path / "m.skops", write(tmp_path))
    assert code == 2
    assert "was fitted to features without names" in error


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["iris=0.2", "lily=0.2", "rose=0.6"], {"iris": 0.2, "lily": 0.2, "rose": 0.6}),
        (
            ["iris=0:0.2", "lily=0.1:1", "rose=0:1"],
            {"iris": (0, 0.2), "lily": (0.1, 1)},
        ),
        (["labeled"], "labeled"),
    ],
)
def test_proportions_are_used(tmp_path, given, kept):
    data = write(tmp_path)
    out = tmp_path / "m.skops"
    options = [word for text in given for word in ("--proportions", text)]
    command = (
        "fit",
        data,
        "--target",
        "species",
        "--method",
        "em",
        "--out",
        out,
        "--verbose",
        *options,
    )
    code, said, _ = call(*command)
    assert code == 0
    source = "of the labeled rows" if kept == "labeled" else "that were given"
    assert f"proportions {source}." in said
    fitted = load_model(out)[-1]
    is_labeled = kept == "labeled"
    assert (
        fitted.proportions == kept
        if is_labeled
        else kept.items() <= fitted.proportions.items()
    )
    # Of the unlabeled rows.
    share = (90 * fitted.class_weights_[0] - 10) / 60
    assert share == pytest.approx(1 / 3 if is_labeled else 0.2, abs=1e-4)


def test_priors_and_shrinkage_are_used(tmp_path):
    data = write(tmp_path)
    out = tmp_path / "m.skops"
    options = "--prior iris=0.25 --prior lily=0.25 --prior rose=0.5 "
    options += "--shrinkage 0.1 --method em"
    assert (
        call("fit", data, "--target", "species", "--out", out, *options.split())[0] == 0
    )
    fitted = load_model(out)
    assert fitted[-1].priors_.tolist() == [0.25, 0.25, 0.5]
    assert fitted[-1].shrinkage_ == 0.1
    # The view of the classifier standardizes.
    assert "scale" not in fitted.named_steps
    assert fitted[-1].view_ is not None


def test_46_names_are_never_obeyed_by_the_terminal(tmp_path):
    frame = flowers().rename(columns={"color": "<b>\x1b[31m[red]"})
    frame["species"] = frame["species"].replace("iris", "\x1b[2J<script>")
    data = write(tmp_path, frame)
    out = tmp_path / "m.skops"
    fitted = call("fit", data, "--target", "species", "--method", "em", "--out", out)[1]
    shown = call("show", out)[1]
    predicted = call("predict", out, data, "--out", tmp_path / "p.csv")[1]
    assert "\x1b" not in fitted + shown + predicted
    assert r"\x1b[2J<script>" in fitted
    assert "<b>" in shown
    assert "\x1b[2J<script>" in pd.read_csv(tmp_path / "p.csv")["class"].tolist()


def test_new_categories_and_rows_from_another_world_are_counted(model, tmp_path):
    frame = flowers().assign(color="green").drop(columns="species")
    frame.loc[:2, "q"] = 300.0
    data = write(tmp_path, frame)
    code, said, error = call("predict", model, data, "--out", tmp_path / "p.csv")
    assert (code, error) == (0, "")
    assert "is new, or was too rare to learn from: 'color' 90." in said
    assert "Warning: Numbers far outside of the columns of the fit count as" in said
    assert ": 'q' 3. Check units" in said
    assert np.isfinite(pd.read_csv(tmp_path / "p.csv").iloc[:, 1:]).all(axis=None)
    _, said, _ = call("predict", model, write(tmp_path), "--out", tmp_path / "p.csv")
    assert "category" not in said
    assert "Warning" not in said


def test_40_what_a_killed_writer_left_is_overwritten(tmp_path):
    (tmp_path / ".p.csv.unfinished").write_text("half of it")
    with atomic_write(tmp_path / "p.csv") as unfinished:
        unfinished.write_text("all")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == "all"


@pytest.mark.parametrize("method", [method.name for method in BASELINES])
def test_methods_of_scikit_learn_are_fitted_shown_judged_and_predict(method, tmp_path):
    data = write(tmp_path)
    out = tmp_path / "m.skops"
    code, said, _ = call(
        "fit", data, "--target", "species", "--method", method, "--out", out
    )
    assert code == 0
    assert said.startswith("Scikit-learn's ")
    assert "of new rows wrong" in said
    shown = call("show", out)[1]
    assert "it is not corrected for that." in shown
    assert "share in the model" not in shown
    assert shown.splitlines()[2:4] == said.splitlines()[:2]
    known = write(tmp_path, flowers(n_labeled=90), "known.csv")
    assert "\nError: " in call("evaluate", out, known)[1]
    predicted = tmp_path / "p.csv"
    assert call("predict", out, data, "--out", predicted, "--quiet")[0] == 0
    shares = pd.read_csv(predicted).filter(like="probability_").sum(axis=1)
    assert_allclose(shares, 1, atol=1e-9)
    refused = call(
        "fit", data, "--target", "species", "--method", method, "--prior", "iris=1"
    )
    assert refused[2] == f"Error: --prior is not for {method}: leave it out.\n"


@pytest.mark.parametrize("method", ["auto", "average", "sklearn-logistic"])
def test_the_error_of_a_table_written_twice_counts_its_rows_once(tmp_path, method):
    data = write(tmp_path, pd.concat([flowers()] * 2))
    out = tmp_path / "m.skops"
    said = call("fit", data, "--target", "species", "--method", method, "--out", out)[1]
    assert "90 % interval from 30 labeled rows" in said


@pytest.mark.parametrize("is_late", [False, True])
def test_an_interruption_says_whether_the_file_was_written(
    model, tmp_path, monkeypatch, is_late
):
    def interrupt(source, target):
        if is_late:
            replace(source, target)
        raise KeyboardInterrupt

    replace = os.replace
    out = tmp_path / "p.csv"
    monkeypatch.setattr(os, "replace", interrupt)
    code, _, error = call("predict", model, tmp_path / "flowers.csv", "--out", out)
    said = f"{out} was written before." if is_late else "Nothing was written."
    assert (code, " ".join(error.split())) == (130, f"Interrupted. {said}")
    assert out.exists() == is_late


def test_fit_takes_what_compare_recommended_for_the_same_rows(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="reports need iclda[experiments]")
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path)
    options = "--target species --methods em --repeats 2 --folds 2 --fast --jobs 1"
    assert call("compare", data, *options.split())[0] == 0
    said = call("fit", data, "--target", "species")[1]
    assert re.search(
        r"^Chose .*: `iclda compare` found .* on these rows \(flowers-comparison\)",
        said,
        re.MULTILINE,
    )
    assert "`iclda compare` measured the error." in call("show", "model.skops")[1]
    # What is given wins.
    said = call("fit", data, "--target", "species", "--method", "moment")[1]
    assert "iclda compare` found" not in said
    write(tmp_path, flowers(n_labeled=33))
    said = call("fit", data, "--target", "species")[1]
    note = "Note: The comparison in flowers-comparison was not used, because it is of"
    assert note in said
    assert said.startswith("The ensemble for ")


def test_an_ensemble_predicts_and_is_evaluated_like_any_model(tmp_path):
    frame = flowers()
    data = write(tmp_path, frame)
    out = tmp_path / "m.skops"
    command = ("fit", data, "--target", "species", "--method", "ensemble")
    assert call(*command, "--out", out)[0] == 0
    assert "the members above decide together" in call("show", out)[1]
    assert json.loads(call("show", out, "--json")[1])["discriminants"] == []
    frame.loc[3, "q"] = 1e6
    far = write(tmp_path, frame, "far.csv")
    said = call("predict", out, far, "--out", tmp_path / "p.csv")[1]
    assert "far outside of the columns of the fit count as usual ones: 'q' 1." in said
    page = tmp_path / "e.html"
    known = write(tmp_path, flowers(n_labeled=90), "known.csv")
    assert call("evaluate", out, known, "--out", page)[0] == 0
    assert page.stat().st_size


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_only_a_file_of_its_own_is_replaced(model, tmp_path, command):
    data = tmp_path / "flowers.csv"
    out = tmp_path / ("m.skops" if command == "fit" else "p.csv")
    arguments = {
        "fit": ("fit", data, "--target", "species", "--method", "supervised"),
        "predict": ("predict", model, data, "--id", "q"),
    }[command]
    out.write_text("class,remark\niris,mine\n")
    code, _, error = call(*arguments, "--out", out)
    assert code == 2
    assert error == (
        f"Error: {out} exists, and `iclda {command}` did not write it: name another "
        "file with --out, or replace it with --force.\n"
    )
    assert out.read_text() == "class,remark\niris,mine\n"
    assert call(*arguments, "--out", out, "--force")[0] == 0
    # Now it is one that the command wrote.
    assert call(*arguments, "--out", out)[0] == 0


def test_predictions_in_parquet_are_replaced_and_other_tables_are_not(model, tmp_path):
    data = tmp_path / "flowers.csv"
    out = write(tmp_path, flowers(), "p.parquet")
    command = ("predict", model, data, "--out", out)
    assert "--force" in call(*command)[2]
    assert call(*command, "--force")[0] == 0
    assert call(*command)[0] == 0


def test_predict_proposes_an_evaluation_of_other_files_than_that_of_the_fit(
    model, tmp_path
):
    out = ("--out", tmp_path / "p.csv")
    own = tmp_path / "flowers.csv"
    said = call("predict", model, own, *out)[1]
    assert said.splitlines()[-1] == (
        f"{own} trained this model. For the error to expect on new rows: iclda show "
        f"{model}"
    )
    other = write(tmp_path, flowers(n_labeled=90), "other.csv")
    said = call("predict", model, other, *out)[1]
    assert said.splitlines()[-1] == (
        f"To compare the predictions with 'species': iclda evaluate {model} {other}"
    )
    unknown = write(tmp_path, flowers().drop(columns="species"), "unknown.csv")
    assert "evaluate" not in call("predict", model, unknown, *out)[1]


def test_a_fit_with_many_remarks_fits_on_a_screen_and_keeps_them_all(tmp_path):
    frame = flowers().assign(**{f"key{k}_id": np.arange(90) * 7 for k in range(12)})
    data = write(tmp_path, frame)
    out = tmp_path / "m.skops"
    command = ("fit", data, "--target", "species", "--method", "em", "--out", out)
    said = call(*command)[1]
    lines = [line for text in said.splitlines() for line in wrap(text, 80) or [""]]
    assert len(lines) <= 25
    assert re.fullmatch(r"[0-9]+ more remarks: `iclda show` prints them\.", lines[-1])
    assert call(*command, "--verbose")[1].count("Note: ") == 12


def test_labels_that_look_wrong_are_listed_by_their_rows(tmp_path):
    frame = flowers(n=180, n_labeled=90)
    frame[["p", "q"]] += 3 * np.eye(3, 2)[np.arange(180) % 3]
    frame.loc[7, ["p", "q"]] = [0.0, 7.0]
    frame.loc[7, "species"] = "iris"
    data = write(tmp_path, frame)
    out = tmp_path / "m.skops"
    said = call("fit", data, "--target", "species", "--out", out)[1]
    assert (
        "\nThe model contradicts these labels. Check them (the header is "
        "row 1):\n  row  label  predicted" in said
    )
    # The names of the columns are row 1.
    assert re.search(r"^ +9  iris   lily       +\d", said, re.MULTILINE)
    suspects = json.loads(call("show", out, "--json")[1])["about"]["suspects"]
    assert [9, "iris", "lily"] in [list(each.values())[:3] for each in suspects]

    # A column of both files that identifies the rows gives their names.
    labels = frame.assign(key=[f"k{row}" for row in range(180)])
    features = write(tmp_path, labels.drop(columns="species"), "features.csv")
    named = write(tmp_path, labels[["key", "species"]], "labels.csv")
    said = call("fit", features, "--labels", named, "--id", "key", "--out", out)[1]
    assert re.search(r"^ +k7  iris   lily       +\d", said, re.MULTILINE)


def test_an_id_without_a_file_of_labels_is_said_to_be_no_feature(tmp_path):
    data = write(tmp_path)
    fit = ("fit", data, "--target", "species", "--out", tmp_path / "m.skops")
    note = "Note: Column 'p' identifies the rows, because --id names it: it is not a"
    assert note in call(*fit, "--id", "p")[1]
    # A column that is left out anyway needs no note.
    for options in (["--drop", "p"], ["--keep", "q"]):
        assert "identifies the rows" not in call(*fit, "--id", "p", *options)[1]
    # Joined to a file of labels by it, nobody takes it for one.
    labels = write(tmp_path, flowers()[["q", "species"]], "labels.csv")
    joined = call(*fit, "--labels", labels, "--id", "q")
    assert joined[0] == 0
    assert "identifies the rows" not in joined[1]


def test_the_column_of_ids_holds_no_classes(tmp_path):
    data = write(tmp_path)
    fit = ("fit", data, "--target", "species", "--out", tmp_path / "m.skops")
    code, said, error = call(*fit, "--id", "species")
    assert (code, said) == (2, "")
    assert "Column 'species' holds the classes and cannot identify the rows" in error
    assert "name another column in --id, or leave --id out." in error


# Packages that a fit would import in vain, and what reads comparisons.
UNUSED = {"torch", "dask", "matplotlib", "jinja2", "iclda.studies.compare.api"}


def test_a_command_does_not_import_packages_that_take_longer_than_a_fit(tmp_path):
    data = write(tmp_path)
    model = tmp_path / "m.skops"
    fit = ["fit", str(data), "--target", "species", "--method", "em", "--quiet"]
    program = (
        "import sys\n"
        "from iclda.__main__ import make_app\n"
        f"commands = {[[*fit, '--out', str(model)], ['show', str(model)]]}\n"
        "for command in commands:\n"
        "    make_app()(command, standalone_mode=False)\n"
        f"print(sorted({UNUSED} & set(sys.modules)))\n"
        # What was refused during an import can be imported later.
        "from iclda._system import without_packages\n"
        "with without_packages('wave'):\n"
        "    try:\n"
        "        import wave\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error.name)\n"
        "import wave\n"
        "print(wave.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-3:] == ["[]", "wave", "wave"]


SAYS_WHAT_IS_COLLECTED = """
import gc
import sys
import iclda.__main__
import iclda.tabular.fit

fit_table = iclda.tabular.fit.fit_table
def say(*args, **options):
    print(gc.isenabled(), gc.get_freeze_count() > 10_000)
    return fit_table(*args, **options)
iclda.tabular.fit.fit_table = say
iclda.__main__.main()
"""


def test_imports_are_not_searched_for_garbage_and_what_a_fit_makes_is(tmp_path):
    fit = ["fit", str(write(tmp_path)), "--target", "species", "--method", "em"]
    fit += ["--out", str(tmp_path / "m.skops"), "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_COLLECTED, *fit],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True"]


def test_a_command_in_a_process_of_the_user_leaves_the_collector_alone(tmp_path):
    fit = ["fit", write(tmp_path), "--target", "species", "--method", "em"]
    n_frozen = gc.get_freeze_count()
    assert call(*fit, "--out", tmp_path / "m.skops", "--quiet")[0] == 0
    assert gc.isenabled()
    assert gc.get_freeze_count() == n_frozen
