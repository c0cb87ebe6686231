"""One client in a process of its own, which writes down what it sees.

    python client.py '{"role": "producer", "library": "confluent", "name": "producer-1/0", ...}'

SIGTERM ends it in good order: what is under way is waited for. SIGKILL is a crash: what was under way stays
without a completion, which is what a client that crashes knows of it. SIGUSR1 makes it tell where its
threads are.
"""

import faulthandler
import importlib
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package is, of which this is run as a script

from chaos.access import Access
from chaos.clients.client_parts import Settings
from histories import Writer

ROLES = {
    ("producer", "confluent"): ("confluent_client", "produce"),
    ("producer", "kafka-python"): ("kafka_python_client", "produce"),
    ("producer", "spark"): ("spark_client", "produce"),
    ("tail", "confluent"): ("confluent_client", "tail"),
    ("tail", "spark"): ("spark_client", "tail"),
    ("member", "confluent"): ("confluent_member", "join"),
    ("member", "kafka-python"): ("kafka_python_member", "join"),
    ("static-member", "confluent"): ("confluent_member", "join"),
    ("static-member", "kafka-python"): ("kafka_python_member", "join"),
    ("transactions", "confluent"): ("confluent_transactions", "produce"),
    ("transactions", "aiokafka"): ("aiokafka_transactions", "produce"),
    ("pipeline", "confluent"): ("confluent_transactions", "run_pipeline"),
    ("writes", "sparklog"): ("atomic_writes", "write"),
    ("trespasser", "confluent"): ("trespass", "try_by_librdkafka"),
    ("trespasser", "sparklog"): ("trespass", "try_by_requests"),
    ("guest", "sparklog"): ("trespass", "try_by_requests"),
    ("typed-writes", "sparklog"): ("typed.typed_writes", "write"),
    ("typed-tail", "sparklog"): ("typed.typed_reads", "tail"),
    ("reader", "confluent"): ("confluent_client", "re_read"),
    ("reader", "kafka-python"): ("kafka_python_client", "re_read"),
}
"""Module and function; each loads no more than its library."""


def main(text: str) -> int:
    given = json.loads(text)
    settings = Settings(**{**given, "access": Access(**given["access"])})

    def stop(number: int, frame: object) -> None:
        settings.is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    module, function = ROLES[settings.role, settings.library]
    path = Path(settings.folder) / f"{settings.name.replace('/', '-')}.jsonl"
    with Writer(path) as writer:
        settings.writer = writer
        getattr(importlib.import_module(f"chaos.clients.{module}"), function)(settings, writer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
