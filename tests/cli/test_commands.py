"""The command line parses, calls, prints; errors are one line on stderr."""

import errno
import json
import os
import subprocess
import sys
import warnings

import pytest
from program import run_arguments
from rich.console import Console
from typer.main import get_command

import unaligned as ua
from unaligned import defaults
from unaligned.__main__ import main
from unaligned.cli import options, reproduce
from unaligned.errors import AccuracyWarning, FileError, NotApplicableError
from unaligned.experiments import EXPERIMENTS
from unaligned.operators.kernel import KERNELS
from unaligned.spectra.auto import SOLVERS


def run(*arguments):
    return run_arguments(list(arguments))


def raising(error):
    def broken(**_):
        raise error

    return broken


def warning_then_stopping(**_):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("less accurate than asked for", AccuracyWarning, stacklevel=1)
    raise NotApplicableError("stopped")


def test_version():
    assert run("--version").stdout == f"unaligned {ua.__version__}\n"


def test_cite_names_paper_and_software():
    found = run("--cite").stdout
    assert "Log-Euclidean Signatures for Intrinsic Distances" in found
    assert f"version = {{{ua.__version__}}}" in found


def test_help_lists_the_commands_and_examples():
    found = run("--help").stdout
    for command in ("info", "compare", "describe", "nearest", "list", "remove", "export"):
        assert command in found
    for command in ("demo", "distances", "reproduce"):
        assert command in found
    assert "reproduce tori --full" in " ".join(run("reproduce", "--help").stdout.split())


@pytest.mark.parametrize(
    "command", ["info", "compare", "describe", "nearest", "export", "list", "reproduce"]
)
def test_help_at_80_columns_cuts_no_words(monkeypatch, command):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    assert "…" not in run(command, "--help").stdout


def test_cache_info_and_clear(files):
    assert json.loads(run("cache", "info", "--json").stdout)["n_signatures"] == 0
    run("compare", "cells.npy", "model.npy")
    shown = run("cache", "info").stdout
    assert shown.startswith(f"{files / 'cache'}: 2 signatures, ")
    assert run("cache", "clear", "--keep", "1 GB").stderr == "Removed: 0 signatures. Left: 2.\n"
    assert run("cache", "clear").stderr == "Removed: 2 signatures. Left: 0.\n"
    failed = run("cache", "clear", "--keep", "much")
    assert failed.exit_code == 2
    assert "--keep 'much' must be a size such as 100MB" in failed.stderr


@pytest.mark.parametrize("command", ["info", "clear"])
def test_a_file_or_a_folder_of_other_files_is_no_cache(files, command):
    for path in ("cells.npy", "."):
        found = run("cache", command, "--cache", path)
        assert found.exit_code == 2
        assert f"--cache {path!r} is not a cache of signatures" in found.stderr
    assert "no folder 'nowhere' yet" in run("cache", "info", "--cache", "nowhere").stderr
    (files / "empty").mkdir()
    assert run("cache", command, "--cache", "empty").exit_code == 0


def test_distances_lists_every_distance():
    found = run("distances")
    assert found.exit_code == 0
    for name in ua.available().index:
        assert name in found.stdout
    assert "nothing shared" in found.stdout
    assert "paired rows" in found.stdout


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_narrow_terminal_cuts_no_words(files, monkeypatch, width):
    run("describe", "cells.npy", "model.npy", "--store", "refs.db", "--tag", "source=lab")
    monkeypatch.setattr("unaligned.cli.printing.stdout", lambda: Console(width=width))
    for command in ("distances", "list --store refs.db", "nearest new.npy --store refs.db"):
        found = run(*command.split())
        assert "…" not in found.stdout
        for word in ("cells", "source=lab") if "refs.db" in command else ua.available().index:
            assert word in found.stdout


def test_demo_prints_table_and_reading():
    found = run("demo")
    assert found.exit_code == 0
    assert "digits 0-4, pixels (901 × 64)" in found.stdout
    assert "Closest:" in found.stdout


@pytest.mark.usefixtures("tiny")
def test_reproduce_prints_verdicts_and_files(tmp_path):
    found = run("reproduce", "tori", "--out", str(tmp_path / "out"), "--only", "les")
    assert found.exit_code == 0, found.stderr
    assert "verdict" in found.stdout
    assert "RESULTS.md" in found.stdout
    assert (tmp_path / "out" / "tori.png").stat().st_size > 0


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_wraps_lines_when_piped(tmp_path):
    found = run("reproduce", "tori", "--out", str(tmp_path / "out"), "--only", "les,imd")
    table = found.stdout.split("Written:")[0]
    assert 100 < max(map(len, table.splitlines())) <= 120


