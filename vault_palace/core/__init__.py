"""Pure decisions and text work: no files, no clock, no environment, no logging."""
