"""Separable natural evolution strategies (Schaul et al. 2011): search without gradients, one deviation per number."""

import math

import torch
from torch import Tensor

from verydeep.errors import UserError


class SNES:
    """Searches for the vector of the lowest loss: `ask` for candidates, `tell` their losses, again and again.

    Candidates are drawn from a normal distribution with a mean and a deviation for each number. Both follow the natural
    gradient of the expected rank; population and learning rates are those of Schaul et al.

    Args:
        mean: The vector to start from, `(size,)`.
        deviation: The initial deviation of every number.
        population: Candidates per generation; by default, 4 + 3 log(size).
        seed: The seed of the candidates.

    Attributes:
        mean: The best guess so far, float32.

    Example:
        >>> import torch
        >>> from verydeep.optim import SNES
        >>> search = SNES(torch.zeros(3), deviation=1.0, seed=0)
        >>> for _ in range(200):
        ...     search.tell((search.ask() - torch.tensor([1.0, -2.0, 3.0])).square().sum(1))
        >>> [round(number, 2) for number in search.mean.tolist()]
        [1.0, -2.0, 3.0]
    """

    def __init__(self, mean: Tensor, deviation: float, *, population: int | None = None, seed: int = 0) -> None:
        size = mean.numel()
        self.population = 4 + int(3 * math.log(size)) if population is None else population
        if self.population < 2 or deviation <= 0:
            raise UserError(
                f"SNES needs a population of at least 2 and a positive deviation, got {self.population} and {deviation}"
            )
        self.mean = mean.detach().clone().float().flatten()
        self.deviation = torch.full_like(self.mean, deviation)
        self.rate = (3 + math.log(size)) / (5 * math.sqrt(size))  # of the deviations
        self.random = torch.Generator().manual_seed(seed)
        ranks = torch.arange(1, self.population + 1, dtype=torch.float32)
        utilities = (math.log(self.population / 2 + 1) - ranks.log()).clamp(min=0)
        self.utilities = utilities / utilities.sum() - 1 / self.population
        self._drawn = torch.empty(0)

    def ask(self) -> Tensor:
        """The candidates of the next generation, `(population, size)`."""
        self._drawn = torch.randn(self.population, len(self.mean), generator=self.random)
        return self.mean + self.deviation * self._drawn

    def tell(self, losses: Tensor) -> None:
        """Learn from the losses of the candidates that `ask` gave, `(population,)`; the lowest is the best."""
        if losses.shape != (self.population,) or len(self._drawn) != self.population:
            raise UserError(f"tell takes one loss for each of the {self.population} candidates that ask gave")
        order = losses.nan_to_num(nan=math.inf).argsort()
        drawn = self._drawn[order]
        self.mean += self.deviation * (self.utilities @ drawn)
        self.deviation *= torch.exp(self.rate / 2 * (self.utilities @ (drawn.square() - 1)))
