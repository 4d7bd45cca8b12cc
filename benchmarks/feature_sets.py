"""The sets of features: which ones settings were chosen on, and which are kept apart.

Look at errors on sets that are kept apart once, when all settings are chosen.
"""

# Members and settings of the average, and the rule of ``rows_to_label``.
TUNED = (
    "cifar_resnet50",
    "emojigt_efflite0",
    "mnist_efflite0",
    "news20_minilm",
    "omniglot_efflite0",
)
KEPT = ("banking77_minilm", "fashion_efflite0", "fsdd_speaker_resem")
# The rows of another set again, with more features.
REPEATED = ("fashion_efflite0_1280",)


def name_of(path):
    """Return the name of a file of features; None is the set of the package."""
    return "fashion_efflite0" if path is None else path.stem


def parts_of(paths):
    """Yield a title and the paths of each part that has any.

    Sets that are not named here are those of whoever runs the benchmark: nothing was
    chosen on them.
    """
    tuned = [path for path in paths if name_of(path) in TUNED]
    others = [path for path in paths if name_of(path) not in TUNED]
    for title, part in (("Tuned on", tuned), ("Kept apart", others)):
        if part:
            yield title, part


def find_sets(folder, names=None):
    """Return the files of a folder, of these names or all; None without a folder."""
    if folder is None:
        return [None]
    files = sorted(folder.glob("*.npz"))
    unknown = sorted(set(names or ()) - {path.stem for path in files})
    if not files or unknown:
        raise SystemExit(
            f"{folder} has no {', '.join(unknown) or 'set'}: it must hold .npz files "
            "with arrays X and y, which --sets names without .npz."
        )
    if names:
        return [path for path in files if path.stem in names]
    return [path for path in files if path.stem not in REPEATED]
