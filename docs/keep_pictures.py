"""Keep the pictures of the last `make docs` for pages that cannot run their example.

Copies the first picture of every example that needs data or packages, and of those that pages of
the documents show, to docs/figures/gallery, in 128 colours.
Run: python docs/keep_pictures.py    (after make docs)
"""

import re
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
GALLERY = DOCS.parent / "examples" / "gallery"
KEPT = DOCS / "figures" / "gallery"


def wanted(script: Path) -> bool:
    """Return whether the picture of an example stands in the tree."""
    if "\n# needs: " in script.read_text(encoding="utf-8"):
        return True
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    return bool(re.search(rf"figures/gallery/{script.stem}\.png", pages + readme))


def main() -> None:
    """Copy what is wanted and was made."""
    for script in sorted(GALLERY.glob("plot_*.py")):
        made = DOCS / "gallery" / "images" / f"sphx_glr_{script.stem}_001.png"
        if wanted(script) and made.exists():
            picture = Image.open(made).convert("RGB").quantize(128)
            picture.save(KEPT / f"{script.stem}.png", optimize=True)
            print(KEPT / f"{script.stem}.png")


if __name__ == "__main__":
    main()
