"""A volume's files change all at once, behind the `..data` link, and only when they have to."""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcloud.kubelet.atomic_writer import File, InvalidPayloadError, Payload, write

MODES = (0o400, 0o440, 0o600, 0o644, 0o755)

# A first letter says which names are directories, so that no path is both.
_directories = st.text("abc", max_size=3).map(lambda text: f"d{text}")
_leaves = st.text("ab.- é", max_size=8).map(lambda text: f"f{text}")
_paths = st.tuples(st.lists(_directories, max_size=2), _leaves).map(lambda parts: "/".join((*parts[0], parts[1])))
_files = st.builds(File, st.binary(max_size=64), st.sampled_from(MODES))
payloads = st.dictionaries(_paths, _files, max_size=5)


def seen(directory: Path) -> dict[str, tuple[bytes, int]]:
    """What a container finds, by path: every file that is reached without going through a hidden name."""
    found: dict[str, tuple[bytes, int]] = {}
    for top in directory.iterdir():
        if not top.name.startswith(".."):
            assert top.exists(), f"{top.name} leads nowhere"
            files = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
            found |= {
                file.relative_to(directory).as_posix(): (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
                for file in files
            }
    return found


def as_seen(payload: Payload) -> dict[str, tuple[bytes, int]]:
    return {path: (file.data, file.mode) for path, file in payload.items()}


@settings(max_examples=50)
@given(st.lists(payloads, min_size=1, max_size=4))
def test_the_directory_shows_the_newest_payload_and_nothing_else(versions: list[Payload]) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        before: Payload | None = None
        for payload in versions:
            assert write(directory, payload) == (payload != before)
            assert seen(directory) == as_seen(payload)
            hidden = sorted(entry.name for entry in directory.iterdir() if entry.name.startswith(".."))
            assert len(hidden) == 2, "the link and the one directory it leads to"
            before = payload


def test_files_are_links_through_the_data_link_to_a_timestamped_directory(tmp_path: Path) -> None:
    write(tmp_path, {"credential.json": File(b"{}"), "tls/key": File(b"k", 0o400)})

    assert (tmp_path / "credential.json").readlink() == Path("..data/credential.json")
    assert (tmp_path / "tls").readlink() == Path("..data/tls")
    inner = (tmp_path / "..data").readlink()
    assert len(inner.parts) == 1
    assert (tmp_path / inner).is_dir()
    assert stat.S_IMODE((tmp_path / inner).stat().st_mode) == 0o755
    # ..2006_01_02_15_04_05.<random>
    stamp, _, random = inner.name.removeprefix("..").partition(".")
    assert [len(part) for part in stamp.split("_")] == [4, 2, 2, 2, 2, 2]
    assert random


def test_the_same_payload_again_swaps_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    inner = (tmp_path / "..data").readlink()

    assert not write(tmp_path, {"a": File(b"1")})
    assert (tmp_path / "..data").readlink() == inner

    assert write(tmp_path, {"a": File(b"1", 0o600)}), "a mode is content, too"
    assert (tmp_path / "..data").readlink() != inner


def test_a_swap_keeps_the_links_and_gives_new_inodes(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    link, inode = (tmp_path / "a").lstat().st_ino, (tmp_path / "a").stat().st_ino

    write(tmp_path, {"a": File(b"2")})

    assert (tmp_path / "a").lstat().st_ino == link
    assert (tmp_path / "a").stat().st_ino != inode, "a watch on the file itself would see a deletion"


def test_what_was_changed_behind_the_writers_back_is_put_right(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})
    (tmp_path / "..data" / "a").write_bytes(b"tampered")

    assert write(tmp_path, {"a": File(b"1")})
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_failed_write_leaves_the_old_files(tmp_path: Path) -> None:
    write(tmp_path, {"a": File(b"1")})

    with pytest.raises(OSError, match="b"):
        write(tmp_path, {"a": File(b"2"), "b": File(b""), "b/c": File(b"")})

    assert seen(tmp_path) == {"a": (b"1", 0o644)}
    assert len(list(tmp_path.iterdir())) == 3, "the link, its directory and the file"


def test_a_link_that_a_killed_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "..data_tmp").symlink_to("..nowhere")

    write(tmp_path, {"a": File(b"1")})

    assert seen(tmp_path) == {"a": (b"1", 0o644)}
    assert not (tmp_path / "..data_tmp").is_symlink()


def test_a_path_is_what_it_means_not_how_it_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, {"./a//b": File(b"1")})
    assert not write(tmp_path, {"./a//b": File(b"1")})
    assert not write(tmp_path, {"a/b": File(b"1")})
    assert seen(tmp_path) == {"a/b": (b"1", 0o644)}


def test_a_path_that_is_the_volume_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path, {".": File(b"1")})

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "must not be empty"),
        ("/etc/passwd", "must be relative path: /etc/passwd"),
        ("a/../../b", "must not contain '..': a/../../b"),
        ("..data", "must not start with '..': ..data"),
        ("..", "must not contain '..': .."),
        ("n" * 256, "filenames must be less than or equal to 255 characters"),
        ("d/" * 2048 + "f", "must be less than or equal to 4096 characters"),
    ],
)
def test_a_path_that_leads_out_or_hides_is_refused_and_nothing_is_written(
    tmp_path: Path, path: str, problem: str
) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        write(tmp_path, {"good": File(b""), path: File(b"")})

    assert str(refused.value).startswith("invalid path: ")
    assert problem in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_does_not_show_its_data() -> None:
    assert repr(File(b"marker", 0o600)) == "File(6 bytes, 0o600)"
