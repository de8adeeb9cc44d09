"""Uploaded archives: what is a workflow folder is unpacked, what is an attack is refused."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest

from chiron.services import archives
from chiron.services.archives import unpack
from chiron.services.folders import folder_name
from chiron.workflow.errors import ChironError

FILES = {"workflow.json": b"{}", "functions/side/handler.py": b"def handle(req): ..."}


def tar_of(files, **fields):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for field, value in fields.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(content))
    packed.seek(0)
    return packed


def zip_of(files, **fields):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for field, value in fields.items():
                setattr(info, field, value)
            archive.writestr(info, content)
    packed.seek(0)
    return packed


@pytest.fixture(params=[tar_of, zip_of])
def pack(request):
    return request.param


@pytest.fixture
def refused(tmp_path):
    """The error that unpacking gives, after which nothing lies outside its folder."""

    def unpack_it(archive):
        with pytest.raises(ChironError) as refusal:
            unpack(archive, tmp_path / "target")
        assert [path.name for path in tmp_path.iterdir()] == ["target"]
        return refusal.value

    return unpack_it


@pytest.mark.parametrize("top", ["", "./", "finra/", "finra-main/"])
def test_a_folder_is_unpacked_with_or_without_its_top(pack, tmp_path, top):
    archive = pack({f"{top}{name}": content for name, content in FILES.items()})

    folder = unpack(archive, tmp_path / "target")

    assert {n: (folder / n).read_bytes() for n in FILES} == FILES


@pytest.mark.parametrize(
    "name",
    ["../escape", "/escape", "a/../../escape", "a\\..\\escape", "a\nb", "x" * 300, "é" * 200],
)
def test_names_that_leave_the_folder_or_cannot_be_files_are_refused(pack, refused, name):
    assert refused(pack({**FILES, name: b""})).code == "bad-archive"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_of_a_tar_are_refused(refused, kind):
    error = refused(tar_of({"workflow.json": b""}, type=kind, linkname="/etc/passwd"))

    assert error.code == "bad-archive"
    assert "workflow.json" in error.message


def test_links_of_a_zip_are_refused(refused):
    linked = zip_of({"workflow.json": b"/etc/passwd"}, external_attr=(stat.S_IFLNK | 0o777) << 16)

    assert refused(linked).code == "bad-archive"


def test_modes_and_owners_stay_in_the_archive(tmp_path):
    folder = unpack(tar_of(FILES, mode=0o6777, uid=12345), tmp_path / "target")

    file = (folder / "workflow.json").stat()
    assert file.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IXUSR) == 0
    assert file.st_uid == tmp_path.stat().st_uid


def test_a_name_that_is_there_twice_is_refused(refused):
    twice = io.BytesIO()
    with tarfile.open(fileobj=twice, mode="w:gz") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("workflow.json"), io.BytesIO())
    twice.seek(0)

    assert refused(twice).code == "bad-archive"


def test_what_unpacks_to_more_than_the_limit_is_refused(pack, refused, monkeypatch):
    monkeypatch.setattr(archives, "TOTAL_LIMIT", 1024 * 1024)
    bomb = pack({**FILES, "zeros": bytes(2 * 1024 * 1024)})
    assert len(bomb.getvalue()) < 16 * 1024

    error = refused(bomb)

    assert (error.code, error.status) == ("too-large", 413)


def test_a_tar_whose_header_is_the_bomb_is_refused(refused, monkeypatch):
    monkeypatch.setattr(archives, "TOTAL_LIMIT", 1024 * 1024)
    bomb = io.BytesIO()
    with tarfile.open(fileobj=bomb, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("workflow.json")
        info.pax_headers = {"comment": "0" * 2 * 1024 * 1024}
        archive.addfile(info)
    bomb.seek(0)

    assert refused(bomb).code == "too-large"


def test_more_members_than_the_limit_are_refused(pack, refused, monkeypatch):
    monkeypatch.setattr(archives, "MEMBER_LIMIT", 10)

    assert refused(pack({str(number): b"" for number in range(11)})).code == "too-large"


def test_folders_that_only_names_of_members_make_count_too(pack, refused, monkeypatch):
    monkeypatch.setattr(archives, "MEMBER_LIMIT", 100)
    deep = {f"{number}{'/a' * 20}/file": b"" for number in range(20)}

    assert refused(pack(FILES | deep)).code == "too-large"


def test_folders_of_several_members_count_once(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MEMBER_LIMIT", 60)
    together = {f"a{'/a' * 20}/{number}": b"" for number in range(30)}

    unpack(pack(FILES | together), tmp_path / "target")


def test_a_member_lies_no_deeper_than_the_limit(pack, refused):
    assert refused(pack(FILES | {"a/" * 33 + "file": b""})).code == "bad-archive"


def test_a_zip_with_a_list_of_members_that_is_a_bomb_is_refused_unread(refused):
    # What the end says is believed: a member takes at least 46 bytes of the list.
    bomb = bytearray(zip_of(FILES).getvalue())
    end = bomb.rfind(b"PK\5\6")
    bomb[end + 12 : end + 16] = (200_000 * 46).to_bytes(4, "little")

    assert refused(io.BytesIO(bytes(bomb))).code == "too-large"


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04" + bytes(60)])
def test_what_is_no_archive_is_refused(refused, content):
    assert refused(io.BytesIO(content)).code == "bad-archive"


def test_an_archive_that_ends_early_is_refused(pack, refused):
    whole = pack(FILES).getvalue()

    assert refused(io.BytesIO(whole[: len(whole) // 2])).code == "bad-archive"


def test_an_archive_without_a_workflow_is_refused(pack, refused):
    assert refused(pack({"one/workflow.json": b"{}", "two/a": b""})).code == "missing-file"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("finra.tar.gz", "finra"),
        ("FINRA.zip", "finra"),
        ("../x.zip", "workflow"),
        (None, "workflow"),
    ],
)
def test_a_workflow_without_a_name_is_called_as_its_archive(file, name):
    assert folder_name(file) == name
