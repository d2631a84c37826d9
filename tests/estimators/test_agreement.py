"""An estimator and a run with the same settings, rows and seed are the same network."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from verydeep.data import DataConfig
from verydeep.sklearn import HighwayClassifier, HighwayRegressor
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train


def frame(rows: int, seed: int) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    table = pd.DataFrame(
        {
            "size": random.normal(3, 1, rows),
            "age": random.randint(1, 90, rows),
            "kind": random.choice(list("xyz"), rows),
        }
    )
    table["price"] = 100 * table["size"] + table["age"] + random.normal(0, 5, rows)
    table["label"] = np.where(table["size"] > 3, "big", "small")
    table.loc[::11, "age"] = np.nan
    return table


@pytest.mark.parametrize("target", ["label", "price"])
def test_an_estimator_predicts_what_a_run_predicts(target: str, tmp_path: Path) -> None:
    other = {"label": "price", "price": "label"}[target]
    known, new = (frame(rows, seed).drop(columns=other) for rows, seed in ((120, 0), (40, 1)))
    known.to_csv(tmp_path / "train.csv", index=False)
    new.to_csv(tmp_path / "test.csv", index=False)
    config = TrainConfig(
        DataConfig(str(tmp_path), target=(target,), validation=0.2),
        ModelConfig("highway-mlp", depth=4, width=8),
        OptimConfig(lr=0.05),
        ScheduleConfig(),
        epochs=5,
        batch_size=20,
        threads=1,
    )
    run = train(config, tmp_path / "run", progress=False)
    rows = new.drop(columns=target)
    shared: dict[str, Any] = {
        "depth": 4,
        "width": 8,
        "lr": 0.05,
        "epochs": 5,
        "batch_size": 20,
        "validation_fraction": 0.2,
    }
    known = pd.read_csv(tmp_path / "train.csv")  # the same bits of every number
    if target == "label":
        model = HighwayClassifier(**shared, random_state=0).fit(known.drop(columns=target), known[target])
        np.testing.assert_allclose(model.predict_proba(rows), run.predict_proba(rows), atol=1e-5)
        assert model.predict(rows).tolist() == run.predict(rows).tolist()
    else:
        regressor = HighwayRegressor(**shared, random_state=0).fit(known.drop(columns=target), known[target])
        deviation = run.task.deviation[0]
        values = np.asarray(run.predict(rows)).reshape(-1)
        np.testing.assert_allclose(regressor.predict(rows) / deviation, values / deviation, rtol=0, atol=1e-5)
