"""The engine: the shell around the pure core, one module per station on the way of a message.

     app.send / publish · handler result · due timer · reply · another workflow
       │
       ▼
     intake        envelope it, route it to instances                              (pending: an input on its way)
       ▼
     lanes         one queue and one cached state per instance                     (loader: state from the store;
                                                                                    long_streams: in pieces;
       ▼                                                                            branches: which part counts)
     stepper       decide, translate, fold: the pure step, made into a unit        (units; recorder, details: events
                                                                                    ↔ rows; asking: its tasks; sagas;
                                                                                    followers: who hears of it)
       ▼
     committer     group commit: many units, one transaction
       ▼
     dispatch      recorded outputs to their destinations                          (runners: handlers, with policies;
       │                                                                            pace: a worker's fair share;
       │                                                                            policies; subscriptions; replies;
       │                                                                            ends: starts and ends of children)
       │
       └─► results go to intake again; an output is settled in the commit that takes its result

     claims        takes what is due and in nobody's hands: timers, retries, inputs of other processes
     strays        gives back what this worker holds and does not know of
     relay         brings what programs have posted in transactions of their own into the inboxes
     engine        wires the stations; registers as a worker, beats, relieves the dead, drains
     operations    what operators do to an instance, each in one commit             (rewinding; migration)

     registry      what this process knows: workflows, handlers, subscribers        (handlers: functions as registered)
     replaying     a stored stream, decided once more
     wiring        what is refused before the first message                         (fingerprint: of the code;
                                                                                    sources: of its classes)
     children      parents and children: who began whom, and how it ended
     fan_out       many parts and one join, as an instance of its own               (parts: what travels)
     projector     folds the feed into read models                                  (projection: as declared; folding)
     publication   what an app itself publishes, as tiny instances
     recurring     schedules, each one instance that waits for its next time          (calendar: when that is)
     observer      what the stations tell of a message, where telemetry is on
     runtime       clock, tasks, threads and randomness, injected
     waiting       those who wait for an instance's end
     processes     the pool of processes for handlers that compute

Rules that hold everywhere:

- State moves ahead of the commit. A lane decides on the state that its last step made, committed or not, so that steps
  of one instance chain inside a batch. Versions protect it: when a commit comes back as a Conflict, all that was built
  on it conflicts too, and the lane begins again from the store.
- Effects stay behind the commit. An output is dispatched, and a caller is answered, only after its unit is durable.
- Rows are truth, wake-ups are hints. Whatever is lost from memory is claimed again.
"""
