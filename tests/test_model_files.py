"""Model files come back as they were saved, or not at all."""

import ast
import io
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import iclda
from iclda import ImplicitlyConstrainedLDA, SupervisedLDA, load_model, save_model
from iclda.methods import FITTED, FURTHER
from iclda.model_files import FORMAT, model_details
from iclda.tabular import pipeline, preprocessing
from tools.store_models import store_models

# Models of releases; there are none before the first.
STORED = Path(__file__).parent / "stored_models"
CLASS_NAMES = {method.class_name: None for method in (*FITTED, *FURTHER)}


def problem(n_classes=2):
    rng = np.random.default_rng(n_classes)
    codes = np.arange(120) % n_classes
    X = rng.normal(size=(120, 3)) + 2 * np.eye(n_classes, 3)[codes]
    return X, np.where(np.arange(120) < 40, codes, -1)


def table(n=120):
    X, y = problem()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["color"] = np.array(["red", "blue", "green"])[np.arange(n) % 3]
    frame["is big"] = np.arange(n) % 7 < 3
    frame.loc[::9, "a"] = np.nan
    return frame, np.where(y == -1, None, np.array(["no", "yes"], dtype=object)[y])


@pytest.fixture(scope="module")
def fitted():
    frame, labels = table()
    return pipeline(preprocessing(frame), ImplicitlyConstrainedLDA()).fit(frame, labels)


@pytest.fixture
def saved(fitted, tmp_path):
    """A pipeline and its file."""
    save_model(fitted, tmp_path / "model.skops")
    return fitted, tmp_path / "model.skops"


@pytest.mark.parametrize("name", CLASS_NAMES)
@pytest.mark.parametrize(("n_classes", "shrinkage"), [(2, None), (3, "auto")])
def test_a_classifier_comes_back_with_the_same_numbers(
    tmp_path, name, n_classes, shrinkage
):
    X, y = problem(n_classes)
    model = getattr(iclda, name)()
    if "shrinkage" in model.get_params():
        model.set_params(shrinkage=shrinkage)
    model.fit(X, y)
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.dtype == model.classes_.dtype
    has_density = hasattr(model, "score_samples")
    methods = ["predict", "predict_proba", "decision_function"]
    for method in [*methods, *(["transform", "score_samples"] if has_density else [])]:
        assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))


def test_a_pipeline_comes_back_with_its_preprocessing(saved):
    model, path = saved
    frame, _ = table()
    frame.loc[0, "color"] = "purple"
    assert_array_equal(
        load_model(path).predict_proba(frame), model.predict_proba(frame)
    )


def test_labels_imputed_to_the_training_rows_are_not_in_the_file(saved):
    model, path = saved
    assert model[-1].responsibilities_.shape == (80, 2)
    with pytest.raises(AttributeError, match=r"use impute\(X\)"):
        load_model(path)[-1].responsibilities_  # noqa: B018
    encoded = model[:-1].transform(table()[0])
    assert_array_equal(load_model(path)[-1].impute(encoded), model[-1].impute(encoded))


def test_the_details_tell_what_it_is_without_loading_it(saved):
    _, path = saved
    details = model_details(path)
    assert (details["format"], details["iclda"]) == (FORMAT, iclda.__version__)
    assert details["classifier"] == "ImplicitlyConstrainedLDA"
    assert details["classes"] == ["no", "yes"]
    numbers = dict.fromkeys(["a", "b", "c"], "number")
    assert details["columns"] == {**numbers, "color": "category", "is big": "boolean"}
    assert details["diagnosis"]["converged"] is True
    assert {"python", "numpy", "scikit-learn", "skops"} <= set(details["versions"])
    json.dumps(details)


