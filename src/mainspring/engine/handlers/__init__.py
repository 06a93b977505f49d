"""Handlers: the code with side effects. A runner calls each within its policies.

handler (as registered), runner, gate (breaker and rate limit), prefetch (how much one worker holds), policies (pure),
process_pool (handlers that compute), hung_calls (calls that were given up and still run).
"""
