"""The command ``isinglass``: one module for each subcommand, and what they share."""
