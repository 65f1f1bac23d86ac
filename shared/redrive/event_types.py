"""The types of event there are: what the log, the bus, hooks and the console may name."""

from __future__ import annotations

JOB_EVENTS = (
    "step_started",
    "action_started",
    "action_completed",
    "action_error",
    "action_lost",
    "action_stalled",
    "action_timeout",
    "action_unkillable",
    "step_retry",
    "step_retry_exhausted",
    "step_failed_terminal",
    "late_result",
    "job_cancelled",
    "job_killed",
    "job_restarted",
    "job_requeued",
    "job_run_now",
    "job_held",
    "job_released",
    "job_discarded",
    "job_snoozed",
    "job_interrupted",
    "heartbeat_late",
    "condition_error",
)
RUN_EVENTS = ("execution_started", "execution_completed", "execution_failed", "gate_opened")
NODE_EVENTS = (
    "breaker_opened",
    "breaker_closed",
    "queue_paused",
    "queue_resumed",
    "task_paused",
    "task_resumed",
    "schedule_fired",
    "schedule_missed",
    "schedule_paused",
    "schedule_resumed",
    "config_reloaded",
    "config_rejected",
    "pipeline_added",
    "order_refused",
    "order_discarded",
    "store_backed_up",
    "node_started",
    "node_draining",
    "node_stopped",
    "node_late",
    "node_lost",
    "disk_low",
    "hook_failed",
)
EVENT_TYPES = (*JOB_EVENTS, *RUN_EVENTS, *NODE_EVENTS)

# A redrive tells its own story, under types that all begin like this.
REDRIVE_PREFIX = "redrive_"
