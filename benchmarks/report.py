"""What every benchmark says beside its numbers, and where it writes them."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
from pathlib import Path

from session_store.driver import driver

__all__ = ["machine", "write"]


def machine() -> str:
    """What this was measured on."""
    cpuinfo = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    name = model[1] if model else platform.processor() or platform.machine()
    version = ".".join(map(str, driver().version))
    return (
        f"{dt.datetime.now().astimezone():%Y-%m-%d}, {os.cpu_count()} x {name}, {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {version} ({driver().name}); others kept "
        f"{os.getloadavg()[0]:.1f} processors busy when it began"
    )


def write(path: Path, name: str, title: str, section: str) -> None:
    """Replace the section of the benchmark with this name in the document, or add it; others stay as they are."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    block = f"{begin}\n## {title}\n\n{section}\n{end}"
    if begin in text:
        text = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: block, text, flags=re.DOTALL)
    else:
        text = f"{text.rstrip()}\n\n{block}\n"
    path.write_text(text, encoding="utf-8")
