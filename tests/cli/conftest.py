from cli_helpers import command, model  # noqa: F401
