"""The base of optimisers, and hooks on all of them; the same in both engines."""

from common.api.places import publish
from common.optim.optimizer import Optimizer, ParamsT, required
from common.optim.step_hooks import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

__all__ = ["Optimizer", "ParamsT", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

publish(__name__)
