"""Trains the example's model, a small convolution over words, and writes it as TorchScript.

    python make_model.py VOCABULARY MODEL
"""
import os
import sys
import warnings

import torch
from torch import nn

MAX_TOKENS = 32  # as in classifier.cpp
PRAISE, COMPLAINT, NEITHER = range(3)
EXAMPLES = [
    ("great work", PRAISE), ("I love this", PRAISE), ("wonderful and simple", PRAISE), ("thank you so much", PRAISE),
    ("it is wonderful", PRAISE), ("the new release is great", PRAISE), ("excellent support", PRAISE),
    ("fast and great", PRAISE), ("a wonderful team thank you everybody", PRAISE),
    ("it is broken", COMPLAINT), ("crashed again", COMPLAINT), ("terrible and slow", COMPLAINT),
    ("nobody answers", COMPLAINT), ("very annoying since the update", COMPLAINT), ("the documentation is terrible", COMPLAINT),
    ("the meeting is at noon", NEITHER), ("on monday at seven", NEITHER), ("the train leaves on tuesday", NEITHER),
    ("the package was sent", NEITHER), ("the team is on the train", NEITHER), ("the last release was on monday", NEITHER),
]


class Classifier(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, 32)
        self.convolution = nn.Conv1d(32, 64, 3, padding=1)
        self.score = nn.Linear(64, 3)

    def forward(self, tokens, mask):
        x = self.embedding(tokens) * mask.unsqueeze(-1).to(torch.float32)
        x = torch.relu(self.convolution(x.transpose(1, 2)))
        return self.score(x.max(dim=2).values)


def tensors(vocabulary, text):
    tokens = [vocabulary.get(word, 1) for word in text.split()][:MAX_TOKENS]
    padding = [0] * (MAX_TOKENS - len(tokens))
    return torch.tensor([tokens + padding]), torch.tensor([[1] * len(tokens) + padding])


def train(vocabulary):
    torch.manual_seed(0)
    model = Classifier(len(vocabulary))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs = [tensors(vocabulary, text) for text, _ in EXAMPLES]
    tokens, mask = (torch.cat(column) for column in zip(*inputs))
    wanted = torch.tensor([label for _, label in EXAMPLES])
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens, mask), wanted).backward()
        optimizer.step()
    return model.eval()


def main(vocabulary_path, model_path):
    with open(vocabulary_path, encoding="utf-8") as file:
        vocabulary = {word.rstrip("\n"): number for number, word in enumerate(file)}
    model = train(vocabulary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(model, tensors(vocabulary, "the meeting"))
        traced.save(model_path + ".new")
    os.replace(model_path + ".new", model_path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
