"""Trainers of others, unmodified, under kymo run: `make trainers` installs them. KYMO_TRAINERS: the folder of their environment."""
import json
import os
import pathlib
import socket
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build/kymo"
BIN = pathlib.Path(os.environ.get("KYMO_TRAINERS", ROOT / "build/trainers")).resolve() / "bin"
SECONDS = 600

DATA = """
    import json, logging, os, sys, warnings
    warnings.filterwarnings("ignore")
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    def tensors(): return torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randn(32, 2))
    def say(model, *more):
        print(json.dumps([sum(p.double().sum().item() for p in model.parameters()).hex(), *more]))
"""

TRANSFORMERS = DATA + """
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    logging.disable(logging.WARNING)
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 24
        def __getitem__(self, at):
            ids = torch.arange(at, at + 8) % 32
            return {"input_ids": ids, "labels": ids}
    config = GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=32, n_positions=8, bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(config)
    arguments = TrainingArguments(
        output_dir=f"out{os.environ.get('RANK', '')}", max_steps=6, per_device_train_batch_size=2, gradient_accumulation_steps=2,
        logging_steps=2, eval_strategy="steps", eval_steps=3, save_strategy="steps", save_steps=3, report_to=[], disable_tqdm=True,
        use_cpu=True, seed=3)
    callbacks = []
    # callbacks
    trainer = Trainer(model=model, args=arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=callbacks)
    sys.stdout = sys.stderr  # times
    trainer.train()
    sys.stdout = sys.__stdout__
    say(model, [row[name] for row in trainer.state.log_history for name in ("loss", "eval_loss", "grad_norm") if name in row])
"""

LIGHTNING = DATA + """
    import {package} as pl
    logging.disable(logging.WARNING)
    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)
        def loss(self, batch):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        def training_step(self, batch, index):
            loss = self.loss(batch)
            self.log("train_loss", loss)
            return loss
        def validation_step(self, batch, index):
            self.log("val_loss", self.loss(batch))
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.05)
    data, net, callbacks = tensors(), Net(), []
    # callbacks
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", log_every_n_steps=2, logger=False, num_sanity_val_steps=0,
                         enable_progress_bar=False, enable_model_summary=False, default_root_dir="out", callbacks=callbacks)
    trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4), torch.utils.data.DataLoader(data, batch_size=4))
    say(net, {{name: value.item().hex() for name, value in trainer.callback_metrics.items()}})
"""

ACCELERATE = DATA + """
    from accelerate import Accelerator
    tracker = None
    # callbacks
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, log_with=tracker)
    accelerator.init_trackers("test")
    data, net, losses = tensors(), torch.nn.Linear(8, 2), []
    net, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.05),
                                                 torch.utils.data.DataLoader(data, batch_size=4))
    for number, (x, y) in enumerate(loader):
        with accelerator.accumulate(net):
            loss = torch.nn.functional.mse_loss(net(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather_for_metrics(loss.detach()).item())
        accelerator.log({"loss": losses[-1]}, step=number)
    accelerator.save_state("state")
    accelerator.load_state("state")
    say(net, losses)
"""

DEEPSPEED = DATA + """
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1")
    logging.disable(logging.CRITICAL)
    sys.stdout = sys.stderr  # how an extension is built
    import deepspeed
    net, losses = torch.nn.Linear(8, 2), []
    engine, *_ = deepspeed.initialize(model=net, config={
        "train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"lr": 0.05}}, "zero_allow_untested_optimizer": True,
        "csv_monitor": {"enabled": True, "output_path": "csv", "job_name": "test"}})
    for _ in range(6):
        loss = torch.nn.functional.mse_loss(engine(torch.randn(4, 8)), torch.randn(4, 2))
        losses.append(loss.item())
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint("saved")
    engine.load_checkpoint("saved")
    sys.stdout = sys.__stdout__
    say(net, losses)
    torch.distributed.destroy_process_group()
"""

COUNTED = {  # zones by name, counters by name, steps
    "transformers": (TRANSFORMERS, {"training step": 12, "data": 6, "evaluation": 2, "checkpoint": 2, "logging": 6},
                     {"loss": 3, "learning_rate": 3, "grad_norm": 3, "eval_loss": 2, "train_samples_per_second": 1}, 6),
    "lightning": (LIGHTNING.format(package="lightning.pytorch"),
                  {"training step": 16, "data": 32, "evaluation": 2, "checkpoint": 2}, {"train_loss": 8, "val_loss": 2}, 16),
    "pytorch_lightning": (LIGHTNING.format(package="pytorch_lightning"),
                          {"training step": 16, "data": 32, "evaluation": 2, "checkpoint": 2}, {"train_loss": 8, "val_loss": 2}, 16),
    "accelerate": (ACCELERATE, {"training step": 8, "evaluation: gather": 8, "checkpoint": 1, "checkpoint: load": 1, "logging": 8},
                   {"loss": 8}, 4),
    "deepspeed": (DEEPSPEED, {"backward": 6, "optimizer step": 6, "checkpoint": 1, "checkpoint: load": 1, "logging": 6},
                  {"learning_rate": 6}, 6),
}


