"""The report in a browser: no errors, no requests, usable by pointer and keyboard, accessible."""

import json
import time

import numpy as np
import pytest

import unaligned as ua
from unaligned.explanation import decades

NASTY = "<img src=x onerror=alert(1)>"
DAYS = {"a": 1, "b": 0, "c": 2, "d": 8, "e": 9, NASTY: 10}


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    dimensions = (1, 1, 2, 5, 6, 6)
    return {n: rng.normal(size=(90, d)) for n, d in zip(DAYS, dimensions, strict=True)}


@pytest.fixture(scope="module")
def comparison(clouds):
    return ua.compare(clouds, n_eigenvalues=30)


@pytest.fixture(scope="module")
def page(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    tags = {n: {"day": day, "site": "near" if day < 5 else "far"} for n, day in DAYS.items()}
    comparison.report(path, tags=tags, title=NASTY)
    return path


def open_page(browser, path):
    """Open a report and wait until it is drawn."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # discard earlier entries
    browser.get(path.as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))


def until(happened):
    """Poll for at most ten seconds and return the first true value."""
    for _ in range(200):
        found = happened()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("timed out after ten seconds")


@pytest.fixture
def opened(browser, page):
    open_page(browser, page)
    return browser


def by_id(browser, name):
    return browser.find_element("id", name)


def press(element, *keys):
    from selenium.webdriver.common.keys import Keys

    element.send_keys(*[getattr(Keys, key, key) for key in keys])


def click(browser, element):
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    element.click()


def focus(browser, element):
    browser.execute_script("arguments[0].focus()", element)
    assert browser.switch_to.active_element == element


def spots(browser):
    """Return the positions of the markers of the map."""
    script = (
        "return [...document.querySelectorAll('#embedding svg > path[transform]')]"
        ".map(m => m.getAttribute('transform'))"
    )
    return browser.execute_script(script)


def fills(browser):
    script = (
        "return [...document.querySelectorAll('#embedding svg > path[transform]')]"
        ".map(m => m.getAttribute('fill'))"
    )
    return browser.execute_script(script)


def chosen(browser):
    """Return the names of the selected pair."""
    script = (
        "return ['first', 'second'].map(i => document.getElementById(i).selectedOptions[0].text)"
    )
    return tuple(browser.execute_script(script))


def requests(browser):
    """Return the requested addresses, without those of the browser's own pages."""
    messages = [
        json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
    ]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    ours = [event for event in sent if not event["documentURL"].startswith("chrome")]
    return [event["request"]["url"] for event in ours]


def test_page_logs_nothing_and_requests_nothing(browser, page):
    open_page(browser, page)
    assert browser.get_log("browser") == []
    others = [url for url in requests(browser) if not url.startswith("data:")]
    assert others == [page.as_uri()]


def test_policy_blocks_requests(opened):
    script = (
        "const done = arguments[0];"
        "fetch('http://127.0.0.1:9/').then(() => done('sent'), () => done('blocked'))"
    )
    opened.execute_script(
        "window.seen = []; document.addEventListener("
        "'securitypolicyviolation', e => seen.push(e.effectiveDirective))"
    )
    assert opened.execute_async_script(script) == "blocked"
    assert opened.execute_script("return seen") == ["connect-src"]


def test_names_are_shown_as_text(opened):
    from selenium.common.exceptions import NoAlertPresentException

    assert opened.find_element("tag name", "h1").text == NASTY
    assert opened.find_elements("css selector", "img, [onerror]") == []
    labels = opened.execute_script(
        "return [...document.querySelectorAll('#heatmap text')].map(t => t.textContent)"
    )
    assert any(label.startswith("<img src=x") for label in labels)
    with pytest.raises(NoAlertPresentException, match="no such alert"):
        opened.switch_to.alert  # noqa: B018


def test_map_method_changes_by_click_and_key(opened):
    before = spots(opened)
    mds, diffusion = opened.find_elements("css selector", "#method input")
    click(opened, diffusion)
    switched = spots(opened)
    assert len(before) == len(switched) == 6
    assert before != switched
    assert "Diffusion" in by_id(opened, "map-caption").text
    focus(opened, diffusion)
    press(diffusion, "ARROW_LEFT")
    assert mds.is_selected()
    assert spots(opened) == before


def test_colours_change_by_click_and_key(opened):
    select = by_id(opened, "colour")
    assert "day" in by_id(opened, "legend").text
    by_day = fills(opened)
    assert len(set(by_day)) == 6
    click(opened, select.find_element("xpath", "./option[.='site']"))
    assert len(set(fills(opened))) == 2
    assert {"near", "far"} <= set(by_id(opened, "legend").text.split())
    focus(opened, select)
    press(select, "d")
    assert fills(opened) == by_day


def test_pair_changes_by_click_and_key(opened, comparison):
    first, second = by_id(opened, "first"), by_id(opened, "second")
    for select, name in ((first, "a"), (second, "c")):
        click(opened, select.find_element("xpath", f"./option[.='{name}']"))
    assert chosen(opened) == ("a", "c")
    assert f"{comparison['a', 'c']:.4g}" in by_id(opened, "pair-words").text
    focus(opened, second)
    press(second, "ARROW_DOWN")
    assert chosen(opened) == ("a", "d")
    assert f"{comparison['a', 'd']:.4g}" in by_id(opened, "pair-words").text


def test_shares_of_decades_equal_those_of_python(opened, comparison):
    for name, select in (("a", by_id(opened, "first")), ("e", by_id(opened, "second"))):
        click(opened, select.find_element("xpath", f"./option[.='{name}']"))
    text = opened.find_element("css selector", "svg[aria-label^='Shares']").get_attribute(
        "aria-label"
    )
    expected = decades(comparison.signatures["a"], comparison.signatures["e"])
    shown = [
        part.rsplit(" ", 2)[1]
        for part in text.removeprefix("Shares by decade: ").strip(".").split(", ")
    ]
    assert shown == ["<1" if 0 < d.share < 0.005 else f"{100 * d.share:.0f}" for d in expected]


def test_heatmap_responds_to_arrow_keys(opened, comparison):
    heatmap = by_id(opened, "heatmap")
    focus(opened, heatmap)
    press(heatmap, "ARROW_DOWN", "ARROW_RIGHT")
    text = opened.execute_script("return document.getElementById('announcer').textContent")
    press(heatmap, "ENTER")
    a, b = chosen(opened)
    assert text.startswith(f"{a} – {b}\n{comparison[a, b]:.4g}")
    assert "Half of its square" in by_id(opened, "pair-words").text or a == b


def test_heatmap_is_ordered_by_tree_or_tag(opened):
    def labels():
        script = "return [...document.querySelectorAll('#heatmap text[text-anchor=end]')]"
        return opened.execute_script(f"{script}.map(t => t.textContent).slice(0, 6)")

    by_tree = labels()
    click(opened, opened.find_element("xpath", "//*[@id='order']/option[.='by day']"))
    assert labels()[:5] == list("bacde")
    assert labels() != by_tree
    assert sorted(labels()) == sorted(by_tree)


def test_click_on_heatmap_selects_the_pair(opened, comparison):
    from selenium.webdriver import ActionChains

    image = opened.find_element("css selector", "#heatmap image")
    opened.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", image
    )
    size = image.rect["width"]
    cell = size / 6
    move = ActionChains(opened).move_to_element_with_offset(
        image, -size / 2 + cell / 2, size / 2 - cell / 2
    )
    move.perform()
    tip = by_id(opened, "tooltip").text
    move.click().perform()
    a, b = chosen(opened)
    assert a != b
    assert tip.startswith(f"{b} – {a}") or tip.startswith(f"{a} – {b}")


