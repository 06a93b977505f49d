"""Understanding: what a workflow can do, read from its code, and what its instances did, read from their streams.

Pure functions over workflow classes and over the read side of a store. The command line prints what they return, and
other tools call them as they are.

    model      a workflow as a state machine: states, transitions, and the places that could not be read
    reading    decide and evolve, read without running them: read_machine
    mining     what instances did: states, steps between them, and times
    diagram    what the code can do and what instances did, as one picture      (texts, places: its words)
    lint       what is wrong with a workflow, as far as its code and its app tell: lint
    layout     boxes and lines of a diagram in their places: nothing lies on top of anything else
    mermaid, dot, svg    a diagram, written down                       (markup: texts inside XML and HTML)
    drawing    a workflow of an app, ready to be drawn
    documentation    a page for each workflow: what is known of it, as Markdown or HTML
    files      files that are written whole or not at all
    rows       the streams of many instances without their bodies, in pages
    samples    many durations in little memory: percentiles, exact or within a stated error
    variants, timeline, tally, account    counts and times, taken in one pass over the pages
    helpers, counting    the same for all that a search finds, in several processes where there are many
    figures    what is told of workflows: throughput, durations, failures, states, commands, paths, costs
    stuck, reasons    instances that seem stuck, and why each does not go on
    quantities, charts, plots    figures as words and as pictures

    streams      the streams of many instances, in batches
    walk         one stream, decided and folded once more            (contrast: what has changed, in few words;
                                                                       findings: what it finds; watch: no effects)
    what_if      the report on many of them, by kind of difference
    checking     many instances, checked, here or in several processes
    file_check   those in a file
    old_code     older code beside today's, and the states that it comes to    (old_process: where it runs)
    export       streams to a file                                    (redaction: what may leave; stream_file: JSON
                                                                       lines; xes and ocel: for process mining;
                                                                       activities: what happened, in few words)
    changes          what an event made of a state, place by place
    travel           a stream walked from its beginning: the state before and after every event
    tracing          which instructions of authors' code a call runs
    cases            which branches of the source that were: cases, the guards that refused, ifs
    explain          why a decision was made: the two above together
    recollection     what a stream remembers of the world outside: what came when, and in answer to what
    retelling        one instance that takes what comes, from a change of its recorded story on
    counterfactual   the recorded story and the other one, side by side
    links            which other instances an instance has to do with
    as_test          a step of an instance as a given / when / then test
"""