def test_reproduce_rejects_an_empty_output_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("reproduce", "tori", "--out", "")
    assert found.exit_code == 2
    assert "--out '' must be a path" in found.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_only_and_without_select_methods(tmp_path):
    found = run("reproduce", "tori", "--out", str(tmp_path), "--without", "gromov-wasserstein,imd")
    assert found.exit_code == 0, found.stderr
    table = (tmp_path / "trials.jsonl").read_text()
    assert "geometry-score" in table
    assert "gromov-wasserstein" not in table
    found = run("reproduce", "tori", "--out", str(tmp_path), "--only", "les, imd")
    assert "--only les,imd" in (tmp_path / "RESULTS.md").read_text()
    found = run("reproduce", "tori", "--out", str(tmp_path), "--only", "lse")
    assert found.exit_code == 2
    assert "--only 'lse' is not known. Did you mean 'les'?" in found.stderr


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_quick_and_full_write_to_different_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("reproduce", "tori", "--only", "les")
    run("reproduce", "tori", "--full", "--only", "les")
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"tori", "tori-full"}


def test_help_names_every_experiment():
    assert tuple(EXPERIMENTS) == reproduce.EXPERIMENTS


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_options_set_the_number_of_trials(tmp_path):
    def trials(*options):
        found = run("reproduce", "tori", "--out", str(tmp_path), "--only", "les", *options)
        assert found.exit_code == 0, found.stderr
        return (tmp_path / "RESULTS.md").read_text()

    assert "n_trials = 1" in trials("--quick")
    assert "n_trials = 2" in trials("--full")
    assert "n_trials = 3" in trials("--trials", "3")


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_set_changes_a_setting(tmp_path):
    options = (
        "--out",
        str(tmp_path),
        "--only",
        "les",
        "--set",
        "gamma=1e-6",
        "--set",
        "scales=1.0",
    )
    found = run("reproduce", "tori", *options)
    assert found.exit_code == 0, found.stderr
    first = (tmp_path / "trials.jsonl").read_text().splitlines()[0]
    settings = json.loads(first)["settings"]
    assert settings["gamma"] == 1e-6
    assert settings["scales"] == [1.0]
    assert "--set gamma=1e-06 --set scales=1.0" in (tmp_path / "RESULTS.md").read_text()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tori", "gama=1", "experiment 'tori' has no option 'gama'. Did you mean 'gamma'?"),
        ("tori", "n_samples=many", "--set n_samples='many' must be a number"),
        ("tori", "n_samples=1,2", "--set n_samples='1,2' must be one value"),
        ("tori", "scales=", "--set scales='' must be one value"),
        ("tori", "n_samples", "--set 'n_samples' must be KEY=VALUE"),
        ("tasks", "embedder=resnet50", "embedder='resnet50' is not known"),
    ],
)
def test_wrong_settings_exit_with_2(tmp_path, name, text, message):
    found = run("reproduce", name, "--out", str(tmp_path), "--set", text)
    assert found.exit_code == 2
    assert message in found.stderr


def test_unknown_experiment_exits_with_2_and_a_suggestion():
    found = run("reproduce", "torri")
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Did you mean 'tori'?" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.usefixtures("tiny", "without_drawing")
def test_reproduce_with_other_settings_in_the_same_folder_exits_with_2(tmp_path):
    run("reproduce", "tori", "--out", str(tmp_path))
    found = run("reproduce", "tori", "--out", str(tmp_path), "--seed", "3")
    assert found.exit_code == 2
    assert "seed: 0 there, 3 now" in found.stderr


def test_invalid_number_exits_with_2():
    found = run("reproduce", "tori", "--trials", "0")
    assert found.exit_code == 2
    assert "--trials" in found.stderr


def test_failed_computation_exits_with_1(monkeypatch):
    monkeypatch.setattr(
        "unaligned.experiments.digits.run_demo", raising(NotApplicableError("no."))
    )
    found = run("demo")
    assert (found.exit_code, found.stderr) == (1, "Error: no.\n")


def test_ctrl_c_exits_with_130(monkeypatch):
    monkeypatch.setattr("unaligned.experiments.digits.run_demo", raising(KeyboardInterrupt()))
    found = run("demo")
    assert (found.exit_code, found.stderr) == (130, "Stopped by Ctrl-C.\n")


