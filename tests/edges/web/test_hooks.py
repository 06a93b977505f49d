"""Webhooks of other services: proven by the published examples of their schemes, and taken once."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from msgspec import json

from mainspring import Mainspring, RateLimit
from mainspring.app.hooks import Hook
from mainspring.app.internals import internals_of
from mainspring.app.signatures import (
    SIGNATURES_LOOKED_AT,
    GitHub,
    Hmac,
    Proven,
    Scheme,
    StandardWebhooks,
    Stripe,
    digest_of,
    keys_of,
)
from mainspring.app.undelivered import undelivered_in
from mainspring.errors import SettingError, StoreBusyError, WiringError
from mainspring.port.ids import plain
from mainspring.port.records import Ref
from mainspring.testing.samples import Count
from mainspring.web.api import api
from tests.edges.web.support import asked, bearer, counters, tokens
from tests.support.rows import letters_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  the one of Standard Webhooks' own example
OLD_SECRET = "whsec_QW5vdGhlclNlY3JldE9mU29tZUxlbmd0aA=="  # noqa: S105  of these tests
PLAIN_SECRET = "It's a Secret to Everybody"  # noqa: S105  the one of GitHub's own example
STANDARD = StandardWebhooks()

# ---- what each scheme takes for proof


def test_the_published_example_of_standard_webhooks_is_proven() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    proven = STANDARD.prove(keys_of(STANDARD, SECRET), headers, b'{"test": 2432232314}')

    assert proven == Proven("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330)


def test_the_published_example_of_github_is_proven_and_its_unsigned_id_is_not_believed() -> None:
    headers = {
        "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }
    proven = GitHub().prove(keys_of(GitHub(), PLAIN_SECRET), headers, b"Hello, World!")

    assert proven == Proven(digest_of(b"Hello, World!"))


def test_stripes_header_is_read_as_its_manual_says_and_what_is_not_version_1_is_passed_over() -> None:
    body, secret = b'{"id":"evt_1","object":"event"}', "whsec_test_secret"
    # printf '1492774577.{"id":"evt_1","object":"event"}' | openssl dgst -sha256 -hmac whsec_test_secret
    signature = "654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543"
    other = "6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
    keys = keys_of(Stripe(), secret)

    def proven(header: str) -> Proven | None:
        return Stripe().prove(keys, {"stripe-signature": header}, body)

    assert proven(f"t=1492774577,v1={signature},v0={other}") == Proven("evt_1", 1492774577)
    assert proven(f"t=1492774577, v1={other}, v1={signature}") == Proven("evt_1", 1492774577)
    for header in (
        f"t=1492774577,v0={signature}",
        f"t=1492774578,v1={signature}",
        f"t=1,t=1492774577,v1={signature}",
        f"v1={signature}",
        f"t=1492774577,v1={other}",
        "t=1492774577",
        "",
    ):
        assert proven(header) is None, header


def test_an_event_without_an_id_is_named_by_its_digest() -> None:
    for body in (b"[]", b"no JSON", b'{"id":7}', b'{"id":""}', b"[" * 100_000):
        signature = hmac.digest(b"a-secret-of-some-length", b"1." + body, "sha256").hex()
        proven = Stripe().prove([b"a-secret-of-some-length"], {"stripe-signature": f"t=1,v1={signature}"}, body)
        assert proven == Proven(digest_of(body), 1)


@pytest.mark.parametrize(
    ("scheme", "shown"),
    [
        (Hmac("X-Signature"), lambda digest: digest.hex()),
        (Hmac("X-Signature", prefix="sha256="), lambda digest: f"sha256={digest.hex()}"),
    ],
)
def test_an_hmac_in_a_header_is_proof(scheme: Hmac, shown: Any) -> None:
    signature = shown(hmac.digest(PLAIN_SECRET.encode(), b"{}", "sha256"))
    keys = keys_of(scheme, PLAIN_SECRET)

    assert scheme.prove(keys, {"x-signature": signature}, b"{}") == Proven(digest_of(b"{}"))
    assert scheme.prove(keys, {"x-signature": signature}, b"{ }") is None
    assert scheme.prove(keys, {"x-signature": signature[:-1]}, b"{}") is None
    assert scheme.prove(keys, {}, b"{}") is None


def test_an_hmac_may_be_base64_and_have_its_id_in_a_header() -> None:
    scheme = Hmac("x-shop-hmac", digest="sha512", encoding="base64", id_header="X-Shop-Id")
    signature = base64.b64encode(hmac.digest(PLAIN_SECRET.encode(), b"{}", "sha512")).decode()
    keys = keys_of(scheme, PLAIN_SECRET)

    assert scheme.prove(keys, {"x-shop-hmac": signature, "x-shop-id": "7"}, b"{}") == Proven("7")
    assert scheme.prove(keys, {"x-shop-hmac": signature}, b"{}") is None


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1614265331"},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "1614265330.0"},
        {"webhook-timestamp": "٣"},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"webhook-signature": "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"webhook-signature": "v1,é"},
        {"webhook-signature": "v1,x " * SIGNATURES_LOOKED_AT + "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
    ],
)
def test_whatever_is_changed_proves_nothing(changed: Mapping[str, str]) -> None:
    body, keys = b'{"test": 2432232314}', keys_of(STANDARD, SECRET)
    headers = STANDARD.sign(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert STANDARD.prove(keys, headers, body) is not None

    assert STANDARD.prove(keys, {**headers, **changed}, body) is None


def test_every_signature_is_compared_so_that_time_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def compare(own: bytes, other: bytes) -> bool:
        compared.append(own)
        return real(own, other)

    keys = keys_of(STANDARD, [SECRET, OLD_SECRET])
    headers = STANDARD.sign(keys, "m", 1, b"{}")
    monkeypatch.setattr("mainspring.app.signatures.hmac.compare_digest", compare)
    assert STANDARD.prove(keys, headers, b"{}") is not None
    assert len(compared) == 4


@pytest.mark.parametrize(
    "secrets", [[], "", "short", [SECRET] * 11, [7], "whsec_§§§§§§§§§§§§§§§§§", "whsec_MfKQ9r8GKY"]
)
def test_a_secret_that_is_none_is_refused_and_never_told(secrets: Any) -> None:
    with pytest.raises(SettingError) as refused:
        keys_of(STANDARD, secrets)
    assert "MfKQ" not in str(refused.value)
    assert "§" not in str(refused.value)


# ---- what becomes of a request


def counted(payload: Any, headers: Mapping[str, str]) -> Any:
    if headers.get("x-event") == "ping":
        return None
    return [Count(counter) for counter in payload["counters"]]


def hooked(folder: Path, scheme: Scheme = STANDARD, **settings: Any) -> tuple[Mainspring, Hook]:
    app = counters(folder)
    given: dict[str, Any] = {"secrets": SECRET, "scheme": scheme, "headers": ["X-Event"], **settings}
    app.hook("shop", **given)(counted)
    found = internals_of(app).hooks["shop"]
    return app, found


def signed(app: Mainspring, body: bytes, id: str = "msg-1", *, age: int = 0, secret: str = SECRET) -> dict[str, str]:
    now_s = internals_of(app).engine.store.now_us() // 1_000_000
    return STANDARD.sign(keys_of(STANDARD, secret), id, now_s - age, body)


async def streams(app: Mainspring) -> dict[str, int]:
    return {row.id: row.position for row in await app.instances(workflow="Counter")}


def test_a_request_is_taken_once_however_often_and_however_it_comes_again(tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path, secrets=[SECRET, OLD_SECRET])
        body = b'{"counters":["a"]}'
        async with app:
            for age, secret in ((0, SECRET), (0, SECRET), (60, OLD_SECRET)):
                assert await hook.take(signed(app, body, age=age, secret=secret), body) == "taken"
            assert await streams(app) == {"a": 2}
            rows = await internals_of(app).engine.store.stream(Ref("Counter", "a"), 0, 10)
            assert [row.message_id for row in rows] == [None, "hook/shop/msg-1"]
            assert await hook.take(signed(app, body, "msg-2"), body) == "taken"
            assert await streams(app) == {"a": 3}

    asyncio.run(main())


def test_several_messages_of_one_request_are_all_taken_once(tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path)
        body = b'{"counters":["a","b","a"]}'
        async with app:
            for _ in range(2):
                assert await hook.take(signed(app, body), body) == "taken"
            assert await streams(app) == {"a": 3, "b": 2}
            ping = {**signed(app, body, "msg-2"), "x-event": "ping"}
            assert await hook.take(ping, body) == "taken"
            assert await streams(app) == {"a": 3, "b": 2}

    asyncio.run(main())


def test_what_is_stale_or_too_often_is_not_taken(tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path, window=timedelta(minutes=1), rate=RateLimit(per_second=0.001, burst=2))
        body = b'{"counters":["a"]}'
        async with app:
            assert await hook.take(signed(app, body, age=120), body) == "stale"
            assert await hook.take(signed(app, body, age=-120), body) == "stale"
            assert await hook.take(signed(app, body, secret=OLD_SECRET), body) == "unproven"
            outcomes = [await hook.take(signed(app, body, f"msg-{n}"), body) for n in range(3)]
            assert outcomes == ["taken", "taken", "too often"], "what cannot prove itself uses nothing up"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"no JSON", "not JSON"),
        (b"\xff\x00", "UTF-8"),
        (b'{"counters":1,"counters":2}', "twice"),
        (b'{"others":[]}', "KeyError"),
        (b'{"counters":[7]}', "InvalidIdError"),
        (b'{"counters":[""]}', "InvalidIdError"),
    ],
)
def test_what_is_proven_and_cannot_be_read_is_kept_once_with_its_bytes(body: bytes, error: str, tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path)
        async with app:
            for _ in range(2):
                names = (
                    "x-shop-hmac-sha256",
                    "x-api-key",
                    "x-auth",
                    "x-jwt",
                    "x-vendor-key",
                    "x-hub-sig",
                    "x-anything",
                )
                more = {"x-event": "sold", "user-agent": "shop/2", **dict.fromkeys(names, "proof")}
                assert await hook.take({**signed(app, body), **more}, body) == "kept"
            (letter,) = await letters_of(app)
            assert (letter.instance, plain(letter.message_id)) == ("hook/shop", "hook/shop/msg-1")
            assert error in (letter.error or "")
            kept = {"x-event", "user-agent", "webhook-id", "webhook-timestamp"}
            assert set(undelivered_in(letter).headers) == kept
            assert b"webhook-signature" not in letter.body, "a proof is nobody's business any more"
            assert b"proof" not in letter.body
            assert await streams(app) == {}

    asyncio.run(main())


def test_a_letter_is_taken_after_all_when_the_function_was_mended_or_the_message_corrected(tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path)
        body = b'{"counter":"a"}'
        async with app:
            for id in ("msg-1", "msg-2"):
                assert await hook.take(signed(app, body, id), body) == "kept"
            one, two = await app.dead_letters()
            with pytest.raises(KeyError):
                await app.retry_dead_letter(one.id)
            await app.retry_dead_letter(two.id, Count("corrected"), actor="ann")
            assert len(await app.dead_letters()) == 1
        mended = counters(tmp_path)
        mended.hook("shop", secrets=SECRET)(Count)
        async with mended:
            await mended.retry_dead_letter(one.id)
            assert await mended.dead_letters() == []
            assert await streams(mended) == {"a": 2, "corrected": 2}

    asyncio.run(main())


def test_the_function_sees_of_the_headers_what_a_retry_would_see_and_no_more(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    def looks(payload: Any, headers: Mapping[str, str]) -> Any:
        seen.append(dict(headers))
        raise ZeroDivisionError

    async def main() -> None:
        app = counters(tmp_path)
        app.hook("shop", secrets=SECRET, headers="X-Event")(looks)
        hook = internals_of(app).hooks["shop"]
        async with app:
            more = {"x-event": "sold", "x-jwt": "proof", "authorization": "proof"}
            assert await hook.take({**signed(app, b"{}"), **more}, b"{}") == "kept"
            (letter,) = await app.dead_letters()
            with pytest.raises(ZeroDivisionError):
                await app.retry_dead_letter(letter.id)

    asyncio.run(main())
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert set(seen[0]) == {"x-event", "webhook-id", "webhook-timestamp"}


def test_a_message_that_nobody_takes_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'web.db'}")
        app.hook("shop", secrets=SECRET)(counted)
        hook = internals_of(app).hooks["shop"]
        body = b'{"counters":["a"]}'
        async with app:
            assert await hook.take(signed(app, body), body) == "kept"
            assert "Nothing takes Count" in ((await app.dead_letters())[0].error or "")

    asyncio.run(main())


def test_a_request_is_not_blamed_for_a_database_in_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: Any, **__: Any) -> None:
        raise StoreBusyError("web.db", 5)

    async def main() -> None:
        app, hook = hooked(tmp_path)
        body = b'{"counters":["a"]}'
        async with app:
            with monkeypatch.context() as patch:
                patch.setattr(internals_of(app).engine.intake, "answered", busy)
                with pytest.raises(StoreBusyError):
                    await hook.take(signed(app, body), body)
            assert await app.dead_letters() == []
            assert await hook.take(signed(app, body), body) == "taken"

    asyncio.run(main())


def test_an_id_that_cannot_be_stored_is_named_by_its_digest(tmp_path: Path) -> None:
    async def main() -> None:
        app, hook = hooked(tmp_path, Hmac("x-signature", id_header="x-id"), secrets=PLAIN_SECRET)
        body = b'{"counters":["a"]}'
        signature = hmac.digest(PLAIN_SECRET.encode(), body, "sha256").hex()
        async with app:
            for id in ("a\x7fb", "x" * 9_000, "a\x7fb"):
                assert await hook.take({"x-signature": signature, "x-id": id}, body) == "taken"
            assert await streams(app) == {"a": 3}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"name": "Not/A/Name"}, SettingError),
        ({"name": ""}, SettingError),
        ({"body_bytes": 0}, SettingError),
        ({"body_bytes": 99_999_999}, SettingError),
        ({"window": 300}, SettingError),
        ({"window": timedelta(0)}, SettingError),
        ({"name": "shop"}, WiringError),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(
    settings: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    app, _ = hooked(tmp_path)
    given: dict[str, Any] = {"name": "other", "secrets": SECRET, **settings}
    with pytest.raises(error):
        app.hook(**given)


def test_a_hook_does_no_work_of_its_own(tmp_path: Path) -> None:
    async def works(payload: Any) -> None: ...

    with pytest.raises(WiringError, match="no plain function"):
        counters(tmp_path).hook("shop", secrets=SECRET)(works)


# ---- over HTTP


@asynccontextmanager
async def serving(app: Mainspring, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    async with app, asked(api(app, start=False, **settings)) as client:
        yield client


def test_a_signature_is_the_only_proof_and_what_was_wrong_is_not_told(tmp_path: Path) -> None:
    async def main() -> None:
        app, _ = hooked(tmp_path, body_bytes=100, rate=RateLimit(per_second=0.001, burst=3))
        body = b'{"counters":["a"]}'
        async with serving(app, access=tokens()) as client:

            async def post(headers: dict[str, str], content: bytes = body, name: str = "shop") -> httpx.Response:
                return await client.post(f"/api/hooks/{name}", content=content, headers=headers)

            taken = await post(signed(app, body))
            assert (taken.status_code, taken.json()) == (200, {"status": "taken"})
            kept = await post(signed(app, b"?", "msg-2"), b"?")
            assert (kept.status_code, kept.json()) == (202, {"status": "kept"})
            wrong = [
                await post({}),
                await post(bearer("admin")),
                await post({**signed(app, body), "webhook-id": "other"}),
                await post(signed(app, body, secret=OLD_SECRET)),
                await post({**signed(app, body), "webhook-signature": "v1,x"}),
            ]
            assert {(answer.status_code, answer.text) for answer in wrong} == {(401, wrong[0].text)}
            assert (await post(signed(app, body, age=3_600))).status_code == 400
            assert (await post({}, body, "other")).status_code == 404
            assert (await post({}, b"x" * 101)).status_code == 413
            # A browser would say where a request comes from: it counts for nothing, in either direction.
            from_a_page = {"origin": "https://evil.example.com", "sec-fetch-site": "cross-site"}
            assert (await post(from_a_page)).status_code == 401
            assert (await post({**signed(app, body), **from_a_page})).status_code == 200
            often = await post(signed(app, body))
            assert (often.status_code, int(often.headers["retry-after"]) > 0) == (429, True)
            assert often.headers["content-type"] == "application/problem+json"

    asyncio.run(main())


def test_where_it_is_mounted_makes_no_difference_to_a_hook(tmp_path: Path) -> None:
    async def main() -> None:
        app, _ = hooked(tmp_path)
        outer = FastAPI()
        outer.mount("/workflows", api(app, start=False))
        body, origin = b'{"counters":["a"]}', {"origin": "https://elsewhere.example.com"}
        async with app, asked(outer) as client:
            taken = await client.post(
                "/workflows/api/hooks/shop", content=body, headers={**signed(app, body), **origin}
            )
            other = await client.post("/workflows/api/messages/Count", json={"counter": "a"}, headers=origin)
            assert (taken.status_code, other.status_code) == (200, 403)
            assert json.decode(taken.content) == {"status": "taken"}

    asyncio.run(main())
