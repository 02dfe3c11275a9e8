"""survey → plan → enter → supervise: the only place where rooms are wired together."""