def test_ctrl_c_message_says_how_to_continue(monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt("Stopped by Ctrl-C during tori: 3 of 9 done.")

    monkeypatch.setattr("unaligned.experiments.reproduction.reproduce", stopped)
    found = run("reproduce", "tori", "--out", str(tmp_path))
    assert found.exit_code == 130
    assert found.stderr == (
        "Stopped by Ctrl-C during tori: 3 of 9 done. Finished trials are kept: run the same "
        "command to continue.\n"
    )


def test_warnings_are_one_line_on_stderr(monkeypatch):
    monkeypatch.setattr("unaligned.experiments.digits.run_demo", warning_then_stopping)
    found = run("demo")
    assert found.stderr.splitlines()[0] == "Warning: less accurate than asked for"


def test_help_imports_nothing_heavy_and_prints_no_colour():
    code = (
        "import sys; from unaligned.cli import main\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\n"
        "main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1"},
        check=True,
    )
    assert found.stderr.strip() == "[]"
    assert "reproduce" in found.stdout
    assert "\x1b[3" not in found.stdout


def test_help_names_every_choice_and_the_defaults(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("compare", "--help").output
    for name in (*KERNELS, *SOLVERS, *defaults.BANDWIDTH_RULES, f"{defaults.GAMMA:g}"):
        assert name in shown
    assert tuple(KERNELS) == defaults.KERNELS
    assert set(options.SOLVERS) == set(SOLVERS)


def test_list_and_cache_info_import_nothing_heavy(files):
    run("describe", "cells.npy", "--store", "refs.db")
    code = (
        "import sys; from unaligned.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted({'scipy', 'pandas', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    for command in (["list", "--store", "refs.db"], ["cache", "info"]):
        found = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
        )
        assert found.stdout.splitlines()[-1] == "[]"


def test_bad_argument_prints_no_traceback():
    code = "from unaligned.cli import main; main()"
    found = subprocess.run(
        [sys.executable, "-c", code, "reproduce", "nothing"], capture_output=True, text=True
    )
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "Choose one of: tori, scaling" in found.stderr


def test_closed_stdout_is_no_error():
    found = subprocess.run(
        [sys.executable, "-m", "unaligned", "distances"],
        preexec_fn=lambda: os.close(1),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_ctrl_c_during_the_imports_exits_with_130():
    code = (
        "import sys\n"
        "class Stopping:\n"
        "    def find_spec(name, *rest):\n"
        "        if name == 'unaligned.cli.compare': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stopping)\n"
        "from unaligned.__main__ import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "Stopped by Ctrl-C.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(28, "No space left on device"), 1, "[Errno 28] No space left on device."),
        (
            UnicodeEncodeError("utf-8", "a\udcff.npy", 1, 2, "surrogates not allowed"),
            2,
            r"The text 'a\udcff.npy' is not valid UTF-8. Rename the file, or retype it.",
        ),
    ],
)
def test_errors_outside_of_a_command_are_one_line(monkeypatch, capsys, error, code, message):
    def broken():
        raise error

    monkeypatch.setattr("unaligned.cli.main", broken)
    with pytest.raises(SystemExit, match=f"^{code}$"):
        main()
    assert capsys.readouterr().err == f"Error: {message}\n"


def test_full_disk_is_reported_in_one_line(monkeypatch):
    error = OSError(28, "No space left on device")
    monkeypatch.setattr("unaligned.experiments.digits.run_demo", raising(error))
    result = run("demo")
    assert result.exit_code == 1
    assert result.stderr == "Error: [Errno 28] No space left on device.\n"


def test_full_disk_exits_with_1(monkeypatch):
    error = FileError("Cannot write 'x': No space left on device.")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("unaligned.experiments.digits.run_demo", raising(error))
    assert run("demo").exit_code == 1
    error.__cause__ = OSError(errno.EACCES, "Permission denied")
    assert run("demo").exit_code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("unaligned comp", ["compare"]),
        ("unaligned compare --distance imd", ["imd", "imd-diffusion"]),
        ("unaligned compare --solver k", ["krylov"]),
        ("unaligned reproduce to", ["topology", "tori"]),
    ],
)
def test_shell_completion(typed, offered):
    words = typed.split()
    asked = {
        "_UNALIGNED_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    found = subprocess.run(
        [sys.executable, "-c", "from unaligned.cli import main; main()"],
        capture_output=True,
        text=True,
        env={**os.environ, **asked},
        check=False,
    )
    assert sorted(found.stdout.split()) == offered, found.stderr


def test_show_completion(monkeypatch):
    # The shell is named: which one runs the tests, if any, is not known.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr("typer.testing._get_command", get_command)  # the cached one asks the shell
    assert "_UNALIGNED_COMPLETE" in run("--show-completion", "bash").stdout
