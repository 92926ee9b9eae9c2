"""The site: `make docs` builds it into build/site, with warnings as errors.

Pages are Markdown (MyST), the reference comes from docstrings (numpydoc), the gallery from
`examples/gallery` (sphinx-gallery). Examples whose data or packages are absent are not run: their
pages say so and show the picture of the last run, kept by `python docs/keep_pictures.py`.
"""

import os
import re
import urllib.request
import warnings
from importlib.util import find_spec
from pathlib import Path

import unaligned

# The gallery computes on one BLAS thread per job, also where other work runs beside it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples" / "gallery"
DATA = Path(os.environ.get("UNALIGNED_DATA", ROOT.parent / "shared" / "data"))

project = "unaligned"
author = "The unaligned authors"
version = release = unaligned.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.katex",
]
exclude_patterns = ["_templates", "gallery/*.ipynb", "gallery/*.py", "runs"]
templates_path = ["_templates"]
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_mock_imports = [name for name in ("torch", "anndata") if find_spec(name) is None]
numpydoc_show_class_members = False
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True

# The package contains KaTeX; its fonts and style sheet are on a CDN, and MathML needs neither.
katex_css_path = "katex-math.css"
katex_options = "output: 'mathml'"

html_theme = "pydata_sphinx_theme"
html_title = f"unaligned {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"tutorial": [], "index": []}
html_theme_options = {
    "logo": {"text": "unaligned"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
project_copyright = "the unaligned authors, MIT licence"
copybutton_prompt_text = ">>> |\\$ "
copybutton_prompt_is_regexp = True


def _reachable(address: str) -> bool:
    """Return whether an inventory can be read now; without a network the site builds as well."""
    try:
        with urllib.request.urlopen(f"{address}objects.inv", timeout=3):
            return True
    except OSError:
        return False


intersphinx_mapping = {
    name: (address, None)
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
    }.items()
    if _reachable(address)
}


def _needs(script: Path) -> list[str]:
    """Return what an example needs, as its line `# needs: ...` lists it."""
    found = re.search(r"^# needs: (.+)$", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1].split(", ") if found else []


def _missing(script: Path) -> list[str]:
    """Return the files of `UNALIGNED_DATA` and the packages that are not here."""
    return [
        need
        for need in _needs(script)
        if not (find_spec(need) if need.isidentifier() else (DATA / need).exists())
    ]


ABSENT = {path.stem: _missing(path) for path in sorted(GALLERY.glob("plot_*.py"))}
_RUN = "|".join(stem for stem, missing in ABSENT.items() if not missing)

sphinx_gallery_conf = {
    "examples_dirs": [str(GALLERY)],
    "gallery_dirs": ["gallery"],
    "filename_pattern": rf"/({_RUN})\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1,
    "image_srcset": [],
    "thumbnail_size": (480, 340),
    "plot_gallery": "True",
}
# Figures of examples are not shown on a screen.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def _show_last_run(app: object, name: str, source: list[str]) -> None:
    """Put the reason and the picture of the last run under the title of an example not run."""
    stem = name.removeprefix("gallery/")
    if not ABSENT.get(stem):
        return
    note = (
        f"\n\n.. note::\n\n   Not run in this build: {', '.join(ABSENT[stem])}"
        f" {'is' if len(ABSENT[stem]) == 1 else 'are'} not here."
        " Files are looked for in the folder that ``UNALIGNED_DATA`` names, by default"
        " ``../shared/data`` beside the clone. The picture is that of the last run.\n\n"
        f".. image:: /figures/gallery/{stem}.png\n   :alt: The picture of the last run\n\n"
    )
    title = re.search(r"^=+$", source[0], flags=re.MULTILINE)
    at = title.end() if title else 0
    source[0] = source[0][:at] + note + source[0][at:]


def setup(app: object) -> None:
    """Connect the pages of examples that were not run."""
    app.connect("source-read", _show_last_run)  # type: ignore[attr-defined]
