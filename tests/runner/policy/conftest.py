"""A stand-in for PyTorch, as far as the hook touches it: the same modules, names, signatures and order of calls.

``torch.optim.optimizer`` keeps global step hooks since version 2.0; ``step`` of every optimizer runs them before and
after (there: ``Optimizer.profile_hook_step``). Parameters are ``torch.nn.Parameter``. Nothing else of PyTorch is here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "torch/__init__.py": "from torch._tensor import Tensor\nfrom torch import nn, optim\n__version__ = '2.5.1'\n",
    "torch/_tensor.py": """
class Tensor:
    def __init__(self, values):
        self.values, self.grad = list(values), None
    def detach(self):
        return Tensor(self.values)
    def reshape(self, *shape):
        return Tensor(self.values)
    def __getitem__(self, key):
        return Tensor(self.values[key])
    def tolist(self):
        return list(self.values)
""",
    "torch/nn/__init__.py": """
from torch._tensor import Tensor
class Parameter(Tensor):
    pass
class Linear:
    def __init__(self):
        self.weight, self.bias = Parameter([0.5] * 12), Parameter([0.0] * 3)
    def parameters(self):
        yield from (self.weight, self.bias)
""",
    "torch/optim/__init__.py": "from torch.optim.optimizer import Optimizer\nfrom torch.optim.sgd import SGD\n",
    "torch/optim/optimizer.py": """
import functools
from collections import OrderedDict
_global_optimizer_pre_hooks, _global_optimizer_post_hooks = OrderedDict(), OrderedDict()
def register_optimizer_step_pre_hook(hook):
    _global_optimizer_pre_hooks[len(_global_optimizer_pre_hooks)] = hook
def register_optimizer_step_post_hook(hook):
    _global_optimizer_post_hooks[len(_global_optimizer_post_hooks)] = hook
class Optimizer:
    def __init__(self, params, defaults):
        self.param_groups = [{"params": list(params), **defaults}]
    @staticmethod
    def profile_hook_step(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self, *_ = args
            for hook in _global_optimizer_pre_hooks.values():
                assert hook(self, args, kwargs) is None
            out = func(*args, **kwargs)
            for hook in _global_optimizer_post_hooks.values():
                hook(self, args, kwargs)
            return out
        return wrapper
""",
    "torch/optim/sgd.py": """
from torch.optim.optimizer import Optimizer
class SGD(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
    @Optimizer.profile_hook_step
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.values = [v - group["lr"] * g for v, g in zip(p.values, p.grad)]
""",
}

TRAIN = """
import torch
model = torch.nn.Linear()
optimizer = torch.optim.SGD(model.parameters(), lr={lr})
for _ in range({steps}):
    for p in model.parameters():
        p.grad = [0.1] * len(p.values)
    optimizer.step()
"""


@pytest.fixture
def write_torch():
    """Write the stand-in into a folder."""

    def write(folder: Path) -> None:
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


@pytest.fixture
def train():
    """A program that trains: ``train(steps)``; with ``lr=0`` nothing changes."""
    return lambda steps, lr=0.1: TRAIN.format(steps=steps, lr=lr)
