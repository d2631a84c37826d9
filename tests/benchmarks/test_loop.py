"""Benchmarks that need the trainer's own loop find it."""

from pathlib import Path

from _loop import make_trainer, random_images, train_steps

from verydeep.data import DataConfig
from verydeep.training import ModelConfig, ProgressBar, TrainConfig, complete_config


def test_steps_of_the_trainer_run_on_random_images(tmp_path: Path) -> None:
    config = complete_config(TrainConfig(DataConfig("mnist"), ModelConfig(depth=2, width=4), epochs=2, threads=1))
    bar = ProgressBar()
    trainer = make_trainer(config, random_images(400, (1, 28, 28), 10), str(tmp_path), bar)
    bar.start(trainer.run, trainer.state.position, len(trainer.batches))
    train_steps(trainer, epoch=1, steps=2)
    bar.close()
    assert trainer.state.position.batch == len(trainer.batches)
