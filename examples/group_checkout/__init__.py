"""A hotel checks out a whole group at once.

A travel group leaves, and the clerk checks out all its guests in one go. Each guest has a stay with an account of its
own, so each is checked out separately, and any of them may fail: somebody has not paid for the minibar. When every stay
has answered, the group's checkout is completed, or failed with the list of those who must come to the desk.

The coach is waiting. If a stay has not answered after ten minutes, the clerk is told who is through and who is not.
"""
