"""Format amounts of resources."""

from webhook.kube.pod.amounts import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY

_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def amount_text(resource: str, amount: int) -> str:
    """Return `amount` (thousandths of a core for cpu, bytes or units for other resources) as an exact quantity."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if _is_in_bytes(resource):
        for unit, size in _UNITS:
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


def _is_in_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX)
