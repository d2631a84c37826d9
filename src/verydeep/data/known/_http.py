"""One HTTP(S) request for the rest of a file, and what its failures mean: retry, or go to the next mirror."""

import http
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import IO

_RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504}
_RANGE_NOT_SATISFIABLE = 416


class RetryableError(Exception):
    """The request failed, but another attempt at the same address may succeed."""


class MirrorFailed(Exception):  # noqa: N818 - an outcome that the download loop acts on
    """This address cannot provide the file."""


class PartialMismatch(RetryableError):  # noqa: N818
    """The server's file is shorter than the part received so far, which therefore belongs to another file."""


@contextmanager
def request(url: str, start: int, timeout: float) -> Iterator[http.client.HTTPResponse]:
    """Request the file from byte `start` on; failures to open or read it become one of the exceptions above."""
    headers = {"User-Agent": "verydeep", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with _open(urllib.request.Request(url, headers=headers), timeout) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise _from_status(error) from error
    except urllib.error.URLError as error:
        raise _from_connection(error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise RetryableError(f"connection lost ({_message(error)})") from error


def first_byte(response: http.client.HTTPResponse, start: int, size: int) -> int:
    """The position at which the response begins: a server without range support sends the whole file again."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        sent = response.headers.get("Content-Range", "")
        if sent not in (f"bytes {start}-{size - 1}/{size}", f"bytes {start}-{size - 1}/*"):
            raise MirrorFailed(f"asked for bytes {start} to {size - 1} of {size}, got '{sent}'")
        return start
    length = response.headers.get("Content-Length", str(size))
    if length != str(size):
        raise MirrorFailed(f"sends {length} bytes, the official file has {size}")
    return 0


class HttpsStaysHttps(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            raise urllib.error.HTTPError(req.full_url, code, "redirects to an insecure address", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _open(asked: urllib.request.Request, timeout: float) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(HttpsStaysHttps)  # reads the proxy settings of the environment
    response: http.client.HTTPResponse = opener.open(asked, timeout=timeout)
    return response


def _from_status(error: urllib.error.HTTPError) -> Exception:
    message = f"HTTP {error.code} {error.reason}"
    if error.code == _RANGE_NOT_SATISFIABLE:
        return PartialMismatch(message)
    return RetryableError(message) if error.code in _RETRYABLE_STATUS else MirrorFailed(message)


def _from_connection(reason: object) -> Exception:
    permanent = isinstance(reason, socket.gaierror | ConnectionRefusedError | ssl.SSLCertVerificationError | str)
    return (MirrorFailed if permanent else RetryableError)(_message(reason))


def _message(reason: object) -> str:
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
