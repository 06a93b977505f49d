"""Understanding: what a workflow can do, read from its code, and what its instances did, read from their streams.

Pure functions over workflow classes and over the read side of a store. The command line prints what they return, and
other tools call them as they are. A room for each question:

    reading         what the code can do: a workflow as a state machine, read without running it
    lint            what is wrong with a workflow, as far as its code and its app tell
    diagram         what the code can do and what instances did, as one picture: Mermaid, DOT, SVG
    what_if         would today's code have done the same? Many streams, decided and folded once more
    replay          one stream: the state after every event, why each decision was made, how else it could have gone
    figures         throughput, durations, failures, states, commands, paths and costs of many instances
    stuck           instances that do not go on, and why
    export          streams to a file, and what of them may leave
    documentation   a page for each workflow: what is known of it, as Markdown or HTML

What several rooms use:

    streams     the streams of many instances, in batches; without their bodies, in pages
    processes   work on many instances, shared among processes
    texts       durations, bytes, shares, and texts inside XML and HTML
    files       files that are written whole or not at all
"""
