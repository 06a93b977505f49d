"""The client goes where it was told to, and nowhere else: against real servers, with names that lie."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from mainspring.errors import CallError, DoNotRetryError, MainspringError, RetryLaterError, SettingError
from mainspring.remote.addresses import may_be_called, networks_of
from mainspring.remote.client import Answer, Client, checked
from mainspring.remote.targets import AllowList, Target, target_of
from tests.edges.remote.servers import answered, certified, serving, trusting
from tests.support.running import run

LONG = timedelta(seconds=60)
SHORT = timedelta(seconds=0.2)


def resolving(*answers: Sequence[str]) -> tuple[list[str], Callable[[str, int], Awaitable[Sequence[str]]]]:
    """Return a resolver that answers differently each time, and the names it was asked for."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return asked, resolve


# ---- addresses


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111"])
def test_what_is_public_may_be_called(address: str) -> None:
    assert may_be_called(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104  an address to refuse
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.7",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "no address",
    ],
)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not may_be_called(address)


def test_a_network_that_is_allowed_does_not_allow_what_it_only_leads_to() -> None:
    nat64 = networks_of(["64:ff9b::/96"])

    assert may_be_called("64:ff9b::808:808", nat64)
    assert not may_be_called("64:ff9b::7f00:1", nat64)
    assert may_be_called("10.1.2.3", networks_of(["10.1.0.0/16"]))
    assert not may_be_called("10.2.2.3", networks_of(["10.1.0.0/16"]))
    with pytest.raises(SettingError):
        networks_of(["10.1.0.0/99"])


# ---- URLs


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "ftp://hooks.example.com/",
        "//hooks.example.com/",
        "hooks.example.com",
        "https://",
        "https://user:password@hooks.example.com/",
        "https://hooks.example.com@evil.example.com/",
        "https://hooks.example.com/#evil",
        "https://hooks.example.com\\@evil.example.com/",
        "https://hooks.example.com/a b",
        "https://hooks.example.com/a\nb",
        "https://hooks.example.com:443/",
        "https://hooks.example.com:99999/",
        "https://hooks.example.com:x/",
        "https://HOOKS.example.com/",
        "https://hooks.example.com./",
        "https://hooks_.example.com/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://höks.example.com/",
        "https://hooks.example.com/?",
        "https://hooks.example.com/" + "a" * 2_000,
        b"https://hooks.example.com/",
        None,
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: Any) -> None:
    with pytest.raises(SettingError) as refused:
        target_of(url)
    assert "password" not in str(refused.value).replace("a password", "")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://hooks.example.com/any/path?with=query", True),
        ("https://exact.example.com/orders", True),
        ("https://exact.example.com/orders?shop=1", True),
        ("https://exact.example.com/orders/1", False),
        ("https://exact.example.com/", False),
        ("https://hooks.example.com:8443/", False),
        ("https://sub.hooks.example.com/", False),
        ("https://hooks.example.com.evil.example.com/", False),
        ("http://127.0.0.1:9000/", True),
        ("http://127.0.0.1:9001/", False),
        ("https://127.0.0.1:9000/", False),
    ],
)
def test_only_what_is_on_the_allow_list_is_allowed(url: str, allowed: bool) -> None:
    entries = AllowList(["https://hooks.example.com", "https://exact.example.com/orders", "http://127.0.0.1:9000"])
    if allowed:
        assert entries.target(url).url == url
    else:
        with pytest.raises(SettingError, match="allow-list"):
            entries.target(url)


def test_what_stands_behind_the_question_mark_is_sent_and_never_told() -> None:
    async def main() -> None:
        async with serving(answered(404)) as server:
            url = f"http://127.0.0.1:{server.port}/hook?token=s3cret"
            target = target_of(url)
            async with Client(hosts={"127.0.0.1": networks_of(["127.0.0.1/32"])}) as client:
                answer = await client.post(target, {}, b"{}", timeout=LONG)
            assert server.requests[0].path == "/hook?token=s3cret"
            for call in (lambda: checked(target, answer), lambda: checked(target, Answer(503, {}, b""))):
                with pytest.raises(MainspringError) as told:
                    call()
                assert "s3cret" not in str(told.value)
        with pytest.raises(SettingError) as refused:
            AllowList(["https://example.com"]).target(url)
        assert "s3cret" not in str(refused.value)
        with pytest.raises(SettingError) as refused:
            target_of("https://EXAMPLE.com/?token=s3cret")
        assert "s3cret" not in str(refused.value)

    run(main)


def test_an_allow_list_names_something() -> None:
    with pytest.raises(SettingError, match="allow"):
        AllowList([])


def test_an_entry_that_could_never_fit_is_refused() -> None:
    with pytest.raises(SettingError, match="Leave the query out"):
        AllowList(["https://example.com/orders?shop=1"])


