"""Confine a prepared call to the permissions of its tool, and say what was enforced."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache

from lilux.record import Record, replaced

from rye.errors import NotEnforcedError, PermissionsError
from rye.executor.caches import BoundedDict
from rye.executor.chain.anchor import Anchor, runtime_lib
from rye.executor.config.build import ExecutionConfig
from rye.executor.config.environment import ChainEnvironment
from rye.executor.config.merge import interpreter_variables
from rye.items.element import ChainElement
from rye.items.permissions import TMP, Permissions, joined
from rye.permissions.settings import ALLOW, REFUSE, Settings, UserSettings
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lilux.primitives.subprocess.confinement import MissingPart

    from rye.context import Context
    from rye.executor.run.prepare import CallOptions
    from rye.permissions.profile import Confiner

NOT_REQUIRED = ("signals", "attributes")
"""Parts that no declaration names. Older kernels cannot enforce them; then they are reported."""


class Widening(Record, frozen=True, kw_only=True):
    """What a person allows for one call."""

    permissions: Permissions = Permissions()
    unenforced: bool = False
    """Run even if the permissions cannot be enforced."""


class Confining:
    """Confines the calls of an executor, which calls the same chains again and again."""

    def __init__(
        self, context: Context, settings: UserSettings, *, confined_only: bool = False
    ) -> None:
        self._confined_only = confined_only
        self._context = context
        self._settings = settings
        self._known: dict[str, tuple[object, object, Confiner]] = BoundedDict()

    def confine(
        self,
        chain: Sequence[ChainElement],
        anchor: Anchor | None,
        environment: ChainEnvironment,
        config: ExecutionConfig,
        options: CallOptions,
        *,
        own: tuple[str, ...] = (),
    ) -> ExecutionConfig:
        """Return the config of the confined call; the same one if the tool is not confined.

        ``own`` are the folders from which the call runs. Raises
        :class:`PermissionsError`, also for a part that cannot be enforced and is required.
        """
        if chain[0].metadata.permissions is None:
            if self._confined_only:
                raise PermissionsError(
                    f"{chain[0].item_id!r} declares no permissions; only confined tools may run",
                    hint="use another tool",
                )
            return config
        widening = options.widening
        settings = self._settings.current()
        accepts = _accepts(settings, widening, options.unenforced)
        granted = settings.granted(chain[0].item_id, chain[0].signer)
        if config.primitive_id != SUBPROCESS:
            permissions = _everything(chain, granted, widening)
            config = replaced(config, permissions=permissions)
            if config.primitive_id == HTTP_CLIENT:
                missing = _check_request(permissions, chain, config)
                return _reported(config, chain[0].item_id, {"net": "http_client"}, missing, accepts)
            missing = _not_a_process(config.primitive_id)
            return _reported(config, chain[0].item_id, {}, missing, accepts)
        _refuse_files(chain[0].item_id, config.config)
        confiner = self._confiner(
            chain, anchor, environment, config, granted=granted, widening=widening, own=own
        )
        profile = confiner.profile
        required = () if accepts else _required()
        env = {name: value for name, value in config.config["env"].items() if profile.keeps(name)}
        if profile.home is not None:
            env["HOME"] = profile.home
        confined = {
            **config.config,
            "env": env,
            "confinement": confiner.confinement(required),
        }
        return replaced(config, config=confined, permissions=profile.permissions, enforced={})

    def permissions(self, chain: Sequence[ChainElement], widening: Widening | None) -> Permissions:
        """Everything that a confined chain may do."""
        granted = self._settings.current().granted(chain[0].item_id, chain[0].signer)
        return _everything(chain, granted, widening)

    @property
    def accepts_unenforced(self) -> bool:
        """True if the user's settings accept permissions that cannot be enforced."""
        return self._settings.current().unenforced == ALLOW

    def _confiner(
        self,
        chain: Sequence[ChainElement],
        anchor: Anchor | None,
        environment: ChainEnvironment,
        config: ExecutionConfig,
        *,
        granted: list[Permissions],
        widening: Widening | None,
        own: tuple[str, ...],
    ) -> Confiner:
        """The confiner of the chain; the last one if nothing that it depends on has changed."""
        tool, env = chain[0].item_id, environment.env
        interpreters = tuple([env.get(name, "") for name in interpreter_variables(chain)])
        command = config.config["command"]
        key = (anchor, command, interpreters, env.get("PATH"), granted, widening, own)
        known = self._known.get(tool)
        if known is not None and known[0] is chain and known[1] == key:
            return known[2]
        permissions = _everything(chain, granted, widening)
        made = confiner_of(
            permissions, chain, anchor, environment, config, context=self._context, own=own
        )
        self._known[tool] = (chain, key, made)
        return made


def _everything(
    chain: Sequence[ChainElement], granted: list[Permissions], widening: Widening | None
) -> Permissions:
    """What the signed files of a chain, the user's settings and the caller allow together."""
    from rye.permissions.chain import chain_permissions

    own = chain_permissions(chain) or Permissions()
    more = [] if widening is None else [widening.permissions]
    return joined([own, *granted, *more]) if granted or more else own


