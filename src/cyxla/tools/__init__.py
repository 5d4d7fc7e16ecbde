"""The command line: ``cyxla VERB``, one module per verb."""
