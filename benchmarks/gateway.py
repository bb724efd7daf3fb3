"""How soon the gateway answers under load on three platforms; `benchmarks/answering.py` says what is measured, and how.

python benchmarks/gateway.py [--rate 50] [--seconds 600] [--search] [--write docs/benchmarks.md]
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # The folder of a script comes first where modules are looked for, and this file would hide the package `gateway`.
    sys.path[0] = str(Path(__file__).parents[1])
    from benchmarks.answering import main

    main()
