"""The bytes of a model file: a skops archive with details, sealed by a checksum.

A model file is a zip archive as skops writes it, so that skops reads it too. One more member,
``iclda.json``, holds the details. The comment at the end of the archive is the SHA-256 of all bytes
before it: a changed byte anywhere is noticed before anything is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DETAILS, SCHEMA = "iclda.json", "schema.json"
_SEAL = b"iclda model, sha256 of all before this comment: "
_DIGITS = 64
_MOVED = {  # modules of types in files of earlier versions
    f"iclda._{name}": f"iclda._estimators.{name}"
    for name in (
        "expectation_maximization",
        "implicitly_constrained",
        "moment_constrained",
        "self_learning",
        "supervised",
    )
}


@dataclass(frozen=True)
class Contents:
    """What an intact file holds."""

    archive: bytes
    details: dict[str, Any]
    sha256: str


def pack(archive: bytes, details: dict[str, Any]) -> bytes:
    """Archive and details as the bytes of a file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(buffer, "w") as file:
        for name in source.namelist():
            content = source.read(name)
            file.writestr(name, _compact(content) if name == SCHEMA else content)
        file.writestr(DETAILS, json.dumps(details, indent=2))
    return seal(buffer.getvalue())


def seal(archive: bytes) -> bytes:
    """An archive with the checksum of all its bytes as the comment at its end."""
    buffer = io.BytesIO(archive)
    with zipfile.ZipFile(buffer, "a") as file:
        file.comment = _SEAL + b"0" * _DIGITS
    data = buffer.getvalue()
    return data[:-_DIGITS] + hashlib.sha256(data[: -len(file.comment)]).hexdigest().encode()


def _compact(schema: bytes) -> str:
    """JSON without the blanks, which are most of what skops writes."""
    return json.dumps(json.loads(schema), separators=(",", ":"))


def unpack(path: Path) -> Contents:
    """Contents of a file; ValueError that names it if it is damaged or no model file."""
    data = path.read_bytes()
    seal = data[-len(_SEAL) - _DIGITS :]
    if not data.startswith(b"PK"):
        raise ValueError(f"{path} is no model file: `iclda fit` and iclda.save_model write them.")
    if not seal.startswith(_SEAL):
        raise ValueError(
            f"{path} is cut off, or was not written by iclda: it does not end with the checksum "
            "that all model files end with. Copy or fit it again."
        )
    expected, found = seal[-_DIGITS:], hashlib.sha256(data[: -len(seal)]).hexdigest()
    if found.encode() != expected:
        raise ValueError(
            f"{path} is damaged: the checksum of its bytes up to the seal is {found[:12]}..., and "
            f"the seal says {expected[:12].decode(errors='replace')}... Copy or fit it again."
        )
    details = _read_details(path, data)
    return Contents(_moved(data), details, hashlib.sha256(data).hexdigest())


def _moved(archive: bytes) -> bytes:
    """The archive, with types of earlier versions under the names they have now."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(buffer, "w") as file:
        if SCHEMA not in source.namelist():
            return archive
        for name in source.namelist():
            content = source.read(name)
            file.writestr(name, _move_types(content) if name == SCHEMA else content)
    return buffer.getvalue()


def _move_types(schema: bytes) -> bytes | str:
    def move(state: dict[str, Any]) -> dict[str, Any]:
        module = state.get("__module__")
        return {**state, "__module__": _MOVED[module]} if module in _MOVED else state

    try:
        return json.dumps(json.loads(schema, object_hook=move), separators=(",", ":"))
    except (ValueError, RecursionError):
        return schema  # refused later, by the check of types


def _read_details(path: Path, data: bytes) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            # Stored members are as large as the file: nothing small unpacks to something huge.
            if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
                raise ValueError("compressed")
            details = json.loads(file.read(DETAILS))
    except (zipfile.BadZipFile, KeyError, ValueError, RecursionError, EOFError) as error:
        raise ValueError(f"{path} is no model file of iclda ({error}).") from error
    if not isinstance(details, dict):
        raise ValueError(f"{path} is no model file of iclda (its details are no object).")
    return details
