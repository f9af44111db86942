"""What the research example knows about the world."""

TEXTS = {
    "leases": (
        "Leases",
        "A lease is the right to work on something until a moment. A worker that dies lets its lease run out, "
        "and another worker takes over. A token that grows with every lease keeps the late worker out.",
    ),
    "queues": (
        "Queues",
        "A queue hands work to workers. A durable queue remembers what it handed out, so that work survives "
        "a crash of the worker and of the queue itself.",
    ),
    "sagas": (
        "Sagas",
        "A saga is a row of steps with a way back for each. Durable steps are recorded before the next begins, "
        "so that a crash in the middle is no reason to begin from the first step.",
    ),
    "idempotency": (
        "Idempotency",
        "Doing the same thing twice is the same as doing it once if the second time is recognised. A key that "
        "stays the same for every try of a step lets the other side recognise it.",
    ),
}
