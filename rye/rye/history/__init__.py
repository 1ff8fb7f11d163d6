"""Reading what was recorded: lists, statistics, receipts and replays."""
