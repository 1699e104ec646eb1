"""Published files as they are fetched: one file, or the wanted members of an archive."""

import http.server
import tarfile
import threading
import zipfile
from functools import partial

import pytest

from gmn_prep.datasets import DATASETS
from gmn_prep.datasets.public.raw.download import download
from gmn_prep.datasets.public.raw.raw_files import download_files
from tests.prep.datasets.public.raw_folders import files_below


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder and the address that serves it."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "site"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_by_itself(site, tmp_path):
    folder, url = site
    (folder / "a.npz").write_bytes(b"1")
    download(f"{url}/a.npz", {"a.npz": tmp_path / "raw/a.npz"})
    assert files_below(tmp_path / "raw") == ["a.npz"]
    with pytest.raises(OSError, match="404"):
        download(f"{url}/b.npz", {"b.npz": tmp_path / "raw/b.npz"})
    assert files_below(tmp_path / "raw") == ["a.npz"]


def test_members_go_to_their_place_and_others_nowhere(site, tmp_path):
    folder, url = site
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for name in ("peptidesfunc/train.pt", "peptidesfunc/val.pt", "readme", "../../outside.pt"):
            archive.writestr(name, name)
    wanted = {name: tmp_path / "raw" / name for name in ("train.pt", "val.pt", "test.pt")}
    download(f"{url}/all.zip?dl=1", wanted)
    assert files_below(tmp_path / "raw") == ["train.pt", "val.pt"]
    assert (tmp_path / "raw/val.pt").read_text() == "peptidesfunc/val.pt"


def test_a_listing_comes_before_what_it_lists(site, tmp_path):
    from dataclasses import replace

    folder, url = site
    with zipfile.ZipFile(folder / "split.zip", "w") as archive:
        for part in ("train", "val", "test"):
            archive.writestr(f"split_info_tiny/type/{part}.txt", f"adware/a/{part}\n")
    lists = tmp_path / "lists"
    for part in ("train", "val", "test", "more"):
        path = lists / f"adware/a/{part}.edgelist"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#\n" * 5 + "0\t1\n")
    with tarfile.open(folder / "graphs.tar.gz", "w:gz") as archive:
        archive.add(lists, "malnet-graphs-tiny")
    raw = replace(DATASETS["malnet-tiny"].raw, parts=(f"{url}/split.zip", f"{url}/graphs.tar.gz"))
    download_files(raw, tmp_path / "scratch")
    assert raw.missing(tmp_path / "scratch") == []
    assert not list((tmp_path / "scratch").rglob("more.edgelist"))
