"""Every example runs, and draws the answer to the question in its title."""

import ast
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib", reason="examples need iclda[plots]")

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from iclda.tabular import read_table

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


@pytest.fixture
def _no_window(monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def test_every_display_of_a_classifier_has_an_example():
    shown = [
        "decision_boundary",
        "discriminant_histogram",
        "learning_curve",
        "reliability",
    ]
    assert {f"plot_{name}" for name in shown} <= {path.stem for path in EXAMPLES}


@every_example
def test_an_example_asks_one_question_in_its_title(example):
    title, line, blank, *_ = ast.get_docstring(
        ast.parse(example.read_text())
    ).splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert not blank


# Examples that take long, with less to compute; `make docs` runs all of them as they
# stand.
SMALLER = {
    "plot_features": ("[1, 2, 4, 8, 16])\nn_draws = 10", "[1, 4])\nn_draws = 2"),
    "plot_many_rows": ("N_ROWS = 10_000_000", "N_ROWS = 500_000"),
    "plot_labels_or_unlabeled": ("n_repeats=12", "n_repeats=2"),
    "plot_maxima": ("np.arange(0, 360, 3)", "np.arange(0, 360, 12)"),
}


@pytest.mark.usefixtures("_no_window")
@every_example
def test_an_example_runs_and_draws(example, tmp_path):
    # What other tests left open.
    plt.close("all")
    given, smaller = SMALLER.get(example.stem, ("", ""))
    source = example.read_text()
    assert given in source
    (tmp_path / example.name).write_text(source.replace(given, smaller, 1))
    runpy.run_path(str(tmp_path / example.name))
    assert len(plt.get_fignums()) == 1
    assert all(ax.has_data() for ax in plt.gcf().axes)


def make_features():
    """The script that makes features, as a module."""
    path = Path(__file__).parents[1] / "examples" / "make_features.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def images(tmp_path):
    """A folder of five pictures, each of one color, and a file that is none."""
    image = pytest.importorskip("PIL.Image")
    for i in range(5):
        folder = tmp_path / "images" / ("odd" if i % 2 else "even")
        folder.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (9, 7), (50 * i, 0, 255)).save(folder / f"{i}.png")
    (tmp_path / "images" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def tiny_network():
    """A network with three features, the means of the colors, and its preparation."""
    torch = pytest.importorskip("torch")
    pooling = torch.nn.AdaptiveAvgPool2d(1)
    network = torch.nn.Sequential(pooling, torch.nn.Flatten())

    def prepare(image):
        pixels = torch.from_numpy(np.asarray(image.resize((4, 4)), dtype=np.float32))
        return pixels.permute(2, 0, 1)

    return network, prepare


@pytest.mark.parametrize("package", ["timm", "open_clip"])
def test_images_become_rows_that_ask_and_fit_can_read(
    package, images, tmp_path, monkeypatch
):
    network, prepare = tiny_network()
    asked = []

    def create_timm(name, *, pretrained, num_classes):
        asked.append((name, pretrained, num_classes))
        return network

    def create_open_clip(name, *, pretrained):
        asked.append((name, pretrained))
        network.encode_image = network.forward
        return network, None, prepare

    data = SimpleNamespace(
        resolve_model_data_config=lambda given: {"network": given},
        create_transform=lambda network, is_training: prepare,
    )
    fake = {
        "timm": SimpleNamespace(create_model=create_timm, data=data),
        "open_clip": SimpleNamespace(create_model_and_transforms=create_open_clip),
    }
    monkeypatch.setitem(sys.modules, package, fake[package])
    out = tmp_path / "features.npz"
    make_features().main(
        ["images", str(images), str(out), "--network", f"{package}:net:weights"]
    )
    assert asked == [
        ("net:weights", True, 0) if package == "timm" else ("net", "weights")
    ]
    stored = np.load(out)
    assert stored["row"].tolist() == [
        "even/0.png",
        "even/2.png",
        "even/4.png",
        "odd/1.png",
        "odd/3.png",
    ]
    colors = [[50 * i, 0, 255] for i in (0, 2, 4, 1, 3)]
    np.testing.assert_allclose(stored["X"], colors)
    labels = tmp_path / "labels.csv"
    labels.write_text("row,label\neven/2.png,a\nodd/1.png,b\n")
    table = read_table(out, labels=labels, id="row")
    assert [label or "" for label in table.labels] == ["", "a", "", "b", ""]


def test_batches_of_any_size_give_the_same_features(images):
    script = make_features()
    paths = script.find_images(images)
    one, two = (script.image_features(paths, *tiny_network(), size) for size in (2, 64))
    np.testing.assert_allclose(one, two)


def test_sentences_become_rows(tmp_path, monkeypatch):
    class Encoder:
        def __init__(self, name):
            assert name == "some-network"

        def encode(self, sentences):
            return [[len(sentence), sentence.count(" ")] for sentence in sentences]

    fake = SimpleNamespace(SentenceTransformer=Encoder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    table, out = tmp_path / "questions.csv", tmp_path / "features.npz"
    table.write_text('id,question\n1,"how, then?"\n2,\n3,why\n')
    arguments = ["sentences", str(table), str(out), "--network", "some-network"]
    make_features().main([*arguments, "--column", "question"])
    assert np.load(out)["X"].tolist() == [[10, 1], [0, 0], [3, 0]]
    with pytest.raises(ValueError, match=r"no column 'text', but \['id', 'question'\]"):
        make_features().main(arguments)


def test_a_folder_without_images_and_an_unknown_network_are_errors(tmp_path):
    script = make_features()
    with pytest.raises(ValueError, match=r"holds no image: files must end in \.bmp"):
        script.find_images(tmp_path)
    with pytest.raises(ValueError, match=r"timm:MODEL or .* got 'resnet50'"):
        script.load_image_network("resnet50")