def test_map_responds_to_arrow_keys(opened):
    chart = by_id(opened, "embedding")
    focus(opened, chart)
    press(chart, "ARROW_RIGHT", "ENTER", "ARROW_RIGHT", "ENTER")
    order = json.loads(by_id(opened, "data").get_attribute("textContent"))["order"]
    names = list(DAYS)
    assert chosen(opened) == (names[order[0]], names[order[1]])


def test_tab_key_reaches_every_control(opened):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    visited = []
    for _ in range(60):
        ActionChains(opened).send_keys(Keys.TAB).perform()
        here = opened.switch_to.active_element
        visited.append(here.get_attribute("id") or here.get_attribute("name"))
        outline = opened.execute_script("return getComputedStyle(arguments[0]).outlineStyle", here)
        assert outline != "none" or here.tag_name == "body", visited[-1]
    wanted = ["theme", "order", "heatmap", "method", "colour", "embedding", "first", "second"]
    wanted += ["lines", "scatter", "copy", "json"]
    assert [name for name in visited if name in wanted][: len(wanted)] == wanted


def test_every_chart_has_a_table(opened, comparison):
    for details in opened.find_elements("tag name", "details"):
        click(opened, details.find_element("tag name", "summary"))
        assert until(lambda part=details: part.find_elements("css selector", "tbody tr"))
        assert details.find_elements("tag name", "caption")
    shares = opened.execute_script(
        "return [...document.querySelectorAll('#pair-table tbody tr')]"
        ".map(row => row.lastChild.textContent)"
    )
    assert len(shares) == 30


