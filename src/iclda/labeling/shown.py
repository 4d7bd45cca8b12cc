"""What a labeling page shows of a row: an image, a sound, text, a small table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._core.types import AnyArray
from .._messages import plural, say
from ..tabular.ask import Pool
from ..tabular.encoders import texts_of
from ..tabular.table import require_columns

_IMAGES = {
    **{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"},
    **{".webp": "image/webp", ".bmp": "image/bmp", ".avif": "image/avif"},
}
_SOUNDS = {".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg"}
MEDIA_TYPES = _IMAGES | _SOUNDS
_LENGTH_OF_TEXT = 60  # characters, on average, of a column that is shown as text

Texts = Mapping[str, AnyArray]  # column -> text of every row, None where it is empty


class ShownRows:
    """The rows of a pool as a page shows them; ``images`` is a column of paths or a folder."""

    def __init__(self, pool: Pool, images: str | None = None) -> None:
        frame = pool.shown
        texts = {name: texts_of(frame[name]) for name in frame if frame[name].dtype.kind == "O"}
        self.pool = pool
        self.files, self._media = _find_media(images, pool, texts)
        others = [name for name in texts if name != self._media]
        self._long = next((name for name in others if _is_long(texts[name])), "")
        if frame.columns.empty and self.files[0] is None:
            sentence = "{path} holds nothing to look at: name a folder of images by {@images}."
            raise ValueError(say(sentence, path=pool.file.path))

    def show(self, place: int) -> dict[str, Any]:
        """What the page shows of a row."""
        file, kind, problem = self.files[place], "", ""
        if file is not None:
            kind = "sound" if file.suffix.lower() in _SOUNDS else "image"
            problem = "" if file.is_file() else f"{file} does not exist."
        cells = {name: text for name, [text] in self.pool.cells([place]).items() if text}
        cells.pop(self._media, "")
        return {
            "id": self.pool.ids[place],
            "place": place,
            "kind": kind,
            "name": "" if file is None else file.name,
            "problem": problem,
            "text": cells.pop(self._long, ""),
            "fields": list(cells.items()),
        }


def stamp_of(path: Path) -> tuple[int, ...]:
    """Time and size of a file; empty without one."""
    if not path.exists():
        return ()
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _is_media(cells: AnyArray) -> bool:
    """Whether a column holds paths of images or sounds."""
    names = [cell for cell in cells if cell is not None]
    return bool(names) and all(Path(name).suffix.lower() in MEDIA_TYPES for name in names)


def _is_long(cells: AnyArray) -> bool:
    lengths = [len(cell) for cell in cells if cell is not None]
    return bool(lengths) and sum(lengths) > _LENGTH_OF_TEXT * len(lengths)


def _find_media(images: str | None, pool: Pool, texts: Texts) -> tuple[Sequence[Path | None], str]:
    """Image or sound of every row, and the column that names them, if one does."""
    path = pool.file.path
    if images is None:
        images = next((name for name, cells in texts.items() if _is_media(cells)), None)
    if images is None:
        return [None] * len(pool.ids), ""
    if images not in texts:
        return _find_in_folder(Path(images), pool), ""
    files = [None if cell is None else path.parent / cell for cell in texts[images]]
    named = [file for file in files if file is not None]
    if not any(file.is_file() for file in named):
        raise ValueError(
            f"{path}: no file that column {images!r} names exists, for example "
            f"{str(next(iter(named), ''))!r}. Paths start at the folder of {path.name}."
        )
    return files, images


def _find_in_folder(folder: Path, pool: Pool) -> list[Path]:
    """The files in a folder whose names are the ids; if not all are, those in sorted order."""
    path, ids = pool.file.path, pool.ids
    if not folder.is_dir():
        require_columns(pool.file, [str(folder)], ", and there is no such folder of images")
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
