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

# Public modules and what the page of names says about them.
PUBLIC = {
    "iclda": "Classifiers, comparisons, model files, errors and warnings.",
    "iclda.model_selection": "Splits, scores and learning curves for few labels.",
    "iclda.plots": "Pictures of fits and comparisons.",
    "iclda.rows": "Rows that are not in memory.",
    "iclda.tabular": "Tables of people: files in, pipeline out.",
    "iclda.datasets": "Toy problems and the benchmark sets of the paper.",
    "iclda.model_files": "Fitted models as files.",
}


def reference() -> str:
    """The page of all public names; a name that is exported is on it."""
    parts = [
        "Reference",
        "=========",
        "",
        "All public names, from their docstrings. :doc:`api` is",
    ]
    parts += ["the same on one page, for those who want to skim.", ""]
    for module, sentence in PUBLIC.items():
        parts += [module, "-" * len(module), "", sentence, "", ".. autosummary::"]
        parts += ["   :toctree: reference", "   :nosignatures:", ""]
        parts += [f"   {module}.{name}" for name in import_module(module).__all__]
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
