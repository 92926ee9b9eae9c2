"""How much memory is there, as far as files of the kernel tell."""

import pytest

from unaligned.engine.memory import available_memory

GIB = 1 << 30
VERSIONS = {
    2: ("memory.max", "memory.current", "memory.stat"),
    1: (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
}


def machine(root, available=8 * GIB):
    (root / "proc").mkdir()
    told = f"MemTotal: 16777216 kB\nMemAvailable: {available // 1024} kB\n"
    (root / "proc" / "meminfo").write_text(told)


def container(root, version, limit, used, stat=""):
    for name, content in zip(VERSIONS[version], (limit, used, stat), strict=True):
        path = root / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def test_without_a_container_all_that_is_available_counts(tmp_path):
    machine(tmp_path)
    assert available_memory(tmp_path) == 8 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_the_limit_of_a_container_counts(version, tmp_path):
    machine(tmp_path)
    container(tmp_path, version, 3 * GIB, GIB)
    assert available_memory(tmp_path) == 2 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_files_that_are_only_cached_count_as_free(version, tmp_path):
    machine(tmp_path)
    stat = f"anon {GIB}\ninactive_file {GIB // 2}\nactive_file {GIB // 4}"
    container(tmp_path, version, 3 * GIB, 2 * GIB, stat)
    assert available_memory(tmp_path) == 3 * GIB // 2


def test_version_1_tells_of_the_groups_inside_too(tmp_path):
    machine(tmp_path)
    stat = f"inactive_file 0\ntotal_inactive_file {GIB}"
    container(tmp_path, 1, 3 * GIB, 2 * GIB, stat)
    assert available_memory(tmp_path) == 2 * GIB


@pytest.mark.parametrize(("version", "limit"), [(2, "max"), (1, 9223372036854771712)])
def test_no_limit_is_none(version, limit, tmp_path):
    machine(tmp_path)
    container(tmp_path, version, limit, GIB)
    assert available_memory(tmp_path) == 8 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_a_container_has_no_more_than_the_machine_and_no_less_than_nothing(version, tmp_path):
    machine(tmp_path, GIB)
    container(tmp_path, version, 3 * GIB, 0)
    assert available_memory(tmp_path) == GIB
    container(tmp_path, version, 3 * GIB, 4 * GIB)
    assert available_memory(tmp_path) == 0


def test_a_machine_that_tells_nothing_has_some(tmp_path):
    assert available_memory(tmp_path) >= GIB // 4
