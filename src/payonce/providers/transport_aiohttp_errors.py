"""Every error of aiohttp's client, placed; see transport_errors for what a place means."""

from __future__ import annotations

from typing import Final

from aiohttp import client_exceptions as http_errors
from aiohttp import http_exceptions

from payonce.providers import transport_errors
from payonce.providers.transport_errors import Places

# Raised by its connector, which is done before a request is handed over.
NOT_SENT: Final[dict[type[BaseException], str]] = {
    http_errors.ClientConnectorError: "connect_failed",
    http_errors.ClientConnectorDNSError: "dns_failed",
    http_errors.ClientProxyConnectionError: "proxy_failed",
    http_errors.ClientHttpProxyError: "proxy_failed",  # the proxy refused CONNECT; ours comes after it
    http_errors.UnixClientConnectorError: "connect_failed",
    http_errors.ClientSSLError: "tls_failed",
    http_errors.ClientConnectorSSLError: "tls_failed",
    http_errors.ClientConnectorCertificateError: "tls_failed",
    http_errors.ServerFingerprintMismatch: "tls_failed",
    http_errors.ConnectionTimeoutError: "connect_timeout",
    http_errors.InvalidURL: "bad_address",
    http_errors.InvalidUrlClientError: "bad_address",
    http_errors.NonHttpUrlClientError: "bad_address",
}

# Raised, or possibly raised, in an exchange.
MAY_HAVE_BEEN_SENT: Final[dict[type[BaseException], str]] = {
    http_errors.ClientError: "network_error",
    http_errors.ClientConnectionError: "reset",
    http_errors.ClientConnectionResetError: "reset",
    http_errors.ClientOSError: "reset",
    http_errors.ServerConnectionError: "reset",
    http_errors.ServerDisconnectedError: "closed",
    http_errors.ServerTimeoutError: "timeout",
    http_errors.SocketTimeoutError: "timeout",
    http_errors.ClientPayloadError: "cut_short",
    http_errors.ClientResponseError: "bad_answer",
    http_errors.ContentTypeError: "bad_answer",
    http_errors.TooManyRedirects: "bad_answer",
    http_errors.RedirectClientError: "bad_answer",
    http_errors.InvalidUrlRedirectClientError: "bad_answer",
    http_errors.NonHttpUrlRedirectClientError: "bad_answer",
    http_errors.WSServerHandshakeError: "bad_answer",
    http_errors.WSMessageTypeError: "bad_answer",
    http_errors.UploadAbortedError: "reset",
    http_exceptions.HttpProcessingError: "bad_answer",
}

PLACES: Final = Places(transport_errors.NOT_SENT | NOT_SENT, transport_errors.MAY_HAVE_BEEN_SENT | MAY_HAVE_BEEN_SENT)
