"""The rows of a file that a person labels: their ids, their features, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import AnyArray, Array
from .._estimators.average import AverageLDA
from .._messages import plural, quoted_list, say
from ..tabular.answers import ROW
from ..tabular.array_files import FeatureFile
from ..tabular.encoders import kinds_and_reasons, pipeline, preprocessing, texts_of
from ..tabular.table import places_of, require_columns, row_ids, to_pandas_frame
from ..tabular.table_files import TableReader, open_data

IMAGES = {
    **{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"},
    **{".webp": "image/webp", ".bmp": "image/bmp", ".avif": "image/avif"},
}
SOUNDS = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg"}
MEDIA_TYPES = IMAGES | SOUNDS
_MOST_FIELDS = 12  # columns that are shown of a row
_LONG = 60  # characters, on average, of a column that is shown as text

Texts = Mapping[str, AnyArray]  # column -> text of every row, None where it is empty


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Rows of a file.

    ``X`` has the features as a model takes them, an array or a source of rows; None if the file
    has none.
    """

    path: Path
    id: str  # name of the column of ids
    target: str
    ids: list[str]
    labels: dict[str, str]  # classes that the file itself holds
    X: Any
    files: Sequence[Path | None]  # image or sound of every row
    texts: Texts  # shown columns
    long: str | None  # the one of them that is shown as text
    stamp: tuple[int, ...]

    @property
    def has_changed(self) -> bool:
        """Whether the file is another one than when it was opened."""
        return stamp_of(self.path) != self.stamp

    def take(self, is_taken: AnyArray) -> Array:
        """Features of some rows."""
        if isinstance(self.X, FeatureFile):
            return np.asarray(self.X.take(is_taken), dtype=np.float64)
        return np.asarray(self.X[is_taken])

    @property
    def source(self) -> Any:
        """The features as a source of rows."""
        return self.X.rows if isinstance(self.X, FeatureFile) else self.X

    def show(self, place: int) -> dict[str, Any]:
        """What the page shows of a row."""
        file, kind, problem = self.files[place], "", ""
        if file is not None:
            kind = "sound" if file.suffix.lower() in SOUNDS else "image"
            if file.suffix.lower() not in MEDIA_TYPES:
                problem = f"{file.name} is no image or sound that a browser shows."
            elif not file.is_file():
                problem = f"{file} does not exist."
        cells = {name: texts[place] for name, texts in self.texts.items()}
        fields = {name: text for name, text in cells.items() if text is not None}
        return {
            "id": self.ids[place],
            "place": place,
            "kind": kind,
            "name": "" if file is None else file.name,
            "problem": problem,
            "text": fields.pop(self.long or "", ""),
            "fields": list(fields.items()),
        }

    def shown_cells(self, places: Sequence[int]) -> dict[str, list[str]]:
        """The shown columns of some rows, for the file of answers."""
        cells = {name: [texts[i] or "" for i in places] for name, texts in self.texts.items()}
        if any(self.files[i] is not None for i in places):
            cells["file"] = [str(self.files[i] or "") for i in places]
        return cells


def stamp_of(path: Path) -> tuple[int, ...]:
    """Time and size of a file; empty without one."""
    if not path.exists():
        return ()
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def open_shown_rows(path: Path, target: str, id: str | None, images: str | None) -> ShownRows:
    """Read a table or an array file; ``images`` is a column of paths or a folder."""
    file = open_data(path, [] if id is None else [id])
    if id is not None:
        require_columns(file, [id], say(", which {@id} names"))
    ids = [*places_of(row_ids(file, id or ROW), path, id or ROW)]
    if not ids:
        raise ValueError(f"{path} holds no rows to label.")
    labels = {}
    if target in file.columns:
        cells = texts_of(file.column(target).to_pylist(), empty=("",))
        labels = {i: cell for i, cell in zip(ids, cells, strict=True) if cell is not None}
    own = {target, id}
    if isinstance(file, FeatureFile):
        X: Any = file
        names = [name for name in file.columns if name not in {*own, *file.features}]
        texts: Texts = {name: texts_of(file.column(name).to_pylist()) for name in names}
    else:
        X, texts = _read_columns(file, [name for name in file.columns if name not in own])
    files, used = _find_media(images, path, ids, texts)
    texts = {name: cells for name, cells in texts.items() if name != used}
    if not texts and used is None and files[0] is None:
        raise ValueError(
            say("{path} holds nothing to look at: name a folder of images by {@images}.", path=path)
        )
    long = next((name for name, cells in texts.items() if _is_long(cells)), None)
    shown = [name for name in texts if name != long][:_MOST_FIELDS]
    return ShownRows(
        path=file.file,
        id=id or ROW,
        target=target,
        ids=ids,
        labels=labels,
        X=X,
        files=files,
        texts={name: texts[name] for name in ([long] if long else []) + shown},
        long=long,
        stamp=stamp_of(file.file),
    )


