"""The base of optimisers, and hooks on all of them; the same in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.optim.optimizer import Optimizer, required
from common.optim.step_hooks import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from common.tensor import boundary

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
