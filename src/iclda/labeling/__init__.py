"""A page on which a person labels rows: what it shows of a row, the state of the work, the site.

All methods but ``LabelingSession.compute`` run on the thread of the server; ``compute`` reads
nothing that they change.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from .._core import AnyArray
from .._local_server import Site
from .._messages import plural, say
from .._statistics import LEAST_TESTED, ErrorEstimate, percent_text
from ..tabular.ask import Batch, Pool, Project
from ..tabular.encoders import texts_of
from ..tabular.table import require_columns
from ..tabular.table_files import CHOSEN, RANDOM, Answers, spelling_of

_ROWS_AT_FIRST = 20  # rows of the first round
_ROWS_A_ROUND = 10  # rows of later rounds
_RANDOM_ROWS_A_ROUND = 2  # of these, rows drawn at random
_LEAST_WAITING = 5  # open rows below which more are asked for
_MOST_UNSURE = 6  # rows that are listed
_LONGEST_NAME = 100  # characters of the name of a class
_IMAGES = {
    **{
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".jpeg": "image/jpeg",
        ".gif": "image/gif",
    },
    **{".webp": "image/webp", ".bmp": "image/bmp", ".avif": "image/avif"},
}
_SOUNDS = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
}
_MEDIA_TYPES = _IMAGES | _SOUNDS
_LENGTH_OF_TEXT = 60  # characters, on average, of a column that is shown as text
_STATIC = Path(__file__).parent / "static"
_LOOK = Path(__file__).parents[1] / "playground" / "static" / "look.css"
# Methods of the session, and what a request sends as their arguments.
_ACTIONS = {
    "answer": ("id", "label"),
    "skip": ("id",),
    "jump": ("id",),
    "back": (),
    "again": (),
}

Texts = Mapping[str, AnyArray]  # column -> text of every row, None where it is empty


@dataclass(frozen=True)
class FitTask:
    """What is to be computed: further rows, or, if none are needed, a fit to the labels."""

    project: Project = field(compare=False)
    labels: Mapping[str, str]
    asked: Sequence[str]
    n_more: int


@dataclass(frozen=True)
class FitFindings:
    """What a fit to the labels shows."""

    error: ErrorEstimate | None = None
    unsure: Sequence[
        tuple[int, list[tuple[str, float]]]
    ] = ()  # rows, and shares of two classes
    problem: str = ""


class LabelingSession:
    """Rows in the order of the file of answers; every answer is written before the next row."""

    def __init__(self, pool: Pool, shown: ShownRows, path: Path) -> None:
        self.pool, self.shown, self.path = pool, shown, path
        self.current: str | None = None  # shown before the open rows
        self.history: list[str] = []
        self.skipped: list[str] = []
        self.last: dict[str, str] | None = None
        self.findings = FitFindings()
        self.classes: list[str] = []
        self._file_stamp, self._stamp = stamp_of(pool.file.file), stamp_of(path)
        self._tried: FitTask | None = None  # the last task
        self.project = Project.read(pool, path)
        self.sync()
        # The first rows, and errors in the features, come before the page.
        if (task := self.next_task()) is not None and task.n_more:
            self.accept(task, *self.compute(task))

    @property
    def answers(self) -> Answers:
        return self.project.answers

    def _write(self, answers: Answers) -> None:
        answers.write()
        self.project, self._stamp = (
            replace(self.project, answers=answers),
            stamp_of(self.path),
        )

    def sync(self) -> None:
        """Read the answers again if another program has changed them; ValueError if it cannot."""
        if self.path.exists() and (stamp := stamp_of(self.path)) != self._stamp:
            self.project, self._stamp = Project.read(self.pool, self.path), stamp
        self.classes += sorted({*self.project.labels.values()} - {*self.classes})

    # Actions of the page.

    def answer(self, id: str, name: str) -> None:
        """Give a row its class, in the spelling that other rows have if there are any."""
        name = " ".join(name.split())
        if not 0 < len(name) <= _LONGEST_NAME:
            rule = f"must have 1 to {_LONGEST_NAME} characters"
            raise ValueError(
                f"The name of a class {rule}, got {len(name)}: type another one."
            )
        spelling, labels = spelling_of(name), self.project.labels
        known = {
            spelling_of(label): label for each, label in labels.items() if each != id
        }
        label = known.get(spelling, name)
        self._write(self.answers.answering(id, label))
        self.classes = [
            label if spelling_of(each) == spelling else each for each in self.classes
        ]
        self.last = {"id": id, "label": label, "guess": self.answers.guess_of(id)}
        self._leave(id)

    def skip(self, id: str) -> None:
        """Leave a row as it is; an open one comes again when the skipped ones are called."""
        self.answers.require(id)
        if id in self.answers.open_ids:
            self.skipped.append(id)
        self._leave(id)

    def _leave(self, id: str) -> None:
        self.history.append(id)
        self.current = None

    def back(self) -> None:
        """Show the row before again, with its class."""
        if self.history:
            self.current = self.history.pop()
            self.skipped = [id for id in self.skipped if id != self.current]

    def again(self) -> None:
        """Show the skipped rows again."""
        self.skipped = []

    def jump(self, id: str) -> None:
        """Show a certain row; if it was not asked for, it counts as chosen."""
        if id not in self.pool.rows:
            raise ValueError(
                f"{self.pool.file.path} has no row {self.pool.id} = {id!r}."
            )
        cells = self.pool.cells([self.pool.rows[id]])
        self._write(self.answers.asking([id], CHOSEN, shown=cells))
        self.skipped = [each for each in self.skipped if each != id]
        self.current = id

    # The model.

    def next_task(self) -> FitTask | None:
        """What is to be computed now, if anything."""
        labels, asked = self.project.labels, self.answers.ids()
        n_round = _ROWS_A_ROUND if asked else _ROWS_AT_FIRST
        n_more = n_round if len(self._waiting) < _LEAST_WAITING else 0
        n_more = min(n_more, len(self.pool.ids) - len({*labels, *asked}))
        task = FitTask(self.project, labels, asked, n_more)
        return None if task == self._tried else task

    def compute(self, task: FitTask) -> tuple[Batch | None, FitFindings]:
        """Choose further rows; if none are needed, fit a model and estimate its error."""
        file, project = self.pool.file, task.project
        if stamp_of(file.file) != self._file_stamp:
            way_out = "end `iclda label` and start it again. All answers are kept."
            raise ValueError(f"{file.path} has changed since it was opened: {way_out}")
        if task.n_more:
            n_random = (
                _RANDOM_ROWS_A_ROUND * task.n_more // _ROWS_A_ROUND if task.asked else 0
            )
            findings = replace(self.findings, problem="")
            return project.draw(task.n_more - n_random, n_random), findings
        return None, FitFindings(project.error, project.least_sure(_MOST_UNSURE))

    def accept(self, task: FitTask, batch: Batch | None, findings: FitFindings) -> None:
        """Take the results of a task."""
        self._tried, self.findings = task, findings
        if batch is not None:
            self._write(self.answers.asking(*batch))

    # What the page shows.

    @property
    def _waiting(self) -> list[str]:
        """Rows to ask next: those without an answer that were not skipped."""
        return [id for id in self.answers.open_ids if id not in self.skipped]

    def state(self) -> dict[str, Any]:
        """All that the page shows, for JSON."""
        labels, waiting, asked = (
            self.project.labels,
            self._waiting,
            {*self.answers.ids()},
        )
        counts = Counter(labels.values())
        id = self.current or next(iter(waiting), None)
        row = None if id is None else self.shown.show(self.pool.rows[id])
        return {
            "row": row,
            "label": "" if id is None else labels.get(id, ""),
            "message": "" if row else self._why_no_row(),
            "problem": self.findings.problem,
            "last": self.last,
            "can_go_back": bool(self.history),
            "classes": [{"name": name, "count": counts[name]} for name in self.classes],
            "n_labeled": len(labels),
            "n_rows": len(self.pool.ids),
            "n_skipped": len(self.skipped),
            "file": str(self.path),
            "error": self._error(),
            "unsure": [
                {**self.shown.show(place), "shares": shares}
                for place, shares in self.findings.unsure
                if self.pool.ids[place] not in asked
            ],
        }

    def _why_no_row(self) -> str:
        if self.skipped:
            return f"{plural(len(self.skipped), 'row was', 'rows were')} skipped."
        if len(self.project.labels) == len(self.pool.ids):
            return f"All {plural(len(self.pool.ids), 'row')} are labeled."
        return "The next rows are being chosen."

    def _error(self) -> dict[str, str]:
        """The error that ``iclda ask`` states, or why it is not known."""
        error = self.findings.error
        if not self.pool.has_features:
            text = f"{self.project.withheld}: rows are asked in random order."
            return {"headline": "No model", "text": text}
        if error is not None:
            text = f"{error.range} (90 % interval from {error.n_rows} labels drawn at random)."
            headline = f"About {percent_text(error.error)} wrong"
            return {
                "headline": headline,
                "text": text.replace(" %", "\N{NO-BREAK SPACE}%"),
            }
        n_known = len(
            {*self.pool.labels, *self.answers.ids(RANDOM)} & {*self.project.labels}
        )
        text = f"It takes {LEAST_TESTED} labels of rows drawn at random, and there are {n_known}. "
        text += f"After {_ROWS_AT_FIRST} rows, {_RANDOM_ROWS_A_ROUND} of {_ROWS_A_ROUND} are drawn so."
        return {"headline": "Error not known yet", "text": text}


class ShownRows:
    """The rows of a pool as a page shows them; ``images`` is a column of paths or a folder."""

    def __init__(self, pool: Pool, images: str | None = None) -> None:
        frame = pool.shown
        texts = {
            name: texts_of(frame[name])
            for name in frame
            if frame[name].dtype.kind == "O"
        }
        self.pool = pool
        self.files, self._media = _find_media(images, pool, texts)
        others = [name for name in texts if name != self._media]
        self._long = next((name for name in others if _is_long(texts[name])), "")
        if frame.columns.empty and self.files[0] is None:
            sentence = (
                "{path} holds nothing to look at: name a folder of images by {@images}."
            )
            raise ValueError(say(sentence, path=pool.file.path))

    def show(self, place: int) -> dict[str, Any]:
        """What the page shows of a row."""
        file, kind, problem = self.files[place], "", ""
        if file is not None:
            kind = "sound" if file.suffix.lower() in _SOUNDS else "image"
            problem = "" if file.is_file() else f"{file} does not exist."
        cells = {
            name: text for name, [text] in self.pool.cells([place]).items() if text
        }
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
    return bool(names) and all(
        Path(name).suffix.lower() in _MEDIA_TYPES for name in names
    )


def _is_long(cells: AnyArray) -> bool:
    lengths = [len(cell) for cell in cells if cell is not None]
    return bool(lengths) and sum(lengths) > _LENGTH_OF_TEXT * len(lengths)


def _find_media(
    images: str | None, pool: Pool, texts: Texts
) -> tuple[Sequence[Path | None], str]:
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
        require_columns(
            pool.file, [str(folder)], ", and there is no such folder of images"
        )
    files = sorted(
        file for file in folder.iterdir() if file.suffix.lower() in _MEDIA_TYPES
    )
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


async def _fit(session: LabelingSession) -> None:
    """Compute whatever the session lacks, one task at a time."""
    while (task := session.next_task()) is not None:
        try:
            found = await run_in_threadpool(session.compute, task)
            session.sync()
            session.accept(task, *found)
        except (ValueError, OSError, MemoryError) as error:
            session.accept(task, None, replace(session.findings, problem=str(error)))


def labeling_site(session: LabelingSession) -> Site:
    """Make the page, its actions, and the images and sounds of the rows."""
    fitting: asyncio.Task[None] | None = None

    def state() -> Response:
        nonlocal fitting
        is_done = fitting is None or fitting.done()
        if is_done and session.next_task() is not None:
            fitting, is_done = asyncio.create_task(_fit(session)), False
        return JSONResponse({**session.state(), "is_fitting": not is_done})

    async def act(request: Request) -> Response:
        """Call the method of the session that the address names."""
        name = request.url.path.rpartition("/")[2]
        try:
            sent = await request.json()
            session.sync()
            getattr(session, name)(*(str(sent.get(key, "")) for key in _ACTIONS[name]))
        except (ValueError, OSError) as error:
            return JSONResponse({"message": str(error)}, 400)
        session.sync()
        return state()

    async def show(request: Request) -> Response:
        return state()

    async def send_file(request: Request) -> Response:
        """Send the image or sound of a row, which the request numbers: it names no path."""
        place = request.path_params["place"]
        file = session.shown.files[place] if place < len(session.shown.files) else None
        kind = None if file is None else _MEDIA_TYPES.get(file.suffix.lower())
        if file is None or kind is None or not file.is_file():
            return JSONResponse({"message": f"Row {place} has no image or sound."}, 404)
        return FileResponse(file, media_type=kind)

    async def send_look(request: Request) -> Response:
        return FileResponse(_LOOK)

    routes: list[BaseRoute] = [
        Route("/state", show),
        *(Route(f"/{name}", act, methods=["POST"]) for name in _ACTIONS),
        Route("/file/{place:int}", send_file),
        Route("/look.css", send_look),
        Mount("/", StaticFiles(directory=_STATIC, html=True)),
    ]
    return Site("label", routes)