@pytest.mark.parametrize(
    ("button", "file"),
    [
        ("matrix-csv", "unaligned-distances.csv"),
        ("pairs-csv", "unaligned-pairs.csv"),
        ("json", "unaligned.json"),
    ],
)
def test_downloads_contain_the_distances(opened, comparison, tmp_path, button, file):
    import pandas as pd

    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    click(opened, by_id(opened, button))
    until((tmp_path / file).exists)
    if button == "matrix-csv":
        frame = pd.read_csv(tmp_path / file, index_col=0)
        np.testing.assert_allclose(frame.to_numpy(), comparison.distances, rtol=1e-15)
        assert tuple(frame.index) == tuple(frame.columns) == comparison.names
    elif button == "pairs-csv":
        frame = pd.read_csv(tmp_path / file)
        assert len(frame) == 15
        for row in frame.itertuples():
            assert row.distance == pytest.approx(comparison[row.first, row.second], rel=1e-15)
    else:
        whole = json.loads((tmp_path / file).read_text(encoding="utf-8"))
        np.testing.assert_array_equal(whole["distances"], comparison.distances)
        eigenvalues = [s.eigenvalues for s in comparison.signatures.values()]
        np.testing.assert_array_equal(whole["spectra"]["eigenvalues"], eigenvalues)
        assert whole["tags"]["day"] == list(DAYS.values())


def test_table_is_copied(opened, comparison):
    allowed = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    opened.execute_cdp_cmd("Browser.grantPermissions", allowed)
    click(opened, by_id(opened, "copy"))
    assert until(lambda: by_id(opened, "copied").text).startswith("Copied")
    copied = opened.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    rows = [line.split("\t") for line in copied.splitlines()]
    assert rows[0][1:] == list(comparison.names)
    np.testing.assert_array_equal(np.array(rows[1:])[:, 1:].astype(float), comparison.distances)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_reports_no_serious_violation(
    browser, page, set_appearance, serious_violations, theme, width
):
    set_appearance(theme, width)
    open_page(browser, page)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    time.sleep(0.2)
    assert serious_violations() == []


def test_phone_width_needs_no_horizontal_scrolling(browser, page, set_appearance):
    set_appearance("light", 390)
    open_page(browser, page)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390


def test_theme_follows_system_and_button(browser, page, set_appearance):
    set_appearance("dark", 1280)
    open_page(browser, page)

    def paper():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    dark, tinted = paper(), fills(browser)
    click(browser, by_id(browser, "theme"))  # light
    assert paper() != dark
    assert fills(browser) != tinted
    click(browser, by_id(browser, "theme"))  # dark
    assert paper() == dark
    assert fills(browser) == tinted


