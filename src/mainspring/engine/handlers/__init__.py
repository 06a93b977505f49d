"""Handlers: the code with side effects. A runner calls each within its policies.

handler (as registered), job (a claimed command), runner and runners, gate (breaker and rate limit), prefetch (how much
one worker holds), policies (pure), threads (for functions that block), process_pool (for those that compute),
hung_calls (calls that were given up and still run).
"""
