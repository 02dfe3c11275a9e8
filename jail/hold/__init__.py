"""Held trees: what a session keeps of the writes inside, what a person sees of it, and how it is applied."""
