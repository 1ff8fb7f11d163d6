"""From a checked configuration to a prepared request: templates, credentials, body.

How values are inserted:

- **url**: a ``{param}`` is percent-encoded, ``/`` included, so that it cannot change host, path
  or query; ``.`` and ``..`` segments are refused. Only a url that consists of one ``{param}`` is
  used unchanged. ``${VAR}`` is inserted unchanged, since the environment may contain a base
  address.
- **headers**: strings unchanged, other values as JSON; a header with the value ``None`` is
  omitted.
- **body**: mappings, lists, numbers, booleans as JSON; bytes and strings unchanged, except that
  a single ``{param}`` with a JSON content type is sent as a JSON string.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from lilux.primitives.http_client.config import (
    METHODS,
    AuthTemplate,
    HttpConfig,
    InvalidConfigError,
)
from lilux.templating import (
    ParameterTextError,
    Placeholder,
    env_value,
    param_text,
    render,
    substitute,
    whole_placeholder,
)

if TYPE_CHECKING:
    import httpx2

_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_CONTROL = r"[\x00-\x08\x0a-\x1f\x7f]"
_JSON_TYPE = r"(?i)[^;]*[/+]json\s*(;|$)"
_DOT_SEGMENTS = frozenset({".", ".."})
_FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})
_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_SHORTEST_SECRET = 4  # shorter ones would match ordinary words


class Secrets:
    """Texts that must not appear in a message. Its repr does not show them."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def add(self, text: str) -> None:
        """Remember ``text``."""
        if len(text) >= _SHORTEST_SECRET:
            self._texts.add(text)

    def scrub(self, text: str) -> str:
        """Return ``text`` with every secret replaced by stars, longest first."""
        for secret in sorted(self._texts, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    def excerpt(self, text: str, limit: int) -> str:
        """Return the first ``limit`` characters of ``text``, scrubbed.

        Scrubbed before it is cut, since a part of a secret at the end would not be recognised.
        """
        return self.scrub(text).strip()[:limit]


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A request ready to be sent, without templates."""

    method: str
    url: "httpx2.URL" = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    content: bytes | None = field(repr=False)
    secrets: Secrets = field(repr=False)

    @property
    def label(self) -> str:
        """Method and origin, for messages; path and query may contain secrets."""
        return f"{self.method} {self.url.scheme}://{self.url.netloc.decode('ascii')}"


def prepare_request(
    config: HttpConfig, params: Mapping[str, Any], environ: Mapping[str, str]
) -> PreparedRequest:
    """Render ``config`` once. Raises :class:`InvalidConfigError`, which names the field."""
    secrets = Secrets()
    env = _WatchedEnv(config, environ, secrets)
    method = _method(config.method, params, env)
    url = parse_url(_render_url(config.url, params, env))
    headers = _Headers()
    for name, template in config.headers.items():
        value = _render_field(f"headers.{name}", template, params, env)
        if value is not None:
            headers.set(f"headers.{name}", name, value)
            if name.lower() in _CREDENTIAL_HEADERS:
                secrets.add(value)
                secrets.add(value.rpartition(" ")[2])
    if config.auth is not None:
        credential = _credential(config.auth, params, env)
        secrets.add(credential)
        headers.set(config.auth.where, config.auth.header, config.auth.prefix + credential)
    elif url.userinfo and "authorization" not in headers:
        pair = base64.b64encode(f"{url.username}:{url.password}".encode()).decode("ascii")
        secrets.add(pair)
        headers.set("url", "Authorization", f"Basic {pair}")
    _remember_url(url, secrets)
    if config.mode == "stream":
        headers.default("Accept", "text/event-stream")
        headers.default("Cache-Control", "no-store")
    content = _content(method, config.body, params, env, headers)
    return PreparedRequest(
        method=method, url=url, headers=tuple(headers), content=content, secrets=secrets
    )


def parse_url(text: str) -> "httpx2.URL":
    """Parse an absolute http(s) address; the error never quotes it, as it may have a password."""
    import httpx2

    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise InvalidConfigError(
            "url: is not a valid address", "check host, port and characters"
        ) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidConfigError(
            "url: must begin with http:// or https:// and a host",
            "a {param} for that part has to be the whole url",
        )
    if url.port is not None and not 1 <= url.port <= 65535:
        raise InvalidConfigError("url: the port is not between 1 and 65535", "correct it")
    return url


class _WatchedEnv(Mapping[str, str]):
    """The variables of a template; each value that is used becomes a secret."""

    def __init__(self, config: HttpConfig, environ: Mapping[str, str], secrets: Secrets) -> None:
        self._own = config.env
        self._base: Mapping[str, str] = {} if config.env_mode == "exact" else environ
        self._secrets = secrets

    def __getitem__(self, name: str) -> str:
        value = self._own[name] if name in self._own else self._base[name]
        self._secrets.add(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter({**self._base, **self._own})

    def __len__(self) -> int:
        return len({**self._base, **self._own})


class _Headers:
    """Headers with one value per case-insensitive name; refuses values that split a request."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[str, str]] = {}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._items.values())

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def get(self, name: str) -> str:
        return self._items.get(name, ("", ""))[1]

    def set(self, where: str, name: str, value: str) -> None:
        if not re.fullmatch(_HEADER_NAME, name):
            raise InvalidConfigError(
                f"{where}: not a valid header name", "use letters, digits and -"
            )
        if name.lower() in _FRAMING_HEADERS:
            raise InvalidConfigError(f"{where}: is set automatically", "remove it")
        if re.search(_CONTROL, value):
            raise InvalidConfigError(
                f"{where}: contains a line break or control character", "remove it"
            )
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise _invalid(where, error) from None
        self._items[name.lower()] = (name, value.strip(" \t"))

    def default(self, name: str, value: str) -> None:
        self._items.setdefault(name.lower(), (name, value))


def _method(template: str, params: Mapping[str, Any], env: Mapping[str, str]) -> str:
    method = _render_field("method", template, params, env)
    if method is None or method.upper() not in METHODS:
        raise InvalidConfigError(f"method: expected one of {', '.join(METHODS)}")
    return method.upper()


def _render_url(template: str, params: Mapping[str, Any], env: Mapping[str, str]) -> str:
    whole = whole_placeholder(template)
    if whole is not None and whole.kind == "param":
        url = params.get(whole.name)
        if not isinstance(url, str):
            raise InvalidConfigError(
                f"url: parameter '{whole.name}' must be a string", "pass an address"
            )
        return url
    inserted = False

    def fill(placeholder: Placeholder) -> str | None:
        nonlocal inserted
        if placeholder.kind == "env":
            return env_value(placeholder, env)
        if placeholder.name not in params:
            return None
        inserted = True
        text = param_text(placeholder.name, params[placeholder.name])
        return quote(text, safe="", errors="strict")

    try:
        url = substitute(template, fill)
    except ValueError as error:
        raise _invalid("url", error) from None
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    if inserted and not _DOT_SEGMENTS.isdisjoint(path.split("/")):
        raise InvalidConfigError(
            "url: a parameter creates a path segment '.' or '..', which would change the path",
            "pass a plain name",
        )
    return url


def _render_field(
    where: str, template: Any, params: Mapping[str, Any], env: Mapping[str, str]
) -> str | None:
    try:
        value = render(template, params=params, env=env)
        return None if value is None else param_text(where, value)
    except RecursionError:
        raise InvalidConfigError(f"{where}: is nested too deeply", "flatten it") from None
    except ValueError as error:
        raise _invalid(where, error) from None


def _credential(auth: AuthTemplate, params: Mapping[str, Any], env: Mapping[str, str]) -> str:
    credential = _render_field(auth.where, auth.credential, params, env)
    if credential is not None and credential.strip():
        return credential
    names: list[str] = []

    def note(placeholder: Placeholder) -> None:
        if placeholder.kind == "env":
            names.append(placeholder.name)

    substitute(auth.credential, note)
    if names:
        raise InvalidConfigError(
            f"{auth.where}: the environment variable {' and '.join(names)} is not set or empty",
            "set it or write a default",
        )
    raise InvalidConfigError(f"{auth.where}: is empty", "pass a credential")


def _content(
    method: str,
    template: Any,
    params: Mapping[str, Any],
    env: Mapping[str, str],
    headers: _Headers,
) -> bytes | None:
    if template is None:
        return None
    if method in ("GET", "HEAD", "OPTIONS"):
        raise InvalidConfigError(
            f"body: not allowed with {method}", "use POST, PUT, PATCH or DELETE, or remove it"
        )
    try:
        body = render(template, params=params, env=env)
        if isinstance(body, bytes):
            headers.default("Content-Type", "application/octet-stream")
            return body
        single = isinstance(template, str) and whole_placeholder(template) is not None
        as_json = single and re.match(_JSON_TYPE, headers.get("content-type")) is not None
        if isinstance(body, str) and not as_json:
            headers.default("Content-Type", "text/plain; charset=utf-8")
            return body.encode("utf-8")
        if body is None:
            return None
        headers.default("Content-Type", "application/json")
        return _json(body).encode("utf-8")
    except RecursionError:
        raise InvalidConfigError("body: is nested too deeply", "flatten it") from None
    except ValueError as error:
        raise _invalid("body", error) from None


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise InvalidConfigError(
            "contains a value that JSON cannot express (such as NaN, bytes, a set or a loop)",
            "convert it first",
        ) from None


def _remember_url(url: "httpx2.URL", secrets: Secrets) -> None:
    secrets.add(url.password)
    secrets.add(url.userinfo.decode("ascii"))
    if not url.query:
        return
    for _, value in parse_qsl(url.query.decode("ascii")):
        secrets.add(value)
        secrets.add(quote(value, safe=""))


def _invalid(where: str, error: ValueError) -> InvalidConfigError:
    """Return the error for a key; the text of a ``UnicodeError`` would quote the value."""
    if isinstance(error, UnicodeError):
        reason = "contains text that is not valid Unicode"
        return InvalidConfigError(f"{where}: {reason}", "correct it")
    if isinstance(error, InvalidConfigError | ParameterTextError):
        return InvalidConfigError(f"{where}: {error.reason}", error.hint)
    return InvalidConfigError(f"{where}: {error}")
