"""A comparison as lines of text, for a terminal: what was found, how, and what to do."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ..._messages import Hint, Text, Words, and_list, plural, printable, say, wrap
from ..._statistics import NOTHING as NOT_LEARNED
from ..measures import COMPARED, ERROR
from ..page import NOTHING, align
from .findings import ComparisonSettings, Findings, failures
from .plan import COMPARISON, MOST_ON_CURVES, SUPERVISED
from .preflight import FINE, NOTE, WARNING, Remark
from .sentences import SENTENCES
from .summary import ComparisonSummary, Score

MARKS = {FINE: "+", NOTE: "-", WARNING: "!"}
_LARGE = 1e5
_PROTOCOL = SENTENCES["protocol"]
Style = Callable[[str, str], str]  # a text and its kind, to the text as the terminal shows it


def _plain(text: str, kind: str) -> str:
    return text


def preflight_lines(remarks: Sequence[Remark], width: int, style: Style = _plain) -> list[str]:
    """Every remark with its mark and subject, wrapped beside it."""
    column = 2 + max(len(remark.subject) for remark in remarks) + 4
    lines = ["Before comparing"]
    for remark in remarks:
        wrapped = wrap(printable(remark.text), max(width - column, 30)) or [""]
        head = f"  {style(MARKS[remark.level], remark.level)} {remark.subject}"
        padding = " " * (column - 4 - len(remark.subject))
        lines.append(f"{head}{padding}{wrapped[0]}")
        lines += [" " * column + text for text in wrapped[1:]]
    return lines


def protocol_lines(settings: ComparisonSettings, width: int, words: Words = str) -> list[str]:
    """How the comparison is made."""
    return ["How", *_wrapped(protocol(settings, words), width)]


def protocol(settings: ComparisonSettings, words: Words = str) -> list[str]:
    """The comparison in sentences."""
    shrinkage = {"0": "not_shrunk", "auto": "auto", "0,auto": "both"}.get(
        settings.shrinkage, "shrunk"
    )
    how = say(_PROTOCOL[shrinkage], numbers=settings.shrinkage.replace(",", ", "))
    values = {**vars(settings), "n_kept": settings.n_kept, "most": MOST_ON_CURVES}
    rows = _PROTOCOL["unlabeled" if settings.n_kept is None else "hidden"]
    sentences = [f"{_PROTOCOL['folds']} {rows}", _PROTOCOL["encoding"]]
    sentences += [_PROTOCOL["slow"]] if settings.is_slow else []
    sentences += [_PROTOCOL["left_out"]] if settings.left_out else []
    sentences += [_PROTOCOL["capped"]] if settings.is_capped else []
    values |= {"how": words(how), "names": and_list(settings.left_out)}
    return [words(say(sentence, **values)) for sentence in sentences]


def score_lines(summary: ComparisonSummary, width: int = 100, style: Style = _plain) -> list[str]:
    """The table: one line a contestant, best first within the supervised and the others.

    Measures that do not fit beside the others are left to the report, and named.
    """
    measures = known_measures(summary)
    removable = [name for name in measures if not COMPARED[name].is_decisive]
    unfit = []
    for name in sorted(removable, key=lambda name: COMPARED[name].is_tested):
        if max(map(len, _table(summary, measures, _plain))) > width:
            measures.remove(name)
            unfit.append(COMPARED[name].heading)
    table = _table(summary, measures, style)
    if not measures:
        return [*table, "", *_wrapped(["No method has numbers: every fit failed."], width)]
    legend = "; ".join(COMPARED[name].legend for name in measures)
    left = f" Too wide for {width} columns, but in the report: {', '.join(unfit)}." if unfit else ""
    higher = [COMPARED[name].heading for name in measures if not COMPARED[name].lower_is_better]
    better = f"Lower is better{f', but for {and_list(higher)}' if higher else ''}."
    brackets = f" In brackets: {interval_source(summary)}." if ERROR in measures else ""
    return [*table, "", *_wrapped([f"{better} {legend}.{brackets}{left}"], width)]


def known_measures(summary: ComparisonSummary) -> list[str]:
    """Measures that any contestant has."""
    known = {score.measure for score in summary.scores if score.mean is not None}
    return [name for name in COMPARED if name in known]


def _table(summary: ComparisonSummary, measures: Sequence[str], style: Style) -> list[str]:
    headings = [COMPARED[name].short or COMPARED[name].heading for name in measures]
    rows = [["", *headings, "worse in"]]
    for name in ranked(summary):
        means = {measure: summary.mean(name, measure) for measure in measures}
        texts = {m: NOTHING if v is None else number_text(v, m) for m, v in means.items()}
        score = summary.score(name, ERROR)
        if ERROR in texts and score is not None:
            texts[ERROR] += f" ({interval_text(score)})"
        rows.append([name, *texts.values(), worse_text(summary, name)])
    lines = []
    for (name, *_), line in zip(rows, align(rows, "l" + "r" * (len(rows[0]) - 1)), strict=True):
        verdict = summary.verdict(name, ERROR)
        lines.append(f"  {line}  {style(verdict, verdict)}" if verdict else f"  {line}")
    return lines


def ranked(summary: ComparisonSummary) -> list[str]:
    """Contestants: the supervised ones, then the others; each by Brier score, then by error."""
    names = dict.fromkeys(score.method for score in summary.scores)
    return sorted(names, key=lambda name: (not name.startswith(SUPERVISED), summary.rank(name)))


def interval_text(score: Score) -> str:
    """The interval of an error: 0.04-0.27."""
    if score.low is None or score.high is None:
        return NOTHING
    return f"{score.low:.2f}-{score.high:.2f}"


def interval_source(summary: ComparisonSummary) -> str:
    """What intervals in brackets are, and the rows behind them."""
    n_rows = max((s.n_rows for s in summary.scores if s.n_rows is not None), default=0)
    return f"90 % interval from {plural(n_rows, 'labeled row')}"


def number_text(value: float, measure: str) -> str:
    """A number with the decimals of its measure."""
    return f"{value:.0e}" if abs(value) >= _LARGE else f"{value:.{COMPARED[measure].decimals}f}"


def worse_text(summary: ComparisonSummary, name: str) -> str:
    """In how many repeats the error was higher than that of the supervised contestant."""
    score = summary.score(name, ERROR)
    if name == summary.baseline:
        return "baseline"
    if score is None or score.n_worse is None:
        return NOTHING
    return f"{score.n_worse} of {score.repeats}"


def answer_lines(findings: Findings, width: int, style: Style = _plain) -> list[str]:
    """The recommendation, and the command that follows it. No curve is needed for it."""
    settings, verdict = findings.settings, findings.verdict
    failed = [
        f"{name} failed in {count:,} of {settings.folds * settings.repeats:,} splits: {reason}"
        for name, (count, reason) in failures(findings.compared).items()
    ]
    lines = ["Answer", *(style(line, "answer") for line in _wrapped([verdict.sentence], width))]
    lines += _wrapped(
        [findings.caution, verdict.also, *map(printable, [*failed, *findings.safety])], width
    )
    command = printable(fit_command(findings))
    return [*lines, "", f"Next: {command}"] if command else lines


def curve_lines(findings: Findings, width: int) -> list[str]:
    """Fits of the learning curves that failed, where there are any."""
    results = [result for result in findings.results if result.experiment != COMPARISON]
    n_fits = Counter(result.method for result in results)
    failed = [
        f"On the learning curves {name} failed in {count:,} of {n_fits[name]:,} fits: {reason}"
        for name, (count, reason) in failures(results).items()
    ]
    return _wrapped(map(printable, failed), width)


def fit_command(findings: Findings) -> str:
    """The command that fits the best of iclda's own to all rows; in Python, the model to fit.

    None if labels were hidden, or if nothing was learned.
    """
    settings, chosen = findings.settings, findings.own
    if chosen is None or settings.n_kept is not None or findings.verdict.learned == NOT_LEARNED:
        return ""
    if findings.words is str:  # for Python
        classifier = chosen.method.classifier(shrinkage=chosen.shrinkage)
        return f"iclda.tabular.pipeline(iclda.tabular.preprocessing(X), iclda.{classifier!r})"
    paths = [source.path for source in settings.sources]
    parameters = {
        "target": settings.target,
        "unlabeled": settings.unlabeled or None,
        "unlabeled_file": paths[1] if len(paths) > 1 else None,
        "drop": list(settings.dropped) or None,
        "keep": list(settings.kept) or None,
        "drop_unusable": True if settings.drop_unusable else None,
        "method": chosen.method.name,
        "shrinkage": chosen.shrinkage or 0,
    }
    hints = [Hint(name, value) for name, value in parameters.items() if value is not None]
    parts = [part for hint in hints for part in (" ", hint)]
    return findings.words(Text("iclda fit ", shlex.quote(str(paths[0])), *parts))


def _wrapped(texts: Iterable[str], width: int) -> list[str]:
    lines = (wrap(text, width - 2) for text in texts)
    return [f"  {line}" for wrapped in lines for line in wrapped]
