"""A workflow as a picture: what its code can do, what its instances did, or both.

    mining     what instances have in common, counted: states, kinds of steps, times
    diagram    the states and steps that are drawn: diagram_of
    labels     their texts
    mermaid, dot, svg    a diagram, written down
    layers     a spot for every box, label and passing line, in an order in which few lines cross
    layout     boxes and lines in their places, for SVG: nothing lies on top of anything else

The layout is pure, and the same diagram is laid out in the same way every time.
"""
