"""A program that trains gives the same numbers, to the last bit, whether its modules are recorded or not."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

NETS = pathlib.Path(__file__).with_name("nets.py")
NAMES = ["resnet", "transformer", "checkpoint", "checkpoint_reentrant", "amp", "workers", "nested", "raising", "hooks"]


def run_nets(env, *words):
    done = subprocess.run([sys.executable, str(NETS), *words], env=env, capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def losses(quiet_home):
    return run_nets(quiet_home)


@pytest.mark.parametrize("name", NAMES)
def test_fifty_losses_are_equal_to_the_last_bit(losses, name):
    without, recorded, without_again = losses[name]
    assert len(without) == 50
    assert recorded == without
    assert without_again == without


def test_losses_are_equal_with_operators_recorded_in_every_step(losses, quiet_home):
    operators = run_nets({**quiet_home, "KYMO_TORCH_OPS": "all"}, "all")
    assert {name: recorded for name, (_, recorded, _) in operators.items()} == {name: losses[name][0] for name in NAMES}


@pytest.mark.skipif(not shutil.which("c++"), reason="torch.compile needs a C++ compiler")
def test_compiled_model_has_no_graph_break_recompilation_or_warning_more(quiet_home):
    without, recorded, without_again = run_nets(quiet_home, "compile")
    assert len(without["losses"]) == 50
    assert recorded == without
    assert without_again == without


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def two_ranks(env, *words):
    port = free_port()
    ranks = [subprocess.Popen([sys.executable, str(NETS), "ddp", str(rank), port, *words], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        said = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], said
    return [json.loads(out) for out, _ in said]


def test_two_ranks_that_share_gradients_stay_equal(quiet_home):
    without = two_ranks(quiet_home)
    assert len(without[0]) == len(without[1]) == 50
    assert two_ranks(quiet_home, "recorded") == without
