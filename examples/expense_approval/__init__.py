"""An employee's expense waits for a manager's answer.

An employee hands in an expense, and the manager is asked to approve it. A manager who has not answered after three days
is reminded. After seven days the senior manager is asked as well, and from then on the first answer of either counts.
If nobody has answered after another seven days, the expense lapses and the employee is told. An approved expense is
paid out.
"""
