"""Read the amounts that the annotations ask of cards: memory, number, and version of the driver."""

from dataclasses import dataclass

from webhook.mutation.workload.annotations import Annotations
from webhook.policy.keys import CardMemory, Keys
from webhook.policy.spec.accelerators import Accelerator, Fact


@dataclass(frozen=True, slots=True)
class CardAmounts:
    """The requested amounts. An amount without a valid annotation is None."""

    memory: CardMemory | None = None
    count: int | None = None
    driver: int | None = None
    facts: tuple[Fact, ...] = ()
    """Those that are requested."""

    @classmethod
    def of(cls, annotations: Annotations, accelerator: Accelerator) -> "CardAmounts":
        """Return the amounts. An annotation is rejected if no label of the accelerator's nodes can meet it."""
        memory, count = annotations.read(Keys.gpu_memory), annotations.read(Keys.gpu_count)
        driver = annotations.read(Keys.gpu_driver)
        if memory is None and count is None and driver is None:
            return NO_AMOUNTS
        if memory is not None and not accelerator.memory_labels:
            annotations.reject(Keys.gpu_memory, _without_label(accelerator, "memory"))
            memory = None
        elif (
            memory is not None
            and accelerator.labels.memory_values
            and not accelerator.memory_values(memory.least_bytes)
        ):
            most = max(accelerator.labels.memory_values, key=lambda each: accelerator.memory_mib(each) or 0)
            detail = f"a card of {accelerator.name} has at most {most} (accelerators.labels.memoryValues)"
            annotations.reject(Keys.gpu_memory, detail)
            memory = None
        if count is not None and not accelerator.count_labels:
            annotations.reject(Keys.gpu_count, _without_label(accelerator, "count"))
            count = None
        if driver is not None and not accelerator.driver_labels:
            annotations.reject(Keys.gpu_driver, _without_label(accelerator, "driver"))
            driver = None
        amounts: dict[Fact, object] = {"memory": memory, "count": count, "driver": driver}
        return cls(memory, count, driver, tuple(fact for fact, amount in amounts.items() if amount is not None))


NO_AMOUNTS = CardAmounts()


def _without_label(accelerator: Accelerator, fact: str) -> str:
    return (
        f"nodes of {accelerator.name} have no label for it that node affinity can compare; remove it, or list a label "
        f"under accelerators.labels.{fact} of the policy"
    )
