"""The networks of the benchmark, and the gradients of a third network, since Debian has no torchvision.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition (2015): ResNet-18 for ImageNet, ResNet-20 for
CIFAR-10.
"""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two convolutions and a short cut around them."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(out)
        self.around = nn.Sequential()
        if stride != 1 or channels != out:
            self.around = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, images):
        inner = functional.relu(self.first_norm(self.first(images)))
        return functional.relu(self.second_norm(self.second(inner)) + self.around(images))


def stages(channels, widths, blocks):
    layers = []
    for index, out in enumerate(widths):
        for block in range(blocks):
            layers.append(Block(channels, out, 2 if index > 0 and block == 0 else 1))
            channels = out
    return layers


def resnet18():
    """For images of 3 x 224 x 224; 1,000 classes; 11.7 million parameters."""
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.MaxPool2d(3, 2, padding=1), *stages(64, (64, 128, 256, 512), 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def resnet20():
    """For images of 3 x 32 x 32; 10 classes; 0.27 million parameters."""
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         *stages(16, (16, 32, 64), 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def resnet50_gradients():
    """The 148 largest gradients of ResNet-50 without its classifier, 94 MB: those of bench/collective/resnet50.h."""
    sizes = []

    def convolution(channels, out, width):
        sizes.extend([channels * out * width * width, out, out])

    convolution(3, 64, 7)
    channels, inner = 64, 64
    for blocks in (3, 4, 6, 3):
        for block in range(blocks):
            convolution(channels, inner, 1)
            convolution(inner, inner, 3)
            convolution(inner, 4 * inner, 1)
            if block == 0:
                convolution(channels, 4 * inner, 1)
            channels = 4 * inner
        inner *= 2
    for _ in range(11):
        sizes.remove(64)
    return [torch.zeros(size) for size in sizes]
