"""Answers of `how_deep` that nobody computed: a usual one for each task, and ones at the limits."""

from dataclasses import replace

import numpy as np

from verydeep.depth import DepthAnswer, DepthNetwork, DepthPlan, DepthPoint, LayersUsed, OtherModel, TrainingCurve

EVIL = "</script><script>document.title = 'taken'</script>$x$"


def point(kind: str, depth: int, score: float, loss: float, best: float, measure: str = "accuracy") -> DepthPoint:
    assert kind in ("highway", "plain")
    wide = 0.004 if measure == "accuracy" else 0.03
    seeds = tuple(score + wide * move for move in (-0.5, -0.1, 0.0, 0.2, 0.4))
    return DepthPoint(
        "highway" if kind == "highway" else "plain",
        depth,
        loss=loss,
        score=score,
        excess=loss - best,
        excess_error=0.006,
        score_low=score - wide,
        score_high=min(score + wide, 1.0),
        seed_losses=tuple(loss + move / 100 for move in range(5)),
        seed_scores=seeds,
        seeds=tuple(range(5)),
        diverged=0 if score > 0.2 else 3,
        settings=("optim.lr=0.1", "model.width=64", "model.gate_bias=-2.0", "model.activation=relu"),
        parameters=650 + 8256 * depth,
        multiply_adds=640 + 8192 * depth,
        epochs=31.5,
        seconds=1.2 + 0.5 * depth,
    )


def used(depth: int = 50, layers: int = 9) -> LayersUsed:
    kept = tuple(range(1, depth + 1))
    scores = tuple(float(0.974 - 0.55 * np.exp(-0.45 * count)) for count in kept)
    cost = tuple(
        float(0.2 * np.exp(-0.12 * layer) * (1 + 0.5 * np.sin(7 * layer)) - 0.001) for layer in range(depth - 1)
    )
    return LayersUsed(
        depth,
        layers,
        seeds=(8, 9, 9, 10, 12),
        interval=(8, 12),
        kept=kept,
        score=scores,
        score_low=tuple(value - 0.01 for value in scores),
        score_high=tuple(min(value + 0.01, 1) for value in scores),
        cost=cost,
        cost_error=tuple(0.004 + abs(value) / 8 for value in cost),
        samples=1437,
    )


def answer() -> DepthAnswer:
    """Digits: two layers are enough, 50 plain layers learn nothing, and the deep highway uses 9."""
    table = [
        ("highway", 0, 0.955, 0.171), ("highway", 1, 0.967, 0.132), ("highway", 2, 0.974, 0.101),
        ("plain", 2, 0.972, 0.105), ("highway", 3, 0.975, 0.1), ("plain", 3, 0.973, 0.104),
        ("highway", 4, 0.975, 0.099), ("plain", 4, 0.97, 0.11), ("highway", 8, 0.976, 0.098),
        ("plain", 8, 0.968, 0.125), ("highway", 16, 0.975, 0.099), ("plain", 16, 0.93, 0.31),
        ("highway", 50, 0.974, 0.103), ("plain", 50, 0.112, 2.301),
    ]  # fmt: skip
    epochs = np.arange(1, 41)
    return DepthAnswer(
        name="digits",
        depth=2,
        kind="highway",
        interval=(2, 4),
        best_depth=8,
        best_kind="highway",
        points=tuple(point(kind, depth, score, loss, 0.098) for kind, depth, score, loss in table),
        used=used(),
        others=(
            OtherModel("linear model", 0.958, 0.937, 0.975, 1437, 1437, 0.3),
            OtherModel("gradient boosting", 0.969, 0.95, 0.986, 1437, 1437, 4.2),
        ),
        network=DepthNetwork(
            "network", "trained", "highway", 2, 8970, valid_loss=0.091, rival_loss=0.104,
            test_score=0.9722, test_low=0.953, test_high=0.986, test_samples=360, rows=1437,
        ),
        curves=(
            TrainingCurve("highway", 50, tuple(float(2.2 * np.exp(-0.14 * epoch) + 0.004) for epoch in epochs)),
            TrainingCurve("plain", 50, tuple(float(2.303 - 0.0001 * epoch) for epoch in epochs)),
        ),
        guess_loss=2.303,
        guess_score=0.101,
        rows=(1150, 287, 360),
        features=64,
        plan=DepthPlan(
            most=50, depths=(0, 1, 2, 4, 8, 16, 50), trials=9, kept=3, search_epochs=6, finalists=1, seeds=5, folds=5,
            epochs=40, batch_size=50, widths=(32, 64), minutes=10.0, refinements=2, core_seconds=1130.0, jobs=2,
        ),
        seconds=577.0,
        source="digits",
        folder="runs/depth-digits",
    )  # fmt: skip


