"""Chaos: faults upon real processes while real Kafka clients write and read, judged by what the clients saw.

run.py          the command (`make chaos`)
part.py         one part of a run: a cluster, clients, faults, the verdict
access.py       how clients reach the cluster, and as whom
nemesis.py      what a fault is; faults/ has the kinds
schedule.py     which fault comes when, drawn from a seed
denials.py      who may do nothing with a topic, and what a history shows of it
teams.py        who shares a secured cluster
bugs.py         bugs that are put into brokers
machines/       the processes and the places that they run in
clients/        producers, consumers and administrators
"""
