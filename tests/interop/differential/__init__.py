"""The same dialogues to a broker of ours and to Apache Kafka 3.9 in ZooKeeper mode; the answers are compared.

``sides`` runs both, ``talk`` has a dialogue with one of them, ``plain`` makes answers comparable; ``known``
and its siblings list what may differ, with the reason. All dialogues are written by hand: those of groups
(``group``, ``dialogues``, ``static_dialogues``), those of transactions (``producer``,
``coordinator_dialogues``, ``log_dialogues``, ``pending_offset_dialogues``), and those of administrators.
"""
