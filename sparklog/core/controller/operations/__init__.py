"""Operations on brokers: from what an operator asks for to wishes of brokers and moves of replicas.

An operation is level-triggered, as elections are: ``advance`` says what follows from the image, which is one
write at most, or what the operation waits for; ``looks`` says when that is asked.
"""
