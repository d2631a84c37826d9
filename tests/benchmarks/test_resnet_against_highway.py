"""The comparison of residual and highway networks, on digits."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import resnet_against_highway


@pytest.mark.slow
def test_a_network_is_trained_measured_and_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = shlex.split("--networks highway-20 --data digits --epochs 1 --samples 20 --choosing 20 --draws 1")
    places = {"--folder": tmp_path / "runs", "--out": tmp_path / "a.json", "--picture": tmp_path / "a.png"}
    arguments = [*options, *(str(word) for pair in places.items() for word in pair)]
    monkeypatch.setattr(sys, "argv", ["resnet_against_highway", *arguments])
    resnet_against_highway.main()
    found = json.loads((tmp_path / "a.json").read_text())["networks"]["highway-20"]
    assert len(found["blocks_closed_one_by_one"]) == 9
    assert len(found["closed_cheapest_first"]["order"]) == 6  # without the first block of every stage
    assert found["swapped_at_random"]["blocks"][0] == 0
    assert found["swapped_at_random"]["error"][0] == [found["test_error"]]
    assert (tmp_path / "a.png").stat().st_size > 1000
    weights = tmp_path / "runs" / "highway-20" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    (tmp_path / "runs" / "highway-20" / "measured-20-20-1-0" / "swapped.npz").unlink()  # as if it had been killed
    earlier = json.loads((tmp_path / "a.json").read_text())
    earlier["networks"]["resnet-20"] = found | {"test_error": 0.5}  # measured elsewhere
    (tmp_path / "a.json").write_text(json.dumps(earlier))
    resnet_against_highway.main()
    assert weights.stat().st_mtime_ns == before
    networks = json.loads((tmp_path / "a.json").read_text())["networks"]
    assert list(networks) == ["resnet-20", "highway-20"]
    assert networks["highway-20"] == found
    assert networks["resnet-20"]["test_error"] == 0.5
    assert (tmp_path / "a.md").read_text().count("| resnet-20 |") == 1
