"""Lint for workflows: what is wrong with one, or may be, as far as its code and the app's wiring tell.

rules      what each rule looks for, why, and what to do; a finding, and the report
world      who takes what a workflow gives, and what comes back
runs       where instances can be, and what is on its way there
messages   rules about messages that come, from outside too
states     rules about states, and about cases that never match
outputs    rules about what is given
intended   comments that say a finding is intended
check      all of it on an app, and what is looked for in the history style, which has no states: `lint`
"""
