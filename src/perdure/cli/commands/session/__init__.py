"""The subcommands that show, change or copy one Session, each in a module with `main(argv)`."""