def _accepts(settings: Settings, widening: Widening | None, unenforced: str) -> bool:
    if widening is not None and widening.unenforced:
        return True
    return (settings.unenforced or unenforced) != REFUSE


def _check_request(
    permissions: Permissions, chain: Sequence[ChainElement], config: ExecutionConfig
) -> tuple[MissingPart, ...]:
    from rye.permissions.requests import check_request

    url = config.config.get("url") if len(chain) > 1 else "{url}"
    redirects = bool(config.config.get("follow_redirects"))
    return check_request(permissions, url, chain[0].item_id, redirects=redirects)


def confiner_of(
    permissions: Permissions,
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    environment: ChainEnvironment,
    config: ExecutionConfig,
    *,
    context: Context,
    own: tuple[str, ...] = (),
) -> Confiner:
    """The confiner of a chain with these permissions."""
    from rye.permissions.profile import Confiner, Start, profile_of

    env, folder = environment.env, config.config["cwd"]
    interpreters = [env.get(name, "") for name in interpreter_variables(chain)]
    commands = [
        os.path.join(folder, one) if os.sep in one else one  # noqa: PTH118 - texts
        for one in (config.config["command"], *interpreters)
        if one
    ]
    profile = profile_of(
        permissions, environment.declared | _set_by_config(chain) | _set_by_anchor(anchor)
    )
    start = Start(
        commands=tuple(commands), path=env.get("PATH", ""), own=(*own, *_own_files(chain, anchor))
    )
    return Confiner(profile, start, chain[0].item_id, context)


def confined_process(
    name: str,
    process: Mapping[str, Any],
    permissions: Permissions,
    variables: Sequence[str],
    context: Context,
) -> dict[str, Any]:
    """The config of a process that no signed file describes yet, with these permissions.

    It gets the ``variables`` beside those of its permissions, and a private folder for temporary
    files. Raises :class:`PermissionsError`.
    """
    from rye.permissions.profile import Confiner, Start, profile_of

    own = joined([permissions, Permissions(write=(TMP,))])
    profile = profile_of(own, frozenset(variables))
    env = {name: value for name, value in process["env"].items() if profile.keeps(name)}
    start = Start(commands=(process["command"],), path=env.get("PATH", ""), own=())
    accepts = _accepts(UserSettings(context).current(), None, "")
    confiner = Confiner(profile, start, name, context)
    confinement = confiner.confinement(() if accepts else _required())
    return {**process, "env": env, "confinement": confinement}


def missing_parts(metadata: Mapping[str, Any]) -> list[str]:
    """What a person should be warned about, from the metadata of a result."""
    missing = (metadata.get("confinement") or {}).get("missing") or []
    return [
        f"{one['part']} ({one['reason']})" for one in missing if one["part"] not in NOT_REQUIRED
    ]


def _refuse_files(tool: str, config: Mapping[str, Any]) -> None:
    """Refuse files for the output of a job: the helper writes them, which is not confined."""
    for key in ("stdout_file", "stderr_file"):
        if config.get(key) is not None:
            raise PermissionsError(
                f"{tool!r} is confined, and {key} would be written with all your rights",
                hint="""write the file in the command, as in sh -c 'ls > "$1"' sh FILE""",
            )


def _reported(
    config: ExecutionConfig,
    tool: str,
    enforced: Mapping[str, str],
    missing: tuple[MissingPart, ...],
    accepts: bool,
) -> ExecutionConfig:
    if missing and not accepts:
        raise not_enforced(tool, ", ".join([f"{one.part} ({one.reason})" for one in missing]))
    parts = {one.part for one in missing}
    kept = {part: by for part, by in enforced.items() if part not in parts}
    return replaced(config, enforced=kept, missing=missing)


def not_enforced(tool: str, parts: str) -> NotEnforcedError:
    """The error for permissions that cannot be enforced."""
    return NotEnforcedError(
        f"{tool!r} declares permissions that cannot be enforced here: {parts}",
        hint=f"the user decides whether it may run without them, see: rye permissions check {tool}",
    )


@cache
def _required() -> tuple[str, ...]:
    from lilux.primitives.subprocess.confinement import PARTS

    return tuple([part for part in PARTS if part not in NOT_REQUIRED])


def _not_a_process(primitive: str) -> tuple[MissingPart, ...]:
    from lilux.primitives.subprocess.confinement import MissingPart

    return (MissingPart("fs", f"{primitive} does not start a process"),)


def _set_by_config(chain: Sequence[ChainElement]) -> frozenset[str]:
    variables = [element.metadata.config.get("env") for element in chain]
    return frozenset([name for one in variables if isinstance(one, Mapping) for name in one])


def _set_by_anchor(anchor: Anchor | None) -> frozenset[str]:
    return frozenset() if anchor is None else frozenset([one.name for one in anchor.env_paths])


def _own_files(chain: Sequence[ChainElement], anchor: Anchor | None) -> tuple[str, ...]:
    """The files that a tool consists of: its folder, and the libraries of its runtimes."""
    found = [str(one.path) for one in chain[1:] if one.path is not None]
    if chain[0].path is not None:
        found.append(str(chain[0].path.parent))
    if anchor is not None:
        found.append(str(anchor.path))
    lib = runtime_lib(chain)
    return tuple(found if lib is None else [*found, str(lib)])