@pytest.mark.parametrize("kind", ["one", "two", "alike", "references", "no spectra", "no bound"])
def test_every_kind_of_comparison_logs_nothing(browser, clouds, tmp_path, kind):
    some = dict(list(clouds.items())[:4])
    rng = np.random.default_rng(0)
    made = {
        "one": lambda: ua.compare({"a": clouds["a"]}, n_eigenvalues=20),
        "two": lambda: ua.compare({n: clouds[n] for n in "ad"}, n_eigenvalues=20),
        "alike": lambda: ua.compare(dict.fromkeys("abc", clouds["a"]), n_eigenvalues=20),
        "references": lambda: ua.compare(some, {"r": clouds["e"]}, n_eigenvalues=20),
        "no spectra": lambda: ua.compare(list(rng.normal(size=(4, 30, 3))), distance="cka"),
        "no bound": lambda: ua.compare(some, distance="imd-diffusion", n_eigenvalues=20),
    }
    found = made[kind]()
    found.report(tmp_path / "report.html", tags={"size": range(len(found.names))})
    open_page(browser, tmp_path / "report.html")
    click(browser, by_id(browser, "theme"))
    for colour in browser.find_elements("css selector", "#colour option"):
        click(browser, colour)
    assert browser.get_log("browser") == []


def test_long_name_leaves_room_for_the_rest(browser, clouds, tmp_path):
    long = {"x" * 300: clouds["a"], "b": clouds["b"], "c": clouds["c"]}
    ua.compare(long, n_eigenvalues=20).report(tmp_path / "report.html")
    open_page(browser, tmp_path / "report.html")
    cell = browser.find_element("css selector", "#tables tbody th")
    assert cell.get_property("textContent") == "x" * 300
    assert cell.size["width"] < 400


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return the report of 200 datasets."""
    rng = np.random.default_rng(0)
    sets = {
        f"dataset {i}": ua.Dataset(
            np.diag(np.sort(rng.uniform(size=200) ** (1 + i % 4))), kind="spd"
        )
        for i in range(200)
    }
    path = tmp_path_factory.mktemp("many") / "report.html"
    ua.compare(sets, n_eigenvalues=200).report(path, tags={"time": range(200)})
    return path


def test_many_datasets_give_a_small_page(browser, many):
    assert many.stat().st_size < 15e6
    open_page(browser, many)
    assert browser.get_log("browser") == []
    focus(browser, by_id(browser, "heatmap"))
    press(by_id(browser, "heatmap"), "ARROW_RIGHT", "ENTER")
    assert "distance between" in by_id(browser, "pair-words").text


def spectra_colours(browser):
    paths = browser.find_elements("css selector", "#lines svg > path[stroke]")
    return [path.get_attribute("stroke") for path in paths]


@pytest.mark.parametrize("n", [5, 9])
def test_spectra_have_own_colours_where_the_tag_is_constant(browser, tmp_path, n):
    rng = np.random.default_rng(0)
    clouds = {f"s{i}": rng.normal(size=(60, 1 + i)) for i in range(n)}
    tags = {"site": ["A"] * n}
    ua.compare(clouds, n_eigenvalues=20).report(tmp_path / "report.html", tags=tags)
    open_page(browser, tmp_path / "report.html")
    colours = spectra_colours(browser)
    assert len(colours) == n
    assert len(set(colours)) == (n if n <= 7 else 1)
    assert not by_id(browser, "spectra-legend").text


def test_unique_text_is_not_the_default_colouring(browser, tmp_path):
    rng = np.random.default_rng(0)
    for i in range(3):
        np.save(tmp_path / f"s{i}.npy", rng.normal(size=(60, 1 + i)))
    found = ua.compare([tmp_path / f"s{i}.npy" for i in range(3)], n_eigenvalues=20)
    found.report(tmp_path / "report.html")
    open_page(browser, tmp_path / "report.html")
    chosen = by_id(browser, "colour")
    assert chosen.get_attribute("value") == "none"
    assert [option.text for option in chosen.find_elements("tag name", "option")] == [
        "nothing",
        "path",
    ]


def test_inference_is_in_the_pair_the_matrix_and_the_tables(browser, tmp_path):
    rng = np.random.default_rng(0)
    clouds = {n: rng.normal(size=(300, d)) for n, d in {"three": 3, "again": 3, "nine": 9}.items()}
    found = ua.compare(clouds, n_eigenvalues=20, inference=True)
    found.report(tmp_path / "report.html")
    open_page(browser, tmp_path / "report.html")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    words = by_id(browser, "pair-words").text
    assert "They differ by more than sampling noise: corrected " in words
    assert "noise floors" in words
    assert len(browser.find_elements("css selector", "#heatmap .cross")) == 2
    assert "noise floor" in by_id(browser, "tables").get_attribute("textContent")
