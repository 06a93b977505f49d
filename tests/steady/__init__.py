"""Is a test green every time? The suite, or a part of it, is run again and again under changing conditions.

```
  python -m tests.steady --runs 10 --loaded 4        all tests: six quiet runs, four under load
  python -m tests.steady --runs 30 --loaded 30 tests/edges/brokers

  runs        one run in a process of its own: order, hash seed and load change with its number
    │  plugin     in that process: shuffles the tests, writes down what came of each
  load        processes that keep the cores and the disk busy meanwhile
    ▼
  report      every test that was not green every time, with its durations; the slowest tests
```
"""
