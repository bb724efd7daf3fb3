"""The reports of the benchmarks: each replaces its own section of the document and nothing else."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from benchmarks.append import Crowd, Load, table
from benchmarks.corpus import messages
from benchmarks.report import machine, write


def test_only_its_own_section_is_replaced(tmp_path: Path) -> None:
    """Other benchmarks write into the same document."""
    document = tmp_path / "benchmarks.md"
    write(document, "one", "One benchmark", "first numbers")
    document.write_text(document.read_text() + "\n## Another benchmark\n\nits numbers\n")
    write(document, "one", "One benchmark", "second numbers \\1")
    text = document.read_text()

    assert text.startswith("# Benchmarks\n")
    assert "first numbers" not in text
    assert text.count("second numbers \\1") == 1
    assert text.endswith("## Another benchmark\n\nits numbers\n")


def test_the_report_names_the_machine_and_the_aims() -> None:
    """A number without its machine says nothing."""
    text = table(
        machine(),
        20_000.0,
        [Load(64, 10_000.0, 0.5, 5.0, 20.0, 0.45)],
        Crowd([90, 100, 95, 99], 0, 0.04, 96.0),
        seconds=4.0,
    )

    assert "SQLite" in text
    assert "processors busy" in text
    assert "| 64 | 10,000 | 0.50 | >= 0.45 | 5.0 ms | 20.0 ms |" in text
    assert "| 96 | 0 | 0.90 | >= 0.8 | 40 ms | <= 500 ms |" in text


def test_the_messages_are_the_same_each_time_and_no_two_are_alike() -> None:
    """Repeated words would make an index look faster than it is."""
    one, two = list(islice(messages(1), 300)), list(islice(messages(1), 300))

    assert one == two
    assert len(set(one)) == 300
    assert 400 < sum(map(len, one)) / 300 < 1100
