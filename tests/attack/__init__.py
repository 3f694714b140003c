"""Attacks on what tapegen keeps on disk and builds ahead of time: long runs, each one command."""
