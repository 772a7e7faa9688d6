"""The registry of the rules, in the order in which they are applied."""

from collections.abc import Sequence

from webhook.mutation.mutate import Rule
from webhook.mutation.rules.batch_scheduler import BatchScheduler
from webhook.mutation.rules.bin_packing import BinPacking
from webhook.mutation.rules.extra_tolerations import ExtraTolerations
from webhook.mutation.rules.gpu_product import GpuProduct
from webhook.mutation.rules.guaranteed import Guaranteed
from webhook.mutation.rules.node_usage_affinity import NodeUsageAffinity
from webhook.mutation.rules.priority import Priority
from webhook.mutation.rules.scheduler_name import SchedulerName
from webhook.mutation.rules.spread import Spread

RULES: Sequence[type[Rule]] = (
    NodeUsageAffinity,
    GpuProduct,
    ExtraTolerations,
    BinPacking,
    SchedulerName,
    BatchScheduler,
    Priority,
    Spread,
    Guaranteed,
)
