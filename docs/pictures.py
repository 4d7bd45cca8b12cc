"""Draw the pictures of the site, for `make docs`; none of these is committed.

A method without a function of its own gets the picture of `draw_boundaries`.
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons

from iclda import AutoLDA, ImplicitlyConstrainedLDA, MomentConstrainedLDA, SupervisedLDA
from iclda.datasets import load_fashion_features
from iclda.methods import FAINT, FITTED, FURTHER, INK, METHODS, Method, find_method
from iclda.model_selection import mask_labels, rows_to_label
from iclda.plots._look import CLASS_COLORS, mix

N_ROWS = 300
N_LABELED = 8


def sample():
    """Two long, narrow classes; labels are -1 where there is none."""
    rng = np.random.default_rng(2)
    y_true = np.arange(N_ROWS) % 2
    X = rng.normal(size=(N_ROWS, 2)) @ [[1.6, 1.2], [0.0, 0.6]] + y_true[:, None] * [
        1.0,
        -1.0,
    ]
    return X, y_true, np.where(np.arange(N_ROWS) < N_LABELED, y_true, -1)


def panels(n, height=2.9):
    figure, axes = plt.subplots(1, n, figsize=(2.9 * n, height), layout="constrained")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    return figure, axes


def draw_rows(ax, X, y, shares=None):
    """Labeled rows as large markers; others in the color of their shares, or gray."""
    rest = y == -1
    colors = FAINT if shares is None else mix(shares)
    ax.scatter(*X[rest].T, s=9, c=colors, linewidths=0, alpha=0.85)
    for k, marker in enumerate("os"):
        large = {"s": 52, "marker": marker, "edgecolor": INK, "zorder": 3}
        ax.scatter(*X[y == k].T, color=CLASS_COLORS[k], **large)
    (left, low) = X.min(axis=0) - 0.4
    (right, high) = X.max(axis=0) + 0.4
    ax.set(xlim=(left, right), ylim=(low, high))


def draw_line(ax, clf, **style):
    """The decision boundary of a classifier of two features."""
    (a, b) = clf.coef_[0]
    c = clf.intercept_[0]
    foot = -c * np.array([a, b]) / (a * a + b * b)
    along = np.array([-b, a]) / np.hypot(a, b)
    ends = foot + 20 * np.array([[-1], [1]]) * along
    ax.plot(*ends.T, **{"color": INK, "linewidth": 1.6, **style})


def draw_ellipse(ax, mean, covariance, **style):
    """Two standard deviations of a Gaussian."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    size = 4 * np.sqrt(values[::-1])
    ax.add_patch(Ellipse(mean, *size, angle=angle, fill=False, linewidth=1.6, **style))


def title(ax, text):
    ax.set_title(text, loc="left", fontsize=12.5, color=INK)


def draw_boundaries(method: Method):
    """A panel for each classifier of the module; supervised LDA beside a single one."""
    X, y_true, y = sample()
    shown = [each for each in (*FITTED, *FURTHER) if each.module == method.module]
    shown = [each for each in shown if not each.options]
    shown = shown if len(shown) > 1 else [find_method("supervised"), *shown]
    figure, axes = panels(len(shown))
    for ax, each in zip(axes, shown, strict=True):
        clf = each.classifier().fit(X, y)
        draw_rows(ax, X, y, np.eye(2)[clf.predict(X[y == -1])])
        draw_line(ax, clf)
        ax.set_title(
            f"{each.class_name}\n{100 * (1 - clf.score(X, y_true)):.1f} % wrong",
            loc="left",
            fontsize=9,
            color=INK,
        )
    return figure