def _read_columns(file: TableReader, names: Sequence[str]) -> tuple[Array | None, Texts]:
    """Features of a table, None without any, and the columns that a person may look at."""
    frame = to_pandas_frame(file.read(names))
    frame = frame.dropna(axis=1, how="all")
    made = {column for columns in file.lists.values() for column in columns}
    texts = {name: texts_of(frame[name]) for name in frame.columns if name not in made}
    usable = [
        name
        for name in kinds_and_reasons(frame)[0]
        if name in made or not (_is_media(texts[name]) or _is_long(texts[name]))
    ]
    if not usable:
        return None, texts
    steps = pipeline(preprocessing(frame[usable]), AverageLDA(), scale=True)[:-1]
    return np.asarray(steps.fit_transform(frame[usable]), dtype=np.float64), texts


def _is_media(cells: AnyArray) -> bool:
    """Whether a column holds paths of images or sounds."""
    names = [cell for cell in cells if cell is not None]
    return bool(names) and all(Path(name).suffix.lower() in MEDIA_TYPES for name in names)


def _is_long(cells: AnyArray) -> bool:
    lengths = [len(cell) for cell in cells if cell is not None]
    return bool(lengths) and sum(lengths) > _LONG * len(lengths)


def _find_media(
    images: str | None, path: Path, ids: Sequence[str], texts: Texts
) -> tuple[Sequence[Path | None], str | None]:
    """Image or sound of every row, and the column that names them, if one does."""
    if images is None:
        images = next((name for name, cells in texts.items() if _is_media(cells)), None)
    if images is None:
        return [None] * len(ids), None
    if images not in texts:
        return _find_in_folder(Path(images), path, ids, list(texts)), None
    files = [None if cell is None else path.parent / cell for cell in texts[images]]
    named = [file for file in files if file is not None]
    if not any(file.is_file() for file in named):
        raise ValueError(
            f"{path}: no file that column {images!r} names exists, for example "
            f"{str(next(iter(named), ''))!r}. Paths start at the folder of {path.name}."
        )
    return files, images


def _find_in_folder(
    folder: Path, path: Path, ids: Sequence[str], columns: Sequence[str]
) -> list[Path]:
    """The files in a folder whose names are the ids; if not all are, those in sorted order."""
    if not folder.is_dir():
        text = "{@images} must name a folder of images, or a column of paths, got {given!r}, and "
        text += "{path} has {columns}."
        held = f"the columns {quoted_list(columns, 8)}" if columns else "no such column"
        raise ValueError(say(text, given=str(folder), path=path, columns=held))
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in MEDIA_TYPES)
    by_name = {file.stem: file for file in files} | {file.name: file for file in files}
    if all(id in by_name for id in ids):
        return [by_name[id] for id in ids]
    if len(files) != len(ids):
        lacking = next(id for id in ids if id not in by_name)
        raise ValueError(
            f"{folder} has {plural(len(files), 'image or sound', 'images and sounds')}, and {path} "
            f"{plural(len(ids), 'row')}: there must be one for every row, in the order of their "
            f"names, or named like the ids, and none is named {lacking!r}."
        )
    return files
