"""The site: `make docs` builds it into build/site, with warnings as errors.

Pages are Markdown (MyST), the reference comes from docstrings (numpydoc), the gallery from
`examples/gallery` (sphinx-gallery). Examples whose data or packages are absent are not run: their
pages say so and show the picture of the last run, kept by `python docs/keep_pictures.py`.
"""

import os
import re
import urllib.request
import warnings
from dataclasses import MISSING, fields, is_dataclass
from importlib.util import find_spec
from inspect import isabstract
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import signature, stringify_signature
from sphinx.util.typing import stringify_annotation

import unaligned
from unaligned.data.dataset import KINDS
from unaligned.metrics.base import Distance
from unaligned.spectra.base import EigenSolver

# The gallery computes on one BLAS thread per job, also where other work runs beside it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "1")

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples" / "gallery"
DATA = Path(os.environ.get("UNALIGNED_DATA", ROOT.parent / "shared" / "data")).resolve()
os.environ["UNALIGNED_DATA"] = str(DATA)  # examples run in their own folder

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
    # The last match counts: tables of these pages need the width.
    "secondary_sidebar_items": {"**": ["page-toc"], "paper": [], "benchmarks": [], "data": []},
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
    "write_computation_times": False,  # a page that loads scripts from elsewhere
    "min_reported_time": 1,
    "image_srcset": [],
    "thumbnail_size": (480, 340),
    "plot_gallery": "True",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("unaligned",),
}
# Figures of examples are not shown on a screen.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def _remedy(need: str) -> str:
    """Return where an absent file or package is to be had."""
    if need.isidentifier():
        return f"Install the package ``{need}``."
    if need.startswith("/usr/"):
        return "The Debian package that has it is named below."
    return (
        "Files are looked for in the folder that ``UNALIGNED_DATA`` names, by default"
        " ``../shared/data`` beside the clone; :doc:`/data` says where they come from."
    )


def _show_last_run(app: object, name: str, source: list[str]) -> None:
    """Put the reason and the picture of the last run under the title of an example not run."""
    stem = name.removeprefix("gallery/")
    if stem in ABSENT:
        source[0] = re.sub(r"^ *# needs: .*\n", "", source[0], flags=re.MULTILINE)
    if not ABSENT.get(stem):
        return
    note = (
        f"\n\n.. note::\n\n   Not run in this build: {', '.join(ABSENT[stem])}"
        f" {'is' if len(ABSENT[stem]) == 1 else 'are'} not here."
        f" {' '.join(dict.fromkeys(map(_remedy, ABSENT[stem])))}"
        " The picture is that of the last run.\n\n"
        f".. image:: /figures/gallery/{stem}.png\n   :alt: The picture of the last run\n\n"
    )
    title = re.search(r"^=+$", source[0], flags=re.MULTILINE)
    at = title.end() if title else 0
    source[0] = source[0][:at] + note + source[0][at:]


# What is shown in place of a type whose expansion nobody reads.
_ARRAY = r"~?numpy\.ndarray\[tuple\[[^\]]*\], ~?numpy\.dtype\[[^\]]*\]\]"
_ARRAY_LIKE = r"~?numpy\._typing\.[\w.]+.*?_NestedSequence\[[\w |]*complex[\w |]*\]"
_TYPES = {
    rf"{_ARRAY}|\b(?:Float|Index)Array\b|\bnpt\.NDArray\[[\w.]+\]": "~numpy.ndarray",
    rf"{_ARRAY_LIKE}|\bnpt\.ArrayLike\b": "~numpy.typing.ArrayLike",
    r"(?<![\w.])np\.": "numpy.",
    r"(?<![\w.])pd\.": "pandas.",
    r"\bRNGLike\b": "int | ~numpy.random.Generator | None",
    r"\b(?:DataLike|EngineLike|Values)\b": "~typing.Any",
    r"\bDistanceLike\b": "str | ~unaligned.metrics.base.Distance | ~collections.abc.Callable",
    r"\bNames\b": "tuple[str, ...] | None",
    r"\bName\b": "str | float",
    r"\bStep\b": "str | tuple[str, float]",
    "numpy.random._generator.Generator": "numpy.random.Generator",
}


def _shortened(text: str | None) -> str | None:
    """Return a signature with types as a reader knows them."""
    for pattern, name in _TYPES.items():
        text = text and re.sub(pattern, name, text)
    return text


def _is_chosen(item: Any) -> bool:
    """Return whether an item is the class of a distance or a solver that has a name."""
    known = isinstance(item, type) and issubclass(item, (Distance, EigenSolver))
    return known and not isabstract(item)


