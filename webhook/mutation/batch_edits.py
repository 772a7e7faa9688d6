"""The edit that writes what a batch scheduler reads."""

from dataclasses import dataclass

from webhook.backends.backend import PodField
from webhook.kube.text import cut
from webhook.mutation.editor import PodEditor
from webhook.mutation.edits import CHANGED, KEPT, Effect
from webhook.mutation.node_terms import LONGEST_SHOWN


@dataclass(frozen=True, slots=True)
class SetField:
    """Set a text field of the pod, unless the user or a controller set another value."""

    field: PodField

    def __str__(self) -> str:
        return str(self.field)

    def apply(self, pod: PodEditor) -> Effect:
        """Set the field if it is missing."""
        present = pod.get(*self.field.path)
        if present is None:
            pod.set(self.field.value, *self.field.path)
            return CHANGED
        if present == self.field.value:
            return KEPT
        kept = str(self.field._replace(value=cut(str(present), LONGEST_SHOWN)))
        return Effect(changed=False, warnings=(f"{kept} of the pod wins over {self.field.value}",), kept_value=kept)
