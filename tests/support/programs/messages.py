"""The messages of kube-scheduler."""


def first_sentence(message: str) -> str:
    """Return `message` without what follows its first sentence, such as what preemption has found.

    Full stops in names of resources and labels have no space after them.
    """
    sentence, stop, _ = message.partition(". ")
    return sentence + stop.strip()
