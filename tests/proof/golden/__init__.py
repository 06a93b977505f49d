"""What earlier commits have left behind: their databases, and the histories of the examples.

      orders, trips    workflows that any commit can run: `orders` since the first schema, `trips` since there are tasks
      shop             the app of both, as far as a commit knows it, with handlers that write down what they do
      workload         what a commit did before it was killed           (run with that commit's sources)
      reading          what stands in the streams then                   (the same)
      write            runs both for a commit and keeps what they leave  (`python -m tests.proof.golden.write REVISION`)
      databases/       what is kept: for each store and schema version the database, and what it must fold to
      restore          brings a kept database back into a store
      histories/       one history of each example's stories, replayed on every change

A release that adds a schema migration adds a golden database of the schema before it; a test holds that.
"""
