"""The Python functions that representative admissions call, counted and compared with a committed table."""
