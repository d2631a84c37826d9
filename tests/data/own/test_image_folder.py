import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from verydeep.data import load_dataset
from verydeep.data.own._image_folder import FORMATS, read_image, with_channels
from verydeep.errors import UserError


def picture(
    path: Path, colour: int | tuple[int, int, int] = (200, 30, 5), size: tuple[int, int] = (6, 4), mode: str = "RGB"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def folder(root: Path, count: int = 5, **options: object) -> Path:
    for c, name in enumerate(("cats", "dogs")):
        for i in range(count):
            picture(root / name / f"{i}.png", (10 * c + i, 50, 60), **options)  # type: ignore[arg-type]
    return root


def test_each_folder_is_a_class(tmp_path: Path) -> None:
    data = load_dataset(folder(tmp_path / "pets"), preprocess="none")
    assert data.name == "pets"
    assert data.classes == ("cats", "dogs")
    assert data.train.x.shape == (8, 3, 4, 6)
    assert data.train.x.dtype == torch.uint8
    assert torch.equal(data.train.x[:, 0, 0, 0] // 10, data.train.y)
    assert (data.train.x[:, 2] == 60).all()


def test_train_valid_and_test_folders_are_the_splits(tmp_path: Path) -> None:
    for name, count in (("train", 4), ("val", 2), ("test", 3)):
        folder(tmp_path / name, count)
    data = load_dataset(tmp_path)
    assert data.valid is not None
    assert (len(data.train), len(data.valid), len(data.test)) == (8, 4, 6)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    folder(tmp_path).joinpath("cats").rename(tmp_path / "train")
    assert load_dataset(tmp_path).classes == ("dogs", "train")


def test_two_folders_for_one_split_are_refused(tmp_path: Path) -> None:
    for name in ("train", "val", "Valid", "test"):
        folder(tmp_path / name)
    with pytest.raises(UserError, match="both Valid and val name the same split"):
        load_dataset(tmp_path)


def test_numbered_folders_are_sorted_numerically(tmp_path: Path) -> None:
    for name in ("10", "9", "1"):
        for i in range(3):
            picture(tmp_path / name / f"{i}.png")
    assert load_dataset(tmp_path, test=2).classes == ("1", "9", "10")


def test_grey_images_have_one_channel_unless_one_has_colour(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for i in range(5):
            picture(tmp_path / name / f"{i}.png", 77, mode="L")
    data = load_dataset(tmp_path)
    assert data.train.x.shape[1] == 1
    assert torch.equal(data.train.x, torch.full_like(data.train.x, 77 / 256))
    picture(tmp_path / "a" / "colour.png")
    assert load_dataset(tmp_path).train.x.shape[1] == 3
    assert load_dataset(tmp_path, channels=1).train.x.shape[1] == 1


def test_colour_converted_to_grey_is_what_pillow_gives(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = np.array(Image.fromarray(pixels).convert("L")).astype(int)
    assert np.abs(with_channels(read_image(tmp_path / "a.png"), 1)[0].astype(int) - expected).max() <= 1


def test_images_are_resized_when_asked(tmp_path: Path) -> None:
    folder(tmp_path)
    picture(tmp_path / "cats" / "large.jpg", size=(60, 40))
    assert load_dataset(tmp_path, image_size=8).train.x.shape == (9, 3, 8, 8)


def test_the_error_for_images_of_several_sizes_gives_two_of_them(tmp_path: Path) -> None:
    folder(tmp_path)
    picture(tmp_path / "dogs" / "large.png", size=(60, 40))
    with pytest.raises(UserError, match=r"large\.png is 60x40 pixels, .*0\.png is 6x4; .*image_size"):
        load_dataset(tmp_path)


def test_a_photograph_is_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    folder(tmp_path, size=(4, 6))
    Image.new("RGB", (6, 4)).save(tmp_path / "cats" / "photo.jpg", exif=exif)
    assert load_dataset(tmp_path).train.x.shape[2:] == (6, 4)


@pytest.mark.parametrize("mode", ["1", "LA", "P", "RGBA", "CMYK"])
def test_other_kinds_of_8_bit_images_are_converted(tmp_path: Path, mode: str) -> None:
    folder(tmp_path)
    image = Image.new("RGB", (6, 4), (51, 51, 51)).convert(mode)
    image.save(tmp_path / "cats" / ("a.tif" if mode == "CMYK" else "a.png"))
    data = load_dataset(tmp_path, preprocess="none")
    pixels = torch.from_numpy(np.moveaxis(np.array(image.convert("RGB")), 2, 0))
    assert any(torch.equal(x, pixels) for x in torch.cat([data.train.x, data.test.x]))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_a_dark_shape_on_a_transparent_background_becomes_dark_on_white(tmp_path: Path, mode: str) -> None:
    image = Image.new("RGBA" if mode in ("RGBA", "P", "RGB") else "LA", (6, 4), 0)
    image.paste((0, 0, 0, 255) if image.mode == "RGBA" else (0, 255), (1, 1, 3, 3))
    path = tmp_path / "a.png"
    if mode in ("RGBA", "LA"):
        image.save(path)
    else:  # no channel of its own: one colour stands for nothing
        solid = Image.new(mode, (6, 4), (1, 1, 1) if mode == "RGB" else 1)
        solid.paste((0, 0, 0) if mode == "RGB" else 0, (1, 1, 3, 3))
        if mode == "P":
            solid.putpalette([0, 0, 0, 1, 1, 1])
        solid.save(path, transparency=(1, 1, 1) if mode == "RGB" else 1)
    expected = np.full((4, 6), 255, dtype=np.uint8)
    expected[1:3, 1:3] = 0
    pixels = read_image(path)
    assert len(pixels) == (1 if mode in ("LA", "L") else 3)
    assert all(np.array_equal(channel, expected) for channel in pixels)


def test_half_transparent_pixels_are_blended_with_white(tmp_path: Path) -> None:
    Image.new("RGBA", (6, 4), (0, 100, 200, 128)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png")[:, 0, 0].tolist() == [127, 177, 227]


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 50])
def test_an_unreadable_image_is_reported(tmp_path: Path, content: bytes) -> None:
    (folder(tmp_path) / "cats" / "bad.png").write_bytes(content)
    with pytest.raises(UserError, match=r"bad\.png: cannot be read as an image"):
        load_dataset(tmp_path)


def test_an_image_of_too_many_pixels_is_not_decoded(tmp_path: Path) -> None:
    Image.new("1", (40_000, 2_000)).save(folder(tmp_path) / "cats" / "large.png")
    with pytest.raises(UserError, match=r"large\.png: has 40,000 x 2,000 pixels, and an image may have 67,108,864"):
        load_dataset(tmp_path, image_size=8)


@pytest.mark.parametrize("kind", ["EPS", "PDF", "ICO"])
def test_other_formats_named_as_images_are_refused_and_start_no_program(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr("PIL.EpsImagePlugin.has_ghostscript", lambda: True)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", "gs")
    monkeypatch.setattr("subprocess.check_call", lambda *arguments, **_: started.append(arguments))
    Image.new("RGB", (16, 16)).save(folder(tmp_path) / "cats" / "0.png", format=kind)
    with pytest.raises(UserError, match=r"0\.png: cannot be read as an image: its content is not PNG, .* or PPM$"):
        load_dataset(tmp_path)
    assert started == []


@pytest.mark.parametrize("kind", FORMATS)
def test_every_supported_format_is_recognised_by_its_content(tmp_path: Path, kind: str) -> None:
    Image.new("RGB", (6, 4), (255, 255, 255)).save(tmp_path / "a.png", format=kind)
    assert (read_image(tmp_path / "a.png") == 255).all()


def test_a_truncated_image_is_reported(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (90, 90, 3)).astype(np.uint8)
    path = folder(tmp_path) / "cats" / "cut.png"
    Image.fromarray(pixels).save(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"cut\.png: cannot be read as an image"):
        load_dataset(tmp_path, image_size=8)


def test_more_than_8_bits_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 6), dtype=np.uint16)).save(folder(tmp_path) / "cats" / "deep.png")
    with pytest.raises(UserError, match=r"deep\.png: .*more than 8 bits"):
        load_dataset(tmp_path)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no images; expected one folder of images per class"):
        load_dataset(tmp_path)
    (folder(tmp_path) / "cows").mkdir()
    with pytest.raises(UserError, match=r"cows: no images"):
        load_dataset(tmp_path)


def test_one_class_only_is_refused(tmp_path: Path) -> None:
    picture(tmp_path / "cats" / "0.png")
    with pytest.raises(UserError, match="only one class, 'cats'"):
        load_dataset(tmp_path)


def test_a_class_only_in_the_test_folder_is_reported_with_its_file(tmp_path: Path) -> None:
    folder(tmp_path / "train")
    picture(tmp_path / "test" / "cows" / "7.png")
    with pytest.raises(UserError, match=r"7\.png: class 'cows' does not occur"):
        load_dataset(tmp_path)


def test_other_files_and_hidden_ones_are_skipped(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "cats" / "notes.txt").write_text("hello")
    (tmp_path / "cats" / ".hidden.png").write_text("hello")
    (tmp_path / ".git").mkdir()
    assert len(load_dataset(tmp_path).train) == 8


def test_a_class_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder(tmp_path)
    picture(tmp_path / os.fsdecode(b"caf\xe9") / "0.png")
    with pytest.raises(UserError, match=r"the class 'caf\\udce9' has a name that is not UTF-8; rename the folder"):
        load_dataset(tmp_path)
