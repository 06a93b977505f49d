"""The apps as worker processes serve them: `mainspring worker bench.served:orders`, the URL in the environment."""

from __future__ import annotations

import os

from bench import apps, computations

VARIABLE = "MAINSPRING_BENCH_URL"

_url = os.environ.get(VARIABLE, "memory://")

orders = apps.orders(_url)
everything = apps.everything(_url)
computing = computations.computing(_url)
computing_in_processes = computations.computing_in_processes(_url)