# ---- where it goes


def test_a_name_whose_answer_changes_leads_only_where_was_checked() -> None:
    async def main() -> None:
        async with serving(host="127.0.0.2") as meant, serving(port=meant.port) as victim:
            asked, resolve = resolving(["127.0.0.2"], ["127.0.0.1"])
            target = Target("http", "rebinding.example.com", meant.port, "/")
            networks = networks_of(["127.0.0.2/32"])
            async with Client(networks=networks, resolve=resolve) as client:
                await client.post(target, {"connection": "close"}, b"1", timeout=LONG)
                assert asked == ["rebinding.example.com"], "the address that was checked is the one that was called"
                with pytest.raises(CallError, match=r"leads to 127\.0\.0\.1, which is not public"):
                    await client.post(target, {}, b"2", timeout=LONG)
            assert [request.body for request in meant.requests] == [b"1"]
            assert victim.connections == 0

    run(main)


def test_one_address_that_is_refused_refuses_them_all() -> None:
    async def main() -> None:
        async with serving(host="127.0.0.2") as meant:
            _, resolve = resolving(["127.0.0.2", "169.254.169.254"])
            async with Client(networks=networks_of(["127.0.0.2/32"]), resolve=resolve) as client:
                with pytest.raises(CallError, match=r"169\.254\.169\.254"):
                    await client.post(Target("http", "two.example.com", meant.port, "/"), {}, b"", timeout=LONG)
            assert meant.connections == 0

    run(main)


def test_an_address_that_is_allowed_is_allowed_to_nobody_else() -> None:
    async def main() -> None:
        async with serving() as local:
            allowed = AllowList([f"http://127.0.0.1:{local.port}", f"https://partner.example.com:{local.port}"])
            _, resolve = resolving(["127.0.0.1"])
            async with Client(hosts=allowed.hosts, resolve=resolve) as client:
                own = allowed.target(f"http://127.0.0.1:{local.port}/")
                assert (await client.post(own, {"connection": "close"}, b"", timeout=LONG)).status == 200
                partner = allowed.target(f"https://partner.example.com:{local.port}/")
                with pytest.raises(CallError, match=r"partner\.example\.com.* leads to 127\.0\.0\.1"):
                    await client.post(partner, {}, b"", timeout=LONG)
            assert local.connections == 1

    run(main)


def test_the_machines_own_names_are_checked_too() -> None:
    async def main() -> None:
        async with serving() as victim:
            async with Client() as client:
                for host in ("localhost", "127.0.0.1", "127.1", "2130706433"):
                    with pytest.raises(CallError, match=r"not public|not found"):
                        await client.post(Target("https", host, victim.port, "/"), {}, b"", timeout=LONG)
            assert victim.connections == 0

    run(main)


def test_the_next_address_is_tried_where_the_first_does_not_answer() -> None:
    async def main() -> None:
        async with serving(host="127.0.0.3") as server:
            _, resolve = resolving(["127.0.0.2", "127.0.0.3"])
            async with Client(networks=networks_of(["127.0.0.0/8"]), resolve=resolve) as client:
                await client.post(Target("http", "two.example.com", server.port, "/"), {}, b"", timeout=LONG)
            assert server.requests[0].headers["host"] == f"two.example.com:{server.port}"

    run(main)


def test_no_redirect_is_followed_no_proxy_is_asked_and_no_cookie_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving() as victim:
            there = f"http://127.0.0.1:{victim.port}/"
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
                monkeypatch.setenv(name, there)
            moved = answered(302, b"", f"location: {there}", "set-cookie: a=b")
            async with serving(moved) as server, Client(networks=networks_of(["127.0.0.0/8"])) as client:
                target = target_of(f"http://127.0.0.1:{server.port}/")
                for _ in range(2):
                    answer = await client.post(target, {}, b"", timeout=LONG)
                    with pytest.raises(DoNotRetryError, match="302: redirects are not followed"):
                        checked(target, answer)
                assert ["cookie" in request.headers for request in server.requests] == [False, False]
            assert victim.connections == 0

    run(main)


# ---- certificates


def test_the_certificate_is_verified_by_the_name_and_the_name_is_asked_for() -> None:
    async def main() -> None:
        _, resolve = resolving(["127.0.0.1"])
        networks = networks_of(["127.0.0.0/8"])
        async with (
            serving(tls=certified("hooks.example.com")) as right,
            serving(tls=certified("evil.example.com")) as wrong_name,
            serving(tls=certified("hooks.example.com", known=False)) as unknown,
            Client(networks=networks, tls=trusting(), resolve=resolve) as client,
        ):
            answer = await client.post(Target("https", "hooks.example.com", right.port, "/a"), {}, b"1", timeout=LONG)
            assert answer.status == 200
            assert (right.names, right.requests[0].path) == (["hooks.example.com"], "/a")
            for server in (wrong_name, unknown):
                with pytest.raises(CallError, match=r"CERTIFICATE_VERIFY_FAILED"):
                    await client.post(Target("https", "hooks.example.com", server.port, "/"), {}, b"2", timeout=LONG)
                assert server.requests == []

    run(main)


