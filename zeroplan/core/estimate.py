"""The estimate of one plan: both ledgers, and the time of the traffic."""

from dataclasses import dataclass, replace

from zeroplan.core.buffers import framework_buffers
from zeroplan.core.ledger import Ledger, Traffic
from zeroplan.core.plan import Plan
from zeroplan.core.states import model_states
from zeroplan.core.timing import Time, copy_time, traffic_time
from zeroplan.core.traffic import activation_copies, ratio_to_data_parallel, traffic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimate:
    """What a plan holds and sends, per GPU."""

    plan: Plan
    memory: Ledger
    traffic: Traffic
    time: Time
    """Of what moves between GPUs."""
    copy_time: Time
    """Of what moves between a GPU, its host and the host's disks."""
    ratio_to_data_parallel: float | None

    def on(self, plan: Plan) -> "Estimate":
        """The same ledgers on the cluster of `plan`, which differs in nothing else."""
        time, copies = traffic_time(self.traffic, plan.cluster), copy_time(self.traffic, plan.cluster)
        return replace(self, plan=plan, time=time, copy_time=copies)

    @property
    def psi(self) -> float:
        """Elements moved per step in units of the model's parameters."""
        return in_psi(self.traffic.elements, self.plan.params)


def estimate(plan: Plan) -> Estimate:
    """Both ledgers of a plan."""
    moved, held = traffic(plan), memory(plan)
    moved = moved._replace(copies=(*moved.copies, *activation_copies(plan, held)))
    return Estimate(
        plan=plan,
        memory=held,
        traffic=moved,
        time=traffic_time(moved, plan.cluster),
        copy_time=copy_time(moved, plan.cluster),
        ratio_to_data_parallel=ratio_to_data_parallel(plan, moved),
    )


def memory(plan: Plan) -> Ledger:
    """The memory ledger alone."""
    held = (*model_states(plan), *framework_buffers(plan))
    if plan.workload is None:
        return Ledger(held)
    from zeroplan.core.activations import activations  # not always counted

    return Ledger((*held, *activations(plan)))


def in_psi(elements: int, params: int) -> float:
    """Elements in units of the model's parameters; a whole number where it is one."""
    return elements // params if elements % params == 0 else elements / params
