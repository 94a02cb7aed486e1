"""The papers' own GPU measurements, for the cases that repeat them."""

IMAGE_300 = ["--input-shape", "x={batch},3,300,300"]

# Hong et al. 2024, Table 2, MiB; peaks include parameters and their gradients. The algorithms are
# Alg. 6, Alg. 3, Feng's and Chen's. Fig. 5 gives the error of its predictions: 2.8 % on average.
HONG_ALGORITHMS = ["hong-linear", "hong-selection", "feng-acg", "chen-sqrt"]
HONG = [
    ("alexnet", 128, [1002, 1003, 1003, 1106], 1174),
    ("vgg19", 128, [6444, 6835, 6836, 8404], 11262),
    ("alexnet", 4096, [9866, 9866, 9866, 13182], 15275),
    ("vgg19", 256, [11220, 12004, 12004, 15139], 20850),
]
HONG_PREDICTION_ERROR = 0.028

# Kusumoto et al. 2019, Table 1: change of the peak, parameters included, against keeping all.
# MC and TC are the paper's memory-centric and time-centric strategies.
KUSUMOTO_WAYS = [
    ("approx-dp, MC", ["--algo", "approx-dp", "--objective", "memory"]),
    ("approx-dp, TC", ["--algo", "approx-dp"]),
    ("exact-dp, MC", ["--algo", "exact-dp", "--objective", "memory"]),
    ("exact-dp, TC", ["--algo", "exact-dp"]),
    ("Chen's", ["--algo", "chen-search"]),
]
KUSUMOTO = [
    ("densenet161", 32, [-.81, -.78, -.80, -.78, -.79]),
    ("vgg19", 64, [-.36, -.22, -.36, -.22, -.34]),
    ("googlenet", 256, [-.39, -.36, -.39, -.31, -.24]),
    ("resnet50", 96, [-.62, -.51, -.62, -.51, -.59]),
    ("unet_572", 8, [-.45, -.26, -.48, -.42, -.18]),
    ("resnet152", 48, [-.75, -.73, -.75, -.73, -.74]),
    ("pspnet101_713", 2, [-.71, -.67, -.70, -.66, -.58]),
]

# Chen et al. 2016, Fig. 7: the sublinear plan takes about 30 % more time.
CHEN = [("resnet50", 32, .30), ("resnet152", 32, .30)]

# Feng and Huang 2019, Table 1: memory of re-forwarding over that of regular training, each taken as
# the difference between two batches, the second twice the first.
FENG = [
    ("densenet201", 16, .1839, []), ("densenet161", 16, .1684, []), ("resnet152", 16, .2007, []),
    ("vgg11", 64, .6055, []), ("alexnet", 1024, .7380, []), ("resnet101", 32, .2545, []),
    ("resnet34", 128, .3959, []), ("densenet121", 32, .1948, []), ("vgg13", 64, .6228, []),
    ("vgg16", 64, .5785, []), ("vgg19", 64, .5226, []), ("densenet169", 32, .1757, []),
    ("resnet50", 64, .3454, []), ("resnet18", 256, .5365, []),
    ("inception_v3", 32, .3058, IMAGE_300),
]
