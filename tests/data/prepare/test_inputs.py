import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from verydeep.config import from_dict, to_dict
from verydeep.data import Dataset, Inputs, load_dataset
from verydeep.errors import UserError


def saved_and_loaded(data: Dataset) -> Inputs:
    return from_dict(Inputs, json.loads(json.dumps(to_dict(Inputs.of(data)), allow_nan=False)), "inputs")


def test_a_new_table_is_prepared_like_the_training_data(tmp_path: Path) -> None:
    rows = [f"{i * 1.7},{'red' if i % 2 else 'blue'},{i % 3}" for i in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["size,colour,label", *rows]))
    (tmp_path / "new.csv").write_text("colour,size\nred,3\n,100\ngreen,\n")
    data = load_dataset(tmp_path / "a.csv", test_path=str(tmp_path / "a.csv"))
    inputs = saved_and_loaded(data)
    assert inputs == Inputs.of(data)
    assert torch.equal(inputs.read(tmp_path / "a.csv"), data.test.x)
    assert inputs.read(tmp_path / "new.csv").shape == (3, 3)
    assert inputs.classes == ("0", "1", "2")


def test_new_arrays_and_images_are_prepared_like_the_training_data(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, 5, 7, 3)).astype(np.uint8)
    for i, image in enumerate(images):
        (tmp_path / "all" / str(i % 2)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "all" / str(i % 2) / f"{i}.png")
    np.savez(tmp_path / "new.npz", x=images)
    data = load_dataset(tmp_path / "all", test_path=str(tmp_path / "all"))
    inputs = saved_and_loaded(data)
    assert torch.equal(inputs.read(tmp_path / "all" / "0" / "2.png")[0], data.test.x[1])
    torch.testing.assert_close(inputs.read(tmp_path / "new.npz")[1], data.test.x[4])


def test_new_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(10)))
    inputs = Inputs.of(load_dataset(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("b\n1\n")
    with pytest.raises(UserError, match=r"b\.csv: no column 'a'; it has 'b'"):
        inputs.read(tmp_path / "b.csv")
    with pytest.raises(UserError, match="no such file"):
        inputs.read(tmp_path / "c.csv")
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 3)), y=np.arange(4) % 2)
    arrays = Inputs.of(load_dataset(tmp_path / "x.npz", test=1))
    np.savez(tmp_path / "n.npz", x=np.zeros((4, 2)))
    with pytest.raises(UserError, match=r"shape \(2,\), the training data has \(3,\)"):
        arrays.read(tmp_path / "n.npz")
    Image.new("L", (3, 3)).save(tmp_path / "i.png")
    with pytest.raises(UserError, match=r"trained on \(3,\) numbers, not on images"):
        arrays.read(tmp_path / "i.png")
