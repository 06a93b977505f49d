"""One stream, told again.

travel           every event with the state before and after it: travel
changes          what an event made of a state, place by place
branches         which instructions of authors' code a call runs, and which cases, guards and ifs these are
explain          why a decision was made: explain
as_test          a step as a given / when / then test
retelling        one instance that takes what comes, as its stream remembers it, from a change of its recorded story on
documents        what of these the command line prints as JSON and HTTP sends: one set of records
counterfactual   the recorded story and the other one, side by side: counterfactual
"""
