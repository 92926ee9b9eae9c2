"""The report: its sentences agree with the numbers, its data is exact, names are escaped."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import unaligned as ua
from unaligned.errors import FileError, InputError, InputTypeError, SampleSizeWarning
from unaligned.report.content import Content
from unaligned.report.summary import cautions, findings, number, passed_checks
from unaligned.tags import read_tags

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    return {f"{d}d": rng.normal(size=(220, d)) for d in (1, 2, 3, 5, 8)}


@pytest.fixture(scope="module")
def comparison(clouds):
    return ua.compare(clouds, n_eigenvalues=20)


def fake(distances, bounds=None, **options):
    """Return a comparison with these distances and no signatures."""
    distances = np.asarray(distances, dtype=float)
    names = tuple(f"s{i}" for i in range(len(distances)))
    bounds = np.full(distances.shape, np.nan) if bounds is None else bounds
    return ua.Comparison(names, names, distances, bounds, None, "mine", options, 0)


def written(comparison, tmp_path, **options):
    path = tmp_path / "report.html"
    comparison.report(path, **options)
    return path.read_text(encoding="utf-8")


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])


def unpacked(text, shape):
    return np.frombuffer(base64.b64decode(text), dtype="<f8").reshape(shape)


# The file


def test_embedded_data_is_exact(comparison, tmp_path):
    data = data_of(written(comparison, tmp_path))
    assert tuple(data["names"]) == comparison.names
    np.testing.assert_array_equal(unpacked(data["distances"], (5, 5)), comparison.distances)
    np.testing.assert_array_equal(unpacked(data["bounds"], (5, 5)), comparison.error_bounds)
    eigenvalues = np.stack([s.eigenvalues for s in comparison.signatures.values()])
    np.testing.assert_array_equal(unpacked(data["spectra"]["eigenvalues"], (5, 20)), eigenvalues)


def test_saved_comparison_gives_the_same_report(comparison, tmp_path):
    comparison.save(tmp_path / "saved.npz")
    again = ua.Comparison.load(tmp_path / "saved.npz")
    assert written(again, tmp_path) == written(comparison, tmp_path)


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.words = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("name", [NASTY, "</script><script>alert(1)</script>", "<!--", "{{data}}"])
def test_names_are_escaped_everywhere(clouds, tmp_path, name):
    found = ua.compare({**clouds, name: clouds["3d"]}, n_eigenvalues=20)
    page = written(found, tmp_path, title=name, tags={name: [1, 2, 3, 4, 5, 6]}, command=name)
    plain = Tags(written(found, tmp_path, title="t", tags={"t": [1, 2, 3, 4, 5, 6]}, command="c"))
    parsed = Tags(page)
    assert [tag for tag, _ in parsed.found] == [tag for tag, _ in plain.found]
    assert not any("onerror" in attributes for _, attributes in parsed.found)
    assert parsed.words.count(name) >= 3
    data = data_of(page)
    assert data["names"][-1] == data["title"] == data["tags"][0]["name"] == name


def test_lone_surrogate_in_a_name_is_replaced(clouds, tmp_path):
    found = ua.compare({"bad\udcff": clouds["2d"], "b": clouds["3d"]}, n_eigenvalues=20)
    page = written(found, tmp_path)
    assert "bad?" in page
    assert data_of(page)["names"][0] == "bad\udcff"


def test_page_has_no_external_resources(comparison, tmp_path):
    page = written(comparison, tmp_path)
    for tag, attributes in Tags(page).found:
        for where in ("src", "href"):
            value = attributes.get(where, "#")
            assert value.startswith(("#", "data:")), (tag, value)
    assert "@import" not in page
    assert "url(" not in page


def test_policy_allows_only_the_embedded_script_and_style(comparison, tmp_path):
    page = written(comparison, tmp_path)
    meta = [a for tag, a in Tags(page).found if a.get("http-equiv") == "Content-Security-Policy"]
    policy = meta[0]["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_page_contains_recipe_seed_versions_and_command(clouds, tmp_path):
    found = ua.compare(clouds, n_eigenvalues=20, gamma=1e-6, rng=77, subsample=150)
    words = " ".join(Tags(written(found, tmp_path, command="unaligned compare x")).words)
    for word in ("1e-06", "77", "150", ua.__version__, np.__version__, "unaligned compare x"):
        assert word in words
    call = " ".join(Tags(written(found, tmp_path)).words)
    assert "unaligned.compare(" in call
    assert "rng=77" in call


def test_displayed_call_gives_the_same_distances(clouds, tmp_path):
    found = ua.compare(clouds, n_eigenvalues=20, gamma=1e-6, rng=77, subsample=150)
    page = written(found, tmp_path)
    call = re.search(r"<code>(unaligned\.compare\(.*?)</code>", page, flags=re.DOTALL)[1]
    again = eval(call.replace("&#x27;", "'"), {"unaligned": ua, "datasets": clouds})
    np.testing.assert_array_equal(again.distances, found.distances)


def test_metadata_become_tags_also_after_saving(clouds, tmp_path):
    named = {
        name: ua.Dataset(values, metadata={"width": np.int64(values.shape[1]), "raw": values})
        for name, values in clouds.items()
    }
    found = ua.compare(named, n_eigenvalues=20)
    [tag] = data_of(written(found, tmp_path))["tags"]
    assert (tag["name"], tag["values"]) == ("width", [1, 2, 3, 5, 8])
    found.save(tmp_path / "saved.npz")
    again = ua.Comparison.load(tmp_path / "saved.npz")
    assert data_of(written(again, tmp_path))["tags"] == [tag]
    grown = again.add({"9d": ua.Dataset(clouds["8d"], metadata={"width": 9})})
    assert data_of(written(grown, tmp_path))["tags"][0]["values"] == [1, 2, 3, 5, 8, 9]


def test_groups_of_a_file_become_tags_and_constants_do_not(tmp_path):
    rng = np.random.default_rng(0)
    days = np.repeat([0, 2, 7], 60)
    np.savez(tmp_path / "t.npz", counts=rng.normal(size=(180, 4)) * (1 + days[:, None]), day=days)
    found = ua.compare(ua.load_all(tmp_path / "t.npz", group_by="day"), n_eigenvalues=20)
    data = data_of(written(found, tmp_path))
    assert [tag["name"] for tag in data["tags"]] == ["day"]
    assert data["tags"][0]["values"] == [0, 2, 7]
    assert [c["tag"] for c in data["correlations"]] == ["day"]


def test_given_tags_replace_metadata(clouds, tmp_path):
    named = {n: ua.Dataset(v, metadata={"width": 1}) for n, v in clouds.items()}
    found = ua.compare(named, n_eigenvalues=20)
    [tag] = data_of(written(found, tmp_path, tags={"site": list("aabbb")}))["tags"]
    assert (tag["name"], tag["groups"], tag["numeric"]) == ("site", ["a", "b"], False)


def test_two_hundred_datasets_stay_below_fifteen_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    values = np.sort(rng.uniform(size=(200, 210)), axis=1)[:, ::-1]
    many = {
        f"dataset number {i}": ua.Dataset(np.diag(row), kind="spd") for i, row in enumerate(values)
    }
    found = ua.compare(many, n_eigenvalues=200)
    tags = {"time": range(200), "site": [f"site {i % 9}" for i in range(200)]}
    assert len(written(found, tmp_path, tags=tags).encode()) < 15e6 / 4


# The path


def test_existing_folder_raises(comparison, tmp_path):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(FileError, match=r"Cannot write .*it exists and is not a plain file"):
        comparison.report(tmp_path / "folder.html")


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.csv"])
def test_other_suffixes_raise(comparison, tmp_path, name):
    with pytest.raises(InputError, match=rf"path='.*{name}' must end in \.html, \.htm\."):
        comparison.report(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_missing_folder_raises(comparison, tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*nowhere"):
        comparison.report(tmp_path / "nowhere" / "report.html")


def test_failed_report_keeps_the_existing_file(comparison, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InputError, match=r"tag 'day' has 1 values"):
        comparison.report(path, tags={"day": [1]})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("what", ["title", "command"])
def test_title_and_command_must_be_text(comparison, tmp_path, what):
    with pytest.raises(InputTypeError, match=rf"{what}=3 must be text"):
        comparison.report(tmp_path / "report.html", **{what: 3})


def test_assets_are_installed():
    code = (
        "from importlib.resources import files; "
        "print(sorted(p.name for p in (files('unaligned.report') / 'assets').iterdir()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"template.html", "style.css", "main.js"} <= set(eval(done.stdout))


# The summary


def summary_of(comparison, tags=None):
    content = Content(comparison, read_tags(tags, comparison.names))
    return [" ".join(part(content)) for part in (findings, cautions, passed_checks)]


LINE = np.abs(
    np.subtract.outer([0.0, 1.0, 2.0, 20.0, 21.0, 23.0], [0.0, 1.0, 2.0, 20.0, 21.0, 23.0])
)


def test_findings_name_extremes_and_groups():
    found, _, _ = summary_of(fake(LINE))
    assert "Closest are <bdi>s0</bdi> and <bdi>s1</bdi> (1)" in found
    assert "farthest apart are <bdi>s0</bdi> and <bdi>s5</bdi> (23)" in found
    assert "form 2 groups" in found
    groups = Content(fake(LINE)).groups.labels
    assert groups in ((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0))


def test_equal_distances_have_no_groups():
    found, _, _ = summary_of(fake(1.0 - np.eye(6)))
    assert "form no clear groups" in found


def test_duplicate_datasets_are_named(clouds):
    found, careful, _ = summary_of(
        ua.compare({"a": clouds["3d"], "b": clouds["3d"], "c": clouds["3d"]}, n_eigenvalues=20)
    )
    assert "All 3 distances are 0" in found
    assert "same data under several names: <bdi>a</bdi>, <bdi>b</bdi> and <bdi>c</bdi>" in careful
    assert "error bound" not in careful
    assert "same data" not in summary_of(ua.compare(clouds, n_eigenvalues=20))[1]


def test_isolated_dataset_is_named():
    places = np.array([0.0, 1.0, 2.0, 3.0, 30.0])
    found, _, _ = summary_of(fake(np.abs(np.subtract.outer(places, places))))
    assert "<bdi>s4</bdi> is isolated" in found
    assert "is isolated" not in summary_of(fake(1.0 - np.eye(6)))[0]


def test_findings_contain_the_correlation_with_a_number():
    time = {"time": [0, 1, 2, 20, 21, 23], "site": list("xxyyzz")}
    found, _, _ = summary_of(fake(LINE), time)
    assert "differences of <bdi>time</bdi> correlate at 1.00" in found
    assert "site" not in found


def test_missing_numbers_are_left_out_of_the_correlation():
    content = Content(fake(LINE), read_tags({"time": [0, 1, 2, None, None, 9]}, [*"abcdef"]))
    [found] = content.correlations
    assert found.n_pairs == 6
    assert -1 < found.pearson < 1


def test_constant_number_has_no_correlation():
    assert Content(fake(LINE), read_tags({"time": [1] * 6}, [*"abcdef"])).correlations == []


def test_cautions_name_small_and_unequal_sizes(clouds):
    rng = np.random.default_rng(1)
    small = {**clouds, "small": rng.normal(size=(90, 3))}
    # The rule of the warning: 2.4-fold sizes matter where K is beyond a quarter of the smaller.
    with pytest.warns(SampleSizeWarning, match="2.4-fold at K=23"):
        biased = ua.compare(small, n_eigenvalues=23)
    _, careful, fine = summary_of(biased)
    assert "Fewer than 200 samples: <bdi>small</bdi>." in careful
    assert "Sample sizes differ by a factor of up to 2.4: <bdi>small</bdi> has 90" in careful
    assert "Sample sizes" not in fine
    _, careful, _ = summary_of(ua.compare(small, n_eigenvalues=22))
    assert "Sample sizes" not in careful
    large = {**clouds, "large": rng.normal(size=(500, 3))}
    _, careful, fine = summary_of(ua.compare(large, n_eigenvalues=22))
    assert "samples" not in careful
    assert "Sample sizes differ too little to matter at K = 22: " in fine
    _, careful, fine = summary_of(ua.compare(clouds, n_eigenvalues=20))
    assert "samples" not in careful
    assert "Sample sizes are similar: 220." in fine


def test_cautions_abbreviate_all_datasets(clouds):
    few = {name: values[:90] for name, values in clouds.items()}
    _, careful, _ = summary_of(ua.compare(few, n_eigenvalues=20))
    assert "Fewer than 200 samples: all 5 datasets." in careful


@pytest.mark.filterwarnings("ignore::unaligned.errors.SampleSizeWarning")
def test_cautions_contain_the_correlation_with_size():
    rng = np.random.default_rng(0)
    grown = {f"{n}": rng.normal(size=(n, 6)) for n in (210, 300, 420, 600, 840)}
    _, careful, _ = summary_of(ua.compare(grown, n_eigenvalues=100))
    assert "Distances correlate with differences of size" in careful


@pytest.mark.filterwarnings("ignore::unaligned.errors.DataWarning")
def test_cautions_count_dropped_rows(clouds):
    holes = clouds["3d"].copy()
    holes[:7, 0] = np.nan
    found = ua.compare({**clouds, "holes": holes}, n_eigenvalues=20, nan_policy="omit")
    _, careful, _ = summary_of(found)
    assert "dropped for missing values, most of them of <bdi>holes</bdi>: 7" in careful
    assert "dropped" not in summary_of(ua.compare(clouds, n_eigenvalues=20))[1]


def test_cautions_count_eigenvalues_below_gamma(clouds):
    _, careful, _ = summary_of(ua.compare(clouds, n_eigenvalues=20, gamma=1e-3))
    assert "γ = 0.001 is above the smallest" in careful
    high = {name: clouds[name] for name in ("5d", "8d")}
    _, careful, fine = summary_of(ua.compare(high, n_eigenvalues=20, gamma=1e-9))
    assert "γ" not in careful
    assert "are above γ" in fine


def test_cautions_compare_bounds_with_distances():
    _, careful, fine = summary_of(fake(LINE, np.full(LINE.shape, 0.5)))
    assert "6 pairs have an error bound above a tenth of the distance" in careful
    assert "accurate to within" not in fine
    _, careful, fine = summary_of(fake(LINE, np.full(LINE.shape, 1e-4)))
    assert "error bound" not in careful
    assert "accurate to within 10⁻⁴" in fine
    _, careful, _ = summary_of(fake(LINE))
    assert "no error bound" in careful


def test_infinite_distances_are_reported_and_not_drawn(tmp_path):
    broken = LINE.copy()
    broken[0, 1] = broken[1, 0] = np.inf
    found, _, _ = summary_of(fake(broken))
    assert "not finite" in found
    data = data_of(written(fake(broken), tmp_path))
    assert data["maps"] == data["tree"] == []


def test_report_of_one_and_two_datasets(clouds, tmp_path):
    one = ua.compare({"only": clouds["3d"]}, n_eigenvalues=20)
    assert "one dataset" in summary_of(one)[0]
    assert data_of(written(one, tmp_path))["maps"] == []
    two = ua.compare({"x": clouds["3d"], "y": clouds["5d"]}, n_eigenvalues=20)
    assert "distance between <bdi>x</bdi> and <bdi>y</bdi> is" in summary_of(two)[0]
    assert len(data_of(written(two, tmp_path))["tree"]) == 1


def test_report_of_datasets_and_references(clouds, tmp_path):
    known = {"p": clouds["1d"], "q": clouds["2d"]}
    found = ua.compare({"x": clouds["3d"], "y": clouds["8d"]}, known, n_eigenvalues=20)
    sentences, _, _ = summary_of(found)
    assert "On average over the references, <bdi>x</bdi> is nearest" in sentences
    data = data_of(written(found, tmp_path, tags={"site": ["a", "b"]}))
    assert data["references"] == ["p", "q"]
    assert data["spectra"]["names"] == ["x", "y", "p", "q"]
    assert data["maps"] == data["tree"] == data["correlations"] == []


def test_report_of_a_distance_without_spectra(clouds, tmp_path):
    same = {
        f"{i}": cloud for i, cloud in enumerate(np.random.default_rng(0).normal(size=(4, 50, 3)))
    }
    data = data_of(written(ua.compare(same, distance="euclidean"), tmp_path))
    assert data["spectra"] is None
    assert len(data["maps"]) == 2


def test_asymmetric_distance_counts_both_directions():
    there = LINE.copy()
    there[0, 1] = 0.5
    found, _, _ = summary_of(fake(there))
    assert "Closest are <bdi>s0</bdi> and <bdi>s1</bdi> (0.5)" in found
    assert "median of the 30 distances" in found


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.23456, "1.235"), (1e-8, "10⁻⁸"), (-2.5e-7, "−2.5·10⁻⁷"), (np.inf, "unknown")],
)
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


# Inference


@pytest.fixture(scope="module")
def tested():
    rng = np.random.default_rng(0)
    dimensions = {"three": 3, "again": 3, "<nine>": 9}
    clouds = {name: rng.normal(size=(300, d)) for name, d in dimensions.items()}
    return ua.compare(clouds, n_eigenvalues=20, inference=True)


def test_the_summary_says_what_is_told_apart(tested):
    found, careful, fine = summary_of(tested)
    assert "Of 3 pairs 2 differ by more than sampling noise" in found
    assert "Not told apart: <bdi>three</bdi> and <bdi>again</bdi> (p = " in found
    assert "are two samples of one dataset, measured on blocks of 30 rows" in found
    assert "approximate" not in careful
    assert "inference=True" not in fine


def test_pairs_that_all_differ_and_one_pair(tested):
    everything = np.ones_like(tested.inference.p_holm, dtype=float) * 0.001
    all_differ = replace(tested, inference=replace(tested.inference, p_holm=everything))
    assert "All 3 pairs differ by more than" in summary_of(all_differ)[0]
    approximate = replace(tested, inference=replace(tested.inference, is_approximate=True))
    assert "p-values and intervals are approximate" in summary_of(approximate)[1]


def test_without_inference_the_summary_says_what_bounds_leave_out(comparison, tmp_path):
    fine = summary_of(comparison)[2]
    assert "Sampling noise is not part of these bounds" in fine
    page = written(comparison, tmp_path, command="unaligned compare a b --report r.html")
    assert "<code>--inference</code> estimates it" in page


def test_the_page_has_the_inference(tested, comparison, tmp_path):
    data = data_of(written(tested, tmp_path))["inference"]
    np.testing.assert_array_equal(unpacked(data["holm"], (3, 3)), tested.inference.p_holm)
    np.testing.assert_array_equal(
        unpacked(data["low"], (3, 3)), tested.inference.intervals[..., 0]
    )
    np.testing.assert_allclose(data["floor"], tested.inference.noise_floor)
    assert data_of(written(comparison, tmp_path))["inference"] is None


# Explanations


def test_explanations_are_shown_with_their_pair(clouds, comparison, tmp_path):
    quick = {"n_repeats": 1, "progress": False}
    features = comparison.explain("8d", "2d", clouds, **quick)
    scale = comparison.explain("3d", "5d", clouds, by="scale", **quick)
    why = data_of(written(comparison, tmp_path, explanations=[features, scale]))["why"]
    assert [entry["pair"] for entry in why] == [[4, 1], [2, 3]]
    assert [entry["by"] for entry in why] == ["features", "scale"]
    np.testing.assert_array_equal(why[0]["change"], features.change)
    assert why[1]["quantities"][3]["name"] == "dimension"
    assert data_of(written(comparison, tmp_path, explanations=scale))["why"][0]["pair"] == [2, 3]
    assert data_of(written(comparison, tmp_path))["why"] == []


def test_explanations_of_other_datasets_raise(clouds, comparison, tmp_path):
    other = ua.explain(clouds["2d"], clouds["3d"], n_repeats=1, progress=False)
    with pytest.raises(InputError, match=r"'a' and 'b' are not a pair of this comparison"):
        written(comparison, tmp_path, explanations=[other])
    with pytest.raises(InputTypeError, match=r"must be results of explain\(\), not int"):
        written(comparison, tmp_path, explanations=[3])
    with pytest.raises(InputTypeError, match=r"must be a list of results"):
        written(comparison, tmp_path, explanations=7)
