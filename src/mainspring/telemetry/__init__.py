"""Telemetry: what an app reports about itself while it runs. Off unless it is asked for.

    telemetry    what is to be reported, and through what
    w3c          a trace context as text, which flows along in envelopes
    tracing      spans, by OpenTelemetry's API
    instruments  what is counted, in plain numbers
    prometheus   the instruments as they are scraped       (scraping: a port to be scraped at)
    meter        the instruments as OpenTelemetry reads them
    logs         fields of the current message in log lines
    carried      a handler's function on its way to another process, with trace and fields
    observed     what is kept of something under way

Nothing here knows the engine or a store: `mainspring.engine.observer` hands over plain values. What an extra brings is
imported where it is used.
"""
