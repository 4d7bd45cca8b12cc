"""The ten benchmark sets of the paper: what they are and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

_CC_BY = "CC BY 4.0"


@dataclass(frozen=True)
class Benchmark:
    """One set as the paper used it, which is not always as its source offers it.

    ``sha256`` is the checksum of its numbers and classes, see ``Table.sha256``.
    """

    name: str
    n_rows: int
    n_features: int
    classes: tuple[str, ...]
    source: str
    license: str
    openml_id: int | None
    sha256: str


_ALL = (
    Benchmark(
        name="Haberman",
        n_rows=305,
        n_features=3,
        classes=("1", "2"),
        source="UCI repository: Haberman's Survival",
        license=_CC_BY,
        openml_id=43,
        sha256="b90c79838489c0a6e7702be2c0a2f6858eeb63028a64c7b4b383dbf4b0f81a8c",
    ),
    Benchmark(
        name="Ionosphere",
        n_rows=351,
        n_features=32,
        classes=("b", "g"),
        source="UCI repository: Ionosphere",
        license=_CC_BY,
        openml_id=59,
        sha256="d389767b86807e8f54b68d8fefd6c624fd09d5443fab37719df6dd7d4c717035",
    ),
    Benchmark(
        name="Parkinsons",
        n_rows=195,
        n_features=19,
        classes=("0", "1"),
        source="UCI repository: Parkinsons",
        license=_CC_BY,
        openml_id=1488,
        sha256="727155bb3db20b82fc17ee853529ce926733f248b8920c1f9fb80dae663386e0",
    ),
    Benchmark(
        name="Pima",
        n_rows=768,
        n_features=8,
        classes=("tested_negative", "tested_positive"),
        source="UCI repository: Pima Indians Diabetes",
        license="public, as listed by OpenML",
        openml_id=37,
        sha256="65942412b0b90c963a7f933de67c01279a32dc394cb57ffead94024464b00d2c",
    ),
    Benchmark(
        name="Sonar",
        n_rows=208,
        n_features=60,
        classes=("Mine", "Rock"),
        source="UCI repository: Connectionist Bench (Sonar, Mines vs. Rocks)",
        license=_CC_BY,
        openml_id=40,
        sha256="ba2bb71c203c3d6e4c7ec15cc23e9d8c168043389dd8956c80a3554e07c375fa",
    ),
    Benchmark(
        name="SPECT",
        n_rows=265,
        n_features=22,
        classes=("0", "1"),
        source="UCI repository: SPECT Heart",
        license=_CC_BY,
        openml_id=336,
        sha256="4e552d6cea953ccbd3440bde776f48114aac4cf7ee634317d776f4d7a250d6e5",
    ),
    Benchmark(
        name="SPECTF",
        n_rows=265,
        n_features=44,
        classes=("0", "1"),
        source="UCI repository: SPECTF Heart",
        license=_CC_BY,
        openml_id=337,
        sha256="77bbb24935d0b614bd4a291a55594ea9381e2441d0715d145580bfd8da3e43df",
    ),
    Benchmark(
        name="Transfusion",
        n_rows=748,
        n_features=3,
        classes=("0", "1"),
        source="UCI repository: Blood Transfusion Service Center",
        license=_CC_BY,
        openml_id=1464,
        sha256="4e7c662f5d06513c5d0137f8778e7c5a2169f93bfed7de8d8c4cd6626e1fcabf",
    ),
    Benchmark(
        name="WDBC",
        n_rows=568,
        n_features=30,
        classes=("B", "M"),
        source="UCI repository: Breast Cancer Wisconsin (Diagnostic)",
        license=_CC_BY,
        openml_id=1510,
        sha256="9de646ce1c84342238fde2f6a7595d24c97c51b905a74650237d21d748256c94",
    ),
    Benchmark(
        name="BCI",
        n_rows=400,
        n_features=117,
        classes=("-1", "1"),
        source="Chapelle, Schölkopf and Zien, Semi-Supervised Learning (2006): benchmark set 4",
        license="not stated",
        openml_id=None,
        sha256="4fe0606dce6a622147a989076ccd7c374b14cc8c5d8393a16d4ffb058a0e94af",
    ),
)

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}


def get_benchmark(name: str) -> Benchmark:
    """The set of that name, or ValueError."""
    if name not in BENCHMARKS:
        raise ValueError(f"name must be one of {', '.join(BENCHMARKS)}; got {name!r}.")
    return BENCHMARKS[name]
