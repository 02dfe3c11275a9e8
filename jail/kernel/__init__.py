"""One function for each kernel verb: declares and checks, decides nothing."""
