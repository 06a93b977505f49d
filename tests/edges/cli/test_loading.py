from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run


def test_the_app_may_be_named_before_or_after_the_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_APP", "nothing:here")

    assert run("--app", "shop:app", "ls").code == 0
    assert run("ls", "-a", "shop:app").code == 0


def test_a_module_alone_means_its_app(run: Run) -> None:
    assert run("ls", "--app", "shop").code == 0


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("shp:app", "There is no module shp in "),
        ("shop:ap", "shop has no ap. It has shop:app."),
        ("shop:app.nothing", "shop has no app.nothing."),
        ("shop:not_an_app", "shop:not_an_app is a int, not a Mainspring."),
        ("shop.py", "shop.py is a file, and a module is named without .py: shop:app."),
        ("shop.py:app", "shop.py is a file, and a module is named without .py: shop:app."),
        ("store:app", "store has no app. Did you mean store.app:app?"),
        ("my shop:app", "'my shop' is not the name of a module. Write module:app, as in shop:app."),
        ("needs:app", "needs cannot be imported: ModuleNotFoundError: No module named 'a_database_driver' ("),
        ("typo:app", "typo cannot be imported: SyntaxError: "),
        ("broken:app", "broken cannot be imported: ZeroDivisionError: division by zero ("),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(run: Run, folder: Path, address: str, error: str) -> None:
    (folder / "needs.py").write_text("import a_database_driver\n")
    (folder / "typo.py").write_text("app = = 1\n")
    (folder / "broken.py").write_text("app = 1 / 0\n")
    (folder / "store").mkdir()
    (folder / "store/app.py").touch()

    ran = run("ls", "--app", address)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {error}")
    assert ran.err.count("\n") == 1


def test_no_app_at_all_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_APP")

    ran = run("ls")

    assert (ran.code, ran.err) == (
        2,
        "Error: Which app? Name it with --app module:app, or set MAINSPRING_APP=module:app once.\n",
    )


def test_the_traceback_is_shown_to_those_who_ask_for_it(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "broken.py").write_text("app = 1 / 0\n")
    monkeypatch.setenv("MAINSPRING_DEBUG", "1")

    with pytest.raises(ZeroDivisionError):
        run("ls", "--app", "broken:app")


def test_what_a_module_prints_is_kept_out_of_the_json(run: Run, folder: Path) -> None:
    (folder / "chatty.py").write_text("print('hello')\nfrom shop import app\n")
    run("send", "OpenTicket", '{"ticket": "t-1"}')

    ran = run("ls", "--app", "chatty:app", "--json")

    assert ran.document["id"] == "t-1"
    assert "hello" in ran.err


def test_an_app_in_memory_says_that_nothing_can_be_seen(run: Run, folder: Path) -> None:
    (folder / "fleeting.py").write_text("from mainspring import Mainspring\napp = Mainspring('memory://')\n")

    ran = run("ls", "--app", "fleeting:app")

    assert "keeps everything in its own process's memory" in ran.err
