"""Widgets: each knows its data and speaks in messages; none asks the app or the daemon."""
