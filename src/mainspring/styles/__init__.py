"""Other ways to write a workflow. Each compiles to the members of Workflow; nothing outside knows that they exist."""