def test_a_context_that_verifies_nothing_is_refused() -> None:
    lax = trusting()
    lax.check_hostname = False
    with pytest.raises(SettingError, match="verifies nothing"):
        Client(tls=lax)


# ---- the extra


def test_who_has_not_installed_the_extra_is_told_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpcore", None)
    monkeypatch.delitem(sys.modules, "mainspring.remote.client")

    with pytest.raises(SettingError, match=r"install mainspring\[webhooks\]"):
        importlib.import_module("mainspring.remote.client")


# ---- what is answered


async def endless(writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 Fine\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
        await writer.drain()


async def dripping(writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 Fine\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)  # slowly: that is what it is for


async def endless_head(writer: Any) -> None:
    writer.write(b"HTTP/1.1 200 Fine\r\n")
    while True:
        writer.write(b"x-header: " + b"x" * 1_000 + b"\r\n")
        await writer.drain()


async def silent(writer: Any) -> None:
    await asyncio.Event().wait()


async def hung_up(writer: Any) -> None:
    writer.close()


async def called(reply: Any, timeout: timedelta, most_bytes: int = 1_000) -> Answer:
    async with serving(reply) as server, Client(networks=networks_of(["127.0.0.0/8"])) as client:
        target = target_of(f"http://127.0.0.1:{server.port}/")
        return await client.post(target, {}, b"", timeout=timeout, most_bytes=most_bytes)


def test_an_endless_body_is_read_no_further_than_was_asked_for() -> None:
    answer = asyncio.run(called(endless, LONG))

    assert (answer.status, len(answer.body), answer.cut) == (200, 1_000, True)


@pytest.mark.parametrize(
    ("reply", "timeout", "problem"),
    [
        (dripping, SHORT, "did not answer within"),
        (silent, SHORT, "did not answer within"),
        (endless_head, LONG, "could not be called"),
        (hung_up, LONG, "could not be called"),
        (b"this is no HTTP\r\n\r\n", LONG, "could not be called"),
    ],
)
def test_who_answers_too_slowly_or_nonsense_is_left(reply: Any, timeout: timedelta, problem: str) -> None:
    with pytest.raises(CallError, match=problem):
        asyncio.run(called(reply, timeout))


def test_nothing_is_unpacked() -> None:
    packed = gzip.compress(b"x" * 1_000_000)
    answer = asyncio.run(called(answered(200, packed, "content-encoding: gzip"), LONG, 100_000))

    assert answer.body == packed


@pytest.mark.parametrize(
    ("status", "headers", "body", "error", "text"),
    [
        (404, {}, b"no such order", DoNotRetryError, "answered 404: no such order"),
        (410, {}, b"", DoNotRetryError, "answered 410"),
        (422, {}, b'{"title":"Bad","detail":"No such card."}', DoNotRetryError, "answered 422: No such card."),
        (307, {}, b"", DoNotRetryError, "redirects"),
        (500, {}, b"\xff\x00 oops", CallError, "answered 500: "),
        (502, {}, b"[[[", CallError, "answered 502"),
        (408, {}, b"", CallError, "answered 408"),
        (409, {}, b"", CallError, "answered 409"),
        (425, {}, b"", CallError, "answered 425"),
        (429, {}, b"", CallError, "answered 429"),
        (429, {"retry-after": "120"}, b"", RetryLaterError, "answered 429"),
        (503, {"retry-after": "x"}, b"", CallError, "answered 503"),
        (503, {"retry-after": f"Wed, 21 Oct {2**63} 07:28:00 GMT"}, b"", CallError, "answered 503"),
    ],
)
def test_what_is_answered_says_whether_to_try_again(
    status: int, headers: dict[str, str], body: bytes, error: type[MainspringError], text: str
) -> None:
    with pytest.raises(error, match=text) as told:
        checked(target_of("https://payments.example.com/"), Answer(status, headers, body))
    if isinstance(told.value, RetryLaterError):
        assert told.value.after == timedelta(seconds=120)


def test_a_date_to_try_again_is_understood() -> None:
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    with pytest.raises(RetryLaterError) as told:
        checked(target_of("https://payments.example.com/"), Answer(503, {"retry-after": in_an_hour}, b""))

    assert timedelta(minutes=50) < told.value.after <= timedelta(hours=1)
