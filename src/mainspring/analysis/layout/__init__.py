"""The layout of a diagram: boxes in layers from top to bottom, lines between them, and nothing on top of anything else.

    graph     what is to be laid out, and what comes of it
    ranks     which box stands above which; lines that lead back are turned round
    layers    a spot for every box, label and passing line, in an order in which few lines cross
    places    how far to the right each spot stands
    lay_out   the whole, with the curves of the lines

It is pure, and the same diagram is laid out in the same way every time.
"""