def draw_average(method: Method):
    """Errors of the average and of single fits on features, with few labels."""
    X, names = load_fashion_features()
    y_true = np.unique(names, return_inverse=True)[1]
    shown = [method, *map(find_method, ("em", "self-training", "supervised"))]
    figure, ax = plt.subplots(figsize=(7.0, 2.3), layout="constrained")
    for place, each in enumerate(shown):
        clf = each.classifier(shrinkage="auto" if each is method else 0.5)
        errors = []
        for draw in range(5):
            y = mask_labels(y_true, 40, min_per_class=4, random_state=draw)
            errors.append(100 * (1 - clf.fit(X, y).score(X, y_true)))
        ax.barh(
            place,
            np.mean(errors),
            xerr=np.std(errors, ddof=1),
            color=each.color,
            ecolor=FAINT,
        )
    ax.set_yticks(range(len(shown)), [each.class_name for each in shown])
    ax.invert_yaxis()
    ax.set_xlabel(
        "error in %, 4 labels a class, mean and standard deviation of 5 draws"
    )
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_mixture(method: Method):
    """Boundaries of three members of the ensemble, and of the mixture, on two moons."""
    # A draw whose errors are near the medians of many.
    draw = 2
    X, y_true = make_moons(N_ROWS, noise=0.15, random_state=draw)
    y = mask_labels(y_true, 20, min_per_class=10, random_state=draw)
    clf = method.classifier().fit(X, y)
    members = clf._model_.members
    corners = zip(X.min(axis=0) - 0.4, X.max(axis=0) + 0.4, strict=True)
    across, up = (np.linspace(low, high, 150) for low, high in corners)
    nodes = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    shown = {
        f"{name}, weight {members[name].weight:.2f}": members[name].probabilities
        for name in ("linear", "kernel", "forest")
    }
    shown["the mixture"] = clf.predict_proba
    figure, axes = panels(len(shown))
    for ax, (name, predict) in zip(axes, shown.items(), strict=True):
        draw_rows(ax, X, y, predict(X[y == -1]))
        heights = predict(nodes)[:, 1].reshape(len(up), len(across))
        ax.contour(across, up, heights, levels=[0.5], colors=INK, linewidths=1.6)
        wrong = np.mean(predict(X).argmax(axis=1) != y_true)
        words = f"{name[0].upper()}{name[1:]}\n{100 * wrong:.1f} % wrong"
        ax.set_title(words, loc="left", fontsize=11, color=INK)
    return figure


def medoids(X, n, draw):
    """The rows nearest to n centers of k-means."""
    distances = KMeans(n, n_init=1, random_state=draw).fit(X).transform(X)
    return np.unique(distances.argmin(axis=0))


def draw_labels():
    """Errors against labels of random rows, of medoids, and of ``rows_to_label``."""
    X_all, names = load_fashion_features()
    budgets = np.array([10, 20, 40, 80])
    n_draws = 4
    errors = {"random rows": [], "k-means medoids": [], "rows_to_label": []}
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        pool = rng.choice(len(X_all), 1_500, replace=False)
        X = X_all[pool]
        y_true = np.unique(names[pool], return_inverse=True)[1]
        order = rng.permutation(len(X))
        y = np.full(len(X), -1)
        for n in budgets:
            more = rows_to_label(X, n - (y != -1).sum(), y)
            y[more] = y_true[more]
            chosen = order[:n], medoids(X, n, draw), np.flatnonzero(y != -1)
            for name, rows in zip(errors, chosen, strict=True):
                labels = np.full(len(X), -1)
                labels[rows] = y_true[rows]
                clf = AutoLDA(proportions=None if name == "random rows" else "free")
                is_other = labels == -1
                right = clf.fit(X, labels).score(X[is_other], y_true[is_other])
                errors[name].append(100 * (1 - right))
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    styles = zip(errors, (FAINT, "#e8890c", "#0b5394"), "sDo", strict=True)
    for name, color, marker in styles:
        means = np.reshape(errors[name], (n_draws, len(budgets))).mean(axis=0)
        ax.plot(budgets, means, color=color, marker=marker, linewidth=2, label=name)
    ax.set_xscale("log", base=2)
    ax.set_xticks(budgets, [f"{n}" for n in budgets])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    ax.set(xlabel="labels, of 10 classes", ylabel="error of AutoLDA in %")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_supervised(method: Method):
    X, y_true, y = sample()
    clf = method.classifier().fit(X, y)
    figure, axes = panels(2)
    draw_rows(axes[0], X, y)
    for k in (0, 1):
        color = {"edgecolor": CLASS_COLORS[k]}
        draw_ellipse(axes[0], clf.means_[k], clf.covariance_, **color)
    title(axes[0], "Means and covariance")
    draw_rows(axes[1], X, y, clf.predict_proba(X[y == -1]))
    draw_line(axes[1], clf)
    title(axes[1], f"Their boundary: {100 * (1 - clf.score(X, y_true)):.1f} % wrong")
    return figure


