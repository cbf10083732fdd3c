"""Recording per thread, task and context: what PyTorch leaves open, and this engine promises."""

import asyncio
import contextvars

import dynamic as tw


def test_tasks_do_not_see_each_others_modes():
    async def with_mode(mode, log):
        with mode:
            for _ in range(5):
                log.append((tw.is_grad_enabled(), tw.is_inference_mode_enabled()))
                await asyncio.sleep(0)
        log.append((tw.is_grad_enabled(), tw.is_inference_mode_enabled()))

    async def main():
        logs = [[], [], []]
        modes = [tw.no_grad(), tw.enable_grad(), tw.inference_mode()]
        await asyncio.gather(*(with_mode(mode, log) for mode, log in zip(modes, logs, strict=True)))
        return logs

    off, on, inference = asyncio.run(main())
    assert off == [(False, False)] * 5 + [(True, False)]
    assert on == [(True, False)] * 6
    assert inference == [(False, True)] * 5 + [(True, False)]
    assert tw.is_grad_enabled()


def test_decorated_coroutines_and_asynchronous_generators():
    @tw.no_grad()
    async def coroutine():
        await asyncio.sleep(0)
        return tw.is_grad_enabled()

    @tw.inference_mode()
    async def generator():
        yield tw.is_inference_mode_enabled()
        await asyncio.sleep(0)
        yield tw.is_inference_mode_enabled()

    async def main():
        seen = [await coroutine(), tw.is_grad_enabled()]
        async for inside in generator():
            seen += [inside, tw.is_inference_mode_enabled()]
        return seen

    assert asyncio.run(main()) == [False, True, True, False, True, False]


def test_contexts_keep_their_mode():
    context = contextvars.copy_context()
    context.run(tw.set_grad_enabled, False)
    assert tw.is_grad_enabled()
    assert context.run(tw.is_grad_enabled) is False


def test_the_short_path_is_back_after_inference_mode():
    from common.core import mode

    before = len(mode.tracing)
    with tw.inference_mode():
        assert len(mode.tracing) == before + 1
        with tw.inference_mode(False):
            assert tw.is_grad_enabled()
    assert len(mode.tracing) == before


def test_methods_take_names_after_inference_mode():
    with tw.inference_mode():
        y = tw.ones(2)
    x = tw.ones(2)
    assert x.mul(other=x).tolist() == x.mul(other=y).tolist() == [1.0, 1.0]
