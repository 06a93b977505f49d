"""A speeding violation becomes a traffic fine.

The police publish a report of every offence they record. This process stands at the edge of the fines office and reads
those reports. A parking violation is the town's business, so the process ends at once. For a speeding violation the
office needs two things before it can write to the owner of the car: a system number, under which the fine is known
everywhere, and an identification code, with which an owner who has no digital identity can look it up. Then the fine is
issued.

If one of the two is still missing after a day, somebody is told. The process goes on waiting: a fine is late, not lost.
"""
