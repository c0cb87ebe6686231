"""Runs each broker as a Spark job of one task, on an executor whose environment is the driver's."""

import logging
from functools import partial
from typing import Any, Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.broker_process.broker_task import run_broker_task
from sparklog_runtime.executors import environment
from sparklog_runtime.executors.broker_jobs import job_tag
from sparklog_runtime.executors.refusal import environment_refusal, job_failure

logger: Final = logging.getLogger(__name__)


class SparkJobLauncher:
    """A ``JobLauncher`` of the supervisor. Each job has a tag, by which it can be cancelled."""

    def __init__(self, context: Any, profile: Any = None) -> None:
        self._context = context
        self._profile = profile
        self._wanted: Final = environment.environment()

    def run(self, plan: BrokerPlan) -> None:
        """Run a slot's task to its end. ConfigError if the executor's environment is not the driver's."""
        from pyspark import cloudpickle  # start time: Spark is imported while its JVM starts

        cloudpickle.register_pickle_by_value(environment)
        context = self._context
        context.addJobTag(job_tag(plan.slot))
        context.setJobDescription(f"sparklog broker in slot {plan.slot}")
        rows = context.parallelize([plan.slot], 1)
        if self._profile is not None:
            rows = rows.withResources(self._profile)
        task = cloudpickle.dumps(partial(run_broker_task, plan))
        try:
            outcome = rows.mapPartitions(environment.guarded(task, self._wanted)).collect()
        except Exception as error:
            raise job_failure(str(error)) from error
        match outcome:
            case [(environment.REFUSED, found)]:
                raise environment_refusal(found, self._wanted)
            case [end]:
                logger.info("slot %d: %s", plan.slot, end)
            case _:
                raise SparklogError(f"the job of slot {plan.slot} ended without an outcome")

    def cancel(self, slot: int) -> None:
        """End a slot's task by force."""
        self._context.cancelJobsWithTag(job_tag(slot))


def one_broker_per_executor(executor_cores: int) -> Any:
    """A profile whose task takes more than half an executor, or None where one task fills it anyway."""
    if executor_cores <= 1:
        return None
    # start time: a Spark on this machine has no use for it
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(executor_cores // 2 + 1)).build
