"""Operations: what people do to an instance or to the whole fleet, each in one commit.

operations (of one instance), rewind (a reset), migration, retried_letter (may a dead letter still be carried out?),
pauses (the workflow that remembers them), pause_orders (to pause and to resume), known_pauses (what this process knows
of them). The engine looks at those now and then, and has stepper, claimer and runners hold back.
"""
