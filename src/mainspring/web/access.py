"""Who may do what over HTTP: roles, what they permit, and how a request shows who sends it."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from mainspring.engine.inputs.senders import is_name
from mainspring.errors import SettingError

Role: TypeAlias = Literal["viewer", "worker", "operator", "admin"]
Permission: TypeAlias = Literal["read", "send", "act", "administer"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
PERMITS: Final[Mapping[Role, frozenset[Permission]]] = {
    "viewer": frozenset({"read"}),
    "worker": frozenset({"read", "send"}),
    "operator": frozenset({"read", "send", "act"}),
    "admin": frozenset({"read", "send", "act", "administer"}),
}
LEAST_SECRET_CHARACTERS: Final = 20
TOKENS: Final = 1_000

_BEARER: Final = "bearer "


class Who(Struct, frozen=True):
    """The sender of a request. Without a `name` it is an unnamed user at this machine.

    `groups` are the roles that a person has for tasks, as the proxy in front says.

    >>> Who("ann", "operator").may("send"), Who("ann", "viewer").may("send")
    (True, False)
    """

    name: str | None
    role: Role
    groups: tuple[str, ...] = ()

    def may(self, permission: Permission) -> bool:
        """Return True if this one may do something."""
        return permission in PERMITS[self.role]


class Token(Struct, frozen=True):
    """A secret that stands for a name and a role. Only its digest is kept.

    >>> Token.of("a-secret-of-some-length", name="deploy", role="worker").role
    'worker'
    """

    digest: bytes
    name: str
    role: Role
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, secret: str, *, name: str, role: Role, groups: Iterable[str] = ()) -> Token:
        """Return a token for a secret, which is long enough not to be guessed."""
        if len(secret) < LEAST_SECRET_CHARACTERS:
            fix = f"Use one of {LEAST_SECRET_CHARACTERS} characters or more, as secrets.token_urlsafe() makes them."
            raise SettingError(f"The secret of the token {name}", f"{len(secret)} characters long", fix)
        return cls(_digest(secret), _checked_name(name), _checked_role(role), tuple(groups))


class ProxyHeaders(Struct, frozen=True):
    """Headers in which a proxy in front says who the user is, after it has made sure of it (OIDC, SAML, …).

    They count only in requests that come from one of the `proxies`, by address. `roles` says which group has which
    role; of several the mightiest counts, and a user without one is let in as `otherwise`, or not at all.

    >>> headers = ProxyHeaders(roles={"ops": "operator"})
    >>> headers.who({"x-forwarded-user": "ann", "x-forwarded-groups": "staff, ops"}, "127.0.0.1")
    Who(name='ann', role='operator', groups=('staff', 'ops'))
    >>> headers.who({"x-forwarded-user": "ann", "x-forwarded-groups": "ops"}, "10.0.0.7") is None
    True
    """

    roles: Mapping[str, Role]
    user: str = "x-forwarded-user"
    groups: str = "x-forwarded-groups"
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    otherwise: Role | None = None

    def who(self, headers: Mapping[str, str], address: str | None) -> Who | None:
        """Return the user that the headers of a request name, if they may."""
        name, listed = headers.get(self.user.lower(), ""), headers.get(self.groups.lower(), "")
        # A line break stands between two headers of one name, of which the proxy has written one at most.
        if address not in self.proxies or not is_name(name) or "\n" in listed:
            return None
        groups = tuple(group.strip() for group in listed.split(",") if group.strip())
        found: list[Role] = [self.roles[group] for group in groups if group in self.roles]
        role = _mightiest(found) or self.otherwise
        return None if role is None else Who(name, role, groups)


class Access:
    """Who is let in. Without tokens and headers that is any client, in the role `anybody`: for one's own machine only.

    >>> Access().who({}, "127.0.0.1")
    Who(name=None, role='admin', groups=())
    >>> access = Access(tokens=[Token.of("a-secret-of-some-length", name="ann", role="viewer")])
    >>> access.who({"authorization": "Bearer a-secret-of-some-length"}, "10.0.0.7")
    Who(name='ann', role='viewer', groups=())
    >>> access.who({"authorization": "Bearer another-secret-of-some-length"}, "10.0.0.7") is None
    True
    """

    def __init__(
        self, *, tokens: Iterable[Token] = (), headers: ProxyHeaders | None = None, anybody: Role | None = None
    ) -> None:
        self._tokens = tuple(tokens)
        self._headers = headers
        if len(self._tokens) > TOKENS:
            raise SettingError("The number of tokens", len(self._tokens), f"Use {TOKENS:,} at most.")
        if anybody is not None:
            _checked_role(anybody)
        # Without any authentication, every client that can reach the port is trusted.
        self._anybody: Role | None = anybody or (None if self._tokens or headers else "admin")

    @property
    def asks(self) -> bool:
        """Whether users must authenticate before they may do more than look."""
        return self._anybody in (None, "viewer")

    def who(self, headers: Mapping[str, str], address: str | None) -> Who | None:
        """Return who sends a request with these headers (in lower case) from this address; None: an unknown user."""
        shown = headers.get("authorization")
        # Without tokens it is not meant for us: a proxy may ask for one of its own, and hand it on.
        if shown is not None and self._tokens:
            return self._by_token(shown)
        named = None if self._headers is None else self._headers.who(headers, address)
        if named is not None or self._anybody is None:
            return named
        return Who(None, self._anybody)

    def _by_token(self, shown: str) -> Who | None:
        if not shown.lower().startswith(_BEARER):
            return None
        digest = _digest(shown[len(_BEARER) :].strip())
        # All are compared, each in constant time: how long it takes says nothing about any of them.
        found = [token for token in self._tokens if hmac.compare_digest(token.digest, digest)]
        return Who(found[0].name, found[0].role, found[0].groups) if found else None


def read_tokens(text: str) -> list[Token]:
    """Return tokens as they stand in a setting: NAME:ROLE:SECRET, separated by commas or lines.

    >>> [(token.name, token.role) for token in read_tokens("ann:viewer:a-secret-of-some-length")]
    [('ann', 'viewer')]
    """
    tokens: list[Token] = []
    for entry in (part.strip() for line in text.splitlines() for part in line.split(",")):
        if not entry:
            continue
        name, colon, rest = entry.partition(":")
        role, second, secret = rest.partition(":")
        if not (colon and second):
            raise SettingError(
                "A token", "not readable", f"Write it as NAME:ROLE:SECRET, a role of {', '.join(ROLES)}."
            )
        tokens.append(Token.of(secret, name=name, role=_checked_role(role)))
    return tokens


def _mightiest(roles: Iterable[Role]) -> Role | None:
    given = set(roles)
    return next((role for role in reversed(ROLES) if role in given), None)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="surrogatepass")).digest()


def _checked_role(role: str) -> Role:
    for known in ROLES:
        if role == known:
            return known
    raise SettingError("A role", role, f"Use one of {', '.join(ROLES)}.")


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise SettingError("The name of a token", name, "Use visible characters: it is recorded as the actor.")
    return name
