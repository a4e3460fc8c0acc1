"""Whose account a provider's credentials belong to: read from the API, or as the configuration says."""

from __future__ import annotations

from payonce.core.errors import ConfigError
from payonce.core.model import Request
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, PathError
from payonce.providers.http_config import HttpConfig
from payonce.providers.protocol import Identity
from payonce.providers.transport import Fault, Transport, always_open

_PLACE = "[provider.identity]"


async def read_identity(config: HttpConfig, transport: Transport) -> Identity:
    """The account and mode. Sends one read where [provider.identity] names one, else nothing.

    Raises ConfigError: ``bad_credentials`` for 401 and 403, ``identity_unreadable`` where no answer tells it,
    ``wrong_account`` where it is not the configured one.
    """
    if config.identity is None:
        return Identity(config.account, config.mode)
    timeout_us = config.declaration.timeout_us
    answer = await transport.send(Request("GET", config.identity.path), timeout_us=timeout_us, gate=always_open)
    if isinstance(answer, Fault):
        raise _unreadable(f"no answer ({answer.code})")
    if answer.status in (401, 403):
        raise ConfigError(
            f"the provider does not accept the credentials (status {answer.status})",
            code="bad_credentials",
            hint="check the variable that the credentials come from, and whether they are for this environment",
        )
    if answer.status != 200:
        raise _unreadable(f"status {answer.status}")
    try:
        tree = values.parse(answer.body)
        account = values.text(Path(config.identity.account, place=f"{_PLACE} account").find(tree, answer))
        mode = _mode(config, tree) or config.mode
    except (ValueError, PathError) as error:
        raise _unreadable(config.redactor.text(str(error))[:200]) from error
    if account is None:
        raise _unreadable(f"{_PLACE} account leads nowhere in the answer")
    if config.account not in (None, account) or config.mode not in (None, mode):
        raise ConfigError(
            f"the credentials belong to {account} ({mode or 'mode unknown'}), the batch file says {config.account} "
            f"({config.mode or 'any mode'})",
            code="wrong_account",
            hint="use the credentials of the account in the batch file, or correct account and mode there",
        )
    return Identity(account, mode)


def _mode(config: HttpConfig, tree: object) -> str | None:
    """``live`` or ``test``: as a word, or as a flag that is true for live."""
    if config.identity is None or config.identity.mode is None:
        return None
    found = Path(config.identity.mode, place=f"{_PLACE} mode").find(tree)
    if isinstance(found, bool):
        return "live" if found else "test"
    return values.text(found)


def _unreadable(why: str) -> ConfigError:
    return ConfigError(
        f"the provider does not tell whose credentials these are: {why}",
        code="identity_unreadable",
        hint=f"check base_url, {_PLACE} and the network; payonce doctor makes the same read",
    )