def draw_rounds(method: Method):
    """Labels before the first round, after two, and at the end."""
    X, y_true, y = sample()
    figure, axes = panels(3)
    for ax, n_rounds in zip(axes, (0, 2, None), strict=True):
        clf = method.classifier() if n_rounds != 0 else SupervisedLDA()
        if n_rounds:
            clf.set_params(max_iter=n_rounds)
        clf.fit(X, y)
        shares = clf.predict_proba(X[y == -1])
        is_hard = method.name == "self-learning"
        draw_rows(ax, X, y, np.round(shares) if is_hard else shares)
        draw_line(ax, clf)
        words = {0: "Supervised", 2: "After two rounds", None: "At the end"}
        title(ax, f"{words[n_rounds]}: {100 * (1 - clf.score(X, y_true)):.1f} % wrong")
    return figure


def draw_moments(method: Method):
    X, y_true, y = sample()
    figure, axes = panels(2)
    fits = SupervisedLDA().fit(X, y), MomentConstrainedLDA().fit(X, y)
    words = "Supervised", "Moved"
    for ax, clf, text in zip(axes, fits, words, strict=True):
        draw_rows(ax, X, y)
        draw_ellipse(
            ax, X.mean(axis=0), np.cov(X.T, bias=True), edgecolor=FAINT, linestyle="--"
        )
        mean = clf.priors_ @ clf.means_
        between = (clf.means_ - mean).T @ ((clf.means_ - mean) * clf.priors_[:, None])
        draw_ellipse(ax, mean, clf.covariance_ + between, edgecolor=method.color)
        draw_line(ax, clf)
        title(ax, f"{text}: {100 * (1 - clf.score(X, y_true)):.1f} % wrong")
    return figure


def draw_labelings(method: Method):
    """Two arbitrary labelings and the one that makes the labeled rows likeliest."""
    X, _, y = sample()
    figure, axes = panels(3)
    clf = ImplicitlyConstrainedLDA().fit(X, y)
    rest = X[y == -1]
    is_labeled = y != -1
    for ax, direction in zip(axes, ((0.2, 1.0), (1.0, 0.6)), strict=False):
        labels = (rest @ direction < np.median(rest @ direction)).astype(int)
        fit = SupervisedLDA().fit(X, np.concatenate([y[is_labeled], labels]))
        value = fit.log_likelihood(X[is_labeled], y[is_labeled]).mean()
        draw_rows(ax, X, y, np.eye(2)[labels])
        draw_line(ax, fit)
        title(ax, f"Some labeling: {value:.2f}")
    draw_rows(axes[2], X, y, clf.responsibilities_)
    draw_line(axes[2], clf)
    title(axes[2], f"The chosen one: {clf.objective_:.2f}")
    return figure


def draw_worst_cases(method: Method):
    X, _, y = sample()
    figure, ax = plt.subplots(figsize=(7.0, 2.9), layout="constrained")
    shown = [each for each in METHODS if each.uses_unlabeled]
    for place, each in enumerate(shown):
        bounds = each.classifier().fit(X, y).gain_bounds(X, y)
        style = {"color": each.color, "linewidth": 9, "solid_capstyle": "butt"}
        ax.plot([bounds.worst, bounds.best], [place, place], **style)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(range(len(shown)), [each.class_name for each in shown])
    ax.set_xlabel(
        "change of the log likelihood per row,\nfrom the worst to the best labels"
    )
    ax.spines[["top", "right"]].set_visible(False)
    return figure


