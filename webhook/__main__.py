"""`python -m webhook` is `placement-webhook`."""

from webhook.cli import main

if __name__ == "__main__":
    main()