def _show_signature(
    app: object, what: str, name: str, item: Any, options: object, arguments: str, result: str
) -> tuple[str | None, str | None]:
    """Shorten types; leave out the constructor of a class that users never call: of results."""
    if what in ("class", "exception") and arguments:
        described = re.search(r"^ *Parameters\n *---", item.__doc__ or "", flags=re.MULTILINE)
        if not described and not _is_chosen(item):
            return "", None
        if arguments.startswith("(*args"):  # of a mocked base class
            own = signature(vars(item)["__init__"], bound_method=True)
            text = stringify_signature(own, unqualified_typehints=True)
            arguments = text.removesuffix(" -> None")
        made = [f.default_factory for f in fields(item)] if is_dataclass(item) else []
        for factory in (found for found in made if found is not MISSING):
            arguments = arguments.replace("<factory>", "{}" if factory is dict else "...", 1)
        result = ""
    return _shortened(arguments), _shortened(result)


def _type_attributes(
    app: object, what: str, name: str, item: Any, options: object, lines: list[str]
) -> None:
    """Add the types of fields to the attributes of a result, which has no signature."""
    if what != "class" or "Attributes" not in lines or "Parameters" in lines:
        return
    known = {
        own: _shortened(kind if isinstance(kind, str) else stringify_annotation(kind, "smart"))
        for own, kind in vars(item).get("__annotations__", {}).items()
    }
    for i in range(lines.index("Attributes") + 2, len(lines)):
        if not lines[i]:
            return
        names = lines[i].split(", ")
        if all(own in known for own in names):
            kinds = [known[own] for own in names]
            kinds = kinds[:1] if len(set(kinds)) == 1 else kinds
            text = re.sub(r"~(?:\w+\.)*", "", ", ".join(kinds))
            lines[i] += " : " + re.sub(r"^ClassVar\[(.*)\]$", r"\1", text)


def _show_choice(
    app: object, what: str, name: str, item: Any, options: object, lines: list[str]
) -> None:
    """Say below the first sentence how a distance or a solver is chosen, and what it needs."""
    if what != "class" or not _is_chosen(item):
        return
    if issubclass(item, EigenSolver):
        text = f'Chosen by ``solver="{item.name}"``.'
    else:
        kinds = "data of all kinds" if item.kinds == KINDS else " or ".join(item.kinds)
        shared = "the same features in both datasets" if item.same_features else "nothing shared"
        shared = "row i to be the same sample in both datasets" if item.paired_rows else shared
        extra = f", and the extra ``{item.extra}``" if item.extra else ""
        text = f'Chosen by ``distance="{item.name}"``. Takes {kinds}; needs {shared}{extra}.'
    at = lines.index("")
    lines[at:at] = ["", text]


def _keep_dots(
    app: object, what: str, name: str, item: Any, options: object, lines: list[str]
) -> None:
    """Show the dot of `.npz`, which the role of names would drop."""
    lines[:] = [re.sub(r"(?<!`)`(\.\w[^`]*)`(?!`)", r"``\1``", line) for line in lines]


def _shorten_property(app: object, domain: str, kind: str, content: Any) -> None:
    """Shorten the types of properties, which have no signature."""
    for node in content.parent.findall(nodes.Element):
        if node.tagname == "desc_annotation" and node.astext().startswith(": ndarray"):
            node.clear()
            node += nodes.Text(": ndarray")


def _find_class(app: Any, env: Any, node: Any, text: Any) -> Any:
    """Link a class of the reference that is named without its module, such as `KernelSettings`."""
    name, domain = node["reftarget"], env.domains["py"]
    if node.get("refdomain") != "py" or not name[:1].isupper():
        return None
    found = [
        full
        for full, entry in domain.objects.items()
        if full.endswith(f".{name}") and entry.objtype == "class" and not entry.aliased
    ]
    if len(found) != 1:
        return None
    page = node["refdoc"]
    return domain.resolve_xref(env, page, app.builder, "obj", found[0], node, text)


def _hide_member(
    app: object, what: str, name: str, item: Any, skip: bool, options: object
) -> bool | None:
    """Leave out the fields of named tuples, which the class describes."""
    return True if (getattr(item, "__doc__", "") or "").startswith("Alias for field") else None


def _hide_overloads(app: object) -> None:
    """Show one signature of a function that has several for type checkers."""
    for module in ("unaligned.comparison", "unaligned.explanation", "unaligned.result"):
        analyzer = ModuleAnalyzer.for_module(module)
        analyzer.analyze()
        analyzer.overloads.clear()


def setup(app: Any) -> None:
    """Connect the pages of examples that were not run, and what makes signatures readable."""
    app.connect("source-read", _show_last_run)
    app.connect("builder-inited", _hide_overloads)
    app.connect("autodoc-process-signature", _show_signature)
    app.connect("autodoc-process-docstring", _type_attributes, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", _show_choice, priority=400)
    app.connect("autodoc-process-docstring", _keep_dots)
    app.connect("autodoc-skip-member", _hide_member)
    app.connect("object-description-transform", _shorten_property)
    app.connect("missing-reference", _find_class)
