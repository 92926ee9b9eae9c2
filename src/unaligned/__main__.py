"""The entry point: `unaligned`, and `python -m unaligned`."""

import sys


def main() -> None:
    """Run the command line; errors and Ctrl-C outside of a command are one line as well."""
    try:
        from .cli import main as run  # here, as the import takes long enough to be interrupted

        return run()
    except KeyboardInterrupt:
        message, code = "Stopped by Ctrl-C.", 130
    except OSError as error:  # of stdout, from `--version` and `--help`
        message, code = f"Error: {error}.", 1
    except UnicodeEncodeError as error:  # from bytes of a path or an argument
        text = error.object[max(error.start - 40, 0) : error.end + 40]
        message = f"Error: The text {text!r} is not valid UTF-8. Rename the file, or retype it."
        code = 2
    print(message, file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
