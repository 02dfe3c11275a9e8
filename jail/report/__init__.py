"""Entries for a person to read: text and, later, pages. Pure: asks the host nothing."""
