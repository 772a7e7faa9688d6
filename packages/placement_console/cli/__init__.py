"""The commands `console` and `report`."""
