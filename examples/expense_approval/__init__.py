"""An employee's expense waits for a manager's answer.

An employee hands in an expense, and a manager is asked to approve it; never the employee, should they be one. If none
has answered after three days, the managers are reminded. After seven days the senior manager is asked as well, and
from then on the first answer of any of them counts. If there is no answer after another seven days, the expense lapses
and the employee is told. An approved expense is paid out.
"""
