"""Batches of a split, without worker processes.

The content of a batch depends only on the seed, the epoch and the number of the batch. An epoch can therefore be
resumed at any batch, and processes can share each batch without communicating.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from verydeep.data._augment import Augment
from verydeep.data._dataset import Split
from verydeep.errors import UserError


class Batches:
    """The batches of each epoch.

    Args:
        split: The samples; tensors on any device, memory-mapped, or images in their files.
        batch_size: Samples per batch, over all processes together.
        seed: The seed of the order of each epoch and of the augmentation.
        shuffle: Whether each epoch has its own random order; otherwise it is that of the split.
        augment: The augmentation of the images.
        rank: The rank of this process, which gets its part of each batch.
        world_size: The number of processes that share each batch.
        drop_last: Whether to drop the last batch if it is incomplete.

    Example:
        >>> from verydeep.data import Batches, load_dataset
        >>> batches = Batches(load_dataset("digits").train, 100, seed=0)
        >>> len(batches)
        15
        >>> for x, y in batches.epoch(0):
        ...     pass  # train on the batch
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        *,
        seed: int,
        shuffle: bool = True,
        augment: Augment = Augment(),  # noqa: B008 - frozen
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        _check_seed_and_rank(seed, rank, world_size)
        _check_size(len(split), batch_size, world_size, drop_last)
        _check_augment(split, augment)
        self.split, self.batch_size, self.seed, self.shuffle, self.augment = split, batch_size, seed, shuffle, augment
        self.rank, self.world_size = rank, world_size
        self.samples = len(split) // batch_size * batch_size if drop_last else len(split)

    def __len__(self) -> int:
        """Batches per epoch."""
        return (self.samples + self.batch_size - 1) // self.batch_size

    def size(self, batch: int) -> int:
        """Samples in a batch, over all processes together."""
        return min(self.batch_size, self.samples - batch * self.batch_size)

    def epoch(self, number: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Iterate over this process's part (x, y) of each batch of an epoch, from batch `start` on."""
        random, device = _generator(self.seed, number), self.split.x.device
        order = self._draw_order(random).to(device)
        moves = self.augment.draw(len(self.split), random).to(device) if self.augment else None
        for batch in range(start, len(self)):
            part = self._part(batch)
            x, y = self._samples(order[part])
            if moves is not None:
                x = self.augment(x, moves[part])
            yield x, y

    def order(self, number: int) -> Tensor:
        """The numbers of the samples in the order of an epoch, int64."""
        return self._draw_order(_generator(self.seed, number))

    def _draw_order(self, random: torch.Generator) -> Tensor:
        count = len(self.split)
        return torch.randperm(count, generator=random) if self.shuffle else torch.arange(count)

    def _part(self, batch: int) -> slice:
        """The positions of this process's part of a batch in the epoch's order; parts differ by at most one sample."""
        first = batch * self.batch_size
        size = self.size(batch)
        return slice(first + size * self.rank // self.world_size, first + size * (self.rank + 1) // self.world_size)

    def _samples(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x, y = self.split.x.index_select(0, rows), self.split.y.index_select(0, rows)
        return self.split.prepared(x), y


def _generator(seed: int, epoch: int) -> torch.Generator:
    """The random numbers of one epoch, always drawn on the CPU so that they are the same for every device."""
    state = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> 1))


def _check_seed_and_rank(seed: int, rank: int, world_size: int) -> None:
    if seed < 0:
        raise UserError(f"seed must be 0 or more, got {seed}")
    if not 0 <= rank < world_size:
        raise UserError(f"rank {rank} is not one of {world_size} processes")


def _check_size(samples: int, batch_size: int, world_size: int, drop_last: bool) -> None:
    if batch_size < 1 or batch_size % world_size:
        raise UserError(f"batch_size {batch_size} cannot be shared by {world_size} processes; give a multiple")
    if drop_last and samples < batch_size:
        raise UserError(f"{samples} samples do not fill one batch of {batch_size}; give a smaller batch_size")
    last = samples % batch_size
    if not drop_last and 0 < last < world_size:
        raise UserError(f"the last batch has {last} samples for {world_size} processes; choose another batch_size")


def _check_augment(split: Split, augment: Augment) -> None:
    if not augment:
        return
    if split.x.ndim != 4:
        raise UserError(f"only images can be augmented, but samples have shape {tuple(split.x.shape[1:])}")
    if len(augment.fill) not in (0, split.x.shape[1]):
        raise UserError(
            f"data.augment.fill has {len(augment.fill)} values, but the images have {split.x.shape[1]} channels"
        )
    if augment.pad > max(split.x.shape[2:]):
        raise UserError(f"data.augment.pad {augment.pad} is larger than the images, {tuple(split.x.shape[2:])}")
