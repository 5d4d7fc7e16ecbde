"""The command line, ``cyxla VERB``: `main` with the table of verbs, their modules in `verbs`, and what they share."""