QUESTIONS = [
    ("Do you need a guarantee?", "of the training likelihood", "PessimisticLDA"),
    (
        "Are the classes clusters?",
        "see the histogram of a fit",
        "Expectation-\nMaximizationLDA",
    ),
    (
        "Do you need one formula?",
        "coefficients, bounds, ONNX",
        'AverageLDA\nview="kernel" if curved',
    ),
]


def draw_chart():
    """Draw three questions from top to bottom, with the answer to yes on the right."""
    figure = plt.figure(figsize=(5.6, 4.2))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 5.6), ylim=(0, 4.2))
    ax.axis("off")
    box = {"boxstyle": "round,pad=0.5", "edgecolor": FAINT}
    arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
    middle = {"ha": "center", "va": "center", "color": INK}
    for place, (question, detail, answer) in enumerate(QUESTIONS):
        y = 3.8 - 1.13 * place
        ax.annotate("", (3.45, y), (2.5, y), arrowprops=arrow)
        ax.annotate("", (1.5, y - 0.87), (1.5, y), arrowprops=arrow)
        ax.text(
            1.5,
            y,
            f"{question}\n{detail}",
            bbox={**box, "facecolor": "#f6f8fa"},
            **middle,
        )
        ax.text(4.45, y, answer, bbox={**box, "facecolor": "#dbeafe"}, **middle)
        ax.text(3.12, y + 0.12, "yes", fontsize=9, **middle)
        ax.text(1.72, y - 0.58, "no", fontsize=9, **middle)
    ax.text(1.5, 0.38, "AutoLDA", bbox={**box, "facecolor": "#dbeafe"}, **middle)
    return figure


def draw_choice(method: Method | None):
    X, _, y = sample()
    compared = [each.name for each in FITTED if not each.options]
    clf = AutoLDA(methods=compared, random_state=0).fit(
        X, np.where(np.arange(N_ROWS) < 30, np.arange(N_ROWS) % 2, y)
    )
    figure, ax = plt.subplots(figsize=(7.0, 2.9), layout="constrained")
    ranked = sorted(clf.losses_, key=clf.losses_.get, reverse=True)
    for place, name in enumerate(ranked):
        each = find_method(name)
        is_chosen = name == clf.method_
        ax.barh(
            place, clf.losses_[name], color=each.color, alpha=1.0 if is_chosen else 0.4
        )
        ax.text(clf.losses_[name], place, "  chosen" if is_chosen else "", va="center")
    ax.set_yticks(range(len(ranked)), [find_method(name).class_name for name in ranked])
    ax.set_xlabel("Brier score on labeled rows that were left out")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


OWN = {
    "supervised": draw_supervised,
    "self_learning": draw_rounds,
    "self_training": draw_rounds,
    "expectation_maximization": draw_rounds,
    "moment_constrained": draw_moments,
    "implicitly_constrained": draw_labelings,
    "pessimistic": draw_worst_cases,
    "average": draw_average,
    "ensemble": draw_mixture,
}


def draw_all(folder: Path) -> None:
    """Draw a picture of each method, and those of other pages, into a folder."""
    folder.mkdir(exist_ok=True)
    shown = {each.module: each for each in (*FITTED, *FURTHER, *METHODS)}
    drawings = {
        name: (OWN.get(name, draw_boundaries), each) for name, each in shown.items()
    }
    drawings["auto"] = (draw_choice, None)
    with warnings.catch_warnings():
        # Fits that are stopped after two rounds.
        warnings.simplefilter("ignore")
        for name, (draw, method) in drawings.items():
            figure = draw(method)
            figure.savefig(folder / f"{name}.png", dpi=150, facecolor="white")
            plt.close(figure)
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "iclda"}):
            draw_labels().savefig(folder / "labels.svg", facecolor="white")
    draw_chart().savefig(folder / "chart.png", dpi=150, facecolor="white")


if __name__ == "__main__":
    draw_all(Path(__file__).parent / "images")
