"""The same dialogues to a broker of ours and to Apache Kafka 3.9 in ZooKeeper mode; the answers are compared.

``sides`` runs both, ``talk`` has a dialogue with one of them, ``plain`` makes answers comparable, ``known``
lists what may differ, with the reason. ``dialogues`` and ``static_dialogues`` are written by hand.
"""
