"""The graph as programs see it, and the tensors that a pass is asked for."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def saved_values_have_names(tw):
    x, w = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0)
    node = (x * w).grad_fn
    assert node._saved_self is x
    assert node._saved_other is w
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert (x**3).grad_fn._saved_exponent == 3
    assert not hasattr(node, "_saved_result")


def saved_values_are_refused_once_freed(tw):
    y = _leaf(tw, 1.0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn._saved_result


def sequence_numbers_ascend(tw):
    x = _leaf(tw, 1.0)
    y = x * 2
    z = y + x
    assert z.grad_fn._sequence_nr() == y.grad_fn._sequence_nr() + 1


def gradient_edges_are_inputs(tw):
    x = _leaf(tw, 1.0, 2.0)
    y = x * 3
    edges = [tw.autograd.graph.get_gradient_edge(t) for t in (x, y)]
    assert edges[0].node.variable is x
    assert (edges[1].node, edges[1].output_nr) == (y.grad_fn, 0)
    found = tw.autograd.grad((y * y).sum(), edges)
    assert [g.tolist() for g in found] == [[18.0, 36.0], [6.0, 12.0]]


def a_gradient_edge_needs_a_gradient(tw):
    with pytest.raises(RuntimeError, match="does not require gradients"):
        tw.autograd.graph.get_gradient_edge(tw.tensor(1.0))


def inputs_that_are_no_leaves_accumulate(tw):
    x, w = _leaf(tw, 1.0, 2.0), _leaf(tw, 3.0, 4.0)
    y = x * w
    (y * y).sum().backward(inputs=[w, y])
    assert y.grad.tolist() == [6.0, 16.0]
    assert w.grad.tolist() == [6.0, 32.0]
    assert x.grad is None


def inputs_that_are_not_used_stay_without(tw):
    x, w = _leaf(tw, 1.0), _leaf(tw, 2.0)
    (x * 2).backward(inputs=[x, w])
    assert x.grad.tolist() == [2.0]
    assert w.grad is None


def inputs_cannot_be_empty(tw):
    x = _leaf(tw, 1.0)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * 2).backward(inputs=[])


def unused_inputs_are_refused(tw):
    x, w = _leaf(tw, 1.0), _leaf(tw, 2.0)
    wanted = r"appears to not have been used in the graph\. Set allow_unused=True if this is the desired behavior\."
    for late in (w, x[0]):
        with pytest.raises(RuntimeError, match=wanted):
            tw.autograd.grad((x * w.detach()).sum(), [x, late])


def inputs_without_gradient_are_refused(tw):
    x = _leaf(tw, 1.0)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        tw.autograd.grad(x * 2, [x.detach()])
