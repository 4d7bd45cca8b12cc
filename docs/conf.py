"""Settings of the site: `make docs` builds it in docs/_build/html."""

import sys
from importlib import import_module
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import iclda

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pictures  # noqa: E402

project = "iclda"
author = "The iclda developers"
copyright = author
version = release = iclda.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80
# The gallery's own settings hold functions.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"

autosummary_generate = True
# The docstrings say it in words.
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks = set()

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    # A program with arguments, which has no picture.
    "ignore_pattern": r"make_features\.py",
    "within_subsection_order": "conf.gallery_place",
    "reference_url": {"iclda": None},
    "doc_module": ("iclda",),
    "backreferences_dir": None,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "iclda"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "coming_from": [], "family": []},
}
html_sidebars = {"index": [], "features": []}

# Public modules other than ``iclda``, whose names are in groups of their own.
MODULES = {
    "Rows that are not in memory": ["iclda.rows"],
    "Model selection": ["iclda.model_selection"],
    "Plots": ["iclda.plots"],
    "Tables": ["iclda.tabular"],
    "Data sets": ["iclda.datasets"],
}


def reference_groups() -> dict[str, list[str]]:
    """The full names of everything public, once each, by what they are for."""
    groups: dict[str, list[str]] = {"Classifiers": []}
    for title, modules in MODULES.items():
        groups[title] = [
            f"{module}.{name}"
            for module in modules
            for name in import_module(module).__all__
        ]
    groups["Comparisons"] = ["iclda.compare"]
    groups["Model files"] = ["iclda.load_model", "iclda.save_model"]
    groups["Model files"].append("iclda.model_files.model_details")
    groups["Errors and warnings"] = []
    for name in iclda.__all__:
        value = getattr(iclda, name)
        if isinstance(value, type) and issubclass(value, Exception):
            groups["Errors and warnings"].append(f"iclda.{name}")
        elif isinstance(value, type):
            groups["Classifiers"].append(f"iclda.{name}")
    return groups


def reference() -> str:
    """The page of all public names."""
    parts = [
        "Reference",
        "=========",
        "",
        "All public names, by what they are for. :doc:`api` has the same on one page.",
        "",
    ]
    for title, names in reference_groups().items():
        parts += [title, "-" * len(title), "", ".. autosummary::"]
        parts += ["   :toctree: reference", f"   :caption: {title}"]
        parts += ["   :nosignatures:", ""]
        parts += [f"   {name}" for name in names]
        parts += [""]
    return "\n".join(parts)


# What most people ask comes first; examples that are not here come last.
GALLERY = [
    "features",
    "toy",
    "views",
    "decision_boundary",
    "learning_curve",
    "labels_or_unlabeled",
]
GALLERY += [
    "comparison",
    "three_classes",
    "safety",
    "reliability",
    "discriminant_histogram",
]
GALLERY += ["many_rows", "onnx", "hyperplane", "maxima", "published_em"]


def gallery_place(filename: str) -> tuple[int, str]:
    """Sort the examples of the gallery."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return GALLERY.index(name) if name in GALLERY else len(GALLERY), name


def draw_pictures(app: object) -> None:
    """Draw the pictures of the pages; those of the gallery come from its scripts."""
    pictures.draw_all(HERE / "images")


(HERE / "reference.rst").write_text(reference())


def write_formula(writer: object, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers typeset without a script."""
    writer.body.append(
        tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    )
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("builder-inited", draw_pictures)
