"""Where `audit` reads records, and how it prints them."""