def regression() -> DepthAnswer:
    """A table on which plain networks of 32 layers diverged, and boosting is better than all networks."""
    table = [
        ("highway", 0, 0.478, 0.55), ("highway", 1, 0.62, 0.4), ("highway", 2, 0.702, 0.31), ("plain", 2, 0.7, 0.312),
        ("highway", 4, 0.751, 0.261), ("plain", 4, 0.74, 0.27), ("highway", 8, 0.752, 0.26), ("plain", 8, 0.42, 0.6),
        ("highway", 32, 0.749, 0.262), ("plain", 32, -1834.2, 1900.0),
    ]  # fmt: skip
    scores = tuple(0.749 - 6.0 * 0.6**count for count in range(1, 33))
    return replace(
        answer(),
        name="house prices",
        depth=4,
        interval=(4, 8),
        points=tuple(point(kind, depth, score, loss, 0.26, "r2") for kind, depth, score, loss in table),
        used=replace(
            used(32, 4), seeds=(4, 4, 5), interval=(4, 5), score=scores,
            score_low=tuple(value - 0.03 for value in scores), score_high=tuple(value + 0.03 for value in scores),
        ),
        others=(
            OtherModel("linear model", 0.481, 0.45, 0.51, 16512, 16512, 0.1),
            OtherModel("gradient boosting", 0.812, 0.79, 0.83, 10000, 16512, 9.5, "10,000 rows drawn at random"),
            OtherModel("nearest neighbours", None, note="left out: it takes too long for this table"),
        ),
        network=DepthNetwork("network", "pruned", "highway", 4, 33410, 0.25, 0.27, 0.748, 0.72, 0.77, 4128),
        curves=(TrainingCurve("highway", 32, (0.9, 0.5, 0.4, 0.3)), TrainingCurve("plain", 32, (1.2, 9.0, 800.0))),
        measure="r2",
        task="regression",
        guess_loss=1.0,
        guess_score=-0.0003,
        source="house prices.csv",
        folder="runs/depth house",
        options=("--target", "median price"),
    )  # fmt: skip


def convolutional() -> DepthAnswer:
    """Images: depth is counted in layers per stage."""
    table = [("highway", depth, score, 1 - score) for depth, score in
             ((1, 0.61), (2, 0.74), (4, 0.83), (8, 0.862), (12, 0.871), (16, 0.873))]  # fmt: skip
    table += [("plain", depth, score, 1 - score) for depth, score in ((2, 0.73), (4, 0.81), (8, 0.80), (16, 0.46))]
    return replace(
        answer(),
        name="cifar10",
        depth=12,
        interval=(8, 16),
        best_depth=16,
        points=tuple(point(kind, depth, score, loss, 0.127) for kind, depth, score, loss in table),
        used=used(48, 30),
        others=(OtherModel("linear model", 0.391, 0.38, 0.4, 50000, 50000, 60.0),),
        network=DepthNetwork("network", "trained", "highway", 12, 380_000, 0.41, None, 0.868, 0.861, 0.874, 10_000),
        curves=(),
        unit="layers per stage",
        guess_score=0.1,
        source="cifar10",
        folder="runs/depth-cifar10",
    )


def nothing_learned() -> DepthAnswer:
    points = tuple(
        replace(point("highway", depth, 0.49 + depth / 1000, 0.7, 0.7), diverged=1) for depth in (0, 1, 2, 4)
    )
    return replace(
        answer(), name="coin flips", depth=None, interval=None, points=points, used=None, network=None, curves=(),
        others=(OtherModel("linear model", 0.48, 0.44, 0.52, 500, 500, 0.1),), guess_score=0.51, guess_loss=0.693,
    )  # fmt: skip


def smallest() -> DepthAnswer:
    """One depth, and nothing else."""
    return DepthAnswer("one", 1, "highway", None, 1, "highway", (DepthPoint("highway", 1, 0.2, 0.9),))


def many_depths() -> DepthAnswer:
    depths = (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 96, 100)
    points = tuple(point("highway", depth, 0.9 + depth / 2000, 0.3 - depth / 2000, 0.25) for depth in depths)
    return replace(answer(), name="many", depth=96, interval=(64, 100), points=points, used=None, curves=())


def hostile() -> DepthAnswer:
    found = answer()
    return replace(
        found,
        name=EVIL,
        source=f"a folder/{EVIL}; rm -rf ~",
        folder=f"runs/{EVIL} $(id)",
        others=(*found.others, OtherModel(EVIL * 3, 0.9701, note=EVIL)),
        options=("--target", EVIL),
        points=tuple(replace(each, settings=(f"model.activation={EVIL}",)) for each in found.points),
    )


def diverged() -> DepthAnswer:
    """Every network of a regression is far worse than a blind guess."""
    points = tuple(point("highway", depth, -5.0 * 10**depth, 5.0, 5.0, "r2") for depth in (0, 1, 2, 4))
    return replace(nothing_learned(), points=points, measure="r2", task="regression", guess_score=0.0, others=())


EVERY = {
    "answer": answer,
    "regression": regression,
    "convolutional": convolutional,
    "nothing_learned": nothing_learned,
    "smallest": smallest,
    "many_depths": many_depths,
    "hostile": hostile,
    "diverged": diverged,
}
