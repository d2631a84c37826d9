"""One HTTP(S) request for the rest of a file, and what its failures mean: try again, or go elsewhere."""

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

_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_NO_SUCH_RANGE = 416


class CutError(Exception):
    """Worth another attempt at the same address."""


class UselessError(Exception):
    """Nothing to be had from this address."""


class ForeignBytesError(CutError):
    """The server has fewer bytes than we already hold: ours are not of this file."""


@contextmanager
def request(url: str, start: int, timeout: float) -> Iterator[http.client.HTTPResponse]:
    """Ask for the file from byte `start` on; failures in opening and in reading become one of the errors above."""
    headers = {"User-Agent": "verydeep", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with _open(urllib.request.Request(url, headers=headers), timeout) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise _meaning(error) from error
    except urllib.error.URLError as error:
        raise _unreachable(error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise CutError(f"connection lost ({_said(error)})") from error


def first_byte(response: http.client.HTTPResponse, start: int, size: int) -> int:
    """Where the answer begins: a server without ranges sends everything again, which is fine."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        sent = response.headers.get("Content-Range", "")
        if sent not in (f"bytes {start}-{size - 1}/{size}", f"bytes {start}-{size - 1}/*"):
            raise UselessError(f"asked for bytes {start} to {size - 1} of {size}, got '{sent}'")
        return start
    length = response.headers.get("Content-Length", str(size))
    if length != str(size):
        raise UselessError(f"sends {length} bytes, the official file has {size}")
    return 0


def _meaning(error: urllib.error.HTTPError) -> Exception:
    said = f"HTTP {error.code} {error.reason}"
    if error.code == _NO_SUCH_RANGE:
        return ForeignBytesError(said)
    return CutError(said) if error.code in _TRY_AGAIN else UselessError(said)


def _unreachable(reason: object) -> Exception:
    for_good = isinstance(reason, socket.gaierror | ConnectionRefusedError | ssl.SSLCertVerificationError | str)
    return (UselessError if for_good else CutError)(_said(reason))


def _said(reason: object) -> str:
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


class StaysSecure(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            raise urllib.error.HTTPError(req.full_url, code, "redirects to an insecure address", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _open(asked: urllib.request.Request, timeout: float) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(StaysSecure)  # takes the proxies that are set now
    response: http.client.HTTPResponse = opener.open(asked, timeout=timeout)
    return response