def test_44_changed_bytes_of_the_model_are_noticed(saved):
    _, path = saved
    data = path.read_bytes()
    start = data.index(b"\x93NUMPY")
    for place in range(start, start + 128, 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(
            ValueError, match=r"model\.skops is not a model file, or damaged"
        ):
            load_model(path)


def repacked(path, change):
    """The file with other members."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    details = json.loads(members.pop("iclda.json"))
    change(details, members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
        file.writestr("iclda.json", json.dumps(details))
    path.write_bytes(buffer.getvalue())


WAYS_OUT = {FORMAT - 1: "fit the model again", FORMAT + 1: "update iclda"}


@pytest.mark.parametrize("other", WAYS_OUT)
def test_44_a_file_of_another_format_is_refused_with_the_way_out(saved, other):
    _, path = saved
    repacked(path, lambda details, _: details.update(format=other, iclda="9.9.0"))
    words = rf"made by iclda 9\.9\.0 in format {other}, and .* {WAYS_OUT[other]}\."
    for read in (load_model, model_details):
        with pytest.raises(ValueError, match=words):
            read(path)


def other_type(_, members):
    schema = members["schema.json"]
    members["schema.json"] = schema.replace(b'"iclda.tabular.encoders"', b'"evil"', 1)


def test_45_a_file_with_other_types_is_refused_and_nothing_of_it_is_imported(
    saved, tmp_path, monkeypatch
):
    _, path = saved
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    repacked(path, other_type)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match=r"holds types that iclda .* does not trust\. .*evil\."
    ):
        load_model(path)
    assert not (tmp_path / "ran").exists()


def malicious(kind, module, name):
    """A schema that would call a function as skops rebuilds objects."""
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    argument = {**text, "content": '"touch ran"'}
    items = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    arguments = {**items, "content": [argument]}
    called = {
        "content": arguments,
        "attrs": arguments,
        "__reduce__": {"args": arguments},
    }
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": kind,
        "protocol": 2,
        **called,
    }


ATTACKS = {
    "a function": malicious("FunctionNode", "os", "system"),
    "a call by reduce": malicious("ConstructorFromReduceNode", "os", "system"),
    "an operator": malicious("OperatorFuncNode", "operator", "methodcaller"),
    "an allowed name by another way": malicious("LossNode", "builtins", "list"),
    "a partial": malicious("PartialNode", "functools", "partial"),
    "a type": malicious("TypeNode", "subprocess", "Popen"),
    "an object": malicious("ObjectNode", "subprocess", "Popen"),
}


@pytest.mark.parametrize("schema", ATTACKS.values(), ids=ATTACKS)
def test_45_a_malicious_file_is_refused_and_nothing_is_run(
    saved, tmp_path, monkeypatch, schema
):
    _, path = saved
    monkeypatch.chdir(tmp_path)
    repacked(
        path,
        lambda _, members: members.update({"schema.json": json.dumps(schema).encode()}),
    )
    with pytest.raises(ValueError, match=r"model\.skops cannot be loaded as a model"):
        load_model(path)
    assert not (tmp_path / "ran").exists()


BROKEN = {
    "no schema": lambda _, members: members.pop("schema.json"),
    "a schema that is no JSON": lambda _, members: members.update(
        {"schema.json": b"{"}
    ),
    "an endless schema": lambda _, m: m.update(
        {"schema.json": b"[" * 10**5 + b"]" * 10**5}
    ),
    "lost arrays": lambda _, members: [
        members.pop(name) for name in list(members) if name.endswith("npy")
    ],
    "arrays cut off": lambda _, members: members.update(
        {
            name: content[:-5]
            for name, content in members.items()
            if name.endswith("npy")
        }
    ),
    "arrays larger than memory": lambda _, members: members.update(
        {name: declared(10**13) for name in members if name.endswith("npy")}
    ),
    "pickled arrays": lambda _, members: members.update(
        {name: pickled() for name in members if name.endswith("npy")}
    ),
}


def declared(n_numbers):
    """An array of few bytes whose header says that it holds many numbers."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (n_numbers,)}
    )
    return buffer.getvalue() + bytes(80)


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([object], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_file_with_broken_parts_is_refused_by_name(saved, change):
    _, path = saved
    repacked(path, change)
    with pytest.raises(
        ValueError, match=r"model\.skops (cannot be loaded|is not a model file)"
    ):
        load_model(path)


def test_a_model_with_a_part_of_another_version_says_which_version_wrote_it(saved):
    def rename_encoder(details, members):
        details["iclda"] = "0.9.7"
        schema = members["schema.json"].decode()
        members["schema.json"] = schema.replace(
            "NumberEncoder", "MoneyEncoder"
        ).encode()

    _, path = saved
    repacked(path, rename_encoder)
    message = (
        r"model\.skops cannot be loaded .*MoneyEncoder.* written by iclda 0\.9\.7, and "
        rf"this is iclda {re.escape(iclda.__version__)}: install the version that wrote"
    )
    with pytest.raises(ValueError, match=message):
        load_model(path)


def test_45_a_file_that_unpacks_to_more_than_its_size_is_refused(saved):
    _, path = saved
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", b"0" * 10**6)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="its members are larger than the file"):
        load_model(path)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"a,b\n1,2\n", b"PK\x05\x06" + bytes(18)]
)
def test_any_other_file_is_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ValueError, match=r"other is not a model file"):
        load_model(tmp_path / "other")


