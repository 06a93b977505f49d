"""Lint for workflows: what is wrong with one, or may be, as far as its code and the app's wiring tell.

rules      what each rule looks for, why, and what to do
findings   a finding, and the report
world      who takes what a workflow gives, and what comes back
runs       where instances can be, and what is on its way there
messages   rules about messages that come
states     rules about states
outputs    rules about what is given
cases      the rule about cases that never match
history    what is looked for in the history style, which has no states
intended   comments that say a finding is intended
check      all of it on an app: lint
"""

from mainspring.analysis.lint.check import lint
from mainspring.analysis.lint.findings import Finding, Intended, Report
from mainspring.analysis.lint.rules import RULES, Rule

__all__ = ["RULES", "Finding", "Intended", "Report", "Rule", "lint"]
