"""policy + facts → steps and losses; pure: asks the host nothing."""
