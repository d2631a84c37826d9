import torch

from verydeep.cpu import cpu_settings


def flushed() -> bool:
    return bool(torch.full((), 1e-38) * 0.01 == 0)


def test_settings_hold_inside_and_not_after() -> None:
    threads = torch.get_num_threads()
    assert not flushed()
    with cpu_settings(threads + 1):
        assert flushed()
        assert torch.get_num_threads() == threads + 1
        with cpu_settings():
            assert flushed()
            assert torch.get_num_threads() == threads + 1
        assert flushed()
    assert not flushed()
    assert torch.get_num_threads() == threads
