"""What the labeling page shows of a row: an image or a sound, a text, and some cells.

Images and sounds are files that a column names, or the files of a folder. A column of
long texts is shown as text, all other columns as a small table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._core import AnyArray
from .._messages import plural, say
from ..tabular.cells import texts_of
from ..tabular.labels import is_row_number
from ..tabular.readers import require_columns
from .pool import Pool

_IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".avif": "image/avif",
}
_SOUND_TYPES = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
}
_MEDIA_TYPES = _IMAGE_TYPES | _SOUND_TYPES
# A column whose cells are longer on average is shown as text, not in the table.
_MAX_CELL_CHARACTERS = 60

# The texts of all rows, None where a cell is empty, by column.
_TextColumns = Mapping[str, AnyArray]


class ShownRows:
    """The rows of a pool as the page shows them.

    Parameters
    ----------
    pool : Pool
        The rows.
    images : str, default=None
        A column of paths, or a folder. None takes the first column that holds paths of
        images or sounds, if any does.

    Attributes
    ----------
    files : list of (Path or None)
        Image or sound of every row, None for a row without one.
    """

    def __init__(self, pool: Pool, images: str | None = None) -> None:
        self.pool = pool
        frame = pool.shown
        texts = {
            name: texts_of(frame[name])
            for name in frame
            if frame[name].dtype.kind == "O"
        }
        self.files, self._media_column = _find_media(images, pool, texts)
        # The first column of long texts, if any; the others are cells of the table.
        others = [name for name in texts if name != self._media_column]
        self._text_column = next((name for name in others if _is_long(texts[name])), "")
        if frame.columns.empty and self.files[0] is None:
            sentence = (
                "{path} holds nothing to look at: set {@images} to a folder of images."
            )
            raise ValueError(say(sentence, path=pool.file.path))

    def title(self, position: int) -> str:
        """Return what the page calls a row."""
        return f"Row {self.pool.name_of(position)}"

    def show(self, position: int) -> dict[str, Any]:
        """Return what the page shows of a row, for JSON."""
        file = self.files[position]
        kind = ""
        problem = ""
        if file is not None:
            kind = "sound" if file.suffix.lower() in _SOUND_TYPES else "image"
            problem = "" if file.is_file() else f"{file} does not exist."
        # Neither empty cells nor the path of the image are shown.
        cells = {
            name: text for name, [text] in self.pool.cells([position]).items() if text
        }
        cells.pop(self._media_column, "")
        # The long text is shown apart from the table of the other cells.
        long_text = cells.pop(self._text_column, "")
        return {
            "id": self.pool.ids[position],
            "title": self.title(position),
            "position": position,
            "kind": kind,
            "name": "" if file is None else file.name,
            "problem": problem,
            "text": long_text,
            "fields": list(cells.items()),
        }


def media_type_of(file: Path) -> str | None:
    """Return the type of an image or a sound as HTTP names it; None for others."""
    return _MEDIA_TYPES.get(file.suffix.lower())


def _is_media(cells: AnyArray) -> bool:
    """Return whether a column holds paths of images or sounds."""
    names = [cell for cell in cells if cell is not None]
    return bool(names) and all(media_type_of(Path(name)) for name in names)


def _is_long(cells: AnyArray) -> bool:
    """Return whether a column holds texts too long for the cells of a table."""
    lengths = [len(cell) for cell in cells if cell is not None]
    return bool(lengths) and sum(lengths) > _MAX_CELL_CHARACTERS * len(lengths)


def _find_media(
    images: str | None, pool: Pool, texts: _TextColumns
) -> tuple[Sequence[Path | None], str]:
    """Find the image or sound of every row, and the column that names them, if any."""
    if images is None:
        images = _first_media_column(texts)
    if images is None:
        return [None] * len(pool.ids), ""
    if images in texts:
        return _find_by_column(images, texts[images], pool.file.path), images
    # No column of text has this name: it should be that of a folder.
    return _find_in_folder(Path(images), pool), ""


def _first_media_column(texts: _TextColumns) -> str | None:
    """Return the first column that holds paths of images or sounds, if any does."""
    return next((name for name, cells in texts.items() if _is_media(cells)), None)


def _find_by_column(column: str, cells: AnyArray, path: Path) -> list[Path | None]:
    """Return the files that a column of the file at ``path`` names."""
    folder = path.parent
    files = [None if cell is None else folder / cell for cell in cells]
    named = [file for file in files if file is not None]
    if not any(file.is_file() for file in named):
        example = str(named[0]) if named else ""
        raise ValueError(
            f"{path}: no file that column {column!r} names exists, for example "
            f"{example!r}. Paths start at the folder of {path.name}."
        )
    return files


def _find_in_folder(folder: Path, pool: Pool) -> list[Path]:
    """Return the files named like the ids, or else all files, sorted by name."""
    if not folder.is_dir():
        purpose = ", and there is no such folder of images"
        require_columns(pool.file, [str(folder)], purpose)
        raise ValueError(
            f"{pool.file.path}: column {str(folder)!r} does not hold paths of images, "
            "and there is no such folder of images."
        )
    files = sorted(file for file in folder.iterdir() if media_type_of(file))
    # An id may name a file with its suffix or without.
    file_by_name = {file.stem: file for file in files}
    file_by_name |= {file.name: file for file in files}
    # Files that are named after rows without ids count from 0.
    ids = pool.ids
    if is_row_number(pool.file, pool.id):
        ids = [str(position) for position in range(len(ids))]
    lacking = [id for id in ids if id not in file_by_name]
    if not lacking:
        return [file_by_name[id] for id in ids]
    # Otherwise the files belong to the rows in the order of their names.
    if len(files) != len(pool.ids):
        found = plural(len(files), "image or sound", "images and sounds")
        raise ValueError(
            f"{folder} has {found}, and {pool.file.path} has "
            f"{plural(len(pool.ids), 'row')}: there must be one for every row. Files "
            "belong to the rows with ids like their names (none is named "
            f"{lacking[0]!r}), or else to the rows in the order of their names."
        )
    return files
