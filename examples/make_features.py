"""Turn a folder of images, or a column of sentences, into features for iclda.

    python examples/make_features.py images photos features.npz
    python examples/make_features.py images photos features.npz \\
        --network open_clip:ViT-B-32:laion2b_s34b_b79k
    python examples/make_features.py sentences questions.csv features.npz --column text

Needs timm (the default), open_clip or sentence-transformers, which download the weights
of the network once. The file holds the features as ``X``, and as ``row`` the path of
each image or the number of each sentence, so that

    iclda ask features.npz --id row

says which rows to label first, and ``iclda fit`` takes the same file.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
# A vision transformer that was trained without labels.
IMAGE_NETWORK = "timm:vit_small_patch14_dinov2.lvd142m"
SENTENCE_NETWORK = "sentence-transformers/all-MiniLM-L6-v2"


def load_image_network(name):
    """Return a frozen network of images, and what prepares an image for it.

    The name is timm:MODEL or open_clip:MODEL:WEIGHTS.
    """
    package, _, model = name.partition(":")
    if package == "timm":
        import timm

        # Without classes the network ends with its features.
        network = timm.create_model(model, pretrained=True, num_classes=0)
        settings = timm.data.resolve_model_data_config(network)
        return network.eval(), timm.data.create_transform(**settings, is_training=False)
    if package == "open_clip":
        import open_clip

        model, _, weights = model.partition(":")
        network, _, prepare = open_clip.create_model_and_transforms(
            model, pretrained=weights
        )
        return network.eval().encode_image, prepare
    raise ValueError(
        f"--network must be timm:MODEL or open_clip:MODEL:WEIGHTS, got {name!r}."
    )


def find_images(folder):
    """Return the images in a folder and its folders, in the order of their names."""
    paths = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES)
    if not paths:
        raise ValueError(
            f"{folder} holds no image: files must end in {', '.join(sorted(SUFFIXES))}."
        )
    return paths


def image_features(paths, network, prepare, batch_size=64):
    """Return one row of float32 features for each image."""
    import torch
    from PIL import Image

    parts = []
    with torch.inference_mode():
        for start in range(0, len(paths), batch_size):
            images = []
            for path in paths[start : start + batch_size]:
                with Image.open(path) as image:
                    images.append(prepare(image.convert("RGB")))
            parts.append(network(torch.stack(images)).float().cpu().numpy())
    return np.concatenate(parts)


def read_sentences(path, column):
    """Return the sentences of a column of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if column not in (reader.fieldnames or ()):
            raise ValueError(
                f"{path} has no column {column!r}, but {reader.fieldnames}: name one "
                "with --column."
            )
        return [row[column] or "" for row in reader]


def sentence_features(sentences, name=SENTENCE_NETWORK):
    """Return one row of float32 features for each sentence."""
    from sentence_transformers import SentenceTransformer

    return np.asarray(SentenceTransformer(name).encode(sentences), dtype=np.float32)


def main(arguments=None):
    """Write the features of the images or sentences to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=["images", "sentences"])
    parser.add_argument("source", help="folder of images, or CSV file of sentences")
    parser.add_argument("out", help="file to write, features.npz")
    parser.add_argument("--network", help="network, by default a small one")
    parser.add_argument("--column", default="text", help="column of the sentences")
    given = parser.parse_args(arguments)
    if given.kind == "images":
        paths = find_images(given.source)
        network, prepare = load_image_network(given.network or IMAGE_NETWORK)
        X = image_features(paths, network, prepare)
        names = [path.relative_to(given.source).as_posix() for path in paths]
    else:
        sentences = read_sentences(given.source, given.column)
        X = sentence_features(sentences, given.network or SENTENCE_NETWORK)
        names = np.arange(len(X))
    np.savez(given.out, X=X, row=names)
    print(f"{len(X):,} rows of {X.shape[1]:,} features: {given.out}")


if __name__ == "__main__":
    main()
