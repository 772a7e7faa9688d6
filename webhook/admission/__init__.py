"""The core: decides on one pod, from annotations and policy to the verdict and its proof."""
