import hashlib
import io
import urllib.error
import urllib.request
from dataclasses import replace
from email.message import Message
from pathlib import Path

import numpy as np
import pytest

from verydeep.data.known._catalogue import Download
from verydeep.data.known._download import RetryPolicy, download
from verydeep.data.known._http import HttpsStaysHttps
from verydeep.errors import UserError

from ._small_datasets import QUICK, Web

PAGE = np.random.default_rng(0).bytes(100_000)


def item(*bases: str, page: bytes = PAGE) -> Download:
    mirrors = tuple(f"{base}/set.gz" for base in bases)
    return Download("set.gz", len(page), hashlib.sha256(page).hexdigest(), mirrors, ("set",))


@pytest.fixture
def mirror(web: Web) -> Web:
    web.pages["set.gz"] = PAGE
    return web


def ranges(web: Web) -> list[str | None]:
    return [asked for _, asked in web.asked]


def test_a_file_is_downloaded_completely(mirror: Web, tmp_path: Path) -> None:
    path = download(item(mirror.address), tmp_path / "new" / "folder", QUICK)
    assert path.read_bytes() == PAGE
    assert [p.name for p in path.parent.iterdir()] == ["set.gz"]


def test_a_cut_connection_is_resumed_where_it_was_cut(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["cut:30000", "cut:50000"]
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert ranges(mirror) == [None, "bytes=30000-", "bytes=80000-"]


def test_attempts_that_bring_data_do_not_count_as_failed(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["cut:9000"] * 11
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert len(mirror.asked) == 12 > QUICK.attempts


def test_a_partial_file_of_an_earlier_run_is_resumed(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz.part").write_bytes(PAGE[:70_000])
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert ranges(mirror) == ["bytes=70000-"]


def test_a_complete_partial_file_is_not_requested_again(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz.part").write_bytes(PAGE)
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert mirror.asked == []


@pytest.mark.parametrize("foreign", [b"x" * 500, b"x" * 100_000, b"x" * 200_000])
def test_a_partial_file_of_another_file_is_downloaded_again(mirror: Web, tmp_path: Path, foreign: bytes) -> None:
    (tmp_path / "set.gz.part").write_bytes(foreign)
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert ranges(mirror)[-1] is None


def test_a_server_without_ranges_starts_again(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["cut:30000", "no-range"]
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert ranges(mirror) == [None, "bytes=30000-"]


def test_a_server_without_ranges_that_always_cuts_is_given_up(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["no-range cut:30000"] * 20
    with pytest.raises(UserError, match=r"connection cut at byte 30000 of 100000, gave up"):
        download(item(mirror.address), tmp_path, QUICK)
    assert len(mirror.asked) == 1 + QUICK.attempts


def test_what_was_received_is_kept_when_a_server_is_given_up(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz.part").write_bytes(PAGE[:50_000])
    mirror.plan = ["503"] * 20
    with pytest.raises(UserError, match=r"HTTP 503.*at byte 50000 of 100000, gave up"):
        download(item(mirror.address), tmp_path, QUICK)
    assert len(mirror.asked) == QUICK.attempts
    assert (tmp_path / "set.gz.part").read_bytes() == PAGE[:50_000]


def test_after_a_404_the_next_mirror_is_tried(mirror: Web, tmp_path: Path) -> None:
    first = f"{mirror.address}/first"
    mirror.plan = ["404"]
    assert download(item(first, mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert [path for path, _ in mirror.asked] == ["/first/set.gz", "/set.gz"]


def test_the_next_mirror_resumes_where_the_first_one_failed(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["cut:40000", "410"]
    download(item(f"{mirror.address}/first", mirror.address), tmp_path, QUICK)
    assert mirror.asked[-1] == ("/set.gz", "bytes=40000-")


@pytest.mark.parametrize("status", ["500", "503", "429"])
def test_requests_to_a_busy_server_are_retried(mirror: Web, tmp_path: Path, status: str) -> None:
    mirror.plan = [status, status]
    assert download(item(mirror.address), tmp_path, QUICK).read_bytes() == PAGE
    assert len(mirror.asked) == 3


def test_the_pause_doubles_between_attempts(mirror: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("verydeep.data.known._download.time.sleep", pauses.append)
    mirror.plan = ["503"] * 9
    with pytest.raises(UserError):
        download(item(mirror.address), tmp_path, RetryPolicy(timeout=5, attempts=4, pause=1.0))
    assert pauses == [1.0, 2.0, 4.0]


def test_a_wrong_digest_is_reported_and_the_next_mirror_tried(web: Web, tmp_path: Path) -> None:
    web.pages["set.gz"] = PAGE[:-1] + b"?"
    with pytest.raises(UserError, match=rf"{web.address}/a/set.gz: not the official file.*discarded\n.*/b/set.gz: not"):
        download(item(f"{web.address}/a", f"{web.address}/b"), tmp_path, QUICK)
    assert list(tmp_path.iterdir()) == []


def test_a_page_of_another_size_is_refused_before_it_is_read(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["other:please log in to this network"]
    (tmp_path / "set.gz.part").write_bytes(PAGE[:10])
    with pytest.raises(UserError, match="sends 29 bytes, the official file has 100000"):
        download(item(mirror.address), tmp_path, QUICK)
    assert (tmp_path / "set.gz.part").read_bytes() == PAGE[:10]


def test_a_range_that_was_not_requested_is_refused(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz.part").write_bytes(PAGE[:10])
    mirror.plan = ["range:bytes 0-99/100"]
    with pytest.raises(UserError, match="asked for bytes 10 to 99999 of 100000, got 'bytes 0-99/100'"):
        download(item(mirror.address), tmp_path, QUICK)


def test_a_slow_server_does_not_time_out_while_data_arrives(web: Web, tmp_path: Path) -> None:
    page = PAGE[:300]
    web.pages["set.gz"], web.plan = page, ["trickle"]
    assert download(item(web.address, page=page), tmp_path, replace(QUICK, timeout=2.0)).read_bytes() == page
    assert len(web.asked) == 1


def test_after_timeouts_the_next_mirror_is_tried(mirror: Web, tmp_path: Path) -> None:
    mirror.plan = ["hang", "hang"]
    retry = RetryPolicy(timeout=0.2, attempts=2, pause=0.0)
    download(item(f"{mirror.address}/silent", mirror.address), tmp_path, retry)
    assert [path for path, _ in mirror.asked] == ["/silent/set.gz", "/silent/set.gz", "/set.gz"]


def test_unreachable_servers_and_hosts_are_reported(web: Web, tmp_path: Path) -> None:
    web.close()
    with pytest.raises(UserError) as caught:
        download(item(web.address, "http://no-such-host.invalid"), tmp_path, QUICK)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{web.address}/set.gz: Connection refused")
    assert second.startswith("http://no-such-host.invalid/set.gz: ")


def test_the_proxy_of_the_environment_is_used(mirror: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", mirror.address)
    monkeypatch.delenv("no_proxy", raising=False)
    assert download(item("http://behind-a-proxy.invalid"), tmp_path, QUICK).read_bytes() == PAGE
    assert mirror.asked == [("http://behind-a-proxy.invalid/set.gz", None)]


def test_a_redirect_away_from_https_is_refused() -> None:
    asked = urllib.request.Request("https://safe.invalid/set.gz")
    follow = HttpsStaysHttps().redirect_request
    assert follow(asked, io.BytesIO(), 302, "Found", Message(), "https://elsewhere.invalid/set.gz")
    with pytest.raises(urllib.error.HTTPError, match="insecure"):
        follow(asked, io.BytesIO(), 302, "Found", Message(), "http://elsewhere.invalid/set.gz")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_progress(mirror: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    download(item(mirror.address), tmp_path, QUICK)
    assert "set.gz" in terminal.getvalue()
    assert "100.0/100.0 kB" in terminal.getvalue()


def test_without_a_terminal_a_download_is_quiet(
    mirror: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    download(item(mirror.address), tmp_path, QUICK)
    assert capsys.readouterr() == ("", "")


def test_a_file_that_is_already_there_is_not_replaced(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz").write_bytes(b"mine")
    with pytest.raises(UserError, match=r"set\.gz: already exists"):
        download(item(mirror.address), tmp_path, QUICK)
    assert (tmp_path / "set.gz").read_bytes() == b"mine"


def test_a_full_disk_is_reported_at_once(mirror: Web, tmp_path: Path) -> None:
    (tmp_path / "set.gz.part").symlink_to("/dev/full")  # the kernel's own ENOSPC, without needing a full disk
    with pytest.raises(
        UserError, match=r"set\.gz\.part: the disk is full \(No space left on device\); free some space"
    ):
        download(item(mirror.address, mirror.address), tmp_path, QUICK)
    assert len(mirror.asked) == 1


@pytest.mark.parametrize("folder", ["file/sub", "file"])
def test_a_folder_that_cannot_be_created_is_reported(mirror: Web, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match=rf"{folder}: cannot be written"):
        download(item(mirror.address), tmp_path / folder, QUICK)
    assert mirror.asked == []
