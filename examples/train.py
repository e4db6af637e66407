"""Trains a small language model on text that it makes up itself, and records how.

    kymo run -- python examples/train.py
    kymo report

Without `kymo run` it trains just the same, and nothing is recorded.

The model is a character-level transformer of 1.3 million parameters; a run takes some 15 seconds on one core. It is
right but not as fast as it could be, and the report says where the time goes. On a slow machine it stops early.
"""
import argparse
import math
import random
import time

import kymo
import torch
import torch.nn.functional as F
from torch import nn

CONTEXT = 64
BATCH = 12
DOCUMENT_SENTENCES = 2500

NOUNS = ["robot", "gardener", "river", "engine", "sparrow", "teacher", "lantern", "captain"]
VERBS = ["watches", "repairs", "follows", "remembers", "carries", "measures", "paints", "finds"]
ADJECTIVES = ["quiet", "bright", "old", "careful", "small", "heavy", "curious", "green"]


def sentence(rng):
    one, two = rng.sample(NOUNS, 2)
    number = rng.randrange(2, 50)
    return rng.choice([
        f"the {rng.choice(ADJECTIVES)} {one} {rng.choice(VERBS)} the {two}.",
        f"{number} and {number + 1} make {2 * number + 1}.",
        f"every {one} {rng.choice(VERBS)} a {rng.choice(ADJECTIVES)} {two}.",
    ])


def make_documents(count, seed):
    rng = random.Random(seed)
    return [" ".join(sentence(rng) for _ in range(DOCUMENT_SENTENCES)) for _ in range(count)]


class Vocabulary:
    def __init__(self, documents):
        self.characters = sorted(set("".join(documents)))
        self.number_of = {character: i for i, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        return [self.number_of[character] for character in text]

    def decode(self, numbers):
        return "".join(self.characters[number] for number in numbers)


def make_batch(documents, vocabulary, rng):
    """Windows of CONTEXT characters, and for each character the one that follows it."""
    rows = []
    for _ in range(BATCH):
        numbers = vocabulary.encode(rng.choice(documents))
        start = rng.randrange(len(numbers) - CONTEXT - 1)
        rows.append(numbers[start:start + CONTEXT + 1])
    batch = torch.tensor(rows)
    return batch[:, :-1], batch[:, 1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attention(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(rows, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, characters, width=160, layers=4, heads=4):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x):
        x = self.characters(x) + self.places.weight[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(model, batch):
    inputs, targets = batch
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train_step(model, optimizer, documents, vocabulary, rng):
    kymo.step()
    with kymo.phase("data"):
        batch = make_batch(documents, vocabulary, rng)
    with kymo.phase("forward"):
        loss = loss_of(model, batch)
    with kymo.phase("backward"):
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
    with kymo.phase("optimizer"):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    kymo.record("loss", loss.item())
    kymo.record("batch_size", BATCH)
    return loss.item()


@kymo.region
@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    losses = [loss_of(model, batch).item() for batch in batches]
    model.train()
    return sum(losses) / len(losses)


@kymo.region
@torch.no_grad()
def write(model, vocabulary, beginning, length):
    numbers = vocabulary.encode(beginning)
    for _ in range(length):
        logits = model(torch.tensor([numbers[-CONTEXT:]]))[0, -1]
        numbers.append(int(logits.argmax()))
    return vocabulary.decode(numbers)


def main():
    parser = argparse.ArgumentParser(description="Trains a small language model on text that it makes up itself.")
    parser.add_argument("--steps", type=int, default=140, help="at most so many (140)")
    parser.add_argument("--seconds", type=float, default=20, help="stop training after so long (20)")
    parser.add_argument("--evaluate-every", type=int, default=35)
    options = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)  # for a model as small as this, two threads wait for each other more than they work
    rng = random.Random(1)
    with kymo.region("prepare"):
        documents = make_documents(8, seed=2)
        vocabulary = Vocabulary(documents)
        model = Model(len(vocabulary))
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        held_out = [make_batch(make_documents(1, seed=3 + i), vocabulary, rng) for i in range(2)]
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.1f} M parameters, {len(vocabulary)} characters, "
          f"{options.steps} steps or {options.seconds:g} s", flush=True)

    began = time.monotonic()
    for number in range(1, options.steps + 1):
        loss = train_step(model, optimizer, documents, vocabulary, rng)
        last = number == options.steps or time.monotonic() - began > options.seconds
        if last or number % options.evaluate_every == 0:
            kymo.step_end()
            kymo.mark("evaluation", f"after {number} steps")
            held_out_loss = evaluate(model, held_out)
            kymo.record("held_out_loss", held_out_loss)
            print(f"step {number:4}   loss {loss:.3f}   held out {held_out_loss:.3f}   "
                  f"perplexity {math.exp(held_out_loss):6.2f}   {time.monotonic() - began:5.1f} s", flush=True)
        if last:
            break
    print(f"it writes: {write(model, vocabulary, 'the ', 50)!r}")
    print(f"final loss {held_out_loss:.3f}")


if __name__ == "__main__":
    main()