def test_files_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file .*nowhere"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"There is no folder .*nowhere for m\.skops"
    ):
        save_model(SupervisedLDA().fit(*problem()), tmp_path / "nowhere" / "m.skops")
    with pytest.raises(NotFittedError):
        save_model(SupervisedLDA(), tmp_path / "m.skops")
    with pytest.raises(TypeError, match=r"must be a fitted classifier, .*got 3: pass"):
        save_model(3, tmp_path / "m.skops")
    with pytest.raises(
        TypeError, match=r"got the class SupervisedLDA: pass the object"
    ):
        save_model(SupervisedLDA, tmp_path / "m.skops")


class Shift(FunctionTransformer):
    """A step that load_model does not know."""


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    X, y = problem()
    model = make_pipeline(Shift(), SupervisedLDA()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"not trust\. .*m\.skops was not written.*Shift"
    ) as error:
        save_model(model, tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())
    names = ast.literal_eval(re.search(r"trusted=(\[.*\])", str(error.value))[1])
    save_model(model, tmp_path / "m.skops", trusted=names)
    loaded = load_model(tmp_path / "m.skops", trusted=names)
    assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("name", "name_of_skops"),
    [
        ("model.pkl", "model.skops"),
        ("model.joblib", "model.skops"),
        ("model", "model.skops"),
        # Models of two versions get two names.
        ("model.1.2", "model.1.2.skops"),
        ("..", "../model.skops"),
    ],
)
def test_a_path_of_another_format_is_refused_with_the_way_out(
    fitted, tmp_path, name, name_of_skops
):
    problem = re.escape(f"must end in .skops, got '{tmp_path / name}': ")
    way_out = re.escape(f"Pass '{tmp_path / name_of_skops}'; for a pickle, ")
    with pytest.raises(ValueError, match=f"{problem}.*{way_out}"):
        save_model(fitted, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["", "."])
def test_a_path_without_a_name_is_refused_with_one(fitted, path):
    with pytest.raises(ValueError, match=r"end in \.skops, .* Pass 'model\.skops'"):
        save_model(fitted, path)


def test_a_model_file_is_read_under_any_name(saved):
    model, path = saved
    renamed = path.rename(path.with_suffix(".pkl"))
    frame, _ = table()
    assert_array_equal(load_model(renamed).predict(frame), model.predict(frame))


def test_43_a_disk_that_fills_up_leaves_the_old_file(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("iclda._system.os.replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*model\.skops'"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["model.skops"]


def test_without_skops_the_extra_is_named(saved, monkeypatch):
    model, path = saved
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"pip install 'iclda\[data\]'"):
        save_model(model, path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_models_that_releases_and_this_version_store_predict_the_same(tmp_path):
    store_models(tmp_path)
    names = {path.stem.rpartition("-")[2] for path in tmp_path.glob("*.skops")}
    assert names == {*CLASS_NAMES, "AutoLDA"}
    for path in [*tmp_path.glob("*.skops"), *STORED.glob("*.skops")]:
        rows = pd.read_csv(path.with_suffix(".csv"))
        features = rows[list(model_details(path)["columns"])]
        found = load_model(path).predict_proba(features)
        expected = rows.filter(like="probability_")
        np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=path.stem)
