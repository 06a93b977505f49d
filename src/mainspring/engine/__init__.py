"""The engine: the shell around the pure core, one package per stage of a message's life.

     app.send / publish · handler result · due timer · reply · another workflow
       │
       ▼
     inputs        an envelope, an id, an instance: intake, and what else becomes an input
       ▼
     stepping      its turn in the lane of its instance, with the cached state, and what becomes of it: the pure step,
       ▼           made into one unit of what is recorded (recording: events to rows and back)
     committing    group commit: many units, one transaction
       ▼
     outputs       recorded outputs to their destinations: handlers, instances, children, subscribers, callers
       │
       ▼
     handlers      the code with side effects, run within its policies
       │
       └─► results go to inputs again; an output is settled in the commit that takes its result

     claiming      what is due and unclaimed comes to inputs and outputs
     claimable     what all the others say of that: when to look, what has come, what to leave to newer code
     operations    what operators do to an instance or to the fleet, each in one commit
     projections   fold the feed into read models
     schedules     each one instance that waits for its next time
     watching      authors' code in the event loop: what does not return is ended, what blocks the loop is named
     fleet         what workers write of themselves, and what follows from all of them

     engine            wires the packages; registers as a worker, sends heartbeats, relieves the dead, drains
     registry          what this process knows: workflows, handlers, subscribers
     startup_checks    what is refused before the first message
     runtime           clock, tasks, threads and randomness, injected
     this_worker       its key, name and pools, and whether it stops
     paused_work       what a pause holds back
     observer          what the stations report of a message, where telemetry is on

Each package's docstring names its modules. `docs/internals/way-of-a-message.md` walks through them.

Rules that hold everywhere:

- State moves ahead of the commit. A lane decides on the state that its last step made, committed or not, so that steps
  of one instance chain inside a batch. Versions protect it: when a commit comes back as a Conflict, all that was built
  on it conflicts too, and the lane begins again from the store.
- Effects stay behind the commit. An output is dispatched, and a caller is answered, only after its unit is durable.
- Rows are truth, wake-ups are hints. Whatever is lost from memory is claimed again.
"""