class Place:
    def __init__(self, folder):
        self.folder, self.recording = folder, folder / "recording"
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("KYMO")}
        self.env.update(KYMO_DIR=str(folder / "live"), XDG_STATE_HOME=str(folder / "state"), KYMO_BIN=str(KYMO), HOME=str(folder),
                        PATH=f"{BIN}:{os.environ['PATH']}", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", MASTER_PORT=free_port(),
                        DS_ACCELERATOR="cpu")
        (folder / "live").mkdir(mode=0o700)

    def run(self, *command):
        done = subprocess.run([str(word) for word in command], env=self.env, cwd=self.folder, capture_output=True, text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    def write(self, code):
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(code))
        return path

    def recorded(self, *command):
        return self.run(KYMO, "run", "-q", "-o", self.recording, "--", *command)

    def rows(self, sql, recording=None):
        answer = json.loads(self.run(KYMO, "query", "-f", "json", recording or self.recording, sql))
        return [tuple(row.values()) for row in answer]

    def zones(self, recording=None):
        """Calls by name, without those of torch."""
        return dict(self.rows("SELECT name, count(*) FROM trace.zones WHERE source = 'python' AND name NOT LIKE 'gc %' GROUP BY 1",
                              recording))

    def counters(self, recording=None):
        return dict(self.rows("SELECT name, count(*) FROM trace.counters GROUP BY 1", recording))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize("package", COUNTED)
def test_phases_are_zones_metrics_counters_and_losses_equal_to_the_last_bit(place, package):
    code, zones, counters, steps = COUNTED[package]
    path = place.write(code)
    without = place.run(BIN / "python", path)
    assert place.recorded(BIN / "python", path) == without and json.loads(without.splitlines()[-1])
    found = place.zones()
    assert {name: found.get(name) for name in zones} == zones
    found = place.counters()
    assert {name: found.get(name) for name in counters} == counters and found["steps_per_second"] > 1
    assert place.rows("SELECT count(*) FROM trace.steps") == [(steps,)]
    assert place.rows("SELECT text FROM trace.marks WHERE name = 'kymo.trainers'") == []


def test_values_of_counters_are_those_that_the_trainer_logged(place):
    path = place.write(TRANSFORMERS)
    (line,) = place.recorded(BIN / "python", path).splitlines()
    logged = json.loads(line)[1]
    counted = [value for (value,) in place.rows("SELECT value FROM trace.counters WHERE name IN ('loss', 'eval_loss', 'grad_norm')")]
    assert sorted(counted) == sorted(logged)


def test_each_rank_of_torchrun_has_its_phases(place):
    path = place.write(TRANSFORMERS.replace("use_cpu=True", "use_cpu=True, ddp_backend='gloo'").replace(
        "    say(", "    torch.distributed.destroy_process_group()\n    if False: say("))
    place.recorded(BIN / "python", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
                   place.env["MASTER_PORT"], path)
    assert place.rows("SELECT rank, count(*) FROM trace.zones WHERE name = 'training step' GROUP BY 1 ORDER BY 1") == [(0, 12), (1, 12)]


def own(place, code, said):
    """A program that turns recording on by itself, with the callback; its recording."""
    place.env["KYMO"] = "on"
    assert place.run(BIN / "python", place.write(code)) == said
    (recording,) = (path for path in (place.folder / "live").iterdir() if place.counters(path))
    return recording


CALLBACKS = {
    "transformers": (TRANSFORMERS, "callbacks = [{import}transformers').KymoCallback()]",
                     {"training step": 6, "evaluation": 2}, {"loss": 3, "eval_loss": 2}),
    "lightning": (LIGHTNING.format(package="lightning.pytorch"), "callbacks = [{import}lightning').KymoCallback()]",
                  {"training step": 16, "evaluation": 2}, {"train_loss": 9, "val_loss": 5}),  # on_fit_end has all again
    "accelerate": (ACCELERATE, "tracker = {import}accelerate').KymoTracker()", {}, {"loss": 8}),
}


@pytest.mark.parametrize("package", CALLBACKS)
def test_callbacks_record_where_nothing_is_borrowed_and_nothing_twice(place, package):
    code, line, zones, counters = CALLBACKS[package]
    said = place.run(BIN / "python", place.write(code))
    line = line.replace("{import}", "__import__('importlib').import_module('kymo.integrations.")
    with_callback = code.replace("# callbacks", line)
    path = place.write(with_callback)
    assert place.recorded(BIN / "python", path) == said
    borrowed = place.zones().get("training step"), place.counters()["loss" if package != "lightning" else "train_loss"]
    assert borrowed == (COUNTED[package][1]["training step"], COUNTED[package][2].get("loss", 8))
    recording = own(place, with_callback, said)
    assert place.zones(recording) == zones
    found = place.counters(recording)
    assert {name: found.get(name) for name in counters} == counters
