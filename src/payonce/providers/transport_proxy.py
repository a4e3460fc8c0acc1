"""Which proxy a provider is reached through: the setting's, else the environment's, as users of curl expect.

Read once when the provider is built, not for every call.
"""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

from payonce.providers.secrets import Vault
from payonce.providers.settings_values import bad_setting


def proxy_for(base_url: str, setting: str | None, *, vault: Vault) -> str | None:
    """The proxy's address or None. ``setting``: an address, ``"none"``, or None for ``HTTPS_PROXY`` and its kin.

    Raises ConfigError ``bad_setting`` for an address that is not one.
    """
    if setting is not None:
        if setting.lower() == "none":
            return None
        return _checked(vault.address(setting, place="[provider] proxy"), "[provider] proxy")
    parts = urlsplit(base_url)
    host = parts.netloc.rpartition("@")[2]
    if urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found:
        return None
    address = found if "://" in found else f"http://{found}"
    password = urlsplit(address).password
    if password:
        vault.keep(password, place=f"the password in {parts.scheme.upper()}_PROXY")
    return _checked(address, f"the environment's {parts.scheme.upper()}_PROXY")


def _checked(address: str, place: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_setting(f"{place} is not the address of an HTTP proxy", hint='like "http://proxy.example.com:3128"')
    return address
