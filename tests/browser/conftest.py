"""Fixtures: headless Chromium and axe-core; tests skip without them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
    "about:blank",  # the new-tab page sends requests
)


def program(*names):
    """Return the path of the first of these that is installed."""
    return next((path for path in map(shutil.which, names) if path), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium that logs every request and every console message."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = program("chromium", "chromium-browser", "google-chrome")
    driver = program("chromedriver")
    if not binary or not driver:
        pytest.skip("chromium and chromedriver are not both installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # With an explicit path Selenium does not download a driver.
    service = webdriver.ChromeService(executable_path=driver)
    chromium = webdriver.Chrome(options=options, service=service)
    yield chromium
    chromium.quit()


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which checks accessibility."""
    path = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
    if not path.is_file():
        pytest.skip(f"axe-core is not at {path}; npm install --no-save axe-core, or set AXE_CORE")
    return path.read_text(encoding="utf-8")


@pytest.fixture
def set_appearance(browser):
    """Return a function that shows pages in a theme and at a width."""

    def show(theme, width):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield show
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def serious_violations(browser, axe):
    """Return a function that lists what axe finds serious or critical on the open page."""

    def listed():
        browser.execute_script(axe)
        found = browser.execute_async_script("axe.run().then(arguments[0])")
        assert len(found["passes"]) > 20
        return [
            (v["id"], [node["html"][:120] for node in v["nodes"]])
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
        ]

    return listed
