"""The documentation site in a browser: accessible, and no wider than a phone.

It needs the site: run `make docs` first.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("UNALIGNED_SITE", ROOT / "build" / "site"))
PAGES = {
    "front page": "index.html",
    "gallery": "gallery/index.html",
    "example": "gallery/plot_spectra_of_shapes.html",
    "reference": "api/unaligned.compare.html",
    "table": "which_distance.html",
}

pytestmark = pytest.mark.slow  # needs minutes of `make docs` before


@pytest.fixture(params=PAGES)
def opened(request, browser, set_appearance):
    page = SITE / PAGES[request.param]
    if not page.is_file():
        pytest.skip("the site is not built: make docs")

    def show(theme, width):
        set_appearance(theme, width)
        browser.get(page.as_uri())
        # Colours fade from one theme to the other; axe measures them once.
        browser.execute_async_script(
            "const still = new CSSStyleSheet();"
            "still.replaceSync('* {transition: none !important}');"
            "document.adoptedStyleSheets.push(still);"
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]));"
        )
        return browser

    return show


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_reports_no_serious_violation(opened, serious_violations, theme, width):
    opened(theme, width)
    assert serious_violations() == []


def test_phone_width_needs_no_horizontal_scrolling(opened):
    assert (
        opened("light", 390).execute_script("return document.documentElement.scrollWidth") == 390
    )
