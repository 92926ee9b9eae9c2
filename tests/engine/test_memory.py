"""Available memory, read from the kernel's files."""

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
    meminfo = f"MemTotal: 16777216 kB\nMemAvailable: {available // 1024} kB\n"
    (root / "proc" / "meminfo").write_text(meminfo)


def container(root, version, limit, used, stat=""):
    for name, content in zip(VERSIONS[version], (limit, used, stat), strict=True):
        path = root / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def test_available_memory_without_a_container(tmp_path):
    machine(tmp_path)
    assert available_memory(tmp_path) == 8 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_container_limit_counts(version, tmp_path):
    machine(tmp_path)
    container(tmp_path, version, 3 * GIB, GIB)
    assert available_memory(tmp_path) == 2 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_page_cache_counts_as_free(version, tmp_path):
    machine(tmp_path)
    stat = f"anon {GIB}\ninactive_file {GIB // 2}\nactive_file {GIB // 4}"
    container(tmp_path, version, 3 * GIB, 2 * GIB, stat)
    assert available_memory(tmp_path) == 3 * GIB // 2


def test_version_1_includes_nested_groups(tmp_path):
    machine(tmp_path)
    stat = f"inactive_file 0\ntotal_inactive_file {GIB}"
    container(tmp_path, 1, 3 * GIB, 2 * GIB, stat)
    assert available_memory(tmp_path) == 2 * GIB


@pytest.mark.parametrize(("version", "limit"), [(2, "max"), (1, 9223372036854771712)])
def test_container_without_a_limit(version, limit, tmp_path):
    machine(tmp_path)
    container(tmp_path, version, limit, GIB)
    assert available_memory(tmp_path) == 8 * GIB


@pytest.mark.parametrize("version", VERSIONS)
def test_container_memory_is_between_zero_and_the_machine(version, tmp_path):
    machine(tmp_path, GIB)
    container(tmp_path, version, 3 * GIB, 0)
    assert available_memory(tmp_path) == GIB
    container(tmp_path, version, 3 * GIB, 4 * GIB)
    assert available_memory(tmp_path) == 0


def test_memory_without_proc_files(tmp_path):
    assert available_memory(tmp_path) >= GIB // 4
