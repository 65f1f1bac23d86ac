"""taskiq on a Redis stream: the broker, and the task that notes how old it is."""

import os

from noting import note_age
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(os.environ["REDIS_URL"])


@broker.task
async def age(sent: float) -> None:
    note_age(sent)
