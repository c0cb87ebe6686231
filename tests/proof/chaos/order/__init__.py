"""Whether plain producers keep their order while the leaders that they write to are killed or paused.

python -m chaos.order                   five kills and five pauses, without and with the bugs B86 and B87
python -m chaos.order --session 4       of brokers with shorter sessions; --kills N, --pauses N

Brokers are plain processes with a controller in this one, to which deaths are reported at once, as a
supervisor does. The producers are librdkafka's, without idempotence and with one request in flight. The
checker of histories judges them. Beside them a transactional producer and a consumer group commit without
pause: kills strike the broker that coordinates them, and the longest gap in their commits is told.
"""
