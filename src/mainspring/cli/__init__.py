"""The command line, `mainspring`: run an app, send to it, look at it, act on it.

    group      the list of commands; each command's module is imported when it is asked for, so that --help is quick
    options    the options that commands share: --app, --json, --actor
    loading    `module:app` to a connected app, and what people type to an instance
    output     tables for people, JSON for programs
    failures   exit codes, and errors as one line

The rest is one module per command, or per family of commands. All but `worker`, `demo` and
`studio --work` connect with `start(work=False)`: they carry nothing out.
"""

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    if find_spec("click") is None:
        sys.stderr.write("The command line needs click, which is not installed: pip install 'mainspring[cli]'\n")
        sys.exit(1)
    from mainspring.cli.group import run  # noqa: PLC0415  click is an extra

    run()
